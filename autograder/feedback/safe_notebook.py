"""Sanitise a graded notebook before the formgrader shows it in the lecturer's browser session.

nbgrader's page shows Markdown as nbconvert makes it, tags included, and a script in it could do all that the lecturer can. The page
gets the course's own Markdown instead. Formulas are MathML by then, so a template of ours replaces the one with which nbconvert
loads MathJax.

Protects against:

- scripts, styles, forms and frames in Markdown, outputs and attachments: only text, PNG, JPEG and listed tags of tables remain
- requests to elsewhere
- metadata that nbgrader's page would use: only the listed keys with the expected types remain

Does not protect against:

- misleading content: text can imitate a verdict
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bleach
from jinja2 import FileSystemLoader, pass_context
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import from_dict

from autograder.feedback.markup import markdown
from autograder.submission.images import image_base64, safe_images

# Of these only mathjax.html.j2 has a name that nbconvert asks for.
_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[\w-]{1,200}")
_MARKS: dict[str, type | tuple[type, ...]] = {
    "grade": bool,
    "locked": bool,
    "solution": bool,
    "task": bool,
    "points": (int, float),
    "schema_version": int,
}
_TAGS = frozenset({
    *("b", "blockquote", "br", "caption", "code", "details", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol"),
    *("p", "pre", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul"),
})  # fmt: skip
_ATTRIBUTES = {"td": ["colspan", "rowspan"], "th": ["colspan", "rowspan", "scope"]}
_PIXELS = ("image/png", "image/jpeg")
_LONGEST_HTML = 200_000


@pass_context
def markdown_in_cell(context: Any, source: str) -> str:
    """A filter for nbconvert's templates: the course's safe Markdown, with the pictures of the cell that is shown."""
    cell = context.get("cell") or {}
    return markdown(source, cell.get("attachments"))


class SafeNotebook(Preprocessor):  # type: ignore[misc]
    """Leaves of a notebook what may be shown: texts, names and marks of cells, and outputs without anything that runs or fetches."""

    enabled = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(self.parent, TemplateExporter):
            # nbconvert looks into folders that a configuration names last; a loader comes before them.
            self.parent.extra_loaders = [FileSystemLoader(_TEMPLATES), *self.parent.extra_loaders]

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook from its harmless parts."""
        cells = [_cell(number, cell) for number, cell in enumerate(nb.cells)]
        language = {"name": "python", "pygments_lexer": "ipython3"}
        return from_dict({**nb, "metadata": {"language_info": language}, "cells": cells}), resources


def _cell(number: int, cell: Any) -> dict[str, Any]:
    kind, source = cell.cell_type, cell.source
    if kind not in ("code", "markdown"):
        # Raw text would be put on the page as it is.
        kind, source = "markdown", _fenced(source)
    shown: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": _metadata(cell.metadata),
        "source": source,
    }
    if kind == "markdown":
        return shown | {"attachments": safe_images(cell.get("attachments"))}
    count = cell.get("execution_count")
    outputs = [safe for output in cell.get("outputs", ()) if (safe := _output(output))]
    return shown | {"execution_count": count if isinstance(count, int) else None, "outputs": outputs}


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    mark = metadata.get("nbgrader")
    if not isinstance(mark, Mapping) or not _NAME.fullmatch(str(mark.get("grade_id", ""))):
        return {}
    fields = {name: mark[name] for name, kind in _MARKS.items() if isinstance(mark.get(name), kind)}
    return {"nbgrader": {"grade_id": str(mark["grade_id"]), **fields}}


def _output(output: Any) -> dict[str, Any]:
    """Return an output without what would run or fetch; an empty one if nothing is left of it."""
    kind = output.output_type
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        lines = [str(line) for line in output.get("traceback", ())]
        return {"output_type": kind, "ename": _text(output.ename), "evalue": _text(output.evalue), "traceback": lines}
    data = _data(output.get("data", {}))
    if not data:
        return {}
    shown: dict[str, Any] = {"output_type": kind, "data": data, "metadata": {}}
    return shown | ({"execution_count": None} if kind == "execute_result" else {})


def _data(data: Mapping[str, Any]) -> dict[str, str]:
    shown = {kind: image_base64(kind, data.get(kind)) for kind in _PIXELS}
    if isinstance(table := data.get("text/html"), (str, list)) and len(_text(table)) <= _LONGEST_HTML:
        shown["text/html"] = bleach.clean(_text(table), _TAGS, _ATTRIBUTES, strip=True)
    for kind in ("text/markdown", "text/plain"):
        shown[kind] = _text(data.get(kind))
    return {kind: text for kind, text in shown.items() if text}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
