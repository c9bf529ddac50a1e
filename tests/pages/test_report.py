"""The class report in a lecturer's hands: from a disk, without a network or a script, in light and in dark, wide and narrow."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.grading.record.results import ExerciseResult
from autograder.grading.record.viva_journal import Conversation, VivaAnswer
from autograder.grading.reports.class_report import ChapterSummary, StudentWork, summarise_chapters
from autograder.grading.reports.grades import Grade
from autograder.grading.reports.report_page import write_report
from autograder.grading.reports.viva import VivaSummary

from .conftest import objections

pytestmark = pytest.mark.browser

THEMES = ("light", "dark")
CHAPTERS = ("03_scaled_dot_product", "04_multi_head")
STUDENTS = 23


def _work(number: int, chapter: str, feedback: Path) -> StudentWork:
    """Return the work of one student; what they did follows from their number."""
    diagnosis = Diagnosis(
        f"mistake {number % 17}", "The scores are not divided by the square root of the width.", "why-scale"
    )
    results = []
    for place, name in enumerate(("soft_lookup", "scaled_dot_product_attention", "MultiHeadAttention", "causal_mask")):
        right = (number * (place + 2)) % 3
        parts = [
            Finding(aspect, aspect, 3, right > i, "seen", None if right > i else diagnosis)
            for i, aspect in enumerate("ab")
        ]
        verdict = Verdict(name, chapter, tuple(parts))
        results.append(ExerciseResult(name, verdict.score, verdict.max_score, verdict))
    if number == 4:
        results[0] = ExerciseResult(
            "soft_lookup", 0.0, 6.0, error="NameError: name 'a_rather_long_name_that_does_not_break' is not defined"
        )
    handed_in, score = number != 5, float(sum(result.score for result in results))
    grade = Grade(
        student=f"student-{number:02d}",
        first_name="" if number == 7 else ("Ada", "Émilie", "Oluwaseun", "Maximiliana Theodora")[number % 4],
        last_name=""
        if number == 7
        else ("Lovelace", "du Châtelet", "Adeyemi-Featherstonehaugh", "Ng")[number // 4 % 4],
        email="",
        platform="",
        canvas_id="",
        moodle_id="",
        chapter=chapter,
        submitted=datetime(2026, 3, 2) if handed_in else None,
        due=None,
        raw=score if handed_in else 0.0,
        penalty=1.0 if number % 6 == 0 else 0.0,
        best=24.0,
        pending=handed_in and number % 3 == 0,
        handed_in=handed_in,
    )
    problems = ("test_causal_mask: It was stopped after 60 s.",) if number in (8, 9) else ()
    return StudentWork(
        grade,
        exercises=tuple(results) if handed_in else (),
        seconds=float(number),
        problems=problems,
        recorded=number != 9,
        feedback=feedback if handed_in else None,
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report on two chapters, and a feedback page that it links to."""
    feedback = tmp_path / "feedback" / "page.html"
    feedback.parent.mkdir()
    feedback.write_text("<!doctype html><title>Feedback</title>", encoding="utf-8")
    works = [_work(number, chapter, feedback) for chapter in CHAPTERS for number in range(STUDENTS)]
    first, *others = summarise_chapters(works)
    return write_report([_with_conversations(first), *others], tmp_path / "report.html", title="Class report")


def _with_conversations(summary: ChapterSummary) -> ChapterSummary:
    """Return a chapter about which every second student was asked; two of them have guessed."""
    grades, talks = {}, {}
    for number, work in enumerate(summary.works):
        held, student = number % 2 == 0, work.grade.student
        grade = replace(work.grade, chapter=f"{summary.chapter}_viva", raw=1.0, penalty=0.0, best=4.0, viva=True)
        grades[student] = replace(grade, handed_in=held, pending=int(number % 8 == 0))
        answers = {0: VivaAnswer("a_rather_long_name_that_does_not_break", 0, True)}
        talks |= {student: Conversation(student, "sheet", 4, answers, "a note " * 40)} if held else {}
    return replace(summary, viva=VivaSummary(grades, talks, tuple(talks)[:2]))


@pytest.mark.parametrize("theme", THEMES)
def test_report_has_no_violation_of_wcag_and_fits_a_narrow_screen(page, axe, report: Path, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(report.as_uri())
    for opened in (False, True):
        page.evaluate(
            f"document.querySelectorAll('details').forEach(element => element.open ||= {str(opened).lower()})"
        )
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, "the page scrolls sideways"
        page.set_viewport_size({"width": 1200, "height": 900})
        assert objections(axe, page) == []


def test_all_chapters_of_the_course_fit_a_wide_screen(page, tmp_path: Path) -> None:
    chapters = [f"{number:02d}_a_chapter" for number in range(1, 14)]
    works = [_work(number, chapter, tmp_path / "page.html") for chapter in chapters for number in range(STUDENTS)]
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(write_report(summarise_chapters(works), tmp_path / "report.html", title="Class report").as_uri())
    table = page.get_by_role("region", name="Students by chapter")
    assert table.evaluate("region => region.scrollWidth - region.clientWidth") <= 0


def test_answers_that_wait_lead_to_the_command_that_marks_them(page, report: Path) -> None:
    page.goto(report.as_uri())
    page.get_by_role("link", name="to mark").first.click()
    assert page.url.endswith("#marking")
    for chapter in CHAPTERS:
        assert page.locator(".marking code", has_text=f"tfcourse mark {chapter}").is_visible()


def test_a_number_opens_by_keyboard_to_students_who_link_to_their_feedback(page, report: Path) -> None:
    page.goto(report.as_uri())
    row = page.locator("details", has=page.locator("summary", has_text="scaled_dot_product_attention")).first
    link = row.locator("a").first
    assert not link.is_visible()
    row.locator("summary").focus()
    page.keyboard.press("Enter")
    assert link.is_visible()
    link.click()
    page.wait_for_url("**/feedback/page.html")


def test_the_longest_bar_is_the_fullest_bin_and_every_student_is_in_one(page, report: Path) -> None:
    page.goto(report.as_uri())
    rows = page.locator("section").nth(1).locator(".bars > li")
    counts = [int(text) for text in rows.locator(".row > .n:last-child").all_inner_texts()]
    widths = rows.locator(".bar").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    # One has not handed in, one could not be graded.
    assert sum(counts) == STUDENTS - 2
    assert widths.index(max(widths)) == counts.index(max(counts))
    assert [width > 3 for width in widths] == [count > 0 for count in counts]


def test_everything_is_there_without_a_script_and_on_paper(chromium, report: Path) -> None:
    context = chromium.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.locator("section").count() == 1 + len(CHAPTERS)
    assert page.locator(".exercises .who a").first.is_visible(), "what is closed on the screen is missing on paper"
    context.close()
