"""Change an input, and find out which rows of the result change, and which changes keep the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import isclose

import torch
from torch import Tensor

from autograder.checking.request import Observation, Request
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.inputs import Input, redraw_request
from autograder.quizzes.questions.trace import LimitedSubject, TooLongError, Tracer

# The number of random redraws of an input with hidden numbers; the key of a question must hold for all of them.
DRAWS = 3
_FEWEST_ROWS, MOST_ROWS = 3, 8
_MOST_CHANGED = 3
_MOST_WEIGHTS = 60
FACTORS = {"It doubles": 2, "It becomes four times as large": 4, "It stays the same": 1, "It is halved": 0.5}
# Tolerances: a row counts as changed beyond the first, and a result as unchanged within the second.
_SEEN, _ROUNDING = {"rtol": 1e-3, "atol": 1e-5}, {"rtol": 1e-5, "atol": 2e-6}
_STEPS, _SECONDS = 300_000, 10.0


@dataclass(frozen=True)
class Effects:
    """The effects of changes of one input on the result."""

    number: int  # the input's number
    part: str  # a part of the result, such as ``result[..., i, :]``
    rows: int  # the number of these parts
    # the numbers of the changed parts of the result, by the changed part of an argument and its number
    felt: Mapping[str, Mapping[int, tuple[int, ...]]]
    kept: Mapping[str, bool]  # whether the result stays the same, by the text of a change of the whole input
    scaled: Mapping[str, str]  # how a returned number changes if an argument is doubled, by the argument


def find_effects(code: Code, item: Input, number: int) -> Effects | None:
    """Find the effects of changes of an input; None if the input's text does not determine the result, or a run fails."""
    request = item.request
    if request.props or len(request.state or ()) > _MOST_WEIGHTS:
        return None
    draws = [request] * DRAWS if item.complete else [redraw_request(request, draw) for draw in range(DRAWS)]
    with Tracer(code.filename, steps=_STEPS, seconds=_SECONDS) as limits:
        try:
            subject = LimitedSubject(code.run_definition(), limits)
            answers = [subject.observe(one) for one in draws]
            scaled = _find_scales(subject, request, answers[0])
            results = [result for one in answers if (result := _result_tensor(one)) is not None]
            if scaled or len({result.shape for result in results}) != 1 or len(results) < DRAWS:
                return None if limits.failed or not scaled else Effects(number, "", 0, {}, {}, scaled)
            felt, kept = _find_affected_rows(subject, draws, results), _find_invariances(subject, draws, results)
        except (Exception, TooLongError):
            return None
    whole = "result[0]" if len(answers[0].outputs) > 1 else "result"
    part = whole + _row_index(results[0]).format("i")
    return None if limits.failed else Effects(number, part, _count_rows(results[0]), felt, kept, {})


def _find_scales(subject: LimitedSubject, request: Request, before: Observation) -> dict[str, str]:
    """Find out how a single returned number changes if an argument is doubled; return the texts by argument."""
    found: dict[str, str] = {}
    number = _returned_number(before) or 0.0
    for name, value in request.arguments.items() if number else ():
        if type(value) in (int, float) and value:
            after = _returned_number(subject.observe(_replace_argument(request, name, 2 * value)))
            for text, factor in FACTORS.items():
                if after is not None and isclose(after, factor * number):
                    found[name] = text
    return found


def _returned_number(answer: Observation) -> float | None:
    values = list(answer.outputs.values())
    return float(values[0]) if not answer.error and len(values) == 1 and type(values[0]) in (int, float) else None


def _is_usable(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and value.dtype is not torch.bool


def _result_tensor(answer: Observation) -> Tensor | None:
    value = next(iter(answer.outputs.values()), None)
    return value if answer.error is None and isinstance(value, Tensor) and value.ndim > 0 and value.numel() else None


def _row_index(tensor: Tensor) -> str:
    """Return the index expression of a row, or of a column for integer tensors, whose columns are positions."""
    if tensor.ndim == 1:
        return "[{}]"
    if not tensor.is_floating_point() and tensor.dtype is not torch.bool:
        return "[:, {}]" if tensor.ndim == 2 else "[..., {}]"
    return "[{}]" if tensor.ndim == 2 else "[..., {}, :]"


def _row_axis(tensor: Tensor) -> int:
    return -1 if tensor.ndim == 1 or _row_index(tensor).endswith(" {}]") else -2


def _count_rows(tensor: Tensor) -> int:
    return tensor.shape[_row_axis(tensor)]


def _find_affected_rows(
    subject: LimitedSubject, draws: list[Request], results: list[Tensor]
) -> dict[str, dict[int, tuple[int, ...]]]:
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    if not _FEWEST_ROWS <= _count_rows(results[0]) <= MOST_ROWS:
        return {}
    for name, value in draws[0].arguments.items():
        if not (isinstance(value, Tensor) and _is_usable(value) and _count_rows(value) <= MOST_ROWS):
            continue
        # The first and the last row are often special.
        for row in range(min(1, _count_rows(value) - 1), min(_MOST_CHANGED + 1, _count_rows(value))):
            changed = set[tuple[int, ...]]()
            for draw, (request, before) in enumerate(zip(draws, results, strict=True)):
                after = _result_tensor(
                    subject.observe(_replace_argument(request, name, _change_row(request.arguments[name], row, draw)))
                )
                same_form = after is not None and after.shape == before.shape
                changed.add(_list_changed_rows(before, after) if same_form and after is not None else (-1,))
            if len(changed) == 1 and (-1,) not in changed:
                found.setdefault(f"`{name}{_row_index(value)}`", {})[row] = changed.pop()
    return found


def _replace_argument(request: Request, name: str, value: object) -> Request:
    return replace(request, arguments={**request.arguments, name: value})


def _change_row(tensor: Tensor, row: int, draw: int) -> Tensor:
    changed, generator = tensor.clone(), torch.Generator().manual_seed(draw)
    part = changed.select(_row_axis(tensor), row)
    if tensor.is_floating_point():
        part += 0.5 + torch.rand(part.shape, generator=generator, dtype=torch.float64).to(part.dtype)
    else:  # another integer of the same range
        low, high = int(tensor.min()), int(tensor.max())
        part.copy_((part - low + 1) % (high - low + 1) + low)
    return changed


def _list_changed_rows(before: Tensor, after: Tensor) -> tuple[int, ...]:
    axis = _row_axis(before)
    return tuple(
        i for i in range(_count_rows(before)) if not _are_close(before.select(axis, i), after.select(axis, i), _SEEN)
    )


def _are_close(first: Tensor, second: Tensor, tolerance: Mapping[str, float]) -> bool:
    return first.shape == second.shape and torch.allclose(first.double(), second.double(), equal_nan=True, **tolerance)


def _find_invariances(subject: LimitedSubject, draws: list[Request], results: list[Tensor]) -> dict[str, bool]:
    """Return whether the result survives each change of the input, if this is the same for all redraws."""
    found: dict[str, bool] = {}
    for text, change in list_input_changes(draws[0]):
        kept = set[bool]()
        for request, before in zip(draws, results, strict=True):
            after = _result_tensor(subject.observe(change(request)))
            kept.add(after is not None and _are_close(before, after, _ROUNDING))
        if len(kept) == 1:
            found[text] = kept.pop()
    return found


_OF_ONE: Mapping[str, Callable[[Tensor], Tensor]] = {
    "3 is added to all of `{}`": lambda x: x + 3,
    "`{}` is doubled": lambda x: 2 * x,
    "`{}` changes its sign": lambda x: -x,
    "the rows of `{}` are reversed": lambda x: x.flip(-2) if x.ndim > 1 else x,
    "the entries of `{}` are reversed": lambda x: x.flip(0) if x.ndim == 1 else x,
    "the columns of `{}` are reversed": lambda x: x.flip(-1) if x.ndim > 1 else x,
}


def list_input_changes(request: Request) -> Iterator[tuple[str, Callable[[Request], Request]]]:
    """Yield changes of an input, each as a text and a function."""
    tensors = {name: value for name, value in request.arguments.items() if isinstance(value, Tensor) and value.ndim}
    for name, value in tensors.items():
        for text, change in _OF_ONE.items():
            fits = value.is_floating_point() or (value.dtype is not torch.bool and "reversed" in text)
            if fits and not torch.equal(change(value), value):
                yield text.format(name), partial(_change_arguments, (name,), change)
    rows = {name: value.shape[-2] for name, value in tensors.items() if value.ndim > 1 and value.shape[-2] > 1}
    for pair in combinations(sorted(rows), 2):
        if rows[pair[0]] == rows[pair[1]]:
            text = f"the rows of `{pair[0]}` and of `{pair[1]}` are reversed"
            yield text, partial(_change_arguments, pair, lambda value: value.flip(-2))


def _change_arguments(names: tuple[str, ...], change: Callable[[Tensor], Tensor], request: Request) -> Request:
    for name in names:
        request = _replace_argument(request, name, change(request.arguments[name]))
    return request
