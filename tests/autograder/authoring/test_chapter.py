"""A chapter: found by name, read in order, and refused where its cells contradict each other."""

from __future__ import annotations

import re
from typing import Any

import pytest

from autograder.course.authoring.chapter import find_chapter
from autograder.errors import CourseError

FIRST = "90_first"


@pytest.mark.parametrize("name", [FIRST, "90", "90_f", "first", " 90_first/ "])
def test_a_chapter_is_found_by_the_beginning_of_its_name(small: Any, name: str) -> None:
    assert find_chapter(small.root, name, small.registry).name == FIRST


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("03", "Known chapters: 90_first, 91_second"),
        ("9", "no chapter .9."),
        ("", "no chapter"),
        ("frist", "Did you mean 90_first."),
    ],
)
def test_an_unknown_chapter_is_answered_with_the_known_ones(small: Any, name: str, message: str) -> None:
    with pytest.raises(CourseError, match=message):
        find_chapter(small.root, name, small.registry)


def test_exercises_and_questions_come_in_the_order_of_the_notebook(small: Any) -> None:
    chapter = small.chapter()
    assert [exercise.name for exercise in chapter.exercises()] == ["causal_mask", "masked_attention_weights"]
    assert [(question.name, question.points) for question in chapter.questions()] == [("question_order", 3)]
    assert chapter.rubrics()["question_order"].points == 3
    assert chapter.tag == "ch90"
    assert chapter.faults() == []


STUB = "  grade_id: causal_mask\n  locked: false\n  schema_version: 3\n  solution: true\n"
FAULTS = [
    ("grade_id: setup", "grade_id: other", "not the setup cell"),
    ("  grade_id: test_causal_mask", "  grade_id: test_nothing", "no test cell"),
    ("  grade_id: test_causal_mask", "  grade_id: test_nothing", "tests an exercise that has no cell"),
    (STUB, STUB.replace("causal_mask", "casual_mask"), "no check declares such an exercise"),
    (STUB, STUB.replace("causal_mask", "casual_mask"), "causal_mask is declared for this chapter"),
    (STUB, STUB.replace("causal_mask", "split_heads"), "belongs to 91_second"),
    (STUB, STUB.replace("locked: false", "locked: true"), "Set locked: false"),
    (STUB, STUB.replace("schema_version: 3", "schema_version: 2"), "Set schema_version: 3"),
    ("  grade_id: masked_attention_weights", "  grade_id: causal_mask", "two cells have this grade_id"),
    ("  grade_id: masked_attention_weights\n", "", "no grade_id"),
    ('"grade_id": "prompt_order"', '"grade_id": "prompt_other"', "no prompt above"),
    ('"points": 3', '"points": 0', "worth nothing"),
    ('"points": 3', '"points": 4', "add up to 3, and the question is worth 4"),
    ("YOUR ANSWER HERE", "Because.", "empty answer"),
]


@pytest.mark.parametrize(("old", "new", "complaint"), FAULTS)
def test_each_fault_of_a_chapter_is_named_with_its_remedy(small: Any, old: str, new: str, complaint: str) -> None:
    small.edit(small.chapter().path, old, new)
    faults = small.chapter().faults()
    assert any(complaint in str(fault) for fault in faults), "\n".join(map(str, faults))
    assert all(fault.do and not fault.mendable for fault in faults)


def test_a_test_above_its_exercise_is_a_fault(small: Any) -> None:
    path = small.chapter().path
    text = path.read_text()
    _, stub, test, *_ = re.findall(r"```{code-cell} ipython3\n.*?\n```\n", text, re.DOTALL)
    path.write_text(text.replace(stub, "@").replace(test, stub).replace("@", test))
    assert any("above" in fault.what for fault in small.chapter().faults())


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("## question_order", "## question_other", "no rubric"),
        ("## question_order", "## question_other", "no question"),
        ("### Marks", "### Notes", "no rubric"),
        ("- 2 points: the", "- two points: the", "worth"),
    ],
)
def test_each_fault_of_a_rubric_is_named(small: Any, old: str, new: str, complaint: str) -> None:
    small.edit(small.chapter().rubrics_path, old, new)
    assert any(complaint in str(fault) for fault in small.chapter().faults())
