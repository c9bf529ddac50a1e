"""The pre-check says before the deadline what the visible part of the grader will say after it."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.checking import rehearsal
from autograder.checking.rehearsal import Limits
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
    assert "it is another name for causal_mask" in describe(validation)


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


def test_a_folder_is_refused_as_one(tmp_path):
    with pytest.raises(NotebookError, match="is a folder"):
        validate(tmp_path)


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
    assert f"0 of {whole.max_score:g} points on the visible tests" in lines[-3]


@pytest.mark.parametrize(
    ("name", "hint"), [("causal_masks", ", but causal_masks is: rename it if it is your solution"), ("other", "")]
)
def test_an_exercise_under_another_name_is_pointed_at(write, name, hint):
    validation = validate(write(SETUP, RIGHT.replace("def causal_mask", f"def {name}"), "check(causal_mask)"))
    assert [absent.reason for absent in validation.absent] == [f"not defined{hint}"]


def test_errors_are_numbered_among_all_code_cells_and_come_first(write):
    validation = validate(write(SETUP, RIGHT, "check(causal_mask)", "1 / 0"))
    assert [error.cell for error in validation.errors] == [4]
    assert describe(validation).startswith("code cell 4 (1 / 0) raised ZeroDivisionError")


def test_what_failed_comes_before_what_is_right_and_that_takes_a_line_each(write):
    validation = validate(
        write(SETUP, RIGHT, "check(causal_mask)", "def merge_heads(x):\n    return x", "check(merge_heads)")
    )
    right, wrong = validation.verdicts
    lines = describe(validation).splitlines()
    assert lines[0].startswith("merge_heads: 0 of ")
    assert lines[-4] == f"causal_mask: {right.score:g} of {right.score:g} points, all right"
    assert lines[:-4] == str(wrong).splitlines()
    assert len(validate(write(SETUP, RIGHT, "check(causal_mask)")).verdicts[0].findings) > 1


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
    assert "2 written questions are still unanswered (6 points, graded by a person)" in describe(validation)
    assert validation.passed, "a person grades them"
    assert json.loads(json.dumps(validation.to_dict()))["unanswered"][0] == {"name": "question_root", "points": 4}


def test_answers_that_lost_their_metadata_are_still_counted(tmp_path):
    cells = [*map(new_code_cell, (SETUP, RIGHT, "check(causal_mask)")), new_markdown_cell("YOUR ANSWER HERE")]
    path = tmp_path / "answers.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    assert "1 written question is still unanswered\n" in describe(validate(path))


def test_a_cell_that_never_ends_is_stopped_and_the_rest_is_checked(write):
    path = write(SETUP, "while True:\n    pass", RIGHT, "check(causal_mask)")
    validation = validate(path, Limits(cell_seconds=1, restarts=0))
    assert validation.passed
    assert describe(validation).startswith("code cell 2 (while True:): It was stopped after 1 s.\n")


def test_a_cell_that_waits_for_nothing_is_stopped(write):
    validation = validate(
        write(SETUP, RIGHT, "import time; time.sleep(10_000)", "check(causal_mask)"), Limits(cell_seconds=1, restarts=0)
    )
    assert validation.passed
    assert [(error.cell, error.error) for error in validation.errors] == [(3, "It was stopped after 1 s.")]


def test_a_cell_that_will_not_be_stopped_costs_itself_alone(write, monkeypatch):
    monkeypatch.setattr(rehearsal, "_GRACE_SECONDS", 0.5)
    stubborn = "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass"
    validation = validate(write(SETUP, stubborn, RIGHT, "check(causal_mask)"), Limits(cell_seconds=1))
    assert validation.passed
    assert [(error.cell, error.error) for error in validation.errors] == [(2, "It was stopped after 1 s.")]


def test_a_cell_that_ends_the_process_costs_itself_alone(write):
    validation = validate(write(SETUP, "import os; os._exit(0)", RIGHT, "check(causal_mask)"))
    assert validation.passed
    assert [(error.cell, error.error) for error in validation.errors] == [
        (2, "It ended or crashed the Python process that ran it.")
    ]


def test_after_too_many_crashes_the_exercises_are_named_with_their_points(write):
    whole = validate(write(SETUP, RIGHT, "check(causal_mask)"))
    validation = validate(write(SETUP, RIGHT, "import os; os._exit(0)", "check(causal_mask)"), Limits(restarts=0))
    assert (validation.score, validation.max_score) == (0, whole.max_score)
    assert "crashed Python" in describe(validation)


def test_a_function_that_never_returns_loses_its_own_points_only(write):
    endless = "def causal_mask(T, device=None):\n    while True: pass"
    path = write(
        SETUP, endless, "def merge_query_key(a, b): return a @ b.T", "check(causal_mask)", "check(merge_query_key)"
    )
    validation = validate(path, Limits(exercise_seconds=1))
    assert [verdict.exercise for verdict in validation.verdicts] == ["merge_query_key"]
    assert "its check did not finish: It was stopped after 1 s." in describe(validation)
    assert validation.absent[0].points > 0


def test_a_function_that_ends_the_process_loses_its_own_points_only(write):
    deadly = "import os\ndef causal_mask(T, device=None):\n    os._exit(0)"
    path = write(
        SETUP, deadly, "def merge_query_key(a, b): return a @ b.T", "check(causal_mask)", "check(merge_query_key)"
    )
    validation = validate(path)
    assert [verdict.exercise for verdict in validation.verdicts] == ["merge_query_key"]
    assert [absent.name for absent in validation.absent] == ["causal_mask"]


def test_a_notebook_that_has_used_up_its_time_is_told_so(write):
    validation = validate(write(SETUP, RIGHT, "while True: pass", "check(causal_mask)"), Limits(seconds=2))
    assert not validation.passed
    assert "used up its time" in describe(validation)


def test_a_flood_of_output_is_stopped_and_reaches_nobody(write, capfd):
    path = write(SETUP, "while True: print('x' * 1000)", RIGHT, "check(causal_mask)")
    validation = validate(path, Limits(output=100_000))
    assert validation.passed
    assert validation.errors[0].error == "It printed more than 100000 characters and was stopped."
    assert capfd.readouterr() == ("", "")


def test_what_is_written_past_pythons_streams_is_nobodys(write, capfd):
    forged = """import os; os.write(1, b'{"end": true}\\n'); os.write(2, b'x' * 100_000)"""
    assert validate(write(SETUP, forged, RIGHT, "check(causal_mask)")).passed
    assert capfd.readouterr() == ("", "")


def test_a_cell_that_asks_for_input_is_not_waited_for(write):
    validation = validate(write(SETUP, "input()", RIGHT, "check(causal_mask)"))
    assert validation.passed
    assert validation.errors[0].error.startswith("EOFError")


def test_a_notebook_of_another_release_than_the_package_is_told_to_fetch_the_right_one(write, monkeypatch):
    path = write(SETUP, RIGHT, "check(causal_mask)")
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"metadata": {"tfcourse": {"checks": "0.1.0+0a1b2c3d"}}}), encoding="utf-8")
    assert validate(path).other_release == ""
    monkeypatch.setattr("autograder.checking.validate.STAMP", "0.4.0+ffffffff")
    assert "install the package that came with the notebook" in describe(validate(path))
    monkeypatch.setattr("autograder.checking.validate.STAMP", "0.1.0+0a1b2c3d")
    assert validate(path).other_release == ""


def test_the_exercises_solved_the_time_left_and_the_next_exercise_are_told(tmp_path):
    cells = [new_code_cell(SETUP)]
    for name, source, minutes in (("causal_mask", RIGHT, 20), ("merge_heads", "def merge_heads(x):\n    return x", 70)):
        cells.append(new_markdown_cell(f"## 1 · `{name}`\n\n*Difficulty ★★, about {minutes} minutes.*\n\nWrite it."))
        cells += [new_code_cell(source), new_code_cell(f"check({name})")]
    path = tmp_path / "03_scaled_dot_product.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    told = "1 of 2 exercises solved, about 1 h 10 min to go; next: merge_heads (about 70 minutes)"
    assert told in describe(validate(path)).splitlines()
