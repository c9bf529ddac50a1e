"""“In the lesson: …” leads to the section."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from autograder.site.lesson_links import link_headings

LABELS = {"Padding": "padding-mask", "Masks: who may look at what": "masks"}


def page(*after: nodes.Node, lead: str = "In the lesson:") -> nodes.document:
    document = new_document("exercises.md")
    document += nodes.paragraph("", "", nodes.emphasis("", lead), *after)
    return document


def linked(document: nodes.document) -> list[tuple[str, str]]:
    return [(link["refuri"], link.astext()) for link in document.findall(nodes.reference)]


def link(label: str) -> str:
    return f"lesson.html#{label}"


PADDING, MASKS = ("lesson.html#padding-mask", "Padding"), ("lesson.html#masks", "Masks: who may\nlook at what")


@pytest.mark.parametrize(
    ("lead", "texts", "links", "fault"),
    [
        ("In the lesson:", [" “Padding” and “Masks: who may", "\n", "look at what”. Why?"], [PADDING, MASKS], ""),
        ("In the lesson:", [" “Padding” and “Paddling”."], [PADDING], "“Paddling”"),
        ("In the lesson:", [" everything"], [], "no heading"),
        ("By the way:", [" “Padding” and “Paddling”."], [], ""),
    ],
)
def test_quoted_headings_of_the_lesson_are_links_and_the_words_stay(
    lead: str, texts: list[str], links: list[tuple[str, str]], fault: str
) -> None:
    document = page(*map(nodes.Text, texts), lead=lead)
    before = document.astext()
    faults = link_headings(document, LABELS, link)
    assert [fault in found for found in faults] == [True] * bool(fault)
    assert linked(document) == links
    assert document.astext() == before
