"""Read the results of a Jupyter Book run: warnings from its output, failures from the extension's report."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b\]8;;.*?\x1b\\")
_WARNING = re.compile(r"(?:^|: |\s)(WARNING|ERROR|CRITICAL|SEVERE): ")
_CELL = re.compile(r"-{18}\n(?P<source>.*?)\n-{18}\n", re.DOTALL)


@dataclass(frozen=True)
class CellFailure:
    """A lesson's cell that raised an error."""

    page: str  # the lesson, for example ``"chapters/03_scaled_dot_product/lesson"``
    source: str  # the cell's source
    error: str  # the error's last line, for example ``"ZeroDivisionError: division by zero"``
    line: int | None  # line of the lesson's file on which the cell's source starts, if it was found there

    def __str__(self) -> str:
        position = f"{self.page}.md" + (f", line {self.line}" if self.line else "")
        cell = "\n".join(f"    {line}" for line in self.source.splitlines())
        return f"{position}: a cell failed with\n  {self.error}\n  the cell:\n{cell}"


@dataclass(frozen=True)
class RunReport:
    """The results of a Jupyter Book run."""

    pages: tuple[str, ...] = ()  # the site's pages
    # seconds that each executed lesson took when it was executed, now or earlier
    runtimes: dict[str, float] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)  # words of each lesson's paragraphs and lists
    failures: tuple[CellFailure, ...] = ()  # the cells that raised


def read_report(path: Path, root: Path) -> RunReport:
    """Read the report that :mod:`autograder.site.extension` wrote; a missing report is read as empty."""
    if not path.is_file():
        return RunReport()
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    failures = tuple(_parse_failure(page, text, root) for page, text in data["failures"].items())
    runtimes = {page: float(seconds) for page, seconds in data["runtimes"].items() if seconds is not None}
    return RunReport(pages=tuple(data["pages"]), runtimes=runtimes, words=data["words"], failures=failures)


def strip_colours(text: str) -> str:
    """Remove terminal colours from a text."""
    return _ANSI.sub("", text)


def parse_warnings(output: str, root: Path) -> list[str]:
    """Return the warnings in Jupyter Book's error output, with their continuation lines and relative paths."""
    warnings: list[list[str]] = []
    for line in strip_colours(output).replace(f"{root}/", "").splitlines():
        if _WARNING.search(line):
            warnings.append([line.strip()])
        elif warnings and line.strip():
            warnings[-1].append(f"  {line.rstrip()}")
    return ["\n".join(lines) for lines in warnings]


def error_tail(output: str, lines: int = 20) -> str:
    """Return the end of a failed run's output, without the traceback through Jupyter Book."""
    reason, _, _ = strip_colours(output).strip().partition("Traceback (most recent call last):")
    return "\n".join((reason.strip() or strip_colours(output).strip()).splitlines()[-lines:])


def _parse_failure(page: str, text: str, root: Path) -> CellFailure:
    text = strip_colours(text)
    match = _CELL.search(text)
    source = match["source"].strip("\n") if match else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return CellFailure(
        page=page,
        source=source,
        error=lines[-1].strip() if lines else "unknown error",
        line=_find_line(page, source, root),
    )


def _find_line(page: str, source: str, root: Path) -> int | None:
    lesson = root / f"{page}.md"
    if not source or not lesson.is_file():
        return None
    before, match, _ = lesson.read_text(encoding="utf-8").partition(source)
    return before.count("\n") + 1 if match else None
