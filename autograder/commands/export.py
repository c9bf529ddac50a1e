"""Run ``tfcourse export``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.options import chapters_argument, course_option
from autograder.course.paths import course_folder


@click.command()
@chapters_argument
@course_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "canvas", "moodle"]),
    default="csv",
    show_default=True,
    help="Whose columns.",
)
@click.option(
    "--to", type=click.Path(path_type=Path, file_okay=False), help="The folder to write to. [default: COURSE/export]"
)
@command
def export(chapters: tuple[str, ...], course_dir: Path | None, form: str, to: Path | None) -> CommandResult:
    """Write grades for a learning platform.

    One table with nbgrader's columns, one gradebook for Canvas, or a grading worksheet per chapter for Moodle.

    Example:
      tfcourse export --format canvas
    """
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.record.results import waiting
    from autograder.reports.export import HINTS, not_begun, open_choices, undecided
    from autograder.reports.export import export as export_grades
    from autograder.reports.grades import read_grades
    from autograder.reports.missing import gaps, missing_messages, not_brought_in, unclear

    course = Course.open(course_folder(course_dir))
    grades = read_grades(course, released_chapters(course, chapters))
    files = export_grades(grades, form, (to or course.root / "export").resolve())
    lines = [str(file.path) for file in files]
    for file in files:
        if file.left_out:
            who = ", ".join(file.left_out)
            lines.append(f"not in {file.path.name}, because their number on the platform is not known: {who}")
    if empty := not_begun(grades):
        lines.append(empty)
    if open_ := open_choices(grades):
        lines.append(open_)
    if refused := undecided(grades):
        lines.append(refused if form == "csv" else f"{refused}. Not in the file: decide, and enter it by hand.")
    if doubtful := unclear(grades):
        lines.append(doubtful if form == "csv" else f"{doubtful}. Not in the file.")
    lines += missing_messages(course, grades)
    if phrase := waiting((grade.student, grade.pending) for grade in grades):
        lines.append(phrase)
    lines += [HINTS[form]] if form in HINTS else []
    data = {
        "files": [vars(file) for file in files],
        "pending": sum(grade.pending for grade in grades),
        "not_gradable": [
            {"student": grade.student, "chapter": grade.chapter}
            for grade in grades
            if grade.handed_in and grade.gradable is False
        ],
        "to_decide": [{"student": grade.student, "chapter": grade.chapter} for grade in grades if not grade.decided],
        **gaps(course, grades),
    }
    fell_short = open_ or not_brought_in(course, grades)
    return CommandResult(data, "\n".join(lines), EXIT_FAILED if fell_short else 0)
