"""Code answers are read from results, notebooks and signatures, and grouped by what they returned."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.course.folder import Course
from autograder.grading.record.results import ExerciseResult, GradeResult, write_result
from autograder.grading.record.signatures import Signature, read_signatures, signatures_path, write_signatures
from autograder.marking.behaviour_groups import CodeAnswer, group_answers
from autograder.marking.graded_code import GradedCode
from tools.groupings import Labelled, purity_and_pair_f, seen_by
from tools.labelled_answers import EXERCISES, labelled_answers

CHAPTER = "03_scaled_dot_product"
SAME = Signature("sheet", "structure", "fd", (1.0, 2.0))
UNSCALED = Diagnosis("unscaled", "The scores are not scaled.", "scaling")


def answer(student: str, **changes: Any) -> CodeAnswer:
    """Return an answer that lost 2 of 4 points."""
    plain = CodeAnswer(
        student, "soft_lookup", 2.0, 4.0, ("Values.",), "Off by 1.", None, "def soft_lookup(): ...", SAME
    )
    return replace(plain, **changes)


def members(answers: list[CodeAnswer]) -> list[list[str]]:
    return [[member.student for member in group.members] for group in group_answers(answers)]


def with_values(*values: float, **changes: Any) -> Signature:
    return replace(SAME, values=values, **changes)


def test_values_within_the_tolerance_share_a_group() -> None:
    near, far = with_values(1.0009, 2.0), with_values(1.0011, 2.0)
    exact = with_values(1.0, 2.000_002)
    grouped = members(
        [answer("a"), answer("b", signature=near), answer("c", signature=far), answer("d", signature=exact)]
    )
    assert sorted(grouped) == [["a", "b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    "other",
    [
        {"failed_rows": ("Values.", "Errors.")},
        {"signature": replace(SAME, structure="another")},
        {"signature": replace(SAME, sheet="another")},
        {"signature": replace(SAME, kinds="ff")},
        {"signature": None},
        {"exercise": "causal_mask"},
    ],
)
def test_what_differs_exactly_is_never_grouped(other: dict[str, Any]) -> None:
    assert len(members([answer("a"), answer("b", **other)])) == 2


def test_messages_do_not_split_groups() -> None:
    assert members([answer("a"), answer("b", message="Off by 2.")]) == [["a", "b"]]


def test_a_table_of_a_mistakes_numbers_stands_apart() -> None:
    """It returns what the mistake returns to the visible questions; the diagnosis looks at the hidden ones as well."""
    honest = [answer(student, diagnosis="The scores are not scaled.") for student in "ab"]
    assert sorted(members([*honest, answer("table")])) == [["a", "b"], ["table"]]
    unsigned = [replace(one, signature=None) for one in (*honest, answer("table"))]
    assert sorted(members(unsigned)) == [["a", "b"], ["table"]]


def test_old_results_are_grouped_by_their_messages() -> None:
    old = [
        answer(student, signature=None, message=message) for student, message in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    assert sorted(members(old)) == [["a", "b"], ["c"]]


def test_the_order_of_students_does_not_matter() -> None:
    shuffled = random.Random(5)
    values = [round(shuffled.uniform(0, 0.02), 5) for _ in range(60)]
    answers = [answer(f"s{number}", signature=with_values(value, 2.0)) for number, value in enumerate(values)]
    before = group_answers(answers)
    for _ in range(5):
        shuffled.shuffle(answers)
        assert group_answers(answers) == before
    renamed = [replace(one, student=f"t{-number}") for number, one in enumerate(answers)]
    assert sorted(group.key for group in group_answers(renamed)) == sorted(group.key for group in before)
    assert len({group.key for group in before}) == len(before) > 3


def test_groups_that_lost_most_points_come_first() -> None:
    many = [answer(f"m{number}", signature=with_values(5.0, 5.0)) for number in range(3)]
    one = answer("z", score=0.0, signature=with_values(6.0, 6.0))
    groups = group_answers([answer("a"), *many, one])
    assert [group.lost_points for group in groups] == [6.0, 4.0, 2.0]


def test_equal_diagnoses_stand_together_and_apart() -> None:
    sizes = {1.0: (5, "first"), 2.0: (4, None), 3.0: (3, "second"), 4.0: (2, "first"), 5.0: (1, "second")}
    answers = [
        answer(f"{value} {number}", signature=with_values(value, 0.0), diagnosis=diagnosis)
        for value, (size, diagnosis) in sizes.items()
        for number in range(size)
    ]
    groups = group_answers(answers)
    assert [(group.diagnosis, len(group.members)) for group in groups] == [
        ("first", 5),
        ("first", 2),
        (None, 4),
        ("second", 3),
        ("second", 1),
    ]


def test_a_group_has_the_diagnosis_of_its_members() -> None:
    groups = group_answers([answer(f"s{number}", diagnosis=text) for number, text in enumerate(("one", "two", "two"))])
    assert [(group.diagnosis, len(group.members)) for group in groups] == [("two", 2), ("one", 1)]


def test_group_follows_from_the_cause_of_all() -> None:
    first, second = answer("a", cause="causal_mask"), answer("b", cause="causal_mask")
    assert [group.follows_from for group in group_answers([first, second])] == ["causal_mask"]
    assert [group.follows_from for group in group_answers([first, second, answer("c")])] == [""]


def test_representatives_differ_and_frequent_texts_come_first() -> None:
    texts = ["x = 1", "x=1\n", "x = 2", "x = 3", "x = 4", "x = 3", "x = 3"]
    answers = [answer(f"s{number}", source=text) for number, text in enumerate(texts)]
    (group,) = group_answers(answers)
    assert [member.student for member in group.representatives] == ["s3", "s0", "s2"]


def finding(title: str, passed: bool, diagnosis: Diagnosis | None = None) -> Finding:
    return Finding(title, f"{title} are right.", 2.0, passed, "fine" if passed else f"{title} are off.", diagnosis)


def graded(name: str, *findings: Finding) -> ExerciseResult:
    verdict = Verdict(name, "03", findings)
    return ExerciseResult(name, verdict.score, verdict.max_score, verdict)


@pytest.fixture
def graded_course(tmp_path: Path) -> Course:
    """A course with Ann's result, graded notebook and signature."""
    course = Course(tmp_path)
    wrong = finding("Values", False, UNSCALED), finding("Errors", True)
    exercises = (
        graded("causal_mask", *wrong),
        graded("soft_lookup", *wrong),
        graded("merge_heads", finding("Values", True)),
        ExerciseResult("broken", 0.0, 3.0, error="SyntaxError: invalid syntax"),
    )
    write_result(course, GradeResult("ann", CHAPTER, "graded", exercises, submission="hash"))
    write_signatures(course, CHAPTER, "ann", "hash", {"soft_lookup": SAME.to_dict()})
    sources = {
        "causal_mask": "causal_mask(3)",
        "soft_lookup": "def soft_lookup(q): return merge_heads(causal_mask(q))",
    }
    cells = [
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name}}, "source": text.splitlines(keepends=True)}
        for name, text in sources.items()
    ]
    folder = course.folder("autograded", "ann", CHAPTER)
    folder.mkdir(parents=True)
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps({"cells": [{"metadata": {}, "source": ""}, *cells]}))
    return course


def test_answers_that_lost_points_are_read_by_exercise(graded_course: Course) -> None:
    answers = GradedCode(graded_course, CHAPTER).answers
    assert list(answers) == ["causal_mask", "soft_lookup", "broken"]
    (mask,), (lookup,), (broken,) = answers.values()
    assert mask.cause == ""
    assert lookup == CodeAnswer(
        student="ann",
        exercise="soft_lookup",
        score=2.0,
        max_score=4.0,
        failed_rows=("Values are right.",),
        message="Values are off.",
        diagnosis="The scores are not scaled.",
        source="def soft_lookup(q): return merge_heads(causal_mask(q))",
        signature=SAME,
        cause="causal_mask",
    )
    assert (broken.failed_rows, broken.message, broken.source) == ((), "SyntaxError: invalid syntax", "")


def test_an_unreadable_notebook_leaves_the_text_empty(graded_course: Course) -> None:
    path = graded_course.folder("autograded", "ann", CHAPTER) / f"{CHAPTER}.ipynb"
    path.write_text('{"cells": [3]}')
    assert GradedCode(graded_course, CHAPTER).answers["soft_lookup"][0].source == ""


def test_submissions_that_were_not_graded_have_no_answers(graded_course: Course) -> None:
    wrong = (graded("soft_lookup", finding("Values", False)),)
    write_result(graded_course, GradeResult("ben", CHAPTER, "not gradable", wrong))
    assert [one.student for one in GradedCode(graded_course, CHAPTER).answers["soft_lookup"]] == ["ann"]


def test_signatures_of_other_files_or_versions_do_not_count(graded_course: Course) -> None:
    assert read_signatures(graded_course, CHAPTER, "ann", "hash") == {"soft_lookup": SAME}
    assert read_signatures(graded_course, CHAPTER, "ann", "another") == {}
    path = signatures_path(graded_course, CHAPTER, "ann")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 0}))
    assert read_signatures(graded_course, CHAPTER, "ann", "hash") == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"version": 0, "submission": "hash", "exercises": {}}',
        '{"version": 1, "submission": "hash", "exercises": []}',
        '{"version": 1, "submission": "hash", "exercises": {"a": {"values": 3}}}',
        '{"version": 1, "submission": "hash", "exercises": {"a": {"sheet": "", "structure": "", "kinds": "", "values": [1]}}}',
        '{"version": 1, "submission": "hash", "exercises": {"a": {"sheet": "", "structure": "", "kinds": "f", "values": [NaN]}}}',
    ],
)
def test_damaged_signatures_are_no_signatures(graded_course: Course, content: str) -> None:
    signatures_path(graded_course, CHAPTER, "ann").write_text(content)
    assert read_signatures(graded_course, CHAPTER, "ann", "hash") == {}
    assert GradedCode(graded_course, CHAPTER).answers["soft_lookup"][0].signature is None


@pytest.fixture(scope="module")
def corpus() -> list[Labelled]:
    """The labelled answers of each exercise."""
    return [list(labelled_answers(name)) for name in EXERCISES]


def test_groups_hold_one_cause_each(corpus: list[Labelled]) -> None:
    assert sum(map(len, corpus)) >= 500
    purity, f = purity_and_pair_f(corpus)
    print(f"purity {purity:.3f}, pair F {f:.3f} of {sum(map(len, corpus))} answers")
    assert purity >= 0.93
    assert f >= 0.85


def test_failed_rows_alone_mix_causes(corpus: list[Labelled]) -> None:
    """The floor is one that signatures are needed for."""
    purity, f = purity_and_pair_f(seen_by("failed rows", corpus))
    assert purity < 0.93
    assert f < 0.85
