"""Remember the files of downloads that no student got, in ``COURSE/journal/CHAPTER.unowned.json``.

Only the collection that read the download can name them. Somebody may have handed in that work, so report and export name it, too, until
the same download has been collected without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.notebook.problem import Problem

# The kinds of problems because of which a file has no owner.
KINDS = frozenset({"unknown owner", "ambiguous name", "same number"})


def note_unowned(course: Course, chapter: str, source: Path, problems: Iterable[Problem]) -> None:
    """Remember the files of a download without an owner, in the place of what an earlier collection noted about this download.

    Args:
        source: the download.
        problems: all problems of the collection.
    """
    before = unowned_files(course, chapter)
    files = sorted({problem.where for problem in problems if problem.kind in KINDS})
    notes = {name: earlier for name, earlier in before.items() if name != str(source.resolve())}
    notes |= {str(source.resolve()): files} if files else {}
    if notes != before:
        write_atomically(
            unowned_path(course, chapter), (json.dumps(notes, indent=1, ensure_ascii=False) + "\n").encode()
        )


def unowned_files(course: Course, chapter: str) -> dict[str, list[str]]:
    """Return the files that no student got, by download.

    Raises:
        CourseError: if the list cannot be read.
    """
    path = unowned_path(course, chapter)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(source): [str(file) for file in files] for source, files in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        message = f"this list of files without an owner is damaged ({error})"
        raise CourseError(message, where=path, do="Move it away, and collect the last download once more.") from error


def unowned_path(course: Course, chapter: str) -> Path:
    """Return where the list is kept."""
    return course.root / "journal" / f"{chapter}.unowned.json"
