"""What a verdict says to people, to nbgrader and to scripts."""

import importlib
import json
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_output

from autograder.checking.verdict import ABOUT_META, NOT_JUDGED, VERDICT_MIME, Diagnosis, Finding, Verdict

DIAGNOSIS = Diagnosis("no <scale>", "The scores are <b>not</b> divided & so on.", "why-scale")


def make(*points, passed=(), message="off by <1> & more", diagnosis=None):
    """A verdict with an aspect for each number of points."""
    return Verdict(
        "soft<max>",
        "03_<topic>",
        tuple(
            Finding(f"a{i}", f"Title <{i}>", p, i in passed, "fine" if i in passed else message, diagnosis)
            for i, p in enumerate(points)
        ),
    )


def cell_with(verdict, points):
    """A graded cell as a notebook keeps it after it showed the verdict."""
    formatters = importlib.import_module("IPython.core.formatters")
    data, _ = formatters.DisplayFormatter().format(verdict)
    cell = new_code_cell(
        "check(softmax)",
        metadata={"nbgrader": {"grade": True, "grade_id": "test_softmax", "points": points, "solution": False}},
    )
    cell.outputs = [new_output("execute_result", data=data, execution_count=1)]
    return cell


# --------------------------------------------------------------------------------------------------------------- score


@pytest.mark.parametrize(("passed", "score"), [({0, 1, 2}, 3.5), ({1}, 2.0), ({2}, 0.5), (set(), 0.0)])
def test_nbgrader_reads_the_text_form_as_partial_credit(passed, score):
    utils = importlib.import_module("nbgrader.utils")
    cell = cell_with(make(1, 2, 0.5, passed=passed), 3.5)
    assert utils.get_partial_grade(cell.outputs[0], 3.5) == score
    assert utils.determine_grade(cell) == (score, 3.5)


def test_a_notebook_keeps_score_table_and_data_of_a_verdict():
    verdict = make(1, 2, passed={0}, diagnosis=DIAGNOSIS)
    data = cell_with(verdict, 3).outputs[0].data
    assert data["text/plain"] == "1"
    assert data["text/html"].startswith("<div")
    assert Verdict.from_dict(data[VERDICT_MIME]) == verdict


# --------------------------------------------------------------------------------------------------------------- people


def test_the_printed_form_names_every_aspect_the_mistake_and_what_to_read():
    lines = str(make(1, 0.5, passed={0}, diagnosis=DIAGNOSIS)).splitlines()
    assert lines == [
        "soft<max>: 1 of 1.5 points",
        "  [x] 1/1  Title <0>: fine",
        "  [ ] 0/0.5  Title <1>: off by <1> & more",
        "  Looks like: The scores are <b>not</b> divided & so on.",
        "  Read again: lesson 03_<topic>, “why scale”",
    ]


def page_of(verdict):
    """The table of a verdict, as a browser reads it."""
    return BeautifulSoup(verdict._repr_html_(), "html.parser")


def test_the_table_escapes_what_comes_from_elsewhere():
    page = page_of(make(1, 2, passed={0}, diagnosis=DIAGNOSIS, message="<script>alert('x')</script>"))
    assert page.find_all(["script", "b"]) == []
    text = page.get_text()
    for words in ("soft<max>", "Title <1>", "<script>alert('x')</script>", "<b>not</b> divided & so", "03_<topic>"):
        assert words in text


def test_what_to_read_again_is_a_link_where_the_course_has_a_site():
    verdict = replace(make(1, 2, passed={0}, diagnosis=DIAGNOSIS), site="https://example.org/course/")
    page = page_of(verdict)
    (link,) = page.find_all("a")
    assert link.attrs == {"href": "https://example.org/course/chapters/03_%3Ctopic%3E/lesson.html#why-scale"}
    assert "Read again: lesson 03_<topic>, “why scale”" in page.get_text()
    assert "<a" not in make(1, 2, passed={0}, diagnosis=DIAGNOSIS)._repr_html_()


def test_the_sites_address_is_no_part_of_what_a_verdict_says():
    plain = make(1, 2, passed={0}, diagnosis=DIAGNOSIS)
    linked = replace(plain, site="https://example.org/course/")
    assert linked == plain
    assert (repr(linked), str(linked), linked.to_dict()) == (repr(plain), str(plain), plain.to_dict())


def test_the_table_can_be_read_without_seeing_it():
    page = page_of(make(1, 2, passed={0}))
    assert [head.get("scope") for head in page.find_all("th")] == ["col"] * 3 + ["row"] * 2
    marks = [tag["aria-label"] for tag in page.select("[aria-label]")]
    assert marks == ["passed", "missed"], "a mark alone says nothing to a screen reader"


def test_a_diagnosis_is_told_once_however_many_aspects_it_explains():
    verdict = make(1, 2, 0.5, diagnosis=DIAGNOSIS)
    assert verdict.diagnoses == (DIAGNOSIS,)
    told = [
        text.lower().count("looks like") for text in (verdict._repr_html_(), str(verdict), make(1, 2)._repr_html_())
    ]
    assert told == [1, 1, 0]


# -------------------------------------------------------------------------------------------------------------- scripts


@pytest.mark.parametrize("diagnosis", [None, DIAGNOSIS])
def test_a_verdict_survives_the_way_through_json(diagnosis):
    verdict = make(1, 2, 0.5, passed={1}, diagnosis=diagnosis)
    data = verdict.to_dict()
    assert (data["score"], data["max_score"]) == (2.0, 3.5)
    assert Verdict.from_dict(json.loads(json.dumps(data))) == verdict


def test_many_aspects_that_failed_in_the_same_way_are_one_line_and_their_points_are_added():
    lines = str(make(1, 2, 0.5, 1.5, passed={1}, message="it raised RuntimeError: no")).splitlines()
    assert lines[1:] == [
        "  [ ] 0/3  3 rows: it raised RuntimeError: no",
        *(f"        - Title <{i}>" for i in (0, 2, 3)),
        "  [x] 2/2  Title <1>: fine",
    ]
    assert str(make(1, 2, message="no")).count("no") == 2, "two are told one by one"


def test_the_meta_device_is_explained_once():
    message = "it raised RuntimeError: add meets tensors on different devices: cpu, meta"
    verdict = make(1, message=message)
    assert verdict.findings[0].message == f"{message} {ABOUT_META}"
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    found = "it raised RuntimeError: Expected all tensors to be on the same device, but found meta and cpu!"
    assert make(1, message=found).findings[0].message.endswith(ABOUT_META)
    for other in ("it raised KeyError: 'meta'", "the result is on the meta device, so it has a shape but no numbers"):
        assert make(1, message=other).findings[0].message == other


def test_the_table_folds_rows_that_failed_alike():
    verdict = make(1, 2, 0.5, 1.5, passed={1}, message="it raised RuntimeError: no")
    text = page_of(verdict).get_text()
    assert text.count("it raised RuntimeError: no") == 1
    assert "3 rows" in text
    assert "0 / 3" in text
    assert all(f"Title <{i}>" in text for i in range(4)), "each can be looked up"


def test_a_row_that_was_not_judged_has_a_mark_of_its_own():
    findings = (Finding("a", "Title", 2, True, NOT_JUDGED, earned=0.0), Finding("b", "Other.", 1, False, NOT_JUDGED))
    verdict = Verdict("f", "03", findings)
    assert str(verdict).splitlines()[1:] == [f"  [-] 0/2  Title: {NOT_JUDGED}", f"  [-] 0/1  Other: {NOT_JUDGED}"]
    marks = [tag["aria-label"] for tag in page_of(verdict).select("[aria-label]")]
    assert marks == ["not judged"] * 2


def test_an_example_keeps_its_columns():
    example = "for x = 1: the result\n  yours     <1>\n  expected    2"
    verdict = Verdict("f", "03", (Finding("a", "Title", 2, False, "wrong", example=example),))
    assert str(verdict).splitlines()[2:] == [f"        {line}" for line in example.splitlines()]
    page = page_of(verdict)
    assert page.pre
    assert example in page.get_text()


def test_reduced_rows_show_what_they_are_worth_and_one_line_says_what_they_pay():
    findings = (
        Finding("a", "Numbers", 2, True, "fine"),
        Finding("b", "Mask", 2, False, "wrong"),
        Finding("c", "Inputs", 1, True, "fine", earned=0.5),
        Finding("d", "Loops", 1, True, "fine", earned=0.5),
        Finding("e", "Memory", 1, False, NOT_JUDGED),
    )
    verdict = Verdict("f", "03", findings)
    assert str(verdict).splitlines()[1:] == [
        "  [x] 2/2  Numbers: fine",
        "  [ ] 0/2  Mask: wrong",
        "  [x] (1)  Inputs: fine",
        "  [x] (1)  Loops: fine",
        "      These 2 rows pay in proportion to the right numbers: 1 of 2 points.",
        f"  [-] 0/1  Memory: {NOT_JUDGED}",
    ]
    assert "These 2 rows pay in proportion to the right numbers: 1 of 2 points." in verdict._repr_html_()
