"""Define the exception for errors that a user can fix."""

from __future__ import annotations

from collections.abc import Sequence


class CourseError(Exception):
    """An error that the user can fix.

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


def list_first(names: Sequence[str], most: int = 10) -> str:
    """Return the first names of a list and the number of the others, as text."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
