"""What an assignment asks is counted from its cells."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.course.authoring.chapter import find_chapter
from autograder.course.authoring.selection import list_notebook_parts, summarise_notebook
from autograder.course.authoring.solution_notebook import solution_notebook

ROOT = Path(__file__).parents[3]


def notebook(exercises: dict[str, float], questions: dict[str, float]) -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    for name, points in exercises.items():
        marks = {"grade": True, "solution": False, "grade_id": f"test_{name}", "points": points}
        cells.append(nbformat.v4.new_code_cell("check(f)", metadata={"nbgrader": marks}))
    for name, points in questions.items():
        marks = {"grade": True, "solution": True, "grade_id": name, "points": points}
        cells.append(nbformat.v4.new_markdown_cell("YOUR ANSWER HERE", metadata={"nbgrader": marks}))
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("exercises", "questions", "sentence"),
    [
        (
            {"mask": 4, "attend": 6.5},
            {"question_why": 5},
            "2 exercises for 10.5 points and 1 question for 5 points, 15.5 points in all.",
        ),
        ({"mask": 4}, {}, "1 exercise for 4 points."),
        ({}, {"question_why": 5, "question_how": 1}, "2 questions for 6 points."),
    ],
)
def test_exercises_and_questions_are_counted(exercises, questions, sentence) -> None:
    made = notebook(exercises, questions)
    assert summarise_notebook(made) == sentence
    assert list_notebook_parts(made) == [*exercises.items(), *questions.items()]


def test_the_overview_adds_up_and_its_short_path_leaves_nothing_out_that_it_needs() -> None:
    text = solution_notebook(find_chapter(ROOT, "05")).cells[2].source
    rows = {
        int(row[0]): row[1:]
        for row in re.findall(r"^\| (\d+) · .* \| ★+ \| (\d+) \| ([\d.]+) \| ([\d, ]*) \|$", text, re.M)
    }
    needs = {number: {int(one) for one in row[2].split(", ") if one.strip()} for number, row in rows.items()}
    assert needs[10] == {1, 2, 8, 9}, "the Transformer's positions and layers"
    minutes, points = sum(int(row[0]) for row in rows.values()), sum(float(row[1]) for row in rows.values())
    assert f"| together | | {minutes} | {points:g} | |" in text
    path = {int(number) for number in re.findall(r"\d+", text.partition("Only two hours?")[2].partition(" take ")[0])}
    assert sum(int(rows[number][0]) for number in path) <= 120
    assert all(needs[number] <= path for number in path)
