"""A look at submissions before anything is brought in: the right folder, and the right chapter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import is_zipfile

from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.intake.downloads.archive import RefusedError, entries_of, notebooks, printable_path
from autograder.intake.downloads.gradescope import with_submitters
from autograder.intake.downloads.student_ids import by_student
from autograder.intake.downloads.uploads import Upload, uploads_of
from autograder.intake.notebook.intake import chapter_of
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_notebook
from autograder.intake.roster import known_students, read_roster

# So many names show that a layout is unknown; fewer may be strangers, one by one.
_FEW = 3


def refuse_other_work(course: Course, chapter: str, submissions: Path) -> None:
    """Refuse a folder or archive in which nothing belongs to a chapter, before it replaces what does.

    One notebook of another chapter among many is its student's mistake, and gets its verdict; nothing but such notebooks is the
    lecturer's.

    Args:
        course: the course, with the chapter released.
        submissions: the folder or archive.

    Raises:
        CourseError: if it holds no notebook, or only notebooks without an owner or of other chapters, or its layout is unknown, or it
            cannot be read at all.
    """
    manifest = released_manifest(course, chapter)
    if submissions.is_file() and not (is_zipfile(submissions) or _begins_like_one(submissions)):
        raise CourseError(
            "this is neither a folder nor a zip archive" + ("" if submissions.stat().st_size else ": it is empty"),
            where=submissions,
            do="Name what your platform hands out. A single notebook goes to "
            f"{course.folder('submitted')}/STUDENT/{chapter}/{chapter}.ipynb.",
        )
    entries = with_submitters(entries_of(submissions)[0], read_roster(course))
    uploaded = list(notebooks(entries))
    if not uploaded:
        raise CourseError(
            f"there is no notebook (.ipynb) among its {len(entries)} files",
            where=submissions,
            do="Name the folder or zip that your platform hands out, or one with a notebook per student.",
        )
    uploads, unknown, elsewhere = uploads_of(uploaded, chapter, frozenset(manifest.elsewhere), known_students(course))
    if unknown and not uploads:
        raise CourseError(
            f"it cannot be told whose {'notebook this is' if len(unknown) == 1 else 'notebooks these are'}",
            where=submissions,
            do=unknown[0].do,
        )
    if not uploads:
        raise _other_chapter(course, submissions, chapter, len(elsewhere), set(manifest.elsewhere))
    _refuse_unknown_layout(course, chapter, submissions, uploads)
    others: set[str] = set()
    for upload in uploads:
        belongs_to = _chapter_of(upload, manifest)
        if belongs_to in (chapter, None):
            return
        others.add(str(belongs_to))
    if others:
        raise _other_chapter(course, submissions, chapter, len(uploads), others)


def _refuse_unknown_layout(course: Course, chapter: str, submissions: Path, uploads: Sequence[Upload]) -> None:
    """Refuse a download of which no name is on the class list: what was read as names are the words of another layout."""
    roster = read_roster(course)
    listed = {student.id for student in roster.values() if student.enrolled}
    if not listed or len(uploads) < _FEW or any(upload.platform in ("canvas", "moodle") for upload in uploads):
        return
    owned, _ = by_student(uploads, roster, chapter)
    if listed & owned.keys():
        return
    names = list(dict.fromkeys(upload.owner for upload in uploads))
    raise CourseError(
        f"this layout is not known: none of the {len(names)} names in it is on the class list "
        f"({', '.join(map(printable_path, names[:_FEW]))}{', …' if len(names) > _FEW else ''})",
        where=submissions,
        do="Known are the downloads of Canvas, Moodle, Blackboard, Brightspace and Gradescope, nbgrader's folders, and a folder or file "
        "for each student that is called by id, name, number, login or email address. Nothing was brought in.",
    )


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
    subject = "the one notebook in it is" if count == 1 else f"all {count} notebooks in it are"
    return CourseError(
        f"{subject} not of {chapter} but of {names}",
        where=submissions,
        do=f"Name the submissions of {chapter}, or grade the other chapter: {other}",
    )
