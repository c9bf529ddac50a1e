"""A graded cell runs as it is written, with proxies in the place of what the student has defined."""

from __future__ import annotations

import contextlib
import tomllib
import unittest
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.checker.remote_objects import (
    RemoteModule,
    RemoteNamespace,
    RemoteObject,
    StudentError,
    exception_of,
)
from autograder.engine.transport.serialization import Opaque, SerializationError

from .student import Student

CELLS = tomllib.loads(Path(__file__).with_name("graded_cells.toml").read_text(encoding="utf-8"))
IMPORTS = "import functools, math, torch, numpy\nfrom torch import nn\n"
KNOWN = {
    "raises": pytest.raises,
    "case": unittest.TestCase(),
    **{kind.__name__: kind for kind in (RemoteModule, RemoteNamespace, RemoteObject, SerializationError)},
}
NET = """
class f(nn.Module):
    def __init__(self, width=3, bias=True):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(width, 2, bias=bias)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        return self.inner(x) + self.shift
"""


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_a_graded_cell_holds(student: Student, cells: dict[str, str]) -> None:
    assert student.run(IMPORTS + cells["student"].replace("NET", NET)), student.outputs
    student.names.update(KNOWN)
    student.grade(IMPORTS + cells["graded"])
    assert student.define("last = lambda: 1", "last")() == 1


# What ends a program or cannot be looked at, as the body of a function; and the name of the exception, where it has one.
ODD: list[tuple[str, str]] = [
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise SystemExit('bye')", "SystemExit"),
    ("exit(3)", ""),
    ("raise GeneratorExit", "GeneratorExit"),
    ("raise type('Own', (BaseException,), {})('x')", "Own"),
    ("raise ExceptionGroup('many', [ValueError('x')])", ""),
    ("b'\\xff'.decode()", ""),
    *(
        (f"class Odd(ValueError):\n        def __str__(self): {method}\n    raise Odd('x')", "Odd")
        for method in (
            "raise ValueError", "return 3", "import sys; sys.exit()", "return str(self)", "return 'x' * 10**7", "return '\\ud800'",
        )
    ),
]  # fmt: skip
SHY = [
    "type('Shy', (), {'__repr__': lambda self: 1 / 0})()",
    "{type('Shy', (), {'__repr__': lambda self: 1 / 0})(), 1}",
    "type('Named', (), {'__getattr__': lambda self, name: 1 / 0})()",
    "type('Liar', (), {'__class__': property(lambda self: 1 / 0)})()",
    "type('Deaf', (torch.Tensor,), {'__torch_function__': lambda *a, **k: 1 / 0})()",
    "type('Long', (list,), {'__len__': lambda self: 10**9})()",
    "type('Type', (type,), {'__name__': property(lambda c: 1 / 0)})('T', (), {})",
    "{float('nan'): 1, type('Key', (), {'__hash__': lambda self: 5})(): 2}",
]


def test_what_ends_a_program_or_cannot_say_what_it_is_is_an_exception_like_another(student: Student) -> None:
    for body, name in ODD:
        with pytest.raises(Exception, match=r"(?s).*") as caught:
            student.define(f"def f():\n    {body}")()
        assert isinstance(caught.value, Exception), body
        assert name in ("", caught.type.__name__), body
        assert len(str(caught.value)) <= 4000, body
        assert student.define("g = lambda: 1", "g")() == 1, body


def test_an_object_that_cannot_be_looked_at_is_an_error_or_a_proxy(student: Student) -> None:
    for value in SHY:
        found = student.define(f"def f(): return {value}")
        with contextlib.suppress(Exception):
            found()
        assert student.conversation.alive, value
        assert student.define("g = lambda: 1", "g")() == 1, value


RAISED: list[Any] = [
    None, 3, [], {}, {"text": 3}, {"type": "a b", "bases": ["ValueError"]}, {"type": "X", "bases": "ValueError"},
    {"type": "X", "bases": [3, "SystemExit", "KeyboardInterrupt", "nowhere", "print"]}, {"type": "X", "bases": ["UnicodeDecodeError"]},
    {"type": "X", "bases": ["ExceptionGroup"], "text": "x"}, {"type": "X", "where": [3, "y" * 10**6]}, {"type": "X", "where": "w"},
    Opaque("x"), {"type": "class", "text": "x" * 10**5}, {"type": "KeyboardInterrupt", "bases": ["KeyboardInterrupt"]},
]  # fmt: skip


@pytest.mark.parametrize("raised", RAISED, ids=range(len(RAISED)))
def test_whatever_is_said_to_have_been_raised_an_exception_comes_of_it(raised: Any) -> None:
    error = exception_of(raised)
    assert isinstance(error, Exception)
    assert isinstance(str(error), str)
    assert all(len(note) < 300 for note in getattr(error, "__notes__", []))


def test_an_exception_that_claims_to_be_more_than_one_is_only_a_students() -> None:
    assert isinstance(exception_of({"type": "SystemExit", "bases": ["BaseException"], "text": ""}), StudentError)
