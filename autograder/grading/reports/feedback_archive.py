"""Pack feedback pages into ZIP archives that Moodle and Canvas return to students.

The formats follow each platform's importer: Moodle's ``assignfeedback_file_zip_importer`` and Canvas's
``generate_comments_from_files``. Both identify the student by the name of the file:

- Moodle takes ``FULL NAME_PARTICIPANT_assignsubmission_file/FILE``, where the participant's number is that of one assignment.
- Canvas takes ``NAME_USER_ATTACHMENT_FILE``, where the attachment must be one that this user has handed in for the assignment.

The numbers come from the downloads that were collected, and are kept in ``students.json``.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder.atomic_files import write_all_or_none
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.errors import CourseError, list_first
from autograder.grading.feedback.exporter import FeedbackExporter, bind_gradebook
from autograder.grading.reports.grades import Grade, read_grades
from autograder.intake.people.standing import group_submitters, is_outside_class
from autograder.intake.roster import Student, read_roster, safe_id

PLATFORMS = ("canvas", "moodle")
# The default limit of an upload; Moodle's own default is PHP's, which most servers raise.
MAX_BYTES = 50_000_000

HINTS = {
    "moodle": "In Moodle: the assignment, with the feedback type 'Feedback files' switched on; View all submissions, Upload multiple "
    "feedback files in a zip. Moodle lists what it will add before anything is added.",
    "canvas": "In Canvas: Grades, the menu of the assignment, Re-upload submissions. Each page becomes a comment with an attachment; "
    "uploading an archive twice makes two comments.",
}

# The earliest date in a ZIP archive, so that the same pages give the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
# Moodle splits names at underscores, and neither platform allows separators or control characters in them.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:_]+")


@dataclass(frozen=True)
class FeedbackArchive:
    """The feedback archives of one chapter."""

    chapter: str
    paths: tuple[Path, ...]  # the archives; several if one would be too large for an upload
    students: tuple[str, ...]  # the students whose pages are in them
    left_out: tuple[str, ...] = ()  # students with a page but without a number on the platform
    # the ids of pages that go to nobody, because they have withdrawn, are not on the class list, or are no student's
    strangers: tuple[str, ...] = ()


def export_feedback(
    course: Course, chapters: Sequence[str], platform: str, folder: Path, *, max_bytes: int = MAX_BYTES
) -> list[FeedbackArchive]:
    """Write the feedback of some chapters in a platform's format, and return the archives.

    Unlisted and withdrawn students get no page.

    Args:
        chapters: names of chapters. A chapter without pages for students of the platform gets no archive.
        platform: ``"canvas"`` or ``"moodle"``.
        folder: the folder to write to; created if it is missing.
        max_bytes: the largest size of an archive. A page that exceeds it gets its own archive.

    Raises:
        CourseError: if no page can be returned, or the folder cannot be written. Then nothing is written.
    """
    roster = read_roster(course)
    name_of = _NAMES[platform]
    files: dict[Path, bytes] = {}
    archives_written = []
    for chapter in chapters:
        pages, left_out, unlisted = _collect_pages(course, chapter, platform, roster)
        entries = [(name_of(student, chapter), page) for student, page in pages]
        archives = list(_pack_archives(entries, max_bytes))
        paths = [
            folder / f"feedback_{platform}_{chapter}{f'_{number}' if len(archives) > 1 else ''}.zip"
            for number in range(1, len(archives) + 1)
        ]
        files.update(zip(paths, archives, strict=True))
        if pages or left_out or unlisted:
            students = tuple(student.id for student, _ in pages)
            archives_written.append(FeedbackArchive(chapter, tuple(paths), students, tuple(left_out), tuple(unlisted)))
    if not files:
        raise CourseError(_reason_for_no_archive(archives_written, platform), do=_REMEDY)
    write_all_or_none(files)
    return archives_written


_REMEDY = (
    "Pages are written by tfcourse autograde; the numbers come from the platform's own download: "
    "tfcourse autograde CHAPTER --submissions DOWNLOAD.zip"
)


def _reason_for_no_archive(archives: Iterable[FeedbackArchive], platform: str) -> str:
    without = sorted({student for archive in archives for student in archive.left_out})
    if not without:
        return "there are no feedback pages yet"
    return f"nobody's number on {platform.capitalize()} is known; feedback waits for {list_first(without)}"


def _collect_pages(
    course: Course, chapter: str, platform: str, roster: dict[str, Student]
) -> tuple[list[tuple[Student, bytes]], list[str], list[str]]:
    """Return three lists: reachable students with their pages, students without a platform number, and unlisted ids.

    Every member of a group has a page.
    """
    pages, left_out = [], []
    everyone = {
        page.parents[1].name: page for page in sorted(course.folder("feedback").glob(f"*/{chapter}/{chapter}.html"))
    }
    unlisted = [name for name in everyone if is_outside_class(name, roster)]
    members: dict[str, list[str]] = defaultdict(list)
    for name, who in sorted(group_submitters(course, chapter, roster, everyone).items()):
        members[who].append(name)
    pages_of_members = member_pages(course, chapter, [member for names in members.values() for member in names])
    for name, page in everyone.items():
        submitter = roster.get(name, Student(name))
        # The work of a student who has withdrawn is still that of the group's other members.
        is_teams = _is_team_submission(submitter, chapter)  # Moodle gives a team's page to all members
        recipients = [submitter] if name not in unlisted or (is_teams and members[name]) else []
        if not is_teams:
            recipients += [_add_group_upload(submitter, roster[member], chapter) for member in members[name]]
        for student in recipients:
            content = page.read_bytes() if student is submitter else pages_of_members.get(student.id)
            if content is not None and _is_reachable(student, platform, chapter):
                pages.append((student, content))
            else:
                left_out.append(student.id)
    return pages, left_out, unlisted


def member_pages(course: Course, chapter: str, members: Iterable[str]) -> dict[str, bytes]:
    """Return the pages of group members who did not hand in themselves, with their own name, points and lateness.

    A member has none if the group's notebook is not graded.

    Args:
        members: ids of students whose group has handed in for them.
    """
    member_ids = frozenset(members)
    if not member_ids:
        return {}
    # The page applies the rules of course.toml for single exercises itself.
    everyone = read_grades(course, [chapter], by_rules=False)
    grades = [grade for grade in everyone if grade.handed_in_by and grade.student in member_ids]
    config = course.config()
    coursedir = CourseDirectory(config=config, assignment_id=chapter)
    converter = GenerateFeedback(coursedir=coursedir, config=config)
    exporter = FeedbackExporter(parent=converter, config=config)
    pages = {}
    with open_gradebook(course) as gradebook:
        step = bind_gradebook(gradebook)(config=config)
        for grade in grades:
            path = course.folder("autograded", grade.handed_in_by, chapter) / f"{chapter}.ipynb"
            if path.is_file():
                notebook: Any = nbformat.read(path, as_version=4)
                metadata = {"assignment": chapter, "notebook": chapter, "student": grade.handed_in_by}
                metadata["db_url"] = course.gradebook_url
                step.preprocess(notebook, {"nbgrader": metadata})
                page, _ = exporter.from_notebook_node(notebook, {"nbgrader": metadata | _member_data(grade, metadata)})
                pages[grade.student] = page.encode()
    return pages


def _member_data(grade: Grade, submitter: dict[str, Any]) -> dict[str, Any]:
    """Return the page metadata in which a group member differs from the member who handed in."""
    named = grade.first_name or grade.last_name
    return {
        "student": grade.student,
        "handed_in_by": grade.handed_in_by,
        "name": grade.full_name if named else "",
        "score": max(0.0, submitter["score"] + submitter["late_penalty"] - grade.penalty),
        "late_penalty": grade.penalty,
        "seconds_late": grade.late_by.total_seconds(),
    }


def _add_group_upload(submitter: Student, member: Student, chapter: str) -> Student:
    """Return a group member with the number of the group's attachment, of which Canvas stores one."""
    if submitter.find_platform(chapter) != "canvas" or chapter not in submitter.uploads or chapter in member.uploads:
        return member
    uploads = {**member.uploads, chapter: submitter.uploads[chapter]}
    return replace(member, uploads=uploads, other_platforms={**member.other_platforms, chapter: "canvas"})


def _is_reachable(student: Student, platform: str, chapter: str) -> bool:
    if student.find_platform(chapter) != platform:
        return False
    if platform == "moodle":
        return _is_team_submission(student, chapter) or bool(student.number_on_moodle(chapter))
    return chapter in student.uploads and bool(student.user)


def _is_team_submission(student: Student, chapter: str) -> bool:
    """Return whether a student's submission on Moodle is a team's."""
    upload = student.uploads.get(chapter, "")
    return student.find_platform(chapter) == "moodle" and bool(upload) and not upload.isdecimal()


def _pack_archives(entries: Sequence[tuple[str, bytes]], max_bytes: int) -> Iterable[bytes]:
    """Yield ZIP archives of the entries, each as large as allowed."""
    waiting = list(entries)
    while waiting:
        count = len(waiting)
        archive = _zip_entries(waiting)
        while len(archive) > max_bytes and count > 1:
            count = max(1, min(count - 1, int(count * max_bytes / len(archive))))
            archive = _zip_entries(waiting[:count])
        yield archive
        waiting = waiting[count:]


def _zip_entries(entries: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _moodle_name(student: Student, chapter: str) -> str:
    if _is_team_submission(student, chapter):
        return f"{student.uploads[chapter]}_assignsubmission_file/{chapter}.html"
    name = _UNSAFE.sub(" ", student.name).strip(" .~") or "student"
    return f"{name}_{student.number_on_moodle(chapter)}_assignsubmission_file/{chapter}.html"


def _canvas_name(student: Student, chapter: str) -> str:
    # Canvas reads the first two numbers, and writes its own names in small letters without blanks.
    name = re.sub(r"[^a-z]", "", safe_id(student.name)) or "student"
    return f"{name}_{student.user}_{student.uploads[chapter]}_feedback-{chapter.replace('_', '-')}.html"


_NAMES: dict[str, Callable[[Student, str], str]] = {"canvas": _canvas_name, "moodle": _moodle_name}
