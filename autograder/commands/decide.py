"""Run ``tfcourse decide``."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import click

from autograder.commands.console import CommandResult, command
from autograder.commands.options import OTHER_COURSE, course_option
from autograder.course.paths import course_folder, require_writable, shell_command
from autograder.errors import CourseError


@click.command()
@click.argument("student", metavar="STUDENT")
@click.argument("chapter", metavar="CHAPTER")
@click.argument("points", type=float, required=False, metavar="POINTS")
@click.argument("reason", required=False, metavar="REASON")
@click.option("--undo", is_flag=True, help="Take the points back.")
@course_option
@command
def decide(
    student: str, chapter: str, points: float | None, reason: str | None, undo: bool, course_dir: Path | None
) -> CommandResult:
    """Set the points of work that cannot be graded, such as a PDF.

    The points count as they are, without a penalty for lateness, until they are taken back; another decision replaces them. Report,
    exports and the feedback page show the reason. nbgrader's own gradebook does not have them.

    Example:
      tfcourse decide ada 03 12 "A PDF; the first two exercises are right."
      tfcourse decide ada 03 --undo
    """
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.course.lock import course_lock
    from autograder.grading.reports.grades import read_grades
    from autograder.intake.people.find_student import display_name, find_student
    from autograder.intake.people.standing import record_decision as give

    if undo != (points is None and reason is None) or not (undo or (reason or "").strip()):
        raise click.UsageError("give either POINTS and a REASON in quotation marks, or --undo")
    course = Course.open(course_folder(course_dir))
    require_writable(course.root, OTHER_COURSE)
    (name,) = released_chapters(course, [chapter])
    with course_lock(course):
        student = find_student(course, student)
        grade = next((one for one in read_grades(course, [name]) if one.student == student), None)
        if grade is None:
            raise CourseError(f"{name} does not count for {student}", do=f"See {shell_command(course, 'students')}")
        if undo:
            if not grade.decision:
                raise CourseError(f"nobody has decided about {student} in {name}", do="There is nothing to take back.")
            entry = give(course, student, name, None)
            return CommandResult({"student": student, "chapter": name}, f"{display_name(entry)}, {name}: taken back")
        if not (points is not None and isfinite(points) and 0 <= points <= grade.best):
            raise CourseError(f"{points:g} points: {name} has 0 to {grade.best:g}", do="Give points between the two.")
        if grade.handed_in_by or (grade.graded and not grade.decision):
            do = f"Change its points there: {shell_command(course, 'mark', name)}"
            raise CourseError(f"{student} has a graded notebook in {name}", do=do)
        entry = give(course, student, name, (points, " ".join((reason or "").split())))
    data = {"student": student, "chapter": name, "points": points, "best": grade.best, "reason": reason}
    earlier = f" (before: {grade.score:g})" if grade.decision else ""
    return CommandResult(data, f"{display_name(entry)}, {name}: {points:g} of {grade.best:g} points{earlier}")
