"""Say how exercises count after hand-in: other points, dropped, full points for everybody, or a bonus.

Nothing is graded again: the points that the gradebook holds are counted otherwise.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

# Points are fractions of fractions, and a file of grades shows them as they are.
_DIGITS = 6


class ExerciseRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The rule for one exercise or question."""

    # its points, which replace the notebook's; a student's score is scaled in proportion
    points: Annotated[float, Meta(ge=0, le=1000)] | None = None
    # ``"drop"``: it does not count. ``"full"``: every submission gets all its points. ``"bonus"``: its points are added to the score but
    # not to the maximum.
    count: Literal["drop", "full", "bonus"] | None = None

    def counted(self, score: float, best: float) -> tuple[float, float]:
        """Return points earned and points to be earned by this rule.

        Args:
            score: the points that were earned.
            best: the points that could be earned.
        """
        worth = best if self.points is None else self.points
        earned = score * worth / best if best else 0.0
        if self.count == "drop":
            return 0.0, 0.0
        if self.count == "full":
            return worth, worth
        return round(earned, _DIGITS), 0.0 if self.count == "bonus" else worth

    @property
    def needs_answer(self) -> bool:
        """Whether the points that a person gives to an answer matter."""
        return self.count not in ("drop", "full")

    def __str__(self) -> str:
        phrases = {"drop": "dropped", "full": "full points for every submission", "bonus": "a bonus", None: ""}
        worth = "" if self.points is None else f"{self.points:g} points"
        return ", ".join(filter(None, (worth, phrases[self.count])))


def exercise_of(cell: str) -> str:
    """Return the exercise or question to which a graded cell of a notebook belongs, by the cell's name."""
    return cell.removeprefix("test_")
