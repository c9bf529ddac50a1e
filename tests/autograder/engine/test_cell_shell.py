"""Outputs are what Jupyter would keep: in their order, in their forms, and no more than a cell may keep."""

from __future__ import annotations

import io
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograder.engine.cell_outputs import Outputs, estimate_size
from autograder.engine.student.cell_shell import CellShell, make_shell

from .confined import in_child

CELLS = tomllib.loads(Path(__file__).with_name("cells.toml").read_text(encoding="utf-8"))
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def shell() -> Iterator[CellShell]:
    """A shell of its own; IPython knows only one at a time."""
    before = InteractiveShell._instance
    made = make_shell({})
    yield made
    CellShell.clear_instance()
    InteractiveShell._instance = before


@pytest.fixture
def run(shell: CellShell) -> Run:
    """Run cells and return what the last one leaves in the notebook."""

    def run_cells(*sources: str, kept: int = 100_000) -> list[dict[str, Any]]:
        for source in sources:
            outputs = Outputs(kept)
            shell.run(source, outputs.add)
        return outputs.items

    return run_cells


def told(items: list[dict[str, Any]]) -> list[Any]:
    """Return outputs in short: streams as name and text, others as kind and plain text."""
    return [
        (item["name"], item["text"])
        if item["output_type"] == "stream"
        else (item["output_type"], item.get("data", {}).get("text/plain", item.get("ename")))
        for item in items
    ]


@pytest.mark.parametrize("row", CELLS.values(), ids=CELLS)
def test_cells_leave_what_their_row_says(run: Run, row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    run("from IPython.display import clear_output, update_display")
    outputs = told(run(*row["cells"], kept=row.get("kept", 100_000)))
    if "starts" in row:
        assert outputs[0][0] == row["starts"][0]
        assert outputs[0][1].startswith(row["starts"][1])
    else:
        assert outputs == [tuple(item) for item in row["told"]]


def test_of_the_forms_of_a_result_text_is_kept_and_nothing_that_a_page_would_run(run: Run) -> None:
    source = """
    class Rich:
        def _repr_html_(self): return '<b>x</b>'
        def _repr_mimebundle_(self, **kwargs): return {'application/json': {'a': [1]}, 'application/odd': object()}
        def __repr__(self): return 'x'
    Rich()"""
    (found,) = run(source)
    assert found["data"] == {"text/plain": "x"}
    assert (found["execution_count"], found["metadata"]) == (None, {})


@pytest.mark.parametrize(
    "source",
    [
        "plt.plot([1, 2])\nNone",
        "plt.plot([1, 2])\nplt.show()",
        "plt.figure(); plt.figure().gca(); plt.close(1);",
    ],
)
def test_a_figure_that_is_drawn_is_shown_once(run: Run, source: str) -> None:
    def draw() -> Any:
        from matplotlib import pyplot

        run("%matplotlib inline\nimport matplotlib.pyplot as plt")
        found = [item["data"] for item in run(source) if item["output_type"] == "display_data"]
        return [data["image/png"][:5] for data in found], pyplot.get_fignums()

    assert in_child(draw) == [["iVBOR"], []]


@pytest.mark.parametrize("source", ["1 / 0", "def f(: pass", "raise SystemExit"])
def test_a_cell_that_fails_says_so_and_the_next_one_runs(shell: CellShell, source: str) -> None:
    assert shell.run(source, lambda output: None) is False
    assert shell.run("1", lambda output: None) is True


def test_an_error_that_ipython_cannot_format_is_the_cells_error(shell: CellShell, run: Run) -> None:
    shell.InteractiveTB.structured_traceback = lambda *args, **kwargs: bytes(2**60)  # a MemoryError
    assert [item["ename"] for item in run("1 / 0") if item["output_type"] == "error"] == ["ZeroDivisionError"]


def test_the_streams_of_this_process_are_back_after_a_cell(shell: CellShell) -> None:
    before = sys.stdout, sys.stderr
    for source in ("print(1)", "1 / 0", "import sys; sys.stdout = None", "raise SystemExit"):
        shell.run(source, lambda output: None)
        assert (sys.stdout, sys.stderr) == before


def test_what_is_printed_comes_in_pieces_while_the_cell_runs(shell: CellShell) -> None:
    pieces: list[dict[str, Any]] = []
    shell.run("for i in range(10): print('x' * 9999)", pieces.append)
    assert len(pieces) >= 4
    assert max(len(piece["text"]) for piece in pieces) <= 65_536
    assert sum(len(piece["text"]) for piece in pieces) == 100_000


class TestCaps:
    """No more is kept than a cell may keep."""

    def test_text_past_the_cap_is_left_out_and_that_is_said_once(self, run: Run) -> None:
        (found,) = run("for i in range(100):\n    print('x' * 99, flush=True)", kept=1000)
        assert found["text"].count("left out") == 1
        assert 700 <= found["text"].count("x") <= 1000

    def test_a_result_and_an_error_are_kept_after_the_cap(self, run: Run) -> None:
        assert told(run("print('x' * 5000)\n'result'", kept=1000))[-1] == ("execute_result", "'result'")
        assert told(run("print('x' * 5000)\n1 / 0", kept=1000))[-1] == ("error", "ZeroDivisionError")

    def test_displays_count_with_all_their_forms(self, run: Run) -> None:
        source = "for i in range(100): display({'application/json': {'a': ['x' * 100]}, 'text/plain': 'y'}, raw=True)"
        found = run(source, kept=1000)
        assert 5 <= len(found) <= 10
        assert "left out" in found[-1]["text"]

    def test_a_long_error_is_cut(self, run: Run) -> None:
        source = "def f(n): return f(n - 1) if n else 1 / 0\nclass E(Exception): pass\nraise E('x' * 10**6)"
        (found,) = run(source)
        assert len(found["evalue"]) == 4000
        assert len(found["traceback"]) <= 60
        assert all(len(line) <= 4000 for line in found["traceback"])

    @pytest.mark.parametrize(
        "output",
        [
            {}, {"output_type": "stream"}, {"output_type": "stream", "name": 3, "text": None}, {"output_type": "error"},
            {"output_type": "error", "traceback": "x", "ename": [], "evalue": {}}, {"output_type": "display_data"},
            {"output_type": "display_data", "data": [1]}, {"output_type": "execute_result", "data": {1: 2, "a": 3}},
            {"output_type": "unheard of", "text": "x"}, {"output_type": "clear_output", "wait": []},
            {"output_type": "display_data", "data": {}, "display_id": {}, "update": 1}, {"output_type": ["stream"]},
        ],
        ids=repr,
    )  # fmt: skip
    def test_an_output_of_another_form_breaks_nothing(self, output: dict[str, Any]) -> None:
        import nbformat
        from nbformat.v4 import new_code_cell, new_notebook

        outputs = Outputs(1000)
        outputs.add(output)
        outputs.add({"output_type": "stream", "name": "stdout", "text": "fine"})
        assert outputs.items[-1]["text"].endswith("fine")
        nbformat.validate(nbformat.from_dict(new_notebook(cells=[new_code_cell(outputs=outputs.items)])))


def test_the_size_of_a_thing_in_itself_is_bounded() -> None:
    endless: list[Any] = ["xx"]
    endless.append(endless)
    assert estimate_size(endless) < 100
    assert estimate_size({"a": ["bc", ("def",)], "b": 3}) == 13


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": "<script>alert(1)</script>"},
        {"application/javascript": "alert(1)"},
        {"text/markdown": "<script>alert(1)</script>"},
        {"image/svg+xml": "<svg onload='alert(1)'/>"},
        {"image/png": 'AA" onerror="alert(1)'},
        {"application/vnd.tfcourse.verdict+json": {"score": 13}},
        {"text/plain": ["a"], "text/latex": "$x$"},
    ],
)
def test_of_what_a_student_shows_nothing_is_kept_that_a_page_would_run(data: dict[str, Any]) -> None:
    for kind in ("display_data", "execute_result"):
        outputs = Outputs(1000)
        outputs.add({"output_type": kind, "data": data})
        assert [item["data"] for item in outputs.items] == [{}]


def test_text_and_pictures_of_a_student_are_kept() -> None:
    data = {"text/plain": "x", "image/png": "iVBORw0K\n", "image/jpeg": "AAAA"}
    outputs = Outputs(1000)
    outputs.add({"output_type": "display_data", "data": {**data, "text/html": "<b>x</b>"}})
    assert [item["data"] for item in outputs.items] == [data]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n%%time\n",
        "%time 1",
        "!ls",
        "files = !ls",
        "x?",
        "  x = 1\n  y = 2",
        ">>> 1 + 1",
        "%%capture\nprint(1)",
        "def f(:",
    ],
)
def test_what_is_no_python_is_read_as_ipython_reads_it(shell: CellShell, source: str) -> None:
    assert shell.transform_cell(source) == InteractiveShell.transform_cell(shell, source)


@pytest.mark.parametrize(
    "source",
    ["x = (5\n%3)", 'text = """\n%time\n!ls\nx?\n"""', "x = 1 # ?", "if True:\n    pass", "", "await f()", "x = 1\n"],
)
def test_what_is_python_stays_as_it_is_which_is_what_ipython_makes_of_it(shell: CellShell, source: str) -> None:
    ours = shell.transform_cell(source)
    assert ours == InteractiveShell.transform_cell(shell, source)
    assert ours.rstrip("\n") == source.rstrip("\n")


def test_a_warning_about_the_text_of_a_cell_is_said_once(run: Run) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run("text = '\\d'")
    assert [warning.filename.startswith("<ipython-input") for warning in said] == [True]


def test_of_a_recursion_without_end_the_way_in_and_the_end_are_shown(run: Run) -> None:
    (error,) = run("def down(n):\n    return down(n + 1)\ndown(0)")
    assert error["ename"] == "RecursionError"
    shown = "\n".join(error["traceback"])
    assert "down(0)" in shown
    assert 1 <= shown.count("down(n + 1)") <= 30
