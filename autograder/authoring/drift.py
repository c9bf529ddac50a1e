"""What authoring finds amiss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import CourseError


@dataclass(frozen=True)
class Drift:
    """A place where what is derived no longer agrees with its source, or where the source contradicts itself.

    Attributes:
        file: the file to look at.
        cell: the cell in it, by its grade id; empty where the whole file is meant.
        what: what differs.
        do: how to mend it.
        mendable: whether ``tfcourse sync`` mends it; what it cannot mend it refuses to work on.
    """

    file: Path
    cell: str
    what: str
    do: str
    mendable: bool = False

    def __str__(self) -> str:
        where = f"{self.file}, cell {self.cell}" if self.cell else str(self.file)
        return f"{where}: {self.what}. {self.do}"


def raise_if_drifted(drifts: Sequence[Drift], message: str, *, where: object = None, do: str = "") -> None:
    """Raise a CourseError that lists what was found, if anything was.

    Raises:
        CourseError: with one line a drift.
    """
    if drifts:
        listed = "\n".join(f"  - {drift}" for drift in drifts)
        raise CourseError(f"{message}:\n{listed}", where=where, do=do)
