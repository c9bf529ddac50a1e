"""Say how the conversations about a chapter count, and name the assignment that holds their answers in the gradebook."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated

from msgspec import Meta, Struct

_ENDING = "_viva"


class VivaPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A course's plan for the conversations about one chapter."""

    weight: Annotated[float, Meta(ge=0, le=1000)] = 0.0  # their weight in the total; 0 if they do not count
    canvas: str = ""  # the heading of their column in Canvas's gradebook; empty for the name of their assignment


def viva_assignment(chapter: str) -> str:
    """Return the name of the assignment for the conversations about a chapter."""
    return f"{chapter}{_ENDING}"


def without_vivas(assignments: Collection[str]) -> list[str]:
    """Return the assignments that are chapters or the lecturer's own, ordered by name.

    Args:
        assignments: the names of all assignments in the gradebook.
    """
    vivas = set(vivas_of(assignments, assignments))
    return sorted(name for name in assignments if name not in vivas)


def vivas_of(chapters: Iterable[str], assignments: Collection[str]) -> dict[str, str]:
    """Return the chapters whose conversations have an assignment, by the name of that assignment.

    Args:
        chapters: the names of the chapters.
        assignments: the names of all assignments in the gradebook.
    """
    names = {viva_assignment(chapter): chapter for chapter in chapters}
    return {name: chapter for name, chapter in names.items() if name in assignments}
