"""The class report counts right, links every number to its students, and is safe to open."""

import re

import pytest

from autograder.errors import CourseError
from autograder.reports.class_report import render, summarise, write_report


def test_the_distribution_puts_full_marks_in_the_last_bin_and_leaves_the_absent_out(works):
    (summary,) = summarise(works)
    assert {(b.low, b.students) for b in summary.bins if b.students} == {(0, ("s3",)), (50, ("s2",)), (90, ("s1",))}
    assert summary.absent == ("s4",)


def test_average_and_median_are_of_those_who_handed_in(works):
    (summary,) = summarise(works)
    assert summary.average == pytest.approx(0.5)
    assert summary.middle == pytest.approx(0.5)


def test_exercises_split_the_class_into_full_some_and_none(works):
    (exercise,) = summarise(works)[0].exercises
    assert (exercise.full, exercise.partial, exercise.none) == (("s1",), ("s2",), ("s3",))
    assert exercise.average == pytest.approx(16 / 3)
    assert exercise.pass_rate == pytest.approx(1 / 3)


def test_a_mistake_counts_once_a_student_however_many_aspects_it_cost(works):
    seen = {m.diagnosis.name: m.students for m in summarise(works)[0].misconceptions}
    assert seen == {"mask inverted": ("s2",), "no scale": ("s3",)}


def test_the_slowest_come_first_and_failures_carry_their_reason(works):
    (summary,) = summarise(works)
    assert [work.grade.student for work in summary.slowest] == ["s2", "s1", "s3"]
    assert [work.problems for work in summary.failed] == [("cell 4 ran longer than 60 s",)]


def test_every_student_link_leads_to_a_row_on_the_page(works, tmp_path):
    page = render(summarise(works), title="Report", folder=tmp_path)
    targets = set(re.findall(r'<tr id="([^"]+)"', page))
    links = set(re.findall(r'href="#([^"]+-s\d)"', page))
    assert links
    assert links <= targets


def test_feedback_links_are_relative_to_the_page(works, tmp_path):
    page = render(summarise(works), title="Report", folder=tmp_path / "reports")
    assert 'href="../feedback/s1/03_scaled_dot_product/03_scaled_dot_product.html"' in page


def test_names_and_explanations_are_escaped_and_nothing_is_fetched(works, tmp_path):
    page = render(summarise(works), title="Report", folder=tmp_path)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page


def test_the_same_class_gives_the_same_bytes_in_any_order(works, tmp_path):
    pages = {render(summarise(order), title="Report", folder=tmp_path) for order in (works, works[::-1])}
    assert len(pages) == 1


def test_a_report_that_cannot_be_written_says_where_and_what_to_do(works, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="--output"):
        write_report(summarise(works), tmp_path / "file" / "report.html", title="Report")
