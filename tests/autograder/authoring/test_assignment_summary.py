"""What an assignment asks is counted from its cells."""

from __future__ import annotations

import nbformat
import pytest

from autograder.course.authoring.selection import parts_of, summary_of


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
    assert summary_of(made) == sentence
    assert parts_of(made) == [*exercises.items(), *questions.items()]
