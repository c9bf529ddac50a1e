"""Rubrics: what is read of them, and what they add up to."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.rubrics import Rubric, RubricItem, read_rubrics, rubrics_in_notebook
from autograder.course.authoring.solution_notebook import source_notebook


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


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("1 point: rank. The pair", "rank. The pair"),
        ("**1.5** this", "this"),
        ("(0.5) that", "that"),
        ("0,5 points: this", "this"),
        ("*1 point.* 3 tokens", "3 tokens"),
        ("says so at its end (2 points)", "says so at its end (2 points)"),
    ],
)
def test_the_wording_of_an_item_begins_after_its_points(text: str, wording: str) -> None:
    assert RubricItem(text, 1.0).wording == wording


@pytest.mark.parametrize("name", ["03_scaled_dot_product", "10_t5"])
def test_the_source_notebook_holds_the_rubrics_of_its_chapter(tmp_path: Path, name: str) -> None:
    root = Path(__file__).parents[3]
    path = tmp_path / "source.ipynb"
    path.write_text(nbformat.writes(source_notebook(Chapter(root, name))), encoding="utf-8")
    rubrics = rubrics_in_notebook(path)
    assert rubrics == read_rubrics(root / "chapters" / name / "rubrics.md")
    assert rubrics


@pytest.mark.parametrize("content", [None, "{", "[]", '{"cells": [{"cell_type": "markdown"}]}'])
def test_an_unreadable_source_notebook_holds_none(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "source.ipynb"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert rubrics_in_notebook(path) == {}
