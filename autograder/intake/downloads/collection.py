"""Describe what was collected: which students are new, replaced or unchanged, and which problems came up."""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.intake.downloads.pending import PendingSubmission
from autograder.intake.notebook.problem import Problem


@dataclass
class Collection:
    """What was brought in."""

    chapter: str
    new: list[str] = field(default_factory=list)  # students whose submission was not there before
    replaced: list[str] = field(default_factory=list)  # students whose submission was there and is now another
    unchanged: list[str] = field(default_factory=list)  # students whose submission was there already
    # what went otherwise than it should, or should be known; ``where`` names the file
    problems: list[Problem] = field(default_factory=list)
    # hashes of the notebooks of students whom the platform calls late without a time
    late: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # what this collection or an earlier one was to bring, and what has not come yet
    missing: list[PendingSubmission] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        """Everybody who has a submission in this collection."""
        return sorted({*self.new, *self.replaced, *self.unchanged})
