"""A small exercise of its own, so that the engine is tested without the course's: blend(x, y) = 2 x + the mean of y over positions."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.decision import decide
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.request import Action, Observation, Request
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Verdict
from tests.autograder.engine.student import Student

from .subjects import local, remote


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Tensors this small are faster on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def blend(x: Tensor, y: Tensor) -> Tensor:
    """Return 2 x + mean(y), for x (B, T, D) and y (B, S, D)."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"widths {x.shape[-1]} and {y.shape[-1]}")
    return 2 * x + y.mean(-2, keepdim=True)


def pair(draw: Draw) -> Case:
    """Two sequences of different lengths."""
    b, t, s, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "y": draw.normal(b, s, d)})


def huge(draw: Draw) -> Case:
    """The same, with large numbers in y."""
    case = pair(draw)
    return case.with_arguments(y=case.arguments["y"] * 1e4)


def unequal(draw: Draw) -> Case:
    """Two widths."""
    b, t, s, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "y": draw.normal(b, s, d + 1)})


def longer(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(2 * factor, 3 * factor, 4), "y": draw.normal(2 * factor, 5 * factor, 4)})


def misconception(name: str, *, read: str) -> Callable[[Callable[..., object]], Misconception]:
    """Make a known mistake of the function or class below; its docstring is what a student is told."""

    def declare(wrong: Callable[..., object]) -> Misconception:
        explanation = " ".join(str(wrong.__doc__).split())
        return Misconception(name=name, explanation=explanation, read=read, kind="wrong", make=lambda: wrong)

    return declare


@misconception("not doubled", read="here")
def not_doubled(x: Tensor, y: Tensor) -> Tensor:
    """The factor of two
    is missing.
    """
    return blend(x / 2, y)


@misconception("clipped", read="here")
def clipped(x: Tensor, y: Tensor) -> Tensor:
    """Large numbers are cut off <at ten>."""
    return blend(x, y.clamp(-10, 10))


@misconception("in place", read="there")
def in_place(x: Tensor, y: Tensor) -> Tensor:
    """The input is changed."""
    result = blend(x, y)
    x += 1
    return result


@misconception("over the width", read="there")
def over_the_width(x: Tensor, y: Tensor) -> Tensor:
    """The mean runs over the width."""
    blend(x, y)
    return 2 * x + y.mean(-1, keepdim=True).mean(-2, keepdim=True)


@misconception("position by position", read="there")
def position_by_position(x: Tensor, y: Tensor) -> Tensor:
    """There is a Python loop."""
    blend(x, y)
    return torch.stack([2 * x[:, t] + y.mean(-2) for t in range(x.shape[1])], 1)


@misconception("gives up", read="there")
def gives_up(x: Tensor, y: Tensor) -> Tensor:
    """Large numbers are an error."""
    if y.abs().max() > 100:
        raise OverflowError
    return blend(x, y)


BLEND = Exercise(
    reference=blend,
    chapter="00_test",
    rows=(
        rows.numbers(3, pair, pair),
        rows.numbers(1, huge, name="large"),
        rows.inputs_kept(1, pair),
        rows.no_loop(0.5, longer, over="positions"),
        rows.memory(
            0.5, pair, limit=lambda case: 8 * case.arguments["x"].numel() + case.arguments["y"].numel(), title="Small."
        ),
        rows.errors(0.5, pair, unequal, title="Widths that differ are a ValueError."),
    ),
    misconceptions=(not_doubled, clipped, in_place, over_the_width, position_by_position, gives_up),
    forbidden=("lerp",),
    rule_case=(pair, huge),
)


@pytest.fixture(scope="session")
def exercise() -> Exercise:
    """The exercise ``blend``."""
    return BLEND


@pytest.fixture(scope="session")
def sheet() -> Sheet:
    """Its visible question sheet."""
    return BLEND.sheet()


@pytest.fixture(scope="session")
def verdict_on() -> Callable[..., Verdict]:
    """Put a candidate to the exercise, or to a sheet of it."""

    def put(candidate: Callable[..., object], sheet: Sheet | None = None) -> Verdict:
        return decide(sheet or BLEND.sheet(), LocalSubject(candidate))

    return put


@pytest.fixture(scope="session")
def seen() -> Callable[..., list[Observation]]:
    """Observations, one for each result given by its output."""

    def observe(*outputs: object) -> list[Observation]:
        return [Observation(outputs={"output": output}) for output in outputs]

    return observe


@pytest.fixture(scope="module")
def one_student() -> Iterator[Student]:
    """A student's process for all tests of a file."""
    made = Student()
    yield made
    made.close()


@pytest.fixture(params=["local", "remote"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Observation]:
    """Return a function that asks one thing of a candidate, which is text: in this process, and in a student's."""
    subject = local if request.param == "local" else partial(remote, request.getfixturevalue("one_student"))

    def one(source: str, action: Action = "call", *, wrt: Sequence[str] = (), **more: Any) -> Observation:
        asked = {name: more.pop(name, None) for name in ("init", "state", "props")}
        return subject(source).observe(Request(action, more, wrt=tuple(wrt), **asked))

    return one
