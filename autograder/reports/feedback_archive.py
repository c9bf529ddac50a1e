"""Pack feedback pages into the ZIP archives by which Moodle and Canvas hand them back to students.

What each platform reads was taken from its importer: Moodle's ``assignfeedback_file_zip_importer`` and Canvas's
``generate_comments_from_files``. Both find the student by the name of the file:

- Moodle takes ``FULL NAME_PARTICIPANT_assignsubmission_file/FILE``, where the participant's number is that of one assignment.
- Canvas takes ``NAME_USER_ATTACHMENT_FILE``, where the attachment must be one that this user has handed in for the assignment.

The numbers come from the downloads that were collected, and are kept in ``students.json``.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import write_all_or_none
from autograder.collecting.roster import Student, read_roster, safe_id
from autograder.course.folder import Course
from autograder.errors import CourseError

PLATFORMS = ("canvas", "moodle")
# What a platform takes at once unless its administrator has said otherwise; Moodle's own default is PHP's, which servers raise.
MAX_BYTES = 50_000_000

HINTS = {
    "moodle": "In Moodle: the assignment, with the feedback type 'Feedback files' switched on; View all submissions, Upload multiple "
    "feedback files in a zip. Moodle lists what it will add before anything is added.",
    "canvas": "In Canvas: Grades, the menu of the assignment, Re-upload submissions. Each page becomes a comment with an attachment; "
    "uploading an archive twice makes two comments.",
}

# The first date that a ZIP archive can hold: the same pages give the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
# Moodle splits at underscores, and neither platform expects a separator or a control character in a name.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:_]+")


@dataclass(frozen=True)
class FeedbackArchive:
    """The archives of one chapter.

    Attributes:
        chapter: the chapter.
        paths: the archives; more than one where they would be too large for one upload.
        students: whose pages are in them.
        left_out: who has a page and no number on the platform by which it could be handed back.
    """

    chapter: str
    paths: tuple[Path, ...]
    students: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def export_feedback(
    course: Course, chapters: Sequence[str], platform: str, folder: Path, *, max_bytes: int = MAX_BYTES
) -> list[FeedbackArchive]:
    """Write the feedback of some chapters as a platform takes it back, and return the archives.

    Args:
        course: the course.
        chapters: names of chapters. One without pages for anybody on the platform gets no archive.
        platform: ``"canvas"`` or ``"moodle"``.
        folder: where to write; made if it is missing.
        max_bytes: the most that an archive may have. A page that alone has more gets an archive of its own.

    Raises:
        CourseError: if no page can be handed back, or the folder cannot be written. Nothing is written then.
    """
    roster = read_roster(course)
    name_of = _NAMES[platform]
    files: dict[Path, bytes] = {}
    found = []
    for chapter in chapters:
        pages, left_out = _pages(course, chapter, platform, roster)
        entries = [(name_of(roster[student], chapter), page.read_bytes()) for student, page in pages]
        archives = list(_packed(entries, max_bytes))
        paths = [
            folder / f"feedback_{platform}_{chapter}{f'_{number}' if len(archives) > 1 else ''}.zip"
            for number in range(1, len(archives) + 1)
        ]
        files.update(zip(paths, archives, strict=True))
        if pages or left_out:
            students = tuple(student for student, _ in pages)
            found.append(FeedbackArchive(chapter, tuple(paths), students, tuple(left_out)))
    if not files:
        raise CourseError(_why_nothing(found, platform), do=_REMEDY)
    write_all_or_none(files)
    return found


_REMEDY = (
    "Pages are written by tfcourse autograde; the numbers come from the platform's own download: "
    "tfcourse autograde CHAPTER --submissions DOWNLOAD.zip"
)


def _why_nothing(found: Iterable[FeedbackArchive], platform: str) -> str:
    without = sorted({student for archive in found for student in archive.left_out})
    if not without:
        return "there are no feedback pages yet"
    return f"nobody's number on {platform.capitalize()} is known; feedback waits for {', '.join(without)}"


def _pages(
    course: Course, chapter: str, platform: str, roster: dict[str, Student]
) -> tuple[list[tuple[str, Path]], list[str]]:
    """Return the students that can be reached with their pages, and those that cannot."""
    pages, left_out = [], []
    for page in sorted(course.folder("feedback").glob(f"*/{chapter}/{chapter}.html")):
        name = page.parents[1].name
        student = roster.get(name)
        if student is not None and _is_reachable(student, platform, chapter):
            pages.append((name, page))
        else:
            left_out.append(name)
    return pages, left_out


def _is_reachable(student: Student, platform: str, chapter: str) -> bool:
    return student.platform == platform and chapter in student.uploads and (platform == "moodle" or bool(student.user))


def _packed(entries: Sequence[tuple[str, bytes]], max_bytes: int) -> Iterable[bytes]:
    """Yield archives of some entries, each as large as it may be."""
    waiting = list(entries)
    while waiting:
        count = len(waiting)
        archive = _zipped(waiting)
        while len(archive) > max_bytes and count > 1:
            count = max(1, min(count - 1, int(count * max_bytes / len(archive))))
            archive = _zipped(waiting[:count])
        yield archive
        waiting = waiting[count:]


def _zipped(entries: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _moodle_name(student: Student, chapter: str) -> str:
    name = _UNSAFE.sub(" ", student.name).strip(" .~") or "student"
    return f"{name}_{student.uploads[chapter]}_assignsubmission_file/{chapter}.html"


def _canvas_name(student: Student, chapter: str) -> str:
    # Canvas reads the first two numbers, and writes its own names in small letters without blanks.
    name = re.sub(r"[^a-z]", "", safe_id(student.name)) or "student"
    return f"{name}_{student.user}_{student.uploads[chapter]}_feedback-{chapter.replace('_', '-')}.html"


_NAMES: dict[str, Callable[[Student, str], str]] = {"canvas": _canvas_name, "moodle": _moodle_name}
