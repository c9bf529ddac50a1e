"""Reading a file that says it is a notebook, whatever it is."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from autograder.grading.problem import Problem

MAX_BYTES = 64 * 1024 * 1024

_AGAIN = "Ask for the notebook (.ipynb) once more; the student can check it with `tfcourse validate`."
_SIGNATURES = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive or an Office document",
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
}
_MAKERS = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell, "heading": new_markdown_cell}


class UnreadableError(Exception):
    """A file that is no notebook.

    Args:
        problem: what it is instead.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def read_notebook(data: bytes) -> tuple[Any, list[Problem]]:
    """Read a notebook of any version and any state of repair.

    What comes back is built anew from the texts and the metadata of the cells: no output, no attachment and no foreign field of the file
    gets any further.

    Args:
        data: the file.

    Returns:
        The notebook, format 4, and what was odd about it.

    Raises:
        UnreadableError: if there is no notebook in it; the problem says what is.
    """
    text = _text(data)
    content = _parse(text)
    problems = []
    if isinstance(content, Mapping) and isinstance(content.get("worksheets"), list) and "cells" not in content:
        content = _upgrade(text)
        problems.append(Problem("old format", "The notebook is in the old format 3; it was converted."))
    if not isinstance(content, Mapping) or not isinstance(content.get("cells"), list):
        raise _unreadable("not a notebook", "The file is JSON, but it is not a notebook: it has no list of cells.")
    cells = [cell for item in content["cells"] if (cell := _cell(item)) is not None]
    if len(cells) < len(content["cells"]):
        lost = len(content["cells"]) - len(cells)
        problems.append(
            Problem("damaged cells", f"{lost} of its cells could not be read and were left out.", do=_AGAIN)
        )
    if not any(cell.source.strip() for cell in cells):
        raise _unreadable("empty", "The notebook has no cell with anything in it.")
    for number, cell in enumerate(cells):
        # Ids that depend on nothing but the place: two graders make the same notebook of the same file.
        cell["id"] = f"cell-{number:04d}"
    # Every submission runs on the course's kernel, whatever it was written with.
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel}), problems


def _unreadable(kind: str, what: str) -> UnreadableError:
    return UnreadableError(Problem(kind, what, do=_AGAIN, fatal=True))


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        body = text.strip()
        if body.startswith("{") and (not body.endswith("}") or error.pos >= len(text.rstrip())):
            raise _unreadable(
                "truncated", f"The file breaks off after {len(text)} characters: half of a notebook."
            ) from None
        found = " It looks like a web page." if text.lstrip()[:1] == "<" else ""
        raise _unreadable(
            "not JSON", f"The file is not a notebook: {error.msg} in line {error.lineno}.{found}"
        ) from None
    except (RecursionError, ValueError):
        raise _unreadable("not JSON", "The file is JSON that no notebook would hold (nested too deeply).") from None


def _text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise _unreadable(
            "too large", f"The file has {len(data) / 1e6:.0f} MB; a notebook may have {MAX_BYTES / 1e6:.0f} MB."
        )
    if not data.strip():
        raise _unreadable("empty", "The file is empty.")
    for signature, name in _SIGNATURES.items():
        if data.startswith(signature):
            raise _unreadable("not a notebook", f"The file is not a notebook but {name}.")
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable("not text", "The file is not text, so it is no notebook.") from None


def _upgrade(text: str) -> Any:
    try:
        return nbformat.reads(text, as_version=4)
    except Exception as error:  # the converter trusts what it is given
        raise _unreadable(
            "not a notebook", f"The notebook is in an old format and damaged ({type(error).__name__})."
        ) from None


def _cell(item: Any) -> Any:
    if not isinstance(item, Mapping) or item.get("cell_type") not in _MAKERS:
        return None
    source = item.get("source", "")
    if isinstance(source, Sequence) and not isinstance(source, str):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        return None
    return _MAKERS[item["cell_type"]](source=_printable(source), metadata=_metadata(item.get("metadata")))


def _printable(text: str) -> str:
    """Drop lone surrogates, which JSON can spell and no file can hold, and the carriage returns of Windows."""
    return text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")


def _metadata(found: Any) -> dict[str, Any]:
    """Keep what nbgrader says about the cell, as far as it could be true; everything else is the editor's own."""
    mark = found.get("nbgrader") if isinstance(found, Mapping) else None
    if not isinstance(mark, Mapping) or not isinstance(mark.get("grade_id"), str):
        return {}
    return {"nbgrader": {"grade_id": mark["grade_id"]}}
