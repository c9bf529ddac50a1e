"""What a submission's code does is a result, whatever it does."""

from __future__ import annotations

import json
import sys
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.checking.verdict import VERDICT_MIME
from autograder.engine.interface import Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.plain import PlainExecutor
from autograder.intake.notebook.problem import Problem, add_problems, read_problems

from .conftest import SETUP, mark


def notebook(*cells: tuple[str, str | None]) -> Any:
    """Make a sanitised notebook of (source, name of the test or None)."""
    made = [
        new_code_cell(source, metadata={} if name is None else mark(name, grade=True, locked=True, points=100.0))
        for source, name in cells
    ]
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    return new_notebook(cells=made)


def run(made: Any, **settings: Any) -> Any:
    """Run a notebook and return it with its outputs."""
    execution = PlainExecutor(GradingSettings(**settings)).grade_one(Submission("ann", "03", nbformat.writes(made)))
    assert execution.failure == ""
    return nbformat.reads(execution.notebook, as_version=4)


def errors(cell: Any) -> list[str]:
    return [output.ename for output in cell.outputs if output.output_type == "error"]


@pytest.fixture(scope="module")
def mixed(request: pytest.FixtureRequest) -> Any:
    """One submission with a good, a talkative, a deadly and a last exercise."""
    return run(
        notebook(
            (SETUP + "import os, sys, warnings\nhome = os.getcwd()", None),
            (
                "def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()",
                None,
            ),
            ("check(causal_mask)", "test_good"),
            (
                "good = causal_mask\n"
                "def causal_mask(T, device=None):\n"
                "    print('thinking', file=sys.stderr)\n"
                "    warnings.warn('careful')\n"
                "    return good(T, device)",
                None,
            ),
            ("import warnings\nwarnings.warn('outside')\ncheck(causal_mask)", "test_talkative"),
            ("def merge_query_key(w_q, w_k):\n    os._exit(1)", None),
            ("check(merge_query_key)", "test_deadly"),
            ("causal_mask = good\ncheck(causal_mask)", "test_last"),
            ("merge_query_key = good\ncheck(merge_query_key)", "test_borrowed_name"),
            ("3", "test_number"),
            ("check.__doc__ and None", "test_silent"),
            ("globals().update(check=lambda f: None)", None),
            ("check(good)", "test_dumb"),
            ("import random\nprint(random.random(), torch.rand(1).item(), torch.get_num_threads(), hash('a'))", None),
            ("print(home, os.environ.get('SECRET_TOKEN'), os.environ['TFCOURSE_DEVICE'])", None),
        )
    )


@pytest.fixture
def by_test(mixed: Any) -> dict[str, Any]:
    return {cell.metadata.nbgrader.grade_id: cell for cell in mixed.cells if "nbgrader" in cell.metadata}


def test_a_verdict_comes_back_as_text_and_as_plain_data(by_test: dict[str, Any]) -> None:
    (result,) = by_test["test_good"].outputs
    assert result.data["text/plain"] == "4"
    assert result.data[VERDICT_MIME]["score"] == 4.0
    json.dumps(result.data[VERDICT_MIME])


def test_another_exercises_solution_under_this_ones_name_earns_nothing(by_test: dict[str, Any]) -> None:
    cell = by_test["test_borrowed_name"]
    assert errors(cell) == ["NoVerdict"]
    assert "given causal_mask in the place of merge_query_key" in cell.outputs[-1].evalue


def test_words_on_stderr_cost_nothing(by_test: dict[str, Any]) -> None:
    cell = by_test["test_talkative"]
    assert cell.outputs[-1].data["text/plain"] == "4"
    said = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    assert "thinking" in said
    assert {output.name for output in cell.outputs if output.output_type == "stream"} == {"stdout"}


def test_a_kernel_that_dies_costs_only_the_cell_that_killed_it(mixed: Any, by_test: dict[str, Any]) -> None:
    assert errors(by_test["test_deadly"]) == ["KernelDied"]
    assert by_test["test_last"].outputs[-1].data["text/plain"] == "4"
    assert [(p.kind, p.where) for p in read_problems(mixed) if p.kind == "kernel died"] == [
        ("kernel died", "test_deadly")
    ]


def test_a_test_that_needs_no_check_is_left_to_nbgrader(by_test: dict[str, Any]) -> None:
    assert by_test["test_number"].outputs[-1].data["text/plain"] == "3"
    assert by_test["test_silent"].outputs == []


def test_a_check_without_a_verdict_gives_no_points(by_test: dict[str, Any]) -> None:
    assert errors(by_test["test_dumb"]) == ["NoVerdict"]


def test_a_kernel_has_a_folder_a_seed_and_an_environment_of_its_own(mixed: Any) -> None:
    numbers, places = (cell.outputs[0].text.split() for cell in mixed.cells[-2:])
    assert numbers[2] == "1"
    assert numbers[:2] == ["0.8444218515250481", "0.49625658988952637"]
    assert "tfcourse-" in places[0]
    assert places[1:] == ["None", "cpu"]


@pytest.fixture(scope="module", autouse=True)
def _token() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_TOKEN", "hush")
        yield


@pytest.fixture(scope="module")
def endless() -> Any:
    """One submission with everything that does not end by itself."""
    made = notebook(
        ("import time\ndef forever():\n    while True: pass", None),
        ("forever()", "test_loop"),
        ("while True: print('x' * 10000)", "test_flood"),
        ("print('y' * 3000)\n1", "test_wordy"),
        ("while True:\n    try:\n        time.sleep(60)\n    except BaseException: pass", "test_stubborn"),
        ("assert forever", "test_after"),
        ("input('name?')", "test_question"),
    )
    return run(made, cell_seconds=5, flood_output=1_000_000, kept_output=2_000)


def test_an_endless_loop_is_stopped_and_the_rest_goes_on(endless: Any) -> None:
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in endless.cells if "nbgrader" in cell.metadata}
    assert errors(cells["test_loop"]) == ["Timeout"]
    assert errors(cells["test_stubborn"]) == ["Timeout"]
    assert cells["test_after"].outputs == []
    assert {p.where: p.kind for p in read_problems(endless)} == {
        "test_loop": "timeout",
        "test_flood": "output flood",
        "test_stubborn": "timeout",
    }


def test_a_flood_of_output_is_cut_short_and_not_kept(endless: Any) -> None:
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in endless.cells if "nbgrader" in cell.metadata}
    assert errors(cells["test_flood"]) == ["OutputFlood"]
    assert len(json.dumps(cells["test_flood"].outputs)) < 5_000
    note, result = cells["test_wordy"].outputs
    assert "y" * 10 not in note.text
    assert result.output_type == "execute_result"


def test_nobody_is_there_to_answer_a_question(endless: Any) -> None:
    assert errors(endless.cells[-1]) == ["EOFError"]


def test_a_submission_that_has_used_up_its_time_is_not_run_to_the_end() -> None:
    made = notebook(("import time\ntime.sleep(1.5)", None), ("assert True", "test_late"))
    done = run(made, submission_seconds=1)
    assert errors(done.cells[1]) == ["TimeUsedUp"]


def test_a_submission_that_goes_on_killing_kernels_is_given_up() -> None:
    made = notebook(("import os\nos._exit(1)", None), ("assert True", "test_late"))
    done = run(made, restarts=0)
    assert errors(done.cells[0]) == ["KernelDied"]
    assert errors(done.cells[1]) == ["KernelDied"]
    assert "was not run" in done.cells[1].outputs[0].evalue


def test_a_fatal_problem_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")
    made = notebook(("raise SystemExit", "test_one"))
    add_problems(made, [Problem("truncated", "Half of it is missing.", fatal=True)])
    done = run(made)
    assert [(o.ename, o.evalue) for o in done.cells[0].outputs] == [("NotGradable", "Half of it is missing.")]


def test_a_process_that_cannot_start_is_the_graders_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")
    execution = PlainExecutor(GradingSettings()).grade_one(
        Submission("ann", "03", nbformat.writes(notebook(("1", None))))
    )
    assert execution.notebook == ""
    assert "/there/is/no/python" in execution.failure
