"""Rubrics: what is read of them, and what they add up to."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.rubrics import Rubric, read_rubrics


@pytest.mark.parametrize(
    ("marks", "points"),
    [
        ("- 1 point: this.\n- 2 points: that.\n  - 7 things inside an item do not count", 3),
        ("* **1.5** this\n* (0.5) that", 2),
        ("- 0,5 points: this\n- this, 1,5 points", 2),
        ("- says so at its end (2 points)\n- and so — 1 mark.", 3),
        ("- 1 this\n- nothing said", None),
        ("no list", None),
    ],
)
def test_a_mark_scheme_adds_up_what_its_items_say(marks: str, points: float | None) -> None:
    assert Rubric("question_x", "", marks).points == points


def test_sections_and_their_two_parts_are_found(tmp_path: Path) -> None:
    path = tmp_path / "rubrics.md"
    path.write_text("# T\n\n## question_a\n\n### Model answer\n\nYes.\n\nNo.\n\n### Marks\n\n- 1: x\n\n## question_b\n")
    rubrics = read_rubrics(path)
    assert list(rubrics) == ["question_a", "question_b"]
    assert rubrics["question_a"].answer == "Yes.\n\nNo."
    assert rubrics["question_b"].points is None


def test_a_chapter_without_questions_needs_no_rubrics(tmp_path: Path) -> None:
    assert read_rubrics(tmp_path / "rubrics.md") == {}
