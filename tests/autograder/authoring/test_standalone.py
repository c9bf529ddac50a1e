"""Known mistakes as loose code: what a sample student would have in the notebook."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.checking.decision import decide
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.course.authoring.exercise_source import standalone_source
from autograder.errors import CourseError
from tfcourse import attention
from tfcourse.attention import masked_attention_weights as weights_of

_FACTOR = 0.5
_BOTH: int = 2


def _scaled(q: Tensor) -> Tensor:
    """Text that stays behind."""
    return q * _FACTOR


def first(q: Tensor, k: Tensor) -> Tensor:
    """Explains itself to a student."""
    Ünrelated = "ä"  # noqa: F841  (bytes and characters differ from here on)
    return "ä" and _scaled(q) @ k.transpose(-2, -1) * _BOTH


@torch.no_grad()
def second(q: Tensor, k: Tensor) -> Tensor:
    """Builds on another mistake, on the reference and on PyTorch."""
    scores = first(q, k)
    return torch.nn.functional.relu(scores) + attention.score_variance(q, k) + weights_of(q, k)


def made(scale: float, again: Any = None) -> Any:
    def third(x: Tensor) -> Tensor:
        """A closure over what can be written down."""
        return _scaled(x) * scale if again is None else again(x)

    return third


class Shift:
    """What is called has a state, or none."""

    step = 2.0

    def __call__(self, x: Tensor) -> Tensor:
        return _scaled(x) + self.step


class Fourth(Shift):
    """Changes one step of another class."""

    step = 3.0


def _called(kind: Any) -> Any:
    """Make a function of a class: an instance of it is what is called."""
    shift = kind()

    def wrong(x: Tensor) -> Any:
        return shift(x)

    return wrong


FOURTH = _called(Fourth)


def run(code: str, scope: dict[str, Any]) -> None:
    """Run a cell's code, without this file's own __future__."""
    exec(compile(code, "<cell>", "exec", dont_inherit=True), scope)


def cell() -> dict[str, Any]:
    """What a notebook's setup cell gives."""
    return {"math": math, "torch": torch, "Tensor": Tensor, "nn": nn}


def test_helpers_constants_and_other_mistakes_come_along_under_private_names() -> None:
    source = standalone_source(second, rename="score")
    scope = cell()
    run(source, scope)
    q, k = torch.randn(4, 3), torch.randn(5, 3)
    torch.testing.assert_close(scope["score"](q, k), second(q, k))
    ours = {name for name in scope if name not in cell() and not name.startswith("__")}
    # A library keeps the name by which it is known.
    assert all(name in ("score", "np") or name.startswith("_score_") for name in ours)
    for left in ("misconception", "Explains itself", "Text that", "tfcourse", "autograder"):
        assert left not in source
    assert "@torch.no_grad()" in source


def test_a_closure_is_written_down_with_its_values() -> None:
    scope = cell()
    run(standalone_source(made(0.25, made(3.0)), rename="f"), scope)
    torch.testing.assert_close(scope["f"](torch.ones(2) * 2), torch.ones(2) * 3)


def test_a_closure_over_an_instance_without_a_state_makes_it_again_from_its_class() -> None:
    scope = cell()
    run(standalone_source(FOURTH, rename="f"), scope)
    torch.testing.assert_close(scope["f"](torch.ones(2)), torch.ones(2) * 3.5)


def test_a_closure_over_a_tensor_or_an_instance_with_a_state_is_refused() -> None:
    moved = Shift()
    moved.step = 1.0
    for held in (made(1.0, moved), made(torch.ones(2))):  # type: ignore[arg-type]
        with pytest.raises(CourseError, match=r"holds a (Shift|Tensor)"):
            standalone_source(held, rename="f")


def test_every_mistake_of_a_course_runs_alone_and_is_recognised(small: Any) -> None:
    for exercise in small.registry.values():
        for mistake in exercise.misconceptions:
            scope = cell()
            run(standalone_source(mistake.implementation, rename=exercise.name), scope)
            verdict = decide(exercise.sheet(hidden=True, seed=3), LocalSubject(scope[exercise.name]))
            assert mistake.diagnosis in verdict.diagnoses, f"{exercise.name}: {mistake.name}\n{verdict}"


def test_every_mistake_of_the_course_itself_can_be_handed_in_by_a_sample_student() -> None:
    for exercise in exercises().values():
        for mistake in exercise.misconceptions:
            source = standalone_source(mistake.implementation, rename=exercise.name)
            compile(source, f"<{exercise.name}, {mistake.name}>", "exec")
            assert "misconception" not in source, f"{exercise.name}, {mistake.name}: its declaration came along"
