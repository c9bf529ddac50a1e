"""Parse JSON lazily: locate values in a text without decoding them.

A notebook of 200 MB holds 200 MB of images and prints around a few kilobytes of code. Python's parser would build objects of many times
that size; this parser skips unused values at no cost. It does not validate them either, so damage in an output does not prevent a grade.

Python's parser reads small texts without faults, in a tenth of the time; both ways give the same values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE = re.compile(rb"[ \t\r\n]*+")
_TEXT = re.compile(_STRING, re.DOTALL)
_NAME = re.compile(rb"(" + _STRING + rb")[ \t\r\n]*+:", re.DOTALL)
# The separator after a value: white space, and a comma unless it is the last value.
_BEHIND = re.compile(rb"[ \t\r\n]*+(,[ \t\r\n]*+)?+")
_PLAIN = re.compile(rb'[^ \t\r\n,:\[\]{}"]++')
# Skip to the next significant bracket in one match, over a million lines or a million flat lists.
_FLAT = rb'[^"\[\]{}]++|' + _STRING
_BRACKET = re.compile(
    rb"(?:" + _FLAT + rb"|\[(?:" + _FLAT + rb")*+\]|\{(?:" + _FLAT + rb")*+\})*+([\[\]{}])", re.DOTALL
)
_KINDS: dict[type, str] = {dict: "{", list: "[", str: '"'}


class MalformedError(Exception):
    """The parsed part of the text is not valid JSON."""

    def __init__(self, position: int, *, cut: bool = False) -> None:
        self.position = position  # the first invalid byte
        self.cut = cut  # whether the text is truncated
        super().__init__(f"byte {position}")


class LazyValue:
    """A JSON value in a text, located but not decoded.

    The end of a list or an object is searched on demand, and is known once its parts have been iterated: a large text is read once, not
    once per level.
    """

    __slots__ = ("_end", "data", "start")

    def __init__(self, data: bytes, start: int, end: int | None = None) -> None:
        self.data, self.start = data, start
        self._end = end  # the byte after it, if known

    @property
    def end(self) -> int:
        """The position after the value. Here and below, invalid JSON raises MalformedError."""
        if self._end is None:
            self._end = _find_closing(self.data, self.start)
        return self._end

    @property
    def size(self) -> int:
        """The value's length in bytes."""
        return self.end - self.start

    @property
    def kind(self) -> str:
        """The value's first character: ``{`` an object, ``[`` a list, ``"`` a string; otherwise a number or a word."""
        return chr(self.data[self.start])

    @property
    def is_utf8(self) -> bool:
        """Whether the value's bytes are UTF-8, as JSON requires."""
        try:
            self.data[self.start : self.end].decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def raw(self, most: int) -> str:
        """Return the text of a number or word, truncated to a length."""
        return decode_text(self.data[self.start : min(self.end, self.start + most)])

    def rest(self, most: int) -> bytes:
        """Return the text after the value, truncated to a length."""
        return self.data[self.end : self.end + most]

    def members(self) -> Iterator[tuple[str, Value]]:
        """Yield an object's keys and values in order; nothing for other values."""
        if self.kind == "{":
            for key, value in self._parse_children(b"}"):
                yield str(key), value

    def items(self) -> Iterator[Value]:
        """Yield a list's values in order; nothing for other values."""
        if self.kind == "[":
            for _, value in self._parse_children(b"]"):
                yield value

    def value(self) -> Any:
        """Decode the value; bytes that are not UTF-8 are read as Latin-1.

        Raises:
            ValueError: if it is damaged or nested too deeply.
        """
        raw = self.data[self.start : self.end]
        if raw[:1] == b'"' and b"\\" not in raw:
            return decode_text(raw[1:-1])
        try:
            return json.loads(decode_text(raw), strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error

    def _parse_children(self, closing: bytes) -> Iterator[tuple[Any, LazyValue]]:
        data, position, key = self.data, _skip_space(self.data, self.start + 1), None
        while data[position : position + 1] != closing:
            if closing == b"}":
                name = _NAME.match(data, position)
                if name is None:
                    value = value_at(data, position)
                    raise _malformed_error(data, position if value.kind != '"' else _skip_space(data, value.end))
                key, position = LazyValue(data, name.start(1), name.end(1)).value(), name.end()
            value = value_at(data, position)
            yield key, value
            behind = _BEHIND.match(data, value.end)
            assert behind is not None  # it may be empty
            position = behind.end()
            if behind[1] is None and data[position : position + 1] != closing:
                raise _malformed_error(data, position)
        self._end = position + 1


class ParsedValue:
    """A value of a small valid text, parsed by Python's parser."""

    __slots__ = ("_value", "end", "kind", "size")
    is_utf8 = True

    def __init__(self, value: Any, size: int) -> None:
        self._value = value
        self.size = self.end = size  # an upper bound in bytes: the size of the text
        self.kind = _KINDS.get(type(value), "0")

    def raw(self, most: int) -> str:
        """Return the text of a number or word, truncated to a length."""
        return json.dumps(self._value)[:most]

    def rest(self, most: int) -> bytes:
        """Return the text after the value, which is empty."""
        return b""

    def members(self) -> Iterator[tuple[str, Value]]:
        """Yield an object's keys and values; nothing for other values."""
        if isinstance(self._value, dict):
            for key, value in self._value.items():
                yield key, ParsedValue(value, self.size)

    def items(self) -> Iterator[Value]:
        """Yield a list's values in order; nothing for other values."""
        if isinstance(self._value, list):
            for value in self._value:
                yield ParsedValue(value, self.size)

    def value(self) -> Any:
        """Return the decoded value."""
        return self._value


Value = LazyValue | ParsedValue


def parse_top_level(data: bytes, at_once: int) -> Value:
    """Return the object or list at the beginning of a text; Python's parser reads up to ``at_once`` bytes."""
    if len(data) <= at_once:
        try:
            value = json.loads(data.decode("utf-8"), strict=False)
        except (ValueError, RecursionError):
            value = None  # the text has a fault, but parts of it may be valid
        if isinstance(value, (dict, list)):
            return ParsedValue(value, len(data))
    top = value_at(data, 0)
    if top.kind not in "{[":
        raise MalformedError(top.start)
    return top


def value_at(data: bytes, position: int) -> LazyValue:
    """Return the value that begins at a position, after white space."""
    start = _skip_space(data, position)
    first = data[start : start + 1]
    if first == b'"':
        match = _TEXT.match(data, start)
    elif first and first in b"[{":
        return LazyValue(data, start)
    else:
        match = _PLAIN.match(data, start)
    if match is None:
        raise MalformedError(start, cut=first in (b"", b'"'))
    return LazyValue(data, start, match.end())


def decode_text(raw: bytes) -> str:
    """Decode a text as UTF-8 or, if that fails, as Latin-1, which accepts every byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _find_closing(data: bytes, start: int) -> int:
    """Return the position after the bracket that closes the one at ``start``, without recursion."""
    depth, position = 1, start + 1
    while match := _BRACKET.match(data, position):
        position = match.end()
        depth += 1 if match[1] in b"[{" else -1
        if not depth:
            return position
    raise MalformedError(len(data), cut=True)


def _skip_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    return match.end() if match else position


def _malformed_error(data: bytes, position: int) -> MalformedError:
    return MalformedError(position, cut=position >= len(data))
