"""Say how a course's total becomes a grade: the lowest chapters that are dropped, the scale, grade boundaries and the pass mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

# Boundaries are compared with sums of fractions, which may lie below the exact number by a rounding error.
_ROUNDING = 1e-9

Percent = Annotated[float, Meta(ge=0, le=100)]


class TotalRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How the total is made of the chapters, and what it is worth."""

    # so many chapters with a student's lowest shares do not count; one always counts
    drop_lowest: Annotated[int, Meta(ge=0, le=20)] = 0
    scale: Annotated[float, Meta(gt=0, le=10_000)] = 100.0  # the points of a total of 100 %
    # the lowest total in percent with which a student passes; ``None`` for no such mark
    pass_mark: Percent | None = None
    # by grade, the lowest total in percent that gets it. A total below all of them has no grade.
    grades: dict[str, Percent] = {}

    def dropped(self, shares: Mapping[str, float], weights: Mapping[str, float]) -> tuple[str, ...]:
        """Return the dropped chapters: the lowest percentages, ties by the greatest weight."""
        number = max(0, min(self.drop_lowest, len(shares) - 1))
        ordered = sorted(shares, key=lambda chapter: (shares[chapter], -weights[chapter], chapter))
        return tuple(sorted(ordered[:number]))

    def points(self, share: float) -> float:
        """Return a total in the points of the scale."""
        return share * self.scale

    def grade(self, share: float) -> str:
        """Return the grade of a total: the one with the highest boundary that it reaches; empty if it reaches none."""
        reached = [(low, name) for name, low in self.grades.items() if 100 * share + _ROUNDING >= low]
        return max(reached)[1] if reached else ""

    def passed(self, share: float) -> bool | None:
        """Return whether a total passes; ``None`` without a pass mark."""
        return None if self.pass_mark is None else 100 * share + _ROUNDING >= self.pass_mark

    def sentence(self) -> str:
        """Return the rule in words, for the report."""
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
