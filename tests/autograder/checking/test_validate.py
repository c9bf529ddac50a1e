"""The pre-check says before the deadline what the visible part of the grader will say after it."""

import json
import signal

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.checking import rehearsal, rehearsal_process
from autograder.checking.rehearsal import Limits
from autograder.checking.validate import NotebookError, describe_validation, main, validate
from autograder.checks import exercise

SETUP = "import torch\nfrom torch import Tensor, nn\nfrom tfcourse import check"
HEAD = "def causal_mask(T, device=None):\n    "
RIGHT = f"{HEAD}return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
WRONG = RIGHT.replace("tril", "triu")
STUB = f"{HEAD}raise NotImplementedError()"
MERGE = "def merge_query_key(a, b): return a @ b.T"
CHECK, CHECK_MERGE = "check(causal_mask)", "check(merge_query_key)"
STUBBORN = "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass"
FORGED = "class Full:\n    passed = True\n\ndef check(f):\n    return Full()"
STOPPED = "It was stopped after 1 s."
WHOLE = exercise("causal_mask").points


@pytest.fixture
def write(tmp_path):
    def _write(*cells, **metadata):
        path = tmp_path / "03_scaled_dot_product.ipynb"
        made = (new_code_cell(cell) if isinstance(cell, str) else cell for cell in (new_markdown_cell("Hello"), *cells))
        nbformat.write(new_notebook(cells=list(made), metadata=metadata), path)
        return path

    return _write


@pytest.fixture
def here(monkeypatch):
    """Have this process do what a process of its own does, which takes seconds to start."""

    def rehearse(cells, exercises, limits):
        InteractiveShell.clear_instance()
        run = rehearsal._CellProcess(limits, limits.seconds, rehearsal.start_process)
        rehearsal_process._run_job(
            {"cells": cells, "exercises": exercises, "skipped": {}, "limits": vars(limits)},
            lambda event: run._record_event(event) if not {"begins", "end"} & event.keys() else None,
        )
        return run.found

    monkeypatch.setattr("autograder.checking.validate.rehearse", rehearse)


@pytest.mark.parametrize(
    ("solution", "code", "words"), [(RIGHT, 0, ("causal_mask",)), (WRONG, 1, ("Looks like", "Read again"))]
)
def test_a_solution_is_judged_with_an_exit_code_and_explained(write, capsys, solution, code, words):
    assert main(["validate", str(write(SETUP, solution, CHECK))]) == code
    out = capsys.readouterr().out
    assert all(word in out for word in words)


@pytest.mark.parametrize("cells", [(STUB, CHECK), (WRONG, FORGED, CHECK), (RIGHT, "while True: pass", CHECK)])
def test_what_is_not_written_or_forged_or_too_slow_does_not_pass(write, here, cells):
    validation = validate(write(SETUP, *cells), Limits(seconds=0.5) if "while" in cells[1] else Limits())
    assert (validation.passed, validation.score) == (False, 0)
    assert ("its time" in describe_validation(validation)) is ("while" in cells[1])


FAILING = {
    "1 / 0  # oops": "ZeroDivisionError",
    "while True:\n    pass": STOPPED,
    "import time; time.sleep(10_000)": STOPPED,
    "while True: print('x' * 1000)": "100000 characters",
    "input()": "EOFError",
    "%time x = 1": "",
    "import os; os.write(1, b'{\"end\": true}\\n'); os.write(2, b'x' * 100_000)": "",
}


@pytest.mark.parametrize(
    ("cells", "restarts"),
    [(FAILING, 0), ({"import os; os._exit(0)": "crashed", STUBBORN: STOPPED}, 2)],
    ids=["in one process", "a process after each"],
)
def test_a_cell_that_fails_costs_itself_alone_and_what_it_prints_reaches_nobody(
    write, monkeypatch, capfd, cells, restarts
):
    monkeypatch.setattr(rehearsal, "_GRACE_SECONDS", 0.5 if restarts else 60)
    limits = Limits(cell_seconds=1, output=100_000, restarts=restarts)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background job
    validation = validate(write(*cells, SETUP, RIGHT, CHECK), limits)
    signal.signal(signal.SIGINT, handler)
    assert validation.passed
    expected = [(number, cell.splitlines()[0]) for number, cell in enumerate(cells, start=1) if cells[cell]]
    assert [(found.cell, found.first_line) for found in validation.errors] == expected
    assert all(cells[source] in found.error for found in validation.errors for source in [list(cells)[found.cell - 1]])
    assert describe_validation(validation).startswith(f"code cell {expected[0][0]} (")
    assert capfd.readouterr() == ("", "")


def test_a_check_that_ends_the_process_says_so_in_a_sentence(write):
    (absent,) = validate(write(SETUP, f"import os\n{HEAD}os._exit(0)", CHECK), Limits(restarts=1)).absent
    assert absent.reason == "its check did not finish: It ended or crashed the Python process that ran it."


def test_an_exercise_that_is_asked_for_and_not_defined_is_missing_whatever_was_checked_before(write, here):
    assert validate(write(SETUP, RIGHT, CHECK)).passed
    validation = validate(write(SETUP, CHECK))
    assert (validation.missing, validation.passed) == (("causal_mask",), False)


def test_another_exercises_solution_does_not_count_for_this_one(write, here):
    validation = validate(write(SETUP, RIGHT + "\nmerge_query_key = causal_mask", CHECK_MERGE))
    assert not validation.passed
    assert "another name for causal_mask" in describe_validation(validation)


@pytest.mark.parametrize(
    ("content", "word"), [("", "Jupyter"), ("%PDF-1.4", "Jupyter"), ("[]", "Jupyter"), ('{"cells": []}', "no exercise")]
)
def test_a_file_that_is_no_exercise_notebook_is_refused_with_advice(tmp_path, capsys, content, word):
    path = tmp_path / "file.ipynb"
    path.write_text(content)
    assert main(["validate", str(path)]) == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(("name", "word"), [("", "folder"), ("none.ipynb", "none.ipynb")])
def test_a_path_without_a_file_is_refused(tmp_path, name, word):
    with pytest.raises(NotebookError, match=word):
        validate(tmp_path / name)


def test_an_exercise_that_is_not_defined_counts_with_its_points_and_says_which_cell_should_have(write, here):
    validation = validate(write(SETUP, f"{HEAD}return torch.ones(T, T", CHECK))
    assert (validation.score, validation.max_score) == (0, WHOLE)
    lines = describe_validation(validation).splitlines()
    assert lines[0].startswith("code cell 2 (def causal_mask(T, device=None):) raised SyntaxError")
    (told,) = [line for line in lines if line.startswith("causal_mask: ")]
    assert all(words in told for words in (f"0 of {WHOLE:g} points", "code cell 2 "))
    assert f"0 of {WHOLE:g} points" in lines[-3]


@pytest.mark.parametrize(("name", "is_near"), [("causal_masks", True), ("other", False)])
def test_an_exercise_under_another_name_is_pointed_at(write, here, name, is_near):
    validation = validate(write(SETUP, RIGHT.replace("def causal_mask", f"def {name}"), CHECK))
    (absent,) = validation.absent
    assert absent.reason.startswith("not defined")
    assert (name in absent.reason) is is_near


def test_what_failed_comes_before_what_is_right_and_that_takes_a_line_each(write, here):
    validation = validate(write(SETUP, RIGHT, CHECK, "def merge_heads(x):\n    return x", "check(merge_heads)"))
    lines = describe_validation(validation).splitlines()
    assert lines[0].startswith("merge_heads: 0 of ")
    assert lines[-4].startswith(f"causal_mask: {WHOLE:g} of {WHOLE:g} points")
    assert lines[:-4] == str(validation.verdicts[1]).splitlines()


def test_what_is_no_exercise_is_worth_nothing_and_said_to_be_none(write, here):
    validation = validate(write(SETUP, RIGHT, CHECK, "def helper(): pass", "check(helper)"))
    assert (validation.missing, validation.score) == (("helper",), validation.max_score)
    assert "helper: not an exercise" in describe_validation(validation)


def test_questions_without_an_answer_are_counted_with_their_points(write, here):
    mark = {"grade": True, "solution": True, "grade_id": "question_root", "points": 4}
    answers = [
        new_markdown_cell("YOUR ANSWER HERE\n", metadata={"nbgrader": mark}),
        new_markdown_cell("I do not know. YOUR ANSWER HERE", metadata={"nbgrader": mark | {"points": 2}}),
        new_markdown_cell("Because of the root.", metadata={"nbgrader": mark}),
        new_markdown_cell("Write in place of YOUR ANSWER HERE."),
    ]
    validation = validate(write(SETUP, RIGHT, CHECK, *answers))
    assert [question.points for question in validation.unanswered] == [4, 2]
    assert "2 written questions are still unanswered (6 points" in describe_validation(validation)
    assert validation.passed, "a person grades them"
    assert json.loads(json.dumps(validation.to_dict()))["unanswered"][0] == {"name": "question_root", "points": 4}
    # An answer that lost its metadata is still counted.
    validation = validate(write(SETUP, RIGHT, CHECK, new_markdown_cell("YOUR ANSWER HERE")))
    assert "1 written question is still unanswered\n" in describe_validation(validation)


def test_after_too_many_crashes_the_exercises_are_named_with_their_points(write):
    validation = validate(write(SETUP, RIGHT, "import os; os._exit(0)", CHECK), Limits(restarts=0))
    assert (validation.score, validation.max_score) == (0, WHOLE)
    assert "crashed Python" in describe_validation(validation)


@pytest.mark.parametrize("body", ["while True: pass", "__import__('os')._exit(0)"])
def test_a_function_that_never_returns_or_ends_the_process_loses_its_own_points_only(write, body):
    path = write(SETUP, HEAD + body, MERGE, CHECK, CHECK_MERGE)
    validation = validate(path, Limits(exercise_seconds=1) if "while" in body else Limits())
    assert [verdict.exercise for verdict in validation.verdicts] == ["merge_query_key"]
    assert [(absent.name, absent.points) for absent in validation.absent] == [("causal_mask", WHOLE)]
    assert "not finish" in describe_validation(validation)


def test_a_notebook_of_another_release_than_the_package_is_told_to_fetch_the_right_one(write, here, monkeypatch):
    path = write(SETUP, RIGHT, CHECK, tfcourse={"checks": "0.1.0+0a1b2c3d"})
    assert validate(path).other_release == ""
    monkeypatch.setattr("autograder.checking.validate.STAMP", "0.4.0+ffffffff")
    assert "install" in describe_validation(validate(path))
    monkeypatch.setattr("autograder.checking.validate.STAMP", "0.1.0+0a1b2c3d")
    assert validate(path).other_release == ""


def test_the_exercises_solved_the_time_left_and_the_next_exercise_are_told(write, here):
    cells = [SETUP]
    for name, source, minutes in (("causal_mask", RIGHT, 20), ("merge_heads", "def merge_heads(x):\n    return x", 70)):
        title = new_markdown_cell(f"## 1 · `{name}`\n\n*Difficulty ★★, about {minutes} minutes.*\n\nWrite it.")
        cells += [title, source, f"check({name})"]
    told = "1 of 2 exercises solved, about 1 h 10 min to go; next: merge_heads (about 70 minutes)"
    assert told in describe_validation(validate(write(*cells))).splitlines()
