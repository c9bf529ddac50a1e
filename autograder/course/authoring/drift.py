"""Define drifts: differences between generated files and their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import CourseError


@dataclass(frozen=True)
class Drift:
    """A difference between a generated file and its source, or a contradiction in the source."""

    file: Path
    cell: str  # the grade id of the cell; empty for the whole file
    what: str  # the difference
    do: str  # how to fix it
    mendable: bool = False  # whether ``tfcourse sync`` mends it; with any other drift it changes nothing

    def __str__(self) -> str:
        where = f"{self.file}, cell {self.cell}" if self.cell else str(self.file)
        return f"{where}: {self.what}. {self.do}"


def raise_if_drifted(drifts: Sequence[Drift], message: str, *, where: object = None, do: str = "") -> None:
    """Raise a CourseError that lists the drifts, if there are any.

    Raises:
        CourseError: with one line per drift.
    """
    if drifts:
        listed = "\n".join(f"  - {drift}" for drift in drifts)
        raise CourseError(f"{message}:\n{listed}", where=where, do=do)
