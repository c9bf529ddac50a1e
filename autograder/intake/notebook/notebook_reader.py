"""Read any submitted file as a notebook."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from nbformat.notebooknode import from_dict

from autograder.errors import list_first
from autograder.intake.notebook.images import MAX_PIXELS, PixelLimit, safe_images
from autograder.intake.notebook.lazy_json import MalformedError, Value, parse_top_level
from autograder.intake.notebook.problem import METADATA_KEY, Problem

# A file may be large, because outputs are skipped; a student's text is small. A year's homework is less than a megabyte of code.
MAX_BYTES = 512 * 1024 * 1024
MAX_SOURCE = 2 * 1024 * 1024
MAX_CELL = 1024 * 1024
# The most non-empty cells, and the most cells in all: a key held down makes thousands of empty ones.
MAX_CELLS = 5_000
MAX_ITEMS = 200_000
# Bytes of a notebook's pasted images, as base64.
MAX_PICTURES = 8 * 1024 * 1024

_SMALLER = "Ask for the notebook with smaller pictures."
_AGAIN = "Ask for the notebook (.ipynb) once more; the student can check it with `tfcourse validate`."
_MEGABYTE = 1024 * 1024
SIGNATURES = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive or an Office document",
    b"PK\x05\x06": "an empty zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
}
_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"{\0": "utf-16-le",
    b"\0{": "utf-16-be",
}
# The last two are cell types of formats 2 and 3.
_KINDS = {"code": "code", "markdown": "markdown", "raw": "raw", "heading": "markdown", "html": "markdown"}
_CONFLICT = re.compile(rb"^(?:<{7} |={7}\r?$|>{7} )", re.MULTILINE)
_PYTHON = re.compile(rb"^(?:def|class|import|from|#) ?", re.MULTILINE)
# Names are shorter.
_NAME = 1_000


class UnreadableError(Exception):
    """The file is not a readable notebook."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem  # names its actual kind
        super().__init__(str(problem))


def read_file(path: Path, *, above: int = 0) -> bytes:
    """Read a submitted file, which must be a regular file within the size limit and no link.

    Args:
        above: how many folders above it belong to the student and must be no links; those further up belong to the course.

    Raises:
        UnreadableError: if it is something else; then nothing is read from it.
    """
    try:
        status = path.lstat()
        if any(entry.is_symlink() for entry in (path, *path.parents[:above])):
            raise _unreadable_error("file refused", "It is a link, and links are not followed.")
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no file but a pipe, a socket or a device"
            raise _unreadable_error("file refused", f"It is {kind}.")
        with open_regular(path) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable_error("file refused", f"It cannot be read ({reason}).") from None


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file; raise OSError for a link, pipe or device. Opening a pipe without a writer would block."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("it is not a regular file")
    return file


def read_notebook(data: bytes) -> tuple[Any, list[Problem]]:
    """Read a notebook of any version, even if it is damaged.

    The result is rebuilt from the sources and names of the cells and the images pasted into texts. Outputs, other attachments and unknown
    fields are dropped, regardless of their size.

    Returns:
        The notebook, format 4, and its problems.

    Raises:
        UnreadableError: if it is not a notebook; the problem describes its contents.
    """
    text, problems = _to_utf8(data)
    try:
        # No cell can exceed the limit.
        top = parse_top_level(text, at_once=MAX_CELL)
        contents = _NotebookBuilder(problems)
        contents.read_cells(top)
        contents.report_trailing_text(top)
    except MalformedError as error:
        raise _invalid_json_error(text, error) from None
    except ValueError:
        raise _unreadable_error("not JSON", "The file is JSON that no notebook would hold.") from None
    return contents.notebook(), contents.problems


def _unreadable_error(kind: str, message: str, do: str = _AGAIN) -> UnreadableError:
    return UnreadableError(Problem(kind, message, do=do, fatal=True))


@dataclass
class _NotebookBuilder:
    """Collects the cells and problems of a file, and builds the notebook."""

    problems: list[Problem]
    cells: list[dict[str, Any]] = field(default_factory=list)
    written: int = 0
    damaged: list[int] = field(default_factory=list)
    characters: int = 0
    pictured: int = 0
    pixels: PixelLimit = field(default_factory=PixelLimit)
    latin: bool = False
    stamp: str = ""

    def read_cells(self, top: Value) -> None:
        """Read the cells of a notebook's outermost object."""
        parts = dict(top.members())
        with suppress(ValueError):
            stamp = _metadata_string(parts.get("metadata"), METADATA_KEY, "checks")
            self.stamp = stamp if re.fullmatch(r"[0-9.]{1,20}\+[0-9a-f]{8}", stamp) else ""
        lists = [parts["cells"]] if "cells" in parts else []
        if not lists and "worksheets" in parts:
            sheets = (dict(sheet.members()) for sheet in parts["worksheets"].items())
            lists = [sheet["cells"] for sheet in sheets if "cells" in sheet]
            self.problems.append(
                Problem("old format", "The notebook is in the old format 3; it was converted.", remark=True)
            )
        if not lists or any(cells.kind != "[" for cells in lists):
            raise _unreadable_error(
                "not a notebook", "The file is JSON, but it is not a notebook: it has no list of cells."
            )
        for number, item in enumerate(chain.from_iterable(cells.items() for cells in lists), start=1):
            if number > MAX_ITEMS:
                raise _unreadable_error("too many cells", f"The notebook has more than {MAX_ITEMS} cells.")
            self._read_cell(number, item)
        self._add_summary_problems(parts.get("nbformat"))

    def _read_cell(self, number: int, item: Value) -> None:
        try:
            fields = dict(item.members())
            kind = _short_string(fields.get("cell_type"))
            # Formats 2 and 3 call a code cell's text its input.
            source = fields.get("source") or fields.get("input")
            # Other metadata belong to the editor.
            mark = _metadata_string(fields.get("metadata"), "nbgrader", "grade_id")
            text = self._read_source(number, source, mark)
            if kind not in _KINDS:
                raise ValueError("this is not a cell")
            if kind == "heading":
                text = f"{'#' * _heading_level(fields.get('level'))} {text}"
        except ValueError:
            self.damaged.append(number)
            return
        metadata = {"nbgrader": {"grade_id": mark}} if mark else {}
        cell: dict[str, Any] = {"cell_type": _KINDS[kind], "metadata": metadata, "source": text}
        pictures = self._read_images(number, fields.get("attachments"))
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        elif pictures:
            cell["attachments"] = pictures
        self.cells.append(cell)
        self.written += bool(text.strip())
        if self.written > MAX_CELLS:
            message = f"The notebook has more than {MAX_CELLS} cells with something in them."
            raise _unreadable_error("too many cells", message)

    def _read_source(self, number: int, source: Value | None, mark: str) -> str:
        if source is None:
            return ""
        if source.size > MAX_CELL:
            message = f"This cell has {source.size / _MEGABYTE:.0f} MB of text and was left out; {MAX_CELL // _MEGABYTE} MB are allowed."
            do = "Ask for the notebook without it; data belong into a file, not into a cell."
            label = f"cell {number} ({mark})" if mark else f"cell {number}"
            self.problems.append(Problem("cell too long", message, where=label, do=do))
            return ""
        text = source.value()
        if isinstance(text, Sequence) and not isinstance(text, str):
            text = "".join(part for part in text if isinstance(part, str))
        if not isinstance(text, str):
            raise ValueError("a cell's source is a text")
        self.latin = self.latin or not source.is_utf8
        self.characters += len(text)
        if self.characters > MAX_SOURCE:
            message = f"The texts of its cells have more than {MAX_SOURCE // _MEGABYTE} MB."
            raise _unreadable_error("too large", message)
        return _clean_text(text)

    def _read_images(self, number: int, attachments: Value | None) -> dict[str, dict[str, str]]:
        """Return the PNG and JPEG images pasted into a text, within the limit."""
        if attachments is None:
            return {}
        message, images, refused = "", {}, self.pixels.refused
        if attachments.size > MAX_PICTURES - self.pictured:
            message = f"The pictures in its texts have more than {MAX_PICTURES // _MEGABYTE} MB; those of this cell were left out."
        else:
            images = safe_images(attachments.value(), self.pixels)
        if self.pixels.refused > refused:
            most = f"{MAX_PIXELS // 1_000_000} million pixels"
            message = f"The images in its texts have more than {most} in all; images of this cell were left out."
        if message:
            self.problems.append(Problem("pictures too large", message, where=f"cell {number}", do=_SMALLER))
        self.pictured += sum(len(data) for forms in images.values() for data in forms.values())
        return images

    def _add_summary_problems(self, version: Value | None) -> None:
        if self.damaged:
            numbers = list_first([*map(str, self.damaged)])
            count = len(self.damaged)
            message = f"{count} of its cells could not be read and {'was' if count == 1 else 'were'} left out."
            if not self.cells:
                raise _unreadable_error("not a notebook", "None of its cells could be read.")
            self.problems.append(Problem("damaged cells", message, where=f"cell {numbers}", do=_AGAIN))
        if self.latin:
            message = "The file is not in UTF-8, as notebooks are; it was taken for Latin-1, and letters with accents may have changed."
            self.problems.append(Problem("not UTF-8", message, remark=True))
        if version is not None and re.fullmatch(r"[5-9]|\d{2}", version.raw(3)):
            message = f"The notebook says that it is in format {version.raw(3)}, which is newer than the grader; it was read as format 4."
            self.problems.append(Problem("newer format", message, remark=True))

    def report_trailing_text(self, top: Value) -> None:
        """Report text after the end of the notebook."""
        rest = top.rest(_MEGABYTE).strip(b"\0 \t\r\n")
        if rest:
            also = "another notebook" if rest.startswith(b"{") else "something else"
            message = f"Behind the end of the notebook the file has {also}; the notebook was graded without it."
            self.problems.append(Problem("text behind the end", message, where=f"byte {top.end}"))

    def notebook(self) -> Any:
        """Build the notebook from the cells."""
        if not self.written and not any(problem.kind == "cell too long" for problem in self.problems):
            raise _unreadable_error("empty", "The notebook has no cell with anything in it.")
        if len(self.cells) > MAX_CELLS:
            message = f"{len(self.cells) - self.written} empty cells were left out."
            self.problems.append(Problem("empty cells", message, remark=True))
            self.cells = [cell for cell in self.cells if cell["source"].strip()]
        # Ids depend on the position only: two graders build the same notebook from the same file.
        cells = [cell | {"id": f"cell-{number:04d}"} for number, cell in enumerate(self.cells)]
        # Every submission runs on the course's kernel, whatever kernel the student used.
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        metadata = {"kernelspec": kernel} | ({METADATA_KEY: {"checks": self.stamp}} if self.stamp else {})
        return from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _short_string(span: Value | None) -> str:
    """Return a short string; empty for any other value."""
    value = span.value() if span is not None and span.kind == '"' else ""
    return value if len(value) < _NAME else ""


def _heading_level(span: Value | None) -> int:
    written = span.raw(2) if span is not None else ""
    return int(written) if written in set("123456") else 1


def _metadata_string(metadata: Value | None, tool: str, key: str) -> str:
    """Return a short string from a tool's metadata; empty without one."""
    mark = dict(metadata.members()).get(tool) if metadata is not None else None
    return _short_string(dict(mark.members()).get(key)) if mark is not None else ""


def _clean_text(text: str) -> str:
    """Replace characters that no source file can contain: lone surrogates, NUL and carriage returns."""
    text = text.encode("utf-8", "replace").decode().replace("\0", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _to_utf8(data: bytes) -> tuple[bytes, list[Problem]]:
    """Return a file's text as UTF-8, converted if possible, and problems."""
    if len(data) > MAX_BYTES:
        do = "Ask for the notebook once more, with its outputs cleared."
        raise _unreadable_error("too large", f"The file has more than {MAX_BYTES // _MEGABYTE} MB.", do)
    if not data[:_MEGABYTE].strip(b"\0 \t\r\n") and not data.strip(b"\0 \t\r\n"):
        message = "The file holds nothing but NUL bytes." if data.strip() else "The file is empty."
        raise _unreadable_error("empty", message)
    for signature, name in SIGNATURES.items():
        if data.startswith(signature):
            raise _unreadable_error("not a notebook", f"The file is not a notebook but {name}.")
    for begin, encoding in _WIDE.items():
        if data.startswith(begin):
            name = encoding.upper()[:6]
            remark = Problem("not UTF-8", f"The file is in {name}, not in UTF-8; it was converted.", remark=True)
            return data.decode(encoding, "replace").encode("utf-8", "replace"), [remark]
    return data.removeprefix(codecs.BOM_UTF8), []


def _invalid_json_error(text: bytes, error: MalformedError) -> UnreadableError:
    """Return the error for a text that is not a notebook."""
    begin = text[:_MEGABYTE].lstrip()
    if begin.startswith(b"{") and (conflict := _CONFLICT.search(text)):
        line = text.count(b"\n", 0, conflict.start()) + 1
        message = f"The file holds the two sides of a conflict that git could not merge, from line {line} on."
        return _unreadable_error("merge conflict", message, "Ask for the notebook with the conflict resolved.")
    if begin.startswith(b"{") and error.cut:
        return _unreadable_error("truncated", f"The file breaks off after {len(text)} bytes: half of a notebook.")
    # The last character of the piece may be truncated.
    if "\ufffd" in begin.decode("utf-8", "replace")[: max(4, len(begin) - 4)]:
        return _unreadable_error("not text", "The file is not text, so it is not a notebook.")
    line = text.count(b"\n", 0, error.position) + 1
    hint = ""
    if begin.startswith(b"<"):
        hint = " It looks like a web page; an export as HTML cannot be graded."
    elif b"\0" in text[:_MEGABYTE]:
        hint = " There are NUL bytes in it: it was damaged on its way."
    elif _PYTHON.match(begin):
        hint = " It looks like a Python script; an export as .py cannot be graded."
    return _unreadable_error("not JSON", f"The file is not a notebook: no JSON in line {line}.{hint}")
