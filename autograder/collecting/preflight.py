"""A look at submissions before anything is brought in: the right folder, and the right chapter."""

from __future__ import annotations

from pathlib import Path
from zipfile import is_zipfile

from autograder.collecting.archive import RefusedError, entries_of, notebooks
from autograder.collecting.roster import known_students
from autograder.collecting.uploads import Upload, uploads_of
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.submission.intake import chapter_of
from autograder.submission.manifest import Manifest, released_manifest
from autograder.submission.notebook_reader import UnreadableError, read_notebook


def refuse_other_work(course: Course, chapter: str, submissions: Path) -> None:
    """Refuse a folder or archive in which nothing belongs to a chapter, before it replaces what does.

    One notebook of another chapter among many is its student's mistake, and gets its verdict; nothing but such notebooks is the
    lecturer's.

    Args:
        course: the course, with the chapter released.
        chapter: the chapter.
        submissions: the folder or archive.

    Raises:
        CourseError: if it holds no notebook, or only notebooks of nobody or of other chapters, or cannot be read at all.
    """
    manifest = released_manifest(course, chapter)
    if submissions.is_file() and not (is_zipfile(submissions) or _begins_like_one(submissions)):
        raise CourseError(
            "this is neither a folder nor a zip archive" + ("" if submissions.stat().st_size else ": it is empty"),
            where=submissions,
            do="Name what your platform hands out. A single notebook goes to "
            f"{course.folder('submitted')}/STUDENT/{chapter}/{chapter}.ipynb.",
        )
    entries, _ = entries_of(submissions)
    found = list(notebooks(entries))
    if not found:
        raise CourseError(
            f"there is no notebook (.ipynb) among its {len(entries)} files",
            where=submissions,
            do="Name the folder or zip that your platform hands out, or one with a notebook per student.",
        )
    uploads, unknown, elsewhere = uploads_of(found, chapter, frozenset(manifest.elsewhere), known_students(course))
    if unknown and not uploads:
        raise CourseError(
            f"it cannot be told whose {'notebook this is' if len(unknown) == 1 else 'notebooks these are'}",
            where=submissions,
            do=unknown[0].do,
        )
    if not uploads:
        raise _other_chapter(course, submissions, chapter, len(elsewhere), set(manifest.elsewhere))
    others: set[str] = set()
    for upload in uploads:
        belongs_to = _chapter_of(upload, manifest)
        if belongs_to in (chapter, None):
            return
        others.add(str(belongs_to))
    if others:
        raise _other_chapter(course, submissions, chapter, len(uploads), others)


def _begins_like_one(path: Path) -> bool:
    """Whether a file is the beginning of a zip archive: what is wrong with that is told when it is read."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _chapter_of(upload: Upload, manifest: Manifest) -> str | None:
    """Return the chapter that a notebook's contents belong to; None if they do not say, or cannot be read."""
    try:
        notebook, _ = read_notebook(upload.entry.open())
    except (RefusedError, UnreadableError):
        return None
    return chapter_of(notebook, manifest)


def _other_chapter(course: Course, submissions: Path, chapter: str, count: int, others: set[str]) -> CourseError:
    names = " or ".join(sorted(others))
    other = shell_command(course, "autograde", min(others))
    what = "the one notebook in it is" if count == 1 else f"all {count} notebooks in it are"
    return CourseError(
        f"{what} not of {chapter} but of {names}",
        where=submissions,
        do=f"Name the submissions of {chapter}, or grade the other chapter: {other}",
    )
