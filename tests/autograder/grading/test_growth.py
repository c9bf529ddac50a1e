"""Putting a submission in order takes time in proportion to its size, whatever is in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.intake.notebook import cell_reader
from autograder.intake.notebook.cell_reader import BUDGET, STEPS, TextComparison
from autograder.intake.notebook.intake import Intake
from autograder.intake.notebook.lazy_json import (
    LazyValue,
    MalformedError,
    ParsedValue,
    Value,
    decode_text,
    parse_top_level,
    value_at,
)
from autograder.intake.notebook.manifest import Manifest, SourceCell
from tests.taken_in import taken_in

EXERCISES = [f"f{i}" for i in range(6)]
BODY = "\n".join(f"    y{i} = x + {i}" for i in range(8))
PROMPT = "Write the function that does what the lesson says about it, with words enough for two lines of text"
Cell = dict[str, Any]


def source_cell(name: str, source: str, kind: str = "code", **marks: Any) -> SourceCell:
    about = {"locked": False, "grade": False, "solution": False, "task": False, "points": 0.0, "checksum": None}
    return SourceCell(name=name, cell_type=kind, source=source, **(about | marks))


def chapter() -> Manifest:
    cells = [source_cell("setup", "from tfcourse import check\nimport torch\n", locked=True)]
    for name in EXERCISES:
        cells += [
            source_cell(f"text_{name}", f"## {name}\n\n{PROMPT} {name}", "markdown", locked=True),
            source_cell(name, f"def {name}(x):\n    raise NotImplementedError\n", solution=True),
            source_cell(f"test_{name}", f"check({name})\n", locked=True, grade=True, points=3.0),
        ]
    cells.append(source_cell("why", "Your answer", "markdown", solution=True, grade=True, points=2.0))
    return Manifest("03", tuple(cells))


MANIFEST = chapter()


def code(source: str, name: str = "") -> Cell:
    return {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": name}} if name else {}}


def text(source: str, name: str = "") -> Cell:
    return {**code(source, name), "cell_type": "markdown"}


def solution(number: int) -> str:
    name = EXERCISES[number % len(EXERCISES)]
    return f"def {name}(x):\n{BODY}\n    return {number}"


def page() -> list[Cell]:
    return [{**code(cell.source, cell.name), "cell_type": cell.cell_type} for cell in MANIFEST.cells]


def shuffled(number: int) -> str:
    words = PROMPT.split()
    turn = number % len(words)
    return f"## f0\n\n{' '.join(words[turn:] + words[:turn])} f0"


NOTEBOOKS: dict[str, Callable[[int], Iterator[Cell]]] = {
    "text and code": lambda n: (make(solution(i)) for i in range(n // 2) for make in (text, code)),
    "text alone": lambda n: (text(solution(i)) for i in range(n)),
    "solutions": lambda n: (code(solution(i)) for i in range(n)),
    "all in each": lambda n: (code("\n".join(f"def {f}(x): return {i}" for f in EXERCISES)) for i in range(n)),
    "stubs": lambda n: (code(f"def f{i % 6}(x):\n    raise NotImplementedError\n") for i in range(n)),
    "one name": lambda n: (code(f"z = {i}", "f1") for i in range(n)),
    "one name, defined": lambda n: (code(solution(i), "f1") for i in range(n)),
    "answers": lambda n: (text(f"It is {i}.", "why") for i in range(n)),
    "prompts": lambda n: (text(shuffled(i)) for i in range(n)),
    "edited tests": lambda n: (code(f"# {i}\ncheck(f1)", "test_f1") for i in range(n)),
    "buried": lambda n: (code(f"class A{i}:\n    def f{i % 6}(x): return {i}") for i in range(n)),
    "misspelled": lambda n: (code(f"f_{i}x = {i}") for i in range(n)),
    "invisible": lambda n: (code(f"x\u200b = {i}") for i in range(n)),
    "magics": lambda n: (code(f"!ls f1 {i}\n%time f1()") for i in range(n)),
    "imports": lambda n: (code(f"from tfcourse import check\nx = {i}") for i in range(n)),
}


def read(cells: list[Cell]) -> Intake:
    cell_reader._cached_outline.cache_clear()  # as if no notebook had been read before
    return taken_in(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(), MANIFEST)


def calls(work: Callable[[], object]) -> int:
    """Return how many times Python enters a function or goes on with a generator during some work."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", NOTEBOOKS)
def test_twice_the_cells_take_twice_the_steps(kind: str) -> None:
    few, many = (calls(lambda n=n: read([*page(), *NOTEBOOKS[kind](n)])) for n in (100, 200))
    assert many < 2.2 * few


def test_code_beyond_the_budget_is_searched_and_told() -> None:
    filler = "x = 1\n" * 30_000
    cells = [*page(), *(code(f"y = {i}\n{filler}") for i in range(7)), code("def f1(x):\n    return x\n" + filler)]
    found = read(cells)
    (told,) = (problem for problem in found.problems if problem.kind == "much code")
    assert "3 of its cells" in told.what
    assert f"{BUDGET:,}" in told.what
    # The last solution of f1 counts, though nobody parsed it.
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in found.notebook.cells]
    assert found.notebook.cells[names.index("f1")].source.endswith(filler)


def test_texts_are_compared_within_a_budget() -> None:
    texts = TextComparison()
    words = [f"w{i}" for i in range(500)]
    cells = [{"source": " ".join(words[i:] + words[:i])} for i in range(1, 400)]
    assert texts.find_similar(cells, " ".join(words[::-1])) is None
    assert texts._steps < 0
    assert texts._steps > -STEPS / 10


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


def rebuilt(span: Value) -> Any:
    """Build a value from its spans, as deep as they go."""
    if span.kind == "{":
        return {key: rebuilt(value) for key, value in span.members()}
    if span.kind == "[":
        return [rebuilt(item) for item in span.items()]
    return span.value()


@settings(deadline=None, max_examples=150)
@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_what_is_walked_through_is_what_a_parser_reads(content: Any, indent: int | None, ascii_only: bool) -> None:
    data = json.dumps(content, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    span = value_at(b" \n" + data + b" tail", 0)
    # Compared as text, for NaN is not equal to itself.
    assert repr(rebuilt(span)) == repr(json.loads(data))
    assert span.end == len(data) + 2


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.text(), JSON) | st.lists(JSON))
def test_what_is_parsed_at_once_tells_the_same(content: Any) -> None:
    data = json.dumps(content).encode()
    parsed, span = parse_top_level(data, at_once=len(data)), parse_top_level(data, at_once=len(data) - 1)
    assert type(parsed) is ParsedValue
    assert type(span) is LazyValue
    assert repr(rebuilt(parsed)) == repr(rebuilt(span))
    assert (parsed.kind, parsed.end, parsed.rest(9), parsed.is_utf8) == (span.kind, span.end, b"", True)


@pytest.mark.parametrize("text", ["4", "12", "-1", "true", "null", "45678"])
def test_a_number_is_written_alike(text: str) -> None:
    data = f"[{text}]".encode()
    written = [next(parse_top_level(data, at_once=size).items()).raw(3) for size in (0, 100)]
    assert written == [text[:3]] * 2


@pytest.mark.parametrize(
    "data", [b'["a" 1]', b'["\xe4"]', b"[1] tail", b'{"a": nan}', b"[" * 100_000 + b"]" * 100_000, b"[1"]
)
def test_what_has_a_fault_is_not_parsed_at_once(data: bytes) -> None:
    assert type(parse_top_level(data, at_once=len(data))) is LazyValue


@pytest.mark.parametrize("data", [b"", b"4", b'"text"', b"nonsense"])
def test_what_is_neither_an_object_nor_a_list_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_top_level(data, at_once=100)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.text('[]{}",:\\ 1ntrue', max_size=60).map(str.encode))
def test_no_text_brings_it_down(data: bytes) -> None:
    try:
        span = value_at(data, 0)
        rebuilt(span)
        assert 0 <= span.start < span.end <= len(data)
    except (MalformedError, ValueError):
        pass


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a": "x', "[", '{"a"', '["\\'])
def test_a_text_that_ends_too_soon_is_cut(text: str) -> None:
    with pytest.raises(MalformedError) as caught:
        rebuilt(value_at(text.encode(), 0))
    assert caught.value.cut


@pytest.mark.parametrize("text", ['{"a" 1}', "{1: 2}", "[1 2]", '{"a": 1 "b": 2}', "[1}"])
def test_a_text_that_is_wrong_says_where(text: str) -> None:
    with pytest.raises(MalformedError) as caught:
        rebuilt(value_at(text.encode() + b" " * 9, 0))
    assert not caught.value.cut
    assert 0 < caught.value.position < len(text)


def test_depth_is_no_matter_where_nobody_looks() -> None:
    data = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b', "b": 1}'
    parts = dict(value_at(data, 0).members())
    assert parts["b"].value() == 1
    assert parts["a"].size == 200_000
    with pytest.raises(ValueError, match="deep"):
        parts["a"].value()


def test_letters_of_another_encoding_are_letters() -> None:
    assert decode_text("é".encode("latin-1")) == decode_text("é".encode()) == "é"
