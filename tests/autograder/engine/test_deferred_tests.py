"""Hidden questions come last: nothing that a student's code has seen in them reaches a page, and names mean what they meant before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.checks import exercises
from autograder.engine.settings import GradingSettings
from autograder.intake.notebook.problem import read_problems

from .test_checker import Bench, course, graded, points

SETTINGS = GradingSettings(restarts=1, seed=5)
SETUP = "import torch\nimport torch.nn.functional as F\nfrom tfcourse import check"
MASK = "def causal_mask(T, device=None):\n    {}\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
# What a notebook without this chapter's other exercises earns for a right mask, and for right padding.
PADDING = "def padding_mask(lengths, S=None):\n    {}"
ATTENTION = """
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v
"""


@pytest.fixture
def bench() -> Bench:
    """What notebooks are graded with."""
    return Bench()


def test_cell(name: str) -> Any:
    """Return a test cell as the grader has it, with the hidden part."""
    cell = graded(f"check({name})\n### BEGIN HIDDEN TESTS\ncheck({name}, hidden=True)\n### END HIDDEN TESTS", name)
    cell.metadata.nbgrader.points = 100.0
    return cell


test_cell.__test__ = False  # type: ignore[attr-defined]


def pages(notebook: Any) -> str:
    """Return all that a page could show of a notebook: its outputs and its problems."""
    return str([cell.get("outputs") for cell in notebook.cells]) + str(read_problems(notebook))


REMEMBERS = "seen.append(T)"
TELLS = "' '.join(['asked about', *map(str, seen), 'and no more'])"


def lengths(*, hidden: bool) -> set[int]:
    """Return the lengths that the check of causal_mask asks about; the rules are asked with the visible questions."""
    sheet = exercises()["causal_mask"].sheet(hidden=hidden, seed=SETTINGS.seed or 0)
    probes = (*sheet.rules, *(probe for section in sheet.sections for probe in section.probes))
    return {request.arguments["T"] for probe in probes for request in probe.requests}


def test_no_visible_answer_tells_what_was_hidden(bench: Bench) -> None:
    hidden = lengths(hidden=True) - lengths(hidden=False)
    made = bench.run(
        course(SETUP),
        "seen = []\n" + MASK.format(REMEMBERS),
        test_cell("causal_mask"),
        PADDING.format(f"raise ValueError({TELLS})"),
        test_cell("padding_mask"),
        f"raise type('Told', (Exception,), {{}})({TELLS})",
        settings=SETTINGS,
    )
    told = [set(map(int, text.partition("and")[0].split())) for text in pages(made).split("asked about ")[1:]]
    assert hidden
    assert set().union(*told), "an error before the hidden questions is told in full"
    assert not hidden & set().union(*told)


def test_hidden_questions_meet_the_names_of_their_cell(bench: Bench) -> None:
    made = bench.run(
        course(SETUP),
        "def lower(T): return torch.ones(T, T, dtype=torch.bool).tril()\ndef causal_mask(T, device=None): return lower(T)",
        test_cell("causal_mask"),
        "def lower(): return None\ndel causal_mask",
        settings=SETTINGS,
    )
    alone = bench.run(
        course(SETUP),
        "def lower(T): return torch.ones(T, T, dtype=torch.bool).tril()\ndef causal_mask(T, device=None): return lower(T)",
        test_cell("causal_mask"),
        settings=SETTINGS,
    )
    assert points(made) == points(alone)
    assert points(made)[0] > 0


def test_a_cell_below_that_ends_the_process_costs_nothing_above(bench: Bench) -> None:
    cells = (course(SETUP), MASK.format("pass"), test_cell("causal_mask"))
    alone, made = bench.run(*cells, settings=SETTINGS), bench.run(*cells, "import os\nos._exit(0)", settings=SETTINGS)
    assert points(made) == points(alone)
    assert points(made)[0] > 0


def test_an_exercise_is_asked_where_its_functions_are_refused(bench: Bench) -> None:
    compares = (
        "expected = F.scaled_dot_product_attention(*3 * (torch.rand(1, 2, 3),))\nassert expected.shape == (1, 2, 3)"
    )
    made = bench.run(
        course(SETUP),
        compares + ATTENTION + "print('compared')",
        test_cell("scaled_dot_product_attention"),
        MASK.format("F.scaled_dot_product_attention(*3 * (torch.rand(1, 2, 3),))"),
        test_cell("causal_mask"),
        settings=SETTINGS,
    )
    assert [bool(room.forbidden) for room in bench.rooms] == [False, True]
    assert "compared" in str(made.cells[1].outputs)
    assert not any(output.output_type == "error" for output in made.cells[1].outputs)
    attention, mask = points(made)
    assert attention > 0, "comparing above the definition costs nothing"
    assert mask > 0, "this exercise does not forbid the function"


def test_no_process_tells_what_another_one_was_asked_afterwards(bench: Bench, tmp_path: Path) -> None:
    # A sandboxed process has no file that another one can read. What the kernel caches serves as well.
    file = tmp_path / "lengths"
    hidden = lengths(hidden=True) - lengths(hidden=False)
    made = bench.run(
        course(SETUP),
        f"def note(T):\n    with open({str(file)!r}, 'a') as file: print(T, file=file)\n" + MASK.format("note(T)"),
        test_cell("causal_mask"),
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        f"    raise ValueError('asked about ' + ' '.join(open({str(file)!r}).read().split()) + ' and no more')",
        test_cell("scaled_dot_product_attention"),
        settings=SETTINGS,
    )
    told = [set(map(int, text.partition("and")[0].split())) for text in pages(made).split("asked about ")[1:]]
    assert hidden <= set(map(int, file.read_text(encoding="utf-8").split())), "the hidden questions are asked"
    assert told
    assert not hidden & set().union(*told)


def test_cells_have_their_time_again_in_each_process(bench: Bench) -> None:
    backward = "def attention_backward(q, k, v, grad, mask=None):\n    return q, k, v"
    cells = (
        course(SETUP),
        ATTENTION,
        test_cell("scaled_dot_product_attention"),
        backward,
        test_cell("attention_backward"),
    )
    bench.cpu_seconds = 0.6 * SETTINGS.submission_cpu_seconds
    made = bench.run(*cells, settings=SETTINGS)
    assert len(bench.rooms) == 3
    assert "time used up" not in pages(made)


def test_no_process_runs_while_another_one_is_asked_hidden_questions(bench: Bench) -> None:
    bench.run(
        course(SETUP),
        ATTENTION + MASK.format("pass"),
        test_cell("scaled_dot_product_attention"),
        test_cell("causal_mask"),
        settings=SETTINGS,
    )
    forbids = bench.rooms[1].forbidden
    assert bench.log == [
        ("stop",),
        ("stop", *forbids),
        ("resume",),
        ("close",),
        ("resume", *forbids),
        ("close", *forbids),
    ]
