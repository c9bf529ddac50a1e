"""Name what a collection leaves out: drafts, and the notebooks of other chapters."""

from __future__ import annotations

from collections.abc import Iterable

from autograder.intake.downloads.archive import Entry
from autograder.intake.downloads.uploads import Upload, owners_elsewhere
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import safe_id


def draft_problem(chapter: str, student: str, upload: Upload) -> Problem:
    """Return the problem that Moodle has a student's work as a draft.

    Args:
        upload: the draft.
    """
    message = f"Moodle has this as a draft that {upload.owner} did not hand in, so it was not brought in."
    do = "When it is handed in, read the grading worksheet and collect again. "
    do += f"If it counts as it is, put it into submitted/{student}/{chapter}/{chapter}.ipynb."
    return Problem("draft", message, str(upload.entry.path), do)


def other_chapter_problems(
    elsewhere: Iterable[Entry], uploads: Iterable[Upload], target: str, others: frozenset[str]
) -> list[Problem]:
    """Name the notebooks of students who have nothing here but another chapter's, going by the names of their files."""
    have = {safe_id(upload.owner) for upload in uploads}
    return [
        Problem(
            "other chapter",
            f"By its name it is of {chapter}, and there is nothing of {owner} for {target}.",
            str(entry.path),
            f"Rename it if it is of {target} after all.",
        )
        for entry, owner, chapter in owners_elsewhere(elsewhere, others)
        if safe_id(owner) not in have
    ]
