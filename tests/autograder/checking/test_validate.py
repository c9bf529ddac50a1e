"""The pre-check says before the deadline what the visible part of the grader will say after it."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.checking.validate import NotebookError, describe, main, validate

SETUP = "import torch\nfrom torch import Tensor, nn\nfrom tfcourse import check"
RIGHT = "def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
WRONG = "def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).triu()"
STUB = "def causal_mask(T, device=None):\n    raise NotImplementedError()"


@pytest.fixture
def write(tmp_path):
    def _write(*cells):
        path = tmp_path / "03_scaled_dot_product.ipynb"
        nbformat.write(new_notebook(cells=[new_markdown_cell("Hello"), *map(new_code_cell, cells)]), path)
        return path

    return _write


def test_a_right_solution_passes_with_exit_code_0(write, capsys):
    assert main(["validate", str(write(SETUP, RIGHT, "check(causal_mask)"))]) == 0
    assert "causal_mask" in capsys.readouterr().out


def test_a_wrong_solution_is_explained_with_exit_code_1(write, capsys):
    assert main(["validate", str(write(SETUP, WRONG, "check(causal_mask)"))]) == 1
    out = capsys.readouterr().out
    assert "Looks like" in out
    assert "Read again" in out


def test_a_stub_scores_nothing(write):
    validation = validate(write(SETUP, STUB, "check(causal_mask)"))
    assert not validation.passed
    assert validation.verdicts[0].score == 0


def test_a_cell_that_raises_is_named_and_the_rest_still_runs(write):
    validation = validate(write(SETUP, "1 / 0  # oops", RIGHT, "check(causal_mask)"))
    assert validation.passed
    assert [(error.cell, error.first_line) for error in validation.errors] == [(2, "1 / 0  # oops")]
    assert "ZeroDivisionError" in describe(validation)


def test_an_exercise_that_is_asked_for_and_not_defined_is_missing(write):
    validation = validate(write(SETUP, "check(causal_mask)"))
    assert validation.missing == ("causal_mask",)
    assert not validation.passed


def test_another_exercises_solution_does_not_count_for_this_one(write):
    validation = validate(write(SETUP, RIGHT + "\nmerge_query_key = causal_mask", "check(merge_query_key)"))
    assert not validation.passed
    assert "stands for the function causal_mask" in describe(validation)


def test_two_notebooks_do_not_share_what_they_define(write):
    assert validate(write(SETUP, RIGHT, "check(causal_mask)")).passed
    assert validate(write(SETUP, "check(causal_mask)")).missing == ("causal_mask",)


def test_a_forged_check_in_the_notebook_convinces_nobody(write):
    forged = "class Full:\n    passed = True\n\ndef check(f):\n    return Full()"
    assert not validate(write(SETUP, WRONG, forged, "check(causal_mask)")).passed


def test_magics_run_as_they_do_in_jupyter(write):
    assert validate(write(SETUP, "%time x = 1", RIGHT, "check(causal_mask)")).errors == ()


def test_json_carries_every_verdict(write, capsys):
    main(["validate", str(write(SETUP, RIGHT, "check(causal_mask)")), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["passed"] is True
    assert data["score"] == data["max_score"] == data["verdicts"][0]["score"] > 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a Jupyter notebook"),
        ("%PDF-1.4", "not a Jupyter notebook"),
        ("[]", "not a Jupyter notebook"),
        ('{"cells": []}', "no exercise"),
    ],
)
def test_a_file_that_is_no_exercise_notebook_is_refused_with_advice(tmp_path, capsys, content, says):
    path = tmp_path / "file.ipynb"
    path.write_text(content)
    assert main(["validate", str(path)]) == 2
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(NotebookError, match="no such file"):
        validate(tmp_path / "none.ipynb")


def test_an_exercise_that_is_not_defined_counts_with_its_points_and_says_which_cell_should_have(write):
    broken = "def causal_mask(T, device=None):\n    return torch.ones(T, T"
    whole, path = validate(write(SETUP, RIGHT, "check(causal_mask)")), write(SETUP, broken, "check(causal_mask)")
    validation = validate(path)
    assert (validation.score, validation.max_score) == (0, whole.max_score)
    lines = describe(validation).splitlines()
    assert lines[0].startswith("code cell 2 (def causal_mask(T, device=None):) raised SyntaxError")
    (told,) = [line for line in lines if line.startswith("causal_mask: ")]
    assert told.startswith(f"causal_mask: 0 of {whole.max_score:g} points: not defined (code cell 2 ")
    assert f"0 of {whole.max_score:g} points on the visible questions" in lines[-1]


def test_errors_are_numbered_among_all_code_cells_and_come_first(write):
    validation = validate(write(SETUP, RIGHT, "check(causal_mask)", "1 / 0"))
    assert [error.cell for error in validation.errors] == [4]
    assert describe(validation).startswith("code cell 4 (1 / 0) raised ZeroDivisionError")


def test_what_is_no_exercise_is_worth_nothing_and_said_to_be_none(write):
    validation = validate(write(SETUP, RIGHT, "check(causal_mask)", "def helper(): pass", "check(helper)"))
    assert validation.missing == ("helper",)
    assert "helper: not an exercise of this course" in describe(validation)
    assert validation.score == validation.max_score


def test_questions_without_an_answer_are_counted_with_their_points(tmp_path):
    mark = {"grade": True, "solution": True, "grade_id": "question_root", "points": 4}
    cells = [
        *map(new_code_cell, (SETUP, RIGHT, "check(causal_mask)")),
        new_markdown_cell("YOUR ANSWER HERE\n", metadata={"nbgrader": mark}),
        new_markdown_cell("I do not know. YOUR ANSWER HERE", metadata={"nbgrader": mark | {"points": 2}}),
        new_markdown_cell("Because of the root.", metadata={"nbgrader": mark}),
        new_markdown_cell("Write in place of YOUR ANSWER HERE."),
    ]
    path = tmp_path / "answers.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    validation = validate(path)
    assert [question.points for question in validation.unanswered] == [4, 2]
    assert "2 questions in words still hold 'YOUR ANSWER HERE' (6 points, given by a person)" in describe(validation)
    assert validation.passed, "a person grades them"
    assert json.loads(json.dumps(validation.to_dict()))["unanswered"][0] == {"name": "question_root", "points": 4}


def test_answers_that_lost_their_metadata_are_still_counted(tmp_path):
    cells = [*map(new_code_cell, (SETUP, RIGHT, "check(causal_mask)")), new_markdown_cell("YOUR ANSWER HERE")]
    path = tmp_path / "answers.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    assert "1 question in words still holds 'YOUR ANSWER HERE'\n" in describe(validate(path))
