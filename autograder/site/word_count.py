"""How much there is to read on a page: the words of its paragraphs and lists."""

from __future__ import annotations

import re

from docutils import nodes

_WORD = re.compile(r"\S*[^\W_]\S*")
# What stands apart: a cell's code and output, what a figure or a table shows with its caption, code, formulas, and what is folded.
_APART = (nodes.figure, nodes.image, nodes.table, nodes.literal_block, nodes.math_block, nodes.raw, nodes.footnote)
_APART_CLASSES = frozenset({"cell", "dropdown", "toggle", "hidden"})
# Authors write a figure's caption under its cell: an emphasised paragraph that begins so.
_CAPTION = re.compile(r"(Figure|Table) \d+\.\d+\.")


def count_words(document: nodes.document) -> int:
    """Return the number of words in the paragraphs and lists of a page; code, formulas, captions, tables and folded text are apart."""
    return sum(len(_WORD.findall(_text(paragraph))) for paragraph in document.findall(_is_read))


def _is_read(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.paragraph) or _is_caption(node):
        return False
    parent = node.parent
    while parent is not None:
        if isinstance(parent, _APART) or _APART_CLASSES.intersection(parent.get("classes", ())):
            return False
        parent = parent.parent
    return True


def _is_caption(paragraph: nodes.paragraph) -> bool:
    first = next(iter(paragraph.children), None)
    return isinstance(first, nodes.emphasis) and bool(_CAPTION.match(paragraph.astext()))


def _text(paragraph: nodes.paragraph) -> str:
    """Return a paragraph's text with its formulas left out."""
    texts = (text for text in paragraph.findall(nodes.Text) if not isinstance(text.parent, nodes.math))
    return "".join(texts)
