"""The class report counts right, links every number to its students, and is safe to open."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from autograder.errors import CourseError
from autograder.grading.reports.class_report import summarise_chapters
from autograder.grading.reports.report_page import render_report, write_report
from autograder.grading.reports.rubric_counts import ItemCount, RubricCount

# Elements that may not hold a block: a parser would close them early and the page would not be what its source says.
PHRASING = {"p", "b", "i", "span", "code", "em", "strong", "h1", "h2", "h3", "h4", "summary"}
BLOCKS = {"details", "div", "ul", "ol", "p", "table", "section", "h2", "h3", "h4"}
VOID = {"meta", "br", "link"}


class Nesting(HTMLParser):
    """Follows the tags of a page and notes what stands where it must not, and what is never closed."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.ids = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag in BLOCKS:
            self.faults += [f"<{tag}> in <{outer}>" for outer in self.open if outer in PHRASING]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")


def test_the_distribution_puts_full_marks_in_the_last_bin_and_leaves_the_absent_and_the_ungraded_out(works):
    (summary,) = summarise_chapters(works)
    assert {(b.low, b.students) for b in summary.bins if b.students} == {
        (0, ("s3", "s5")),
        (50, ("s2",)),
        (90, ("s1",)),
    }
    assert summary.absent == ("s4",)
    assert summary.ungraded == ("s6",)


def test_a_score_on_an_edge_counts_above_it_although_tenths_do_not_add_up(make_grade, works):
    (summary,) = summarise_chapters([replace(works[0], grade=make_grade("s1", sum([0.1] * 30)))])
    assert [b.low for b in summary.bins if b.students] == [30]


def test_exercises_split_the_class_into_full_some_and_none_and_keep_what_came_to_no_verdict(works):
    (exercise,) = summarise_chapters(works)[0].exercises
    assert (exercise.full, exercise.partial, exercise.none) == (("s1",), ("s2",), ("s3", "s5"))
    assert exercise.errors == {"s5": "NameError: <x> is not defined"}
    assert exercise.average == pytest.approx(4)
    assert exercise.pass_rate == pytest.approx(1 / 4)


def test_an_exercise_that_nobody_got_a_verdict_for_is_still_in_the_report(works):
    (summary,) = summarise_chapters([works[4]])
    assert [exercise.name for exercise in summary.exercises] == ["attend"]


def test_a_mistake_counts_once_a_student_however_many_aspects_it_cost(works):
    seen = {m.diagnosis.name: m.students for m in summarise_chapters(works)[0].misconceptions}
    assert seen == {"mask inverted": ("s2",), "no scale": ("s3",)}


def test_the_slowest_come_first_and_failures_carry_their_reason(works):
    (summary,) = summarise_chapters(works)
    assert [work.grade.student for work in summary.slowest] == ["s2", "s1", "s3", "s5"]
    assert [work.problems for work in summary.failed] == [("cell 4 ran longer than 60 s",), ("the worker was killed",)]


def test_the_page_is_well_formed_and_every_id_is_there_once(works, tmp_path):
    nesting = Nesting()
    nesting.feed(render_report(summarise_chapters(works), title="Report", folder=tmp_path))
    assert nesting.faults == []
    assert nesting.open == []
    assert len(nesting.ids) == len(set(nesting.ids))


def test_every_link_on_the_page_leads_somewhere(works, tmp_path):
    page = render_report(summarise_chapters(works), title="Report", folder=tmp_path)
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors
    assert anchors <= set(re.findall(r'id="([^"]+)"', page))


def test_names_errors_and_explanations_are_escaped_and_nothing_is_fetched(works, tmp_path):
    page = render_report(summarise_chapters(works), title="Report", folder=tmp_path)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "NameError: &lt;x&gt;" in page
    assert "://" not in page
    assert 'http-equiv="refresh' not in page


def test_the_same_class_gives_the_same_bytes_in_any_order(works, tmp_path):
    pages = {
        render_report(summarise_chapters(order), title="Report", folder=tmp_path) for order in (works, works[::-1])
    }
    assert len(pages) == 1


def test_a_report_that_cannot_be_written_says_where_and_what_to_do(works, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="--output") as caught:
        write_report(summarise_chapters(works), tmp_path / "file" / "report.html", title="Report")
    assert caught.value.where == str(tmp_path / "file" / "report.html")


def test_what_could_not_be_graded_counts_in_no_average_and_is_listed_with_the_problems(works, refused, tmp_path):
    (before,), (after,) = summarise_chapters(works), summarise_chapters([*works, refused])
    for figure in ("average", "middle", "bins", "exercises", "slowest"):
        assert getattr(after, figure) == getattr(before, figure), figure
    assert after.refused == ("s7",)
    assert (after.handed_in, len(after.graded)) == (6, 4)
    assert after.failed[-1] == refused
    page = render_report([after], title="Report", folder=tmp_path)
    assert '<td class="n">–</td>' in page[page.rindex("Mary Cartwright") :]


def test_answers_that_wait_are_counted_with_their_students(works, tmp_path):
    (summary,) = summarise_chapters(works)
    assert (summary.waiting, summary.pending) == (2, ("s3",))
    page = render_report([summary], title="Report", folder=tmp_path)
    assert '<span class="big">2</span> answers' in page


def test_what_needs_nobody_is_a_remark_and_no_problem(works, tmp_path):
    (summary,) = summarise_chapters([replace(works[0], remarks=("All 19 cells had lost `nbgrader`'s metadata.",))])
    assert summary.failed == ()
    assert [work.grade.student for work in summary.remarked] == ["s1"]
    page = render_report([summary], title="Report", folder=tmp_path)
    assert "<code>nbgrader</code>&#x27;s metadata" in page
    assert '<span class="pill bad">' not in page
    assert summary.to_dict()["remarks"].keys() == {"s1"}


def test_whose_work_was_not_brought_in_is_named_and_not_called_absent(works, tmp_path):
    (summary,) = summarise_chapters(works, {"03_scaled_dot_product": ["s4", "<new>"]})
    assert summary.absent == ()
    assert summary.to_dict()["not_brought_in"] == ("s4", "<new>")
    page = render_report([summary], title="Report", folder=tmp_path)
    assert "s4, &lt;new&gt;." in page


def test_rubric_items_are_listed_with_who_got_them(works, tmp_path):
    items = (ItemCount("the **variance**", 2.0, ("s1", "s2"), ("s3",), ()),)
    (summary,) = (
        replace(summary, rubrics=(RubricCount("question_root", 3, items),)) for summary in summarise_chapters(works)
    )
    page = render_report([summary], title="Report", folder=tmp_path)
    assert "2 + 1 half" in page
    assert "<strong>variance</strong>" in page
    assert json.loads(json.dumps(summary.to_dict()["rubrics"]))[0]["items"][0]["half_of_it"] == ["s3"]
