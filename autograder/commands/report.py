"""Run ``tfcourse report``."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import marking_hint, update_late_penalties
from autograder.commands.options import chapters_argument, course_option
from autograder.course.paths import course_folder


@click.command()
@chapters_argument
@course_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output file. [default: COURSE/report.html]",
)
@command
def report(chapters: tuple[str, ...], course_dir: Path | None, output: Path | None) -> CommandResult:
    """Write the class report.

    The report is one page that opens from disk: the course, students who fall behind, points for the next
    lecture, and the students behind each number. Without CHAPTER it is about all released chapters.

    Example:
      tfcourse report 03 --output report.html
    """
    from autograder.course.course_file import read_course_file
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.grading.record.results import describe_waiting
    from autograder.grading.record.viva_scores import write_viva_scores
    from autograder.grading.reports.class_report import read_student_work, summarise_chapters
    from autograder.grading.reports.course_overview import build_course_overview
    from autograder.grading.reports.missing import is_work_without_grade, list_gaps, list_uncollected, missing_messages
    from autograder.grading.reports.report_page import write_report
    from autograder.grading.reports.rubric_counts import count_rubric_items
    from autograder.grading.reports.totals import compute_totals
    from autograder.grading.reports.viva import read_viva_grades, viva_summaries
    from autograder.intake.people.standing import list_uncounted

    course = Course.open(course_folder(course_dir))
    names = released_chapters(course, chapters)
    charged = update_late_penalties(course, names)
    for name in names:
        write_viva_scores(course, name)
    works = read_student_work(course, names)
    grades = [work.grade for work in works]
    lacking = list_uncollected(course, grades)
    summaries = summarise_chapters(
        works, {chapter: [item.student for item in pending_items] for chapter, pending_items in lacking.items()}
    )
    summaries = [replace(item, rubrics=count_rubric_items(course, item.chapter, item.graded)) for item in summaries]
    vivas = read_viva_grades(course, grades)
    talks = viva_summaries(course, works, vivas)
    summaries = [replace(item, viva=talks.get(item.chapter)) for item in summaries]
    plan = read_course_file(course.root)
    overall = compute_totals([*grades, *vivas], plan.weights(names), plan.total)
    now = datetime.now(UTC).replace(tzinfo=None)
    commands = {chapter: marking_hint(course, [chapter]) for chapter in names}
    target = (output or course.root / "report.html").resolve()
    outside = list_uncounted(course, names)
    title = plan.title or "Class report"
    path = write_report(summaries, target, title=title, now=now, commands=commands, overall=overall, outside=outside)
    lines = [*charged, f"report on {', '.join(summary.chapter for summary in summaries)}: {path}"]
    page = next((work.feedback for work in works if work.feedback is not None), None)
    if page is not None:
        lines.append(f"feedback, for example: {page}")
    pending = ((work.grade.student, work.grade.pending) for work in works)
    if phrase := describe_waiting(pending):
        chapters_waiting = sorted({work.grade.chapter for work in works if work.grade.pending})
        lines.append(f"{phrase}: {marking_hint(course, chapters_waiting)}")
    for work in works:
        if not work.grade.decided:
            lines += [f"to decide: {work.grade.student}: {problem}" for problem in work.problems]
    lines += missing_messages(course, grades)
    behind = {row.student: row.reasons for row in build_course_overview(summaries, now).behind}
    missing_data = list_gaps(course, grades)
    data = {
        "report": path,
        "behind": behind,
        "chapters": [summary.to_dict() for summary in summaries],
        "totals": {total.grade.student: total.share for total in overall},
        "not_counted": [one.to_dict() for one in outside],
        "grades": {total.grade.student: total.grade_name for total in overall if total.grade_name},
        **missing_data,
    }
    return CommandResult(data, "\n".join(lines), EXIT_FAILED if is_work_without_grade(missing_data) else 0)
