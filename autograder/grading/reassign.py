"""Reassign the submissions of an ID that is not in the class list to the student who handed them in."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace

from nbgrader.api import Gradebook, MissingEntry

from autograder.course.course_file_edits import move_extensions
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.record.results import read_result, result_path, write_result
from autograder.intake.downloads.journal import rename_student
from autograder.intake.people.find_student import display_name
from autograder.intake.roster import Student, merge_collected, read_roster, write_roster


def reassign(course: Course, stranger: str, student: str) -> list[str]:
    """Reassign all submissions of an unknown id to a student, and record the id's platform numbers for the student.

    Manual points stay with the work. Results and pages of a stranger are removed, and the next run of ``tfcourse autograde`` regenerates
    them. The results and pages of a participant of a blind assignment become the student's.

    Args:
        course: the course; the caller holds its lock.
        stranger: the current id of the work.
        student: the id of a student on the class list.

    Returns:
        The chapters.

    Raises:
        CourseError: if the unknown id is on the class list, the student is not, or the student already has work for one of the chapters.
    """
    roster = read_roster(course)
    chapters = sorted(path.name for path in course.folder("submitted", stranger).glob("*/") if path.is_dir())
    _refuse_invalid_pair(course, roster, stranger, student, chapters)
    _move_grades(course, stranger, student, chapters)
    entry = roster.get(stranger, Student(stranger))
    numbers = replace(entry, id=student, name="", state="")
    others = {name: other for name, other in roster.items() if name != stranger}
    move_extensions(course.root, stranger, student)
    for chapter in chapters:
        if entry.blind and (result := read_result(course, chapter, stranger)):
            write_result(course, replace(result, student=student))
        for step in ("autograded", "feedback"):
            if entry.blind and course.folder(step, stranger, chapter).is_dir():
                course.folder(step, student).mkdir(parents=True, exist_ok=True)
                course.folder(step, stranger, chapter).rename(course.folder(step, student, chapter))
            shutil.rmtree(course.folder(step, stranger, chapter), ignore_errors=True)
        result_path(course, chapter, stranger).unlink(missing_ok=True)
        rename_student(course, chapter, stranger, student)
        target = course.folder("submitted", student, chapter)
        target.parent.mkdir(parents=True, exist_ok=True)
        course.folder("submitted", stranger, chapter).rename(target)
    # Last: a call that is cut short is made again under the same two ids.
    write_roster(course, merge_collected(others, [numbers]))
    for step in ("submitted", "autograded", "feedback"):
        folder = course.folder(step, stranger)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return chapters


def _refuse_invalid_pair(
    course: Course, roster: dict[str, Student], stranger: str, student: str, chapters: Sequence[str]
) -> None:
    one, other = roster.get(stranger, Student(stranger)), roster.get(student, Student(student))
    if one.enrolled and not one.blind:
        raise CourseError(
            f"{display_name(one)} is on the class list, so this work has an owner",
            do="Name the stranger first, then the student.",
        )
    if not other.enrolled:
        raise CourseError(
            f"{display_name(other)} is not on the class list", do="Name the stranger first, then the student."
        )
    for chapter in chapters:
        if course.folder("submitted", student, chapter).exists():
            raise CourseError(
                f"{display_name(other)} handed in {chapter}, too",
                where=course.folder("submitted", student, chapter),
                do=f"Compare it with submitted/{stranger}/{chapter}, remove the version that does not count, and repeat the command.",
            )


def _move_grades(course: Course, stranger: str, student: str, chapters: Sequence[str]) -> None:
    """Change the owner of the submissions in the gradebook, keeping manual points and comments."""
    course_id = str(course.config().CourseDirectory.get("course_id", ""))
    with Gradebook(course.gradebook_url, course_id) as gradebook:
        gradebook.update_or_create_student(student)
        for chapter in chapters:
            try:
                submission = gradebook.find_submission(chapter, stranger)
            except MissingEntry:
                continue
            submission.student_id = student
        gradebook.db.commit()
        try:
            entry = gradebook.find_student(stranger)
        except MissingEntry:
            return
        gradebook.db.refresh(entry)
        if not entry.submissions:
            gradebook.remove_student(stranger)
