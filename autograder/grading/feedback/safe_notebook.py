"""Sanitise a graded notebook before the formgrader shows it in the lecturer's browser session.

nbgrader's page shows Markdown as nbconvert makes it, tags included, and a script in it could do all that the lecturer can. Here the
texts become HTML before the page is made, in a process with a limit; the page's filters only pass them on. Formulas are MathML by then,
so a template of ours replaces the one with which nbconvert loads MathJax.

Protects against:

- scripts, styles, forms and frames in Markdown, outputs and attachments: only text, PNG, JPEG and listed tags of tables remain
- requests to elsewhere
- text that takes long to render: the page then shows all texts as they were written
- outputs and images that make the page large: beyond the notebook's limits they are left out
- metadata that nbgrader's page would use: only the listed keys with the expected types remain

Does not protect against:

- misleading content: text can imitate a verdict
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader
from markupsafe import Markup, escape
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import from_dict

from autograder.grading.feedback.shown_cells import render_cells
from autograder.intake.notebook.images import PixelLimit, image_base64, safe_images
from autograder.limited_process import FailedCallError, LimitedProcess

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
_PIXELS = ("image/png", "image/jpeg")
_LONGEST_HTML = 200_000
# Characters of all outputs on one page; those beyond are left out.
_LONGEST_OUTPUTS = 1_000_000
# Processor time that the texts of one page may take.
PAGE_SECONDS = 5.0
_PLAIN = "<p><strong>This page shows the texts as they were written, because {}.</strong></p>"


def pass_or_escape(text: str, *ignored: Any, **options: Any) -> Markup:
    """Pass HTML from this module through an nbconvert template filter, and escape everything else."""
    return text if isinstance(text, Markup) else escape(text)


# nbconvert's own would read HTML once more: with expressions that take quadratic time, or a parser that takes more.
FILTERS = dict.fromkeys(
    ("ansi2html", "clean_html", "highlight_code", "markdown2html", "strip_files_prefix"), pass_or_escape
)


class SafeNotebook(Preprocessor):  # type: ignore[misc]
    """Reduces a notebook to its safe parts: texts, names and marks of cells, and inert outputs."""

    enabled = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._process = LimitedProcess(render_cells.__module__)
        if isinstance(self.parent, TemplateExporter):
            # nbconvert looks into folders that a configuration names last; a loader comes before them.
            self.parent.extra_loaders = [FileSystemLoader(_TEMPLATES), *self.parent.extra_loaders]

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook from its safe parts, with its texts rendered as HTML."""
        limits = _Limits()
        cells = self._render_cells(
            [_safe_cell(number, cell, limits) for number, cell in enumerate(nb.cells)], resources
        )
        language = {"name": "python", "pygments_lexer": "ipython3"}
        return from_dict({**nb, "metadata": {"language_info": language}, "cells": cells}), resources

    def _render_cells(self, cells: list[dict[str, Any]], resources: Any) -> list[dict[str, Any]]:
        """Render the cells as HTML; if that exceeds the limit, return plain texts after a cell with a notice."""
        try:
            return [_mark_as_html(cell) for cell in self._process.call(render_cells, cells, seconds=PAGE_SECONDS)]
        except FailedCallError as error:
            why = str(error)
        names = [
            str(resources[name]) for name in ("assignment_id", "notebook_id", "submission_id") if name in resources
        ]
        self.log.warning("The submission %s is shown as plain text, because %s.", " ".join(names), why)
        note = {"cell_type": "markdown", "id": "plain", "metadata": {}, "source": _PLAIN.format(escape(why))}
        plain = self._process.call(render_cells, cells, seconds=PAGE_SECONDS, plain=True)
        return [_mark_as_html(cell) for cell in (note, *plain)]


class _Limits:
    """The remaining limits for all outputs and images of a notebook."""

    def __init__(self) -> None:
        self.pixels = PixelLimit()
        self._characters = _LONGEST_OUTPUTS

    def text(self, value: Any) -> str:
        """Return an output's text, truncated to the remaining characters of the page."""
        if isinstance(value, (list, tuple)):
            value = "".join(part for part in value if isinstance(part, str))
        if not isinstance(value, str):
            return ""
        shown = value[: self._characters]
        self._characters -= len(shown)
        return shown if len(shown) == len(value) else f"{shown}\n… ({len(value):,} characters)"


def _mark_as_html(cell: dict[str, Any]) -> dict[str, Any]:
    """Mark a cell's texts as HTML that the template filters pass on."""
    outputs = []
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            output["text"] = Markup(output["text"])
        elif output["output_type"] == "error":
            output["traceback"] = [Markup(line) for line in output["traceback"]]
        else:
            texts = {kind: Markup(text) for kind, text in output["data"].items() if kind not in _PIXELS}
            output["data"] = {**output["data"], **texts}
        outputs.append(output)
    return {**cell, "source": Markup(cell["source"]), **({"outputs": outputs} if outputs else {})}


def _safe_cell(number: int, cell: Any, limits: _Limits) -> dict[str, Any]:
    kind, source = cell.cell_type, cell.source
    if kind not in ("code", "markdown"):
        # Raw text would be put on the page as it is.
        kind, source = "markdown", _fence_text(source)
    shown: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": _safe_metadata(cell.metadata),
        "source": source,
    }
    if kind == "markdown":
        return shown | {"attachments": safe_images(cell.get("attachments"), limits.pixels)}
    count = cell.get("execution_count")
    outputs = [safe for output in cell.get("outputs", ()) if (safe := _safe_output(output, limits))]
    return shown | {"execution_count": count if isinstance(count, int) else None, "outputs": outputs}


def _fence_text(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _safe_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    mark = metadata.get("nbgrader")
    if not isinstance(mark, Mapping) or not _NAME.fullmatch(str(mark.get("grade_id", ""))):
        return {}
    fields = {name: mark[name] for name, kind in _MARKS.items() if isinstance(mark.get(name), kind)}
    return {"nbgrader": {"grade_id": str(mark["grade_id"]), **fields}}


def _safe_output(output: Any, limits: _Limits) -> dict[str, Any]:
    """Return an output without active content; empty if no safe part is left."""
    kind = output.output_type
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": limits.text(output.get("text"))}
    if kind == "error":
        lines = limits.text([f"{line}\n" for line in output.get("traceback", ())]).splitlines()
        return {"output_type": kind, "ename": "", "evalue": "", "traceback": lines}
    data = _safe_data(output.get("data", {}), limits)
    if not data:
        return {}
    shown: dict[str, Any] = {"output_type": kind, "data": data, "metadata": {}}
    return shown | ({"execution_count": None} if kind == "execute_result" else {})


def _safe_data(data: Mapping[str, Any], limits: _Limits) -> dict[str, str]:
    shown = {kind: image_base64(kind, data.get(kind), limits.pixels) for kind in _PIXELS}
    if len(table := limits.text(data.get("text/html"))) <= _LONGEST_HTML:
        shown["text/html"] = table
    for kind in ("text/markdown", "text/plain"):
        shown[kind] = limits.text(data.get(kind))
    return {kind: text for kind, text in shown.items() if text}
