"""Draw inputs for exams with the checks' case makers, from a random stream that no visible or hidden test uses."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from autograder.checking.draw import Draw
from autograder.checking.exercise import Exercise
from autograder.checking.request import Request, content_key, list_tensors
from autograder.checking.subject import pytorch_defaults
from autograder.quizzes.questions.inputs import (
    Input,
    describe_request,
    is_complete,
    round_request,
    round_to_one_decimal,
)

#: The maximum length of an input's text, which can be an option.
LONGEST = 150
# The maximum absolute value in a tensor that is not shown completely, so that none of its numbers is special.
_LARGEST = 5.0
_FEW = 12
_LONG_NUMBER = re.compile(r"\.\d{6}")


@dataclass(frozen=True)
class ExamInput(Input):
    """An exam input, with its position in the check."""

    row: str  # the name of the check's row whose maker drew the input
    position: int  # its position among the row's inputs, the same in each version

    @property
    def place(self) -> tuple[str, int]:
        """Row and position; inputs of different versions with the same place differ only in their numbers."""
        return self.row, self.position


def exam_inputs(exercise: Exercise, seed: object, version: int, *, secret: int = 0) -> list[ExamInput]:
    """Return the distinct inputs of one version that have a short text.

    Args:
        seed: the exam's seed.
        version: the number of the version; each version has its own numbers.
        secret: the course's secret seed; inputs that are also hidden tests are left out.
    """
    found, seen, texts = [], set(_hidden_calls(exercise, secret)), set()
    with pytorch_defaults():
        for row, position, request in _draw_requests(exercise, seed, version):
            request = round_request(request, 2 * _FEW, _round_float32, may_change=_is_order_kept)
            shown = describe_request(request)
            key = content_key(request)
            if (
                key in seen
                or _LONG_NUMBER.search(shown.text)
                or shown.text in texts
                or len(shown.text) > LONGEST
                or not _is_fair(request)
            ):
                continue
            seen.add(key)
            texts.add(shown.text)
            found.append(ExamInput(request, shown.text, shown.complete, row, position))
    return found


@cache
def _hidden_calls(exercise: Exercise, secret: int) -> frozenset[Hashable]:
    """Return the keys of all calls that only hidden tests make."""
    sections = exercise.sheet(hidden=True, seed=secret).sections
    calls = [
        (one, n < (section.visible or 0))
        for section in sections
        for n, probe in enumerate(section.probes)
        for one in probe.requests
    ]
    visible = {content_key(request) for request, is_visible in calls if is_visible}
    return frozenset(content_key(request) for request, _ in calls) - visible


def _draw_requests(exercise: Exercise, seed: object, version: int) -> Iterator[tuple[str, int, Request]]:
    """Draw the calls of each row; yield them with their row and position."""
    for row in exercise.rows:
        if row.name == "many":
            continue
        key = ("exam", seed, version)
        draw = Draw(exercise.name, row.name, *key, shared=(exercise.name, *key))
        position = 0
        for probe in row.probes(draw):
            for request in probe.requests:
                if request.action == "call" and not request.training:
                    yield row.name, position, request
                    position += 1


def _round_float32(tensor: Tensor) -> Tensor:
    return round_to_one_decimal(tensor) if tensor.dtype is torch.float32 else tensor


def _is_order_kept(tensor: Tensor) -> bool:
    """Return whether rounding keeps different numbers different and non-zero numbers non-zero."""
    changed = _round_float32(tensor)
    return _count_different(tensor) == _count_different(changed) and bool(((changed == 0) == (tensor == 0)).all())


def _count_different(tensor: Tensor) -> int:
    return len(set(tensor.flatten().tolist()))


def _is_fair(request: Request) -> bool:
    """Return whether an input's text omits nothing but ordinary numbers, so that a question about it can be answered."""
    if request.props or any(
        tensor.numel() == 0 and tensor.ndim > 1 for tensor in list_tensors(dict(request.arguments))
    ):
        return False
    values = [*request.arguments.values(), *(request.init or {}).values()]
    parts = [tensor for value in values if not is_complete(value) for tensor in list_tensors(value)]
    if any(not is_complete(value) and not list_tensors(value) for value in values):
        return False
    return all(map(_is_ordinary, [*parts, *(request.state or {}).values()]))


def _is_ordinary(tensor: Tensor) -> bool:
    if not tensor.is_floating_point():
        return tensor.dtype in (torch.int64, torch.int32)
    numbers = tensor.detach().flatten()
    return bool(numbers.isfinite().all()) and bool((numbers.abs() < _LARGEST).all()) and _count_different(numbers) > 1
