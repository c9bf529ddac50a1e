"""How many words of a page are to be read."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from autograder.site.extension import count_words


def page(*parts: nodes.Node) -> nodes.document:
    document = new_document("lesson.md")
    document += nodes.section("", nodes.title("", "A title of five words"), *parts)
    return document


def paragraph(text: str = "These are four words.") -> nodes.paragraph:
    return nodes.paragraph("", text)


def test_the_words_of_paragraphs_lists_quotations_and_boxes_are_counted() -> None:
    entries = nodes.bullet_list("", nodes.list_item("", paragraph()), nodes.list_item("", paragraph()))
    box = nodes.admonition("", nodes.title("", "Remember"), paragraph())
    assert count_words(page(paragraph(), entries, nodes.block_quote("", paragraph()), box)) == 20


def test_a_word_has_a_letter_or_a_digit() -> None:
    assert count_words(page(paragraph("An example – that's nn.RNN, of 3 · 4 numbers …"))) == 8


def test_formulas_in_a_sentence_are_left_out_and_names_of_code_are_words() -> None:
    mixed = nodes.paragraph(
        "", "", nodes.Text("Let "), nodes.math("", "a + b"), nodes.Text(" be "), nodes.literal("", "x.sum()")
    )
    assert count_words(page(mixed)) == 3


@pytest.mark.parametrize(
    "apart",
    [
        nodes.container("", paragraph(), classes=["cell"]),
        nodes.admonition("", paragraph(), classes=["dropdown", "tip"]),
        nodes.figure("", nodes.caption("", "A caption of five words"), nodes.legend("", paragraph())),
        nodes.table("", nodes.entry("", paragraph())),
        nodes.literal_block("", "x = 1"),
        nodes.math_block("", "a + b"),
        nodes.paragraph(),
        nodes.paragraph("", "", nodes.emphasis("", "Figure 1.2. What does this show? A caption.")),
    ],
    ids=["cell", "folded", "figure", "table", "code", "formula", "nothing", "caption under a cell"],
)
def test_what_stands_apart_is_not_counted(apart: nodes.Node) -> None:
    assert count_words(page(paragraph(), apart)) == 4
