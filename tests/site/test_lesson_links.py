"""“In the lesson: …” leads to the section."""

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


def test_each_quoted_heading_is_a_link_and_the_words_stay_as_they_are() -> None:
    texts = (" “Padding” and “Masks: who may", "\n", "look at what”. Question 2 asks why.")
    document = page(*map(nodes.Text, texts))
    before = document.astext()
    assert link_headings(document, LABELS, link) == []
    assert linked(document) == [
        ("lesson.html#padding-mask", "Padding"),
        ("lesson.html#masks", "Masks: who may\nlook at what"),
    ]
    assert document.astext() == before


def test_a_heading_that_the_lesson_does_not_have_is_a_fault() -> None:
    document = page(nodes.Text(" “Padding” and “Paddling”."))
    assert link_headings(document, LABELS, link) == ["the lesson has no labelled section “Paddling”"]
    assert linked(document) == [("lesson.html#padding-mask", "Padding")]


def test_a_line_that_quotes_nothing_is_a_fault() -> None:
    (fault,) = link_headings(page(nodes.Text(" all of it.")), LABELS, link)
    assert "quotes no heading" in fault


def test_other_paragraphs_may_quote_what_they_like() -> None:
    document = page(nodes.Text(" “Padding” and “Paddling”."), lead="By the way:")
    assert link_headings(document, LABELS, link) == []
    assert linked(document) == []
