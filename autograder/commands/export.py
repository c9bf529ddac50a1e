"""Run ``tfcourse export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import update_late_penalties, update_pages
from autograder.commands.options import chapters_argument, course_option
from autograder.course.paths import course_folder
from autograder.errors import list_first

if TYPE_CHECKING:
    from autograder.course.folder import Course


@click.command()
@chapters_argument
@course_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "canvas", "moodle"]),
    default="csv",
    show_default=True,
    help="Format of the grades.",
)
@click.option(
    "--feedback",
    type=click.Choice(["canvas", "moodle"]),
    help="Export feedback pages instead of grades: an archive per chapter for upload.",
)
@click.option("--scale", is_flag=True, help="Scale Moodle's grades to the maximum grade in its worksheet.")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="Output folder. [default: COURSE/export]")
@command
def export(
    chapters: tuple[str, ...], course_dir: Path | None, form: str, feedback: str | None, scale: bool, to: Path | None
) -> CommandResult:
    """Write grades, or feedback, for a learning platform.

    Grades: one table with nbgrader's columns, one gradebook for Canvas, or a grading worksheet per chapter for Moodle. Feedback: an
    archive per chapter, for upload to Canvas or Moodle. Without CHAPTER all released chapters are exported.

    Example:
      tfcourse export --format canvas
      tfcourse export --feedback moodle 03
    """
    from autograder.course.course_file import read_course_file
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.grading.record.results import describe_waiting
    from autograder.grading.record.viva_scores import write_viva_scores
    from autograder.grading.reports.export import (
        HINTS,
        absent_grades,
        absent_lines,
        empty_chapters_message,
        open_choices_message,
    )
    from autograder.grading.reports.export import export as export_grades
    from autograder.grading.reports.grades import read_grades
    from autograder.grading.reports.missing import is_work_without_grade, list_gaps, missing_messages, unclear_message
    from autograder.grading.reports.moodle import (
        IMPORT,
        last_worksheets,
        maximum_messages,
        record_worksheets,
        scale_grades,
    )
    from autograder.grading.reports.viva import missing_conversations, read_viva_grades
    from autograder.intake.people.worksheet import worksheet_form

    if scale and (feedback or form != "moodle"):
        raise click.UsageError("--scale requires --format moodle")
    course = Course.open(course_folder(course_dir))
    named = released_chapters(course, chapters)
    folder = (to or course.root / "export").resolve()
    charged = update_late_penalties(course, named)
    if feedback:
        return _export_feedback(course, named, feedback, folder, [*charged, *update_pages(course, named)])
    for name in named:
        write_viva_scores(course, name)
    grades = read_grades(course, named)
    vivas = read_viva_grades(course, grades)
    plan = read_course_file(course.root)
    forms = {name: worksheet_form(course, name) for name in named} if form == "moodle" else {}
    shown = scale_grades(grades, forms) if scale else grades
    last = last_worksheets(course, forms)
    files = export_grades(
        [*shown, *vivas], form, folder, plan.weights(named), plan.canvas_columns(), plan.total, forms, last
    )
    cleared = record_worksheets(course, shown, {file.path.name: file.students for file in files}, last)
    lines = [*charged, *(str(file.path) for file in files if file.students)]
    for file in files:
        if file.left_out:
            lines.append(
                f"not in {file.path.name}, because their number on the platform is unknown: {list_first(file.left_out)}"
            )
    lines += [*maximum_messages(shown, forms), *cleared]
    if scale and (unknown := [name for name in forms if forms[name].maximum is None]):
        lines.append(f"not scaled, because no worksheet of Moodle's was read: {list_first(unknown)}")
    lines += absent_lines(grades, form)
    lines += missing_conversations(vivas, form)
    if empty := empty_chapters_message(grades):
        lines.append(empty)
    if open_ := open_choices_message(grades):
        lines.append(open_)
    if doubtful := unclear_message(grades):
        lines.append(doubtful if form == "csv" else f"{doubtful}. Not in the file.")
    lines += missing_messages(course, grades)
    if phrase := describe_waiting((grade.student, grade.pending) for grade in grades):
        lines.append(phrase)
    if begun := [f"{grade.student} ({grade.chapter})" for grade in vivas if grade.pending]:
        lines.append(f"conversations with unanswered questions, which count as wrong: {list_first(begun)}")
    lines += [HINTS[form]] if form in HINTS else []
    lines += [HINTS[IMPORT]] if any(file.path.name.startswith(IMPORT) for file in files) else []
    missing_data = list_gaps(course, grades)
    data = {
        "files": [vars(file) for file in files],
        "nothing_handed_in": [{"student": grade.student, "chapter": grade.chapter} for grade in absent_grades(grades)],
        "no_conversation": [
            {"student": grade.student, "chapter": grade.chapter} for grade in vivas if not grade.handed_in
        ],
        "pending": sum(grade.pending for grade in [*grades, *vivas]),
        **missing_data,
    }
    return CommandResult(data, "\n".join(lines), EXIT_FAILED if is_work_without_grade(missing_data) else 0)


def _export_feedback(
    course: Course, chapters: Sequence[str], platform: str, folder: Path, renewed: Sequence[str]
) -> CommandResult:
    from autograder.grading.record.results import describe_waiting
    from autograder.grading.reports.feedback_archive import HINTS, export_feedback
    from autograder.grading.reports.grades import read_grades
    from autograder.grading.reports.missing import missing_messages

    archives = export_feedback(course, chapters, platform, folder)
    lines = [*renewed, *(str(path) for archive in archives for path in archive.paths)]
    lines += [
        f"{archive.chapter}: left out, because their number on {platform.capitalize()} is unknown: {list_first(archive.left_out)}"
        for archive in archives
        if archive.left_out
    ]
    lines += [_left_out_message(archive.chapter, archive.strangers) for archive in archives if archive.strangers]
    grades = read_grades(course, chapters)
    lines += missing_messages(course, grades)
    if phrase := describe_waiting((grade.student, grade.pending) for grade in grades):
        lines.append(f"{phrase}, as their pages say")
    return CommandResult([vars(archive) for archive in archives], "\n".join([*lines, HINTS[platform]]))


def _left_out_message(chapter: str, strangers: Sequence[str]) -> str:
    pages = "1 page is" if len(strangers) == 1 else f"{len(strangers)} pages are"
    return f"{chapter}: {pages} left out, of nobody who is in the class: {list_first(strangers)}"
