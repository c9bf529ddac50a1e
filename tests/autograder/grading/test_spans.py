"""Values in a JSON text are found without reading what lies between them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.submission.lazy_json import LazyValue, MalformedError, ParsedValue, Value, decoded, top_level, value_at

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
    parsed, span = top_level(data, at_once=len(data)), top_level(data, at_once=len(data) - 1)
    assert type(parsed) is ParsedValue
    assert type(span) is LazyValue
    assert repr(rebuilt(parsed)) == repr(rebuilt(span))
    assert (parsed.kind, parsed.end, parsed.rest(9), parsed.is_utf8) == (span.kind, span.end, b"", True)


@pytest.mark.parametrize("text", ["4", "12", "-1", "true", "null", "45678"])
def test_a_number_is_written_alike(text: str) -> None:
    data = f"[{text}]".encode()
    written = [next(top_level(data, at_once=size).items()).raw(3) for size in (0, 100)]
    assert written == [text[:3]] * 2


@pytest.mark.parametrize(
    "data", [b'["a" 1]', b'["\xe4"]', b"[1] tail", b'{"a": nan}', b"[" * 100_000 + b"]" * 100_000, b"[1"]
)
def test_what_has_a_fault_is_not_parsed_at_once(data: bytes) -> None:
    assert type(top_level(data, at_once=len(data))) is LazyValue


@pytest.mark.parametrize("data", [b"", b"4", b'"text"', b"nonsense"])
def test_what_is_neither_an_object_nor_a_list_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        top_level(data, at_once=100)


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
    assert decoded("é".encode("latin-1")) == decoded("é".encode()) == "é"
