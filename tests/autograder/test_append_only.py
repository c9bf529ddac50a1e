"""Tests of files to which whole lines are appended."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.append_only import AppendOnlyFile, read_lines
from autograder.errors import CourseError


def append(path: Path, *numbers: int) -> None:
    file = AppendOnlyFile(path)
    for number in numbers:
        file.append({"n": number}, durable=True)
    file.close()


def numbers(path: Path) -> list[int]:
    return [line["n"] for line in read_lines(path, do="Restore it.")]


def test_lines_are_read_in_the_order_in_which_they_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.jsonl"
    assert numbers(path) == []
    append(path, 1, 2)
    append(path, 3)
    assert numbers(path) == [1, 2, 3]


@pytest.mark.parametrize("unfinished", [b'{"n": 9', b'{"n": 9}', b"\xff"])
def test_an_unfinished_last_line_is_skipped_and_removed_before_the_next_one(tmp_path: Path, unfinished: bytes) -> None:
    path = tmp_path / "file.jsonl"
    append(path, 1)
    with path.open("ab") as file:
        file.write(unfinished)
    assert numbers(path) == [1]
    append(path, 2)
    assert numbers(path) == [1, 2]
    path.write_bytes(unfinished)
    append(path, 3)
    assert numbers(path) == [3]


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff", b""])
def test_another_damaged_line_is_an_error_that_names_it(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b'{"n": 1}\n' + line + b'\n{"n": 3}\n')
    with pytest.raises(CourseError, match="line 2 is damaged"):
        numbers(path)
