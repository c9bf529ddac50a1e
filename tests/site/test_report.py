"""What Jupyter Book printed and reported is read back into something a person can act on."""

from pathlib import Path

from autograder.site.build_log import error_tail, parse_warnings, read_report


def test_a_run_that_died_before_it_could_report_is_an_empty_report(tmp_path: Path) -> None:
    assert read_report(tmp_path / "none.json", tmp_path).pages == ()


def test_warnings_are_found_with_their_further_lines_without_colours_and_without_the_roots_path(tmp_path: Path) -> None:
    output = f"\x1b[91m{tmp_path}/book/intro.md:3: WARNING: 'myst' cross-reference target not found\x1b[39;49;00m\n   more\n\nplain\n"
    output += f"{tmp_path}/book/a.md: ERROR: Unknown directive type\n"
    first, second = parse_warnings(output, tmp_path)
    assert first.splitlines()[0] == "book/intro.md:3: WARNING: 'myst' cross-reference target not found"
    assert "more" in first
    assert second == "book/a.md: ERROR: Unknown directive type"


def test_text_without_warnings_has_none(tmp_path: Path) -> None:
    assert parse_warnings("Running Jupyter-Book\nbuild succeeded.\n", tmp_path) == []


def test_last_words_are_the_reason_and_not_the_traceback_after_it() -> None:
    output = "\x1b[91mConfiguration error:\nthe branch is missing\x1b[0m\nTraceback (most recent call last):\n  File x\nRuntimeError"
    assert error_tail(output) == "Configuration error:\nthe branch is missing"
    assert error_tail("Traceback (most recent call last):\n  File x\nRuntimeError: gone").endswith("RuntimeError: gone")
