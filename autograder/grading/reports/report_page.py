"""Render the class report as an HTML page: the course first, then each chapter; without network or scripts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import jinja2

from autograder.atomic_files import write_all_or_none
from autograder.errors import CourseError
from autograder.grading.feedback.markup import markdown_html
from autograder.grading.feedback.page_html import html_environment
from autograder.grading.reports.class_report import ChapterSummary, score_level
from autograder.grading.reports.course_overview import build_course_overview
from autograder.grading.reports.totals import Total, grade_counts_text
from autograder.intake.people.standing import UncountedStudent


def render_report(
    summaries: Sequence[ChapterSummary],
    *,
    title: str,
    folder: Path,
    now: datetime | None = None,
    commands: Mapping[str, str] = {},
    overall: Sequence[Total] = (),
    outside: Sequence[UncountedStudent] = (),
) -> str:
    """Return the class report as one HTML page.

    Args:
        summaries: one per chapter.
        title: the page's title.
        folder: where the page will lie; links to feedback are relative to it.
        now: the present in UTC, without a time zone; None: all deadlines have passed.
        commands: by chapter, the command that opens its page for marking; ``tfcourse mark CHAPTER`` by default.
        overall: the students' totals, if chapters have weights.
        outside: the students that averages, totals and exports leave out.
    """
    names = {work.grade.student: work.grade.full_name for summary in summaries for work in summary.works}
    links = {
        (work.grade.student, summary.chapter): _relative_path(work.feedback, folder)
        for summary in summaries
        for work in summary.works
        if work.feedback is not None
    }
    to_mark = {s.chapter: commands.get(s.chapter, f"tfcourse mark {s.chapter}") for s in summaries if s.waiting}
    overview = build_course_overview(summaries, now)
    template = _jinja_environment().get_template("class_report.html")
    return template.render(
        title=title,
        summaries=summaries,
        overview=overview,
        names=names,
        links=links,
        to_mark=to_mark,
        overall=overall,
        outside=outside,
        in_each_grade=grade_counts_text,
    )


def _jinja_environment() -> jinja2.Environment:
    environment = html_environment(jinja2.PackageLoader("autograder.grading.reports"))
    environment.filters["score_level"] = score_level
    environment.filters["capitalize_first"] = _capitalize_first
    environment.filters["markdown"] = markdown_html
    return environment


def _capitalize_first(text: str) -> str:
    """Capitalise the first letter of a text and keep the others, so that names such as NaN stay."""
    return text[:1].upper() + text[1:]


def _relative_path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def write_report(
    summaries: Sequence[ChapterSummary],
    path: Path,
    *,
    title: str,
    now: datetime | None = None,
    commands: Mapping[str, str] = {},
    overall: Sequence[Total] = (),
    outside: Sequence[UncountedStudent] = (),
) -> Path:
    """Write the class report and return its path; for the arguments see :func:`render_report`.

    Raises:
        CourseError: if it cannot be written.
    """
    page = render_report(
        summaries,
        title=title,
        folder=path.parent.resolve(),
        now=now,
        commands=commands,
        overall=overall,
        outside=outside,
    )
    try:
        write_all_or_none({path: page.encode()})
    except CourseError as error:
        raise CourseError(
            error.what.replace("the file", "the report", 1),
            where=path,
            do="Nothing was written. Choose another file with --output.",
        ) from error
    return path
