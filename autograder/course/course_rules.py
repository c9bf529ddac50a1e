"""Define how chapters, exercises and conversations count by ``course.toml``, and how totals become grades."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

# Boundaries are compared with sums of fractions, which may lie below the exact number by a rounding error.
_ROUNDING = 1e-9

Percent = Annotated[float, Meta(ge=0, le=100)]


class TotalRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The rule that computes the total from the chapters and converts it to a grade."""

    # so many chapters with a student's lowest shares do not count; one always counts
    drop_lowest: Annotated[int, Meta(ge=0, le=20)] = 0
    scale: Annotated[float, Meta(gt=0, le=10_000)] = 100.0  # the points of a total of 100 %
    # the lowest total in percent with which a student passes; ``None`` for no such mark
    pass_mark: Percent | None = None
    # by grade, the lowest total in percent that gets it. A total below all of them has no grade.
    grades: dict[str, Percent] = {}

    def dropped_chapters(self, shares: Mapping[str, float], weights: Mapping[str, float]) -> tuple[str, ...]:
        """Return the dropped chapters: the chapters with the lowest shares, ties broken by the greatest weight."""
        number = max(0, min(self.drop_lowest, len(shares) - 1))
        ordered = sorted(shares, key=lambda chapter: (shares[chapter], -weights[chapter], chapter))
        return tuple(sorted(ordered[:number]))

    def points(self, share: float) -> float:
        """Convert a share to points of the scale."""
        return share * self.scale

    def grade(self, share: float) -> str:
        """Return the grade for a share: the highest boundary that it reaches; empty if it reaches none."""
        reached = [(low, name) for name, low in self.grades.items() if 100 * share + _ROUNDING >= low]
        return max(reached)[1] if reached else ""

    def passed(self, share: float) -> bool | None:
        """Return whether a share passes; ``None`` without a pass mark."""
        return None if self.pass_mark is None else 100 * share + _ROUNDING >= self.pass_mark

    def sentence(self) -> str:
        """Describe the rule in sentences, for the report."""
        parts = [f"The total has {self.scale:g} points."]
        if self.drop_lowest:
            chapters = (
                "chapter with the lowest share does" if self.drop_lowest == 1 else "chapters with the lowest shares do"
            )
            number = "" if self.drop_lowest == 1 else f"{self.drop_lowest} "
            parts.append(f"Each student's {number}{chapters} not count.")
        if self.pass_mark is not None:
            parts.append(f"A student passes with {self.pass_mark:g} %.")
        if self.grades:
            bounds = sorted(self.grades.items(), key=lambda item: -item[1])
            parts.append(f"Grades: {', '.join(f'{name} from {low:g} %' for name, low in bounds)}.")
        return " ".join(parts)


# Points are fractions of fractions, and a file of grades shows them as they are.
_DIGITS = 6


class ExerciseRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The rule for one exercise or question."""

    # its points, which replace the notebook's; a student's score is scaled in proportion
    points: Annotated[float, Meta(ge=0, le=1000)] | None = None
    # ``"drop"``: it does not count. ``"full"``: every submission gets all its points. ``"bonus"``: its points are added to the score but
    # not to the maximum.
    count: Literal["drop", "full", "bonus"] | None = None

    def count_points(self, score: float, best: float) -> tuple[float, float]:
        """Return the earned and the maximum points by this rule, from a score and the best score."""
        worth = best if self.points is None else self.points
        earned = score * worth / best if best else 0.0
        if self.count == "drop":
            return 0.0, 0.0
        if self.count == "full":
            return worth, worth
        return round(earned, _DIGITS), 0.0 if self.count == "bonus" else worth

    @property
    def counts_manual_points(self) -> bool:
        """Whether manual points for an answer have an effect."""
        return self.count not in ("drop", "full")

    def __str__(self) -> str:
        phrases = {"drop": "dropped", "full": "full points for every submission", "bonus": "a bonus", None: ""}
        worth = "" if self.points is None else f"{self.points:g} points"
        return ", ".join(filter(None, (worth, phrases[self.count])))


def graded_exercise(cell: str) -> str:
    """Return the exercise or question of a graded cell, by the cell's name."""
    return cell.removeprefix("test_")


_ENDING = "_viva"


class VivaPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A course's plan for the conversations about one chapter."""

    weight: Annotated[float, Meta(ge=0, le=1000)] = 0.0  # their weight in the total; 0 if they do not count
    canvas: str = ""  # the heading of their column in Canvas's gradebook; empty for the name of their assignment


def viva_assignment(chapter: str) -> str:
    """Return the name of the assignment for the conversations about a chapter."""
    return f"{chapter}{_ENDING}"


def drop_vivas(assignments: Collection[str]) -> list[str]:
    """Return the assignments without the conversations, ordered by name.

    Args:
        assignments: the names of all assignments in the gradebook.
    """
    vivas = set(existing_vivas(assignments, assignments))
    return sorted(name for name in assignments if name not in vivas)


def existing_vivas(chapters: Iterable[str], assignments: Collection[str]) -> dict[str, str]:
    """Return the existing assignments for conversations, each with its chapter.

    Args:
        assignments: the names of all assignments in the gradebook.
    """
    names = {viva_assignment(chapter): chapter for chapter in chapters}
    return {name: chapter for name, chapter in names.items() if name in assignments}
