"""What Jupyter Book printed and reported is read back into something a person can act on."""

import json
from pathlib import Path

from autograder.site.build_log import error_tail, read_report, warnings_in

TRACEBACK = """Traceback (most recent call last):
  File "nbclient/client.py", line 1019, in _async_execute_cell
nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:
------------------
weights = scores / scores.sum()
weights / 0
------------------


\x1b[31mZeroDivisionError\x1b[39m                         Traceback (most recent call last)
----> 2 weights / 0

\x1b[31mZeroDivisionError\x1b[39m: division by zero
"""


def test_a_failed_cell_is_named_with_its_lesson_its_line_and_its_error(tmp_path: Path) -> None:
    lesson = tmp_path / "chapters/03/lesson.md"
    lesson.parent.mkdir(parents=True)
    lesson.write_text("# Title\n\n```{code-cell} ipython3\nweights = scores / scores.sum()\nweights / 0\n```\n")
    report = tmp_path / "report.json"
    report.write_text(
        json.dumps(
            {
                "pages": ["a"],
                "runtimes": {"a": 1.5, "b": None},
                "words": {"a": 12},
                "failures": {"chapters/03/lesson": TRACEBACK},
            }
        )
    )
    run = read_report(report, tmp_path)
    (failure,) = run.failures
    assert failure.error == "ZeroDivisionError: division by zero"
    assert failure.line == 4
    assert "chapters/03/lesson.md, line 4" in str(failure)
    assert "    weights / 0" in str(failure)
    assert run.runtimes == {"a": 1.5}
    assert run.words == {"a": 12}


def test_a_run_that_died_before_it_could_report_is_an_empty_report(tmp_path: Path) -> None:
    assert read_report(tmp_path / "none.json", tmp_path).pages == ()


def test_warnings_are_found_with_their_further_lines_without_colours_and_without_the_roots_path(tmp_path: Path) -> None:
    output = f"\x1b[91m{tmp_path}/book/intro.md:3: WARNING: 'myst' cross-reference target not found\x1b[39;49;00m\n   more\n\nplain\n"
    output += f"{tmp_path}/book/a.md: ERROR: Unknown directive type\n"
    first, second = warnings_in(output, tmp_path)
    assert first.splitlines()[0] == "book/intro.md:3: WARNING: 'myst' cross-reference target not found"
    assert "more" in first
    assert second == "book/a.md: ERROR: Unknown directive type"


def test_text_without_warnings_has_none(tmp_path: Path) -> None:
    assert warnings_in("Running Jupyter-Book\nbuild succeeded.\n", tmp_path) == []


def test_last_words_are_the_reason_and_not_the_traceback_after_it() -> None:
    output = "\x1b[91mConfiguration error:\nthe branch is missing\x1b[0m\nTraceback (most recent call last):\n  File x\nRuntimeError"
    assert error_tail(output) == "Configuration error:\nthe branch is missing"
    assert error_tail("Traceback (most recent call last):\n  File x\nRuntimeError: gone").endswith("RuntimeError: gone")
