"""Render a notebook's texts as HTML for the formgrader, in the limited process that ``safe_notebook.py`` starts."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import bleach
from nbconvert.filters.ansi import ansi2html

from autograder.grading.feedback.markup import NotebookTexts, strip_colours

_TAGS = frozenset({
    *("b", "blockquote", "br", "caption", "code", "details", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol"),
    *("p", "pre", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul"),
})  # fmt: skip
_ATTRIBUTES = {"td": ["colspan", "rowspan"], "th": ["colspan", "rowspan", "scope"]}


def render_cells(cells: Sequence[Mapping[str, Any]], *, plain: bool = False) -> list[dict[str, Any]]:
    """Return cells with their texts rendered as HTML.

    Args:
        cells: cells as :class:`autograder.grading.feedback.safe_notebook.SafeNotebook` leaves them.
        plain: whether texts are shown as they were written.
    """
    texts = NotebookTexts(plain=plain)
    return [_render_cell(cell, texts) for cell in cells]


def _render_cell(cell: Mapping[str, Any], texts: NotebookTexts) -> dict[str, Any]:
    if cell["cell_type"] == "markdown":
        return {**cell, "source": texts.markdown(cell["source"], cell.get("attachments"))}
    outputs = [_render_output(output, texts) for output in cell["outputs"]]
    return {**cell, "source": texts.python(cell["source"]), "outputs": outputs}


def _render_output(output: Mapping[str, Any], texts: NotebookTexts) -> dict[str, Any]:
    if output["output_type"] == "stream":
        return {**output, "text": _terminal_html(output["text"], texts)}
    if output["output_type"] == "error":
        return {**output, "traceback": [_terminal_html(line, texts) for line in output["traceback"]]}
    data = dict(output["data"])
    if "text/plain" in data:
        data["text/plain"] = _terminal_html(data["text/plain"], texts)
    if "text/markdown" in data:
        data["text/markdown"] = texts.markdown(data["text/markdown"])
    if "text/html" in data:
        table = data.pop("text/html")
        if not texts.plain:
            data["text/html"] = texts.count_html(bleach.clean(table, _TAGS, _ATTRIBUTES, strip=True))
        elif not data:
            data["text/plain"] = html.escape(table)
    return {**output, "data": data}


def _terminal_html(text: str, texts: NotebookTexts) -> str:
    """Return a program's terminal output, colours included, as HTML."""
    return html.escape(strip_colours(text)) if texts.plain else texts.count_html(str(ansi2html(text)))
