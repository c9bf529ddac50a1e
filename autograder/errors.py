"""Define the one exception that the command line shows to people."""

from __future__ import annotations

from collections.abc import Sequence


class CourseError(Exception):
    """An error that the user can mend.

    Args:
        what: what happened, with the offending value.
        where: the file, folder or cell, if any.
        do: what to do next.
    """

    def __init__(self, what: str, *, where: object = None, do: str = "") -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.do = do
        parts = [what if where is None else f"{where}: {what}", do]
        super().__init__("\n".join(part for part in parts if part))


def some(names: Sequence[str], most: int = 10) -> str:
    """Return the first names of a list that may be a whole class's, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
