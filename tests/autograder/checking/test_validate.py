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
