"""The questions that decide: each looks at what was observed and at what was expected, and says what is wrong, or nothing.

A judge has a name and plain options, so that a recorded check can be written to a file and read where there is no reference.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy
import torch
from torch import Tensor, nn

from autograder.checking.props import build
from autograder.checking.request import Observation, Value, WeightsError, WrongResultError
from autograder.checking.tolerance import PYTHON_FLOAT, tolerance_for

# More numbers than any exercise returns: an expanded tensor may claim any number and take no memory, until it is compared.
LARGEST = 10_000_000

# What is said of a stub.
NOT_WRITTEN = "not written yet"

Observations: TypeAlias = Sequence[Observation]
Judge: TypeAlias = Callable[[Observations, Observations, Mapping[str, Value]], str | None]


def matches(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Every output has the expected name, shape and values."""
    for mine, theirs in zip(seen, expected, strict=True):
        problem = _structure(mine, theirs) or next(
            (p for name, value in theirs.outputs.items() if (p := _difference(name, mine.outputs[name], value))), None
        )
        if problem:
            return problem
    return None


def finite(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """No output has a NaN or an infinite number; what else it holds is not looked at."""
    for mine, theirs in zip(seen, expected, strict=True):
        if problem := _structure(mine, theirs):
            return problem
        for name, value in mine.outputs.items():
            if isinstance(value, Tensor) and not bool(value.isfinite().all()):
                bad = value.numel() - int(value.isfinite().sum())
                return f"{name} has {bad} numbers that are NaN or infinite, among {value.numel()}"
    return None


def matches_part(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """The outputs in the option ``outputs`` have the expected shape and values; the others need only be there."""
    for mine, theirs in zip(seen, expected, strict=True):
        if set(mine.outputs) != set(theirs.outputs):
            return _other_names(mine, theirs)
        for name in options["outputs"]:
            if problem := _difference(name, mine.outputs[name], theirs.outputs[name]):
                return problem
    return None


def answers(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """It answers what should be answered and refuses what should be refused (see :func:`judge`), whatever the answers are."""
    return None


def shapes(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Every output has the expected name, shape and dtype; values are not looked at."""
    for mine, theirs in zip(seen, expected, strict=True):
        if problem := _structure(mine, theirs):
            return problem
        for name, value in theirs.outputs.items():
            other = mine.outputs[name]
            if isinstance(value, Tensor) and other.dtype != value.dtype:
                return f"{name} has dtype {_dtype(other)}, expected {_dtype(value)}"
    return None


def unmutated(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """No argument was changed in place, by a call that returned what it should."""
    if problem := _kinds(seen, expected):
        return problem
    changed = [name for observation in seen for name in observation.mutated]
    return f"it changes its argument {', '.join(dict.fromkeys(changed))} in place" if changed else None


def spread(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Every output varies as much along the axis ``dim`` as expected, up to a factor of ``within``: for weights drawn at random."""
    within = options.get("within", 1.25)
    for mine, theirs in zip(seen, expected, strict=True):
        if problem := _structure(mine, theirs):
            return problem
        for name, value in theirs.outputs.items():
            drawn, asked = (float(item.double().std(dim=options["dim"]).mean()) for item in (mine.outputs[name], value))
            if not asked / within <= drawn <= asked * within:
                return f"with the weights as they are drawn, {name} has a standard deviation of {drawn:.2g}, expected {asked:.2g}"
    return None


def detached(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """No gradient can flow back from a result: it does not keep alive all that it was computed from."""
    if problem := _kinds(seen, expected):
        return problem
    names = list(dict.fromkeys(name for observation in seen for name in observation.attached))
    if not names:
        return None
    return f"{', '.join(names)} still hangs on the graph of the steps that it comes from, and keeps it in memory"


def reaches(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """The model that was trained is good: on ``inputs`` the loss is at most ``loss``, and at least a share ``right`` of ``targets`` is met.

    The model is built here from the weights that were left, as ``kind`` and ``init`` say, so nothing is taken on trust.
    """
    for mine, theirs in zip(seen, expected, strict=True):
        weights = {name: value for name, value in theirs.outputs.items() if name.startswith("model.")}
        held = Observation(outputs={name: mine.outputs[name] for name in weights if name in mine.outputs})
        if problem := _structure(held, Observation(outputs=weights)):
            return problem
        state = {name.removeprefix("model."): value.cpu() for name, value in held.outputs.items()}
        model = build({"model": {"kind": options["kind"], "init": options["init"], "state": state}})["model"].eval()
        with torch.no_grad():
            logits = model(*options["inputs"]).flatten(0, -2)
        targets = options["targets"].flatten()
        loss = float(nn.functional.cross_entropy(logits, targets))
        right = float((logits.argmax(dim=-1) == targets).double().mean())
        if not loss <= options["loss"] or right < options["right"]:
            return (
                f"on examples that it was not trained on, the model gets {right:.0%} right with a loss of {loss:.2g}; at least "
                f"{options['right']:.0%} with a loss of at most {options['loss']:g} are asked for"
            )
    return None


def related(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """The outputs of two requests agree where the option ``views`` looks: a list of steps for each of the two."""
    if problem := _kinds(seen, expected):
        return problem
    first, second = seen
    for name, value in first.outputs.items():
        try:
            a, b = (
                look(item, view) for item, view in zip((value, second.outputs[name]), options["views"], strict=True)
            )
        except (IndexError, RuntimeError):
            return f"{name} has shape {_shape(value)}, which does not have the axes to look at"
        if problem := _difference(name, b, a):
            return f"{options['claim']}: {problem}"
    return None


def same_operations(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """The number of dispatched operations does not grow with the size of the input."""
    if problem := _kinds(seen, expected):
        return problem
    small, large = (observation.operations or 0 for observation in seen)
    if large > small * 1.2 + 2:
        counts = f"it dispatches {small} operations on a small input and {large} on a larger one"
        return f"{counts}: there is a Python loop over {options['axis']}"
    return None


def small_tensors(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """No operation makes a tensor of more than ``limit`` elements."""
    if problem := _kinds(seen, expected):
        return problem
    largest = max(observation.largest or 0 for observation in seen)
    if largest > options["limit"]:
        return f"it makes a tensor of {largest} elements, at most {options['limit']} are needed"
    return None


def free_of(seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """None of the functions in the option ``names`` was called."""
    used = sorted({name for observation in seen for name in observation.functions} & set(options["names"]))
    # What PyTorch calls on its way is nothing that anybody wrote.
    written = [name for name in used if not name.startswith("_")] or used
    return f"it calls {', '.join(written)}, which this exercise asks you to do yourself" if used else None


JUDGES: dict[str, Judge] = {
    judge.__name__: judge
    for judge in (
        matches,
        matches_part,
        answers,
        finite,
        shapes,
        unmutated,
        spread,
        detached,
        reaches,
        related,
        same_operations,
        small_tensors,
        free_of,
    )
}


def judge(name: str, seen: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Apply a judge by name; an exception in any observation is a failure whatever the judge."""
    for mine, theirs in zip(seen, expected, strict=True):
        if mine.error is not None and theirs.error is None:
            return NOT_WRITTEN if mine.unfinished else _failure(mine)
        if mine.error is None and theirs.error is not None:
            return f"it answers input that makes no sense; a {theirs.error.partition(':')[0]} is asked for"
        if mine.error is not None and theirs.error is not None and _kind(mine) != _kind(theirs):
            return f"{_failure(mine)}; a {_kind(theirs)} is asked for"
    try:
        return JUDGES[name](seen, expected, options)
    except Exception as error:  # what a student returns may be made to break a comparison
        return f"what it returns cannot be compared ({type(error).__name__})"


def look(value: Value, steps: Sequence[Sequence[Value]]) -> Value:
    """Follow a view: a list of steps ``("narrow", dim, start, length)``."""
    if not isinstance(value, Tensor):
        return value
    for kind, dim, *rest in steps:
        if kind != "narrow":
            raise ValueError(f"a view knows 'narrow', not {kind!r}")
        value = value.narrow(dim, *rest)
    return value


def same_answer(
    a: Observation, b: Observation, *, damage: bool = False, hold: bool = False, refusal: bool = False
) -> bool:
    """Whether two subjects answered a request alike. NaN equals NaN here: a mistake that makes NaN is recognised by it.

    Numbers of two dtypes are not alike: what is right but for the last digits of double precision is not what was made in single.
    Weights that do not fit are alike if they do not fit in the same way.

    Args:
        a: what the one answered.
        b: what the other answered.
        damage: compare the damage that they did to their arguments, in place of what they returned.
        hold: compare which results still hang on a graph, in place of what they are.
        refusal: compare whether they refused, and by which kind of error, in place of what they answered.
    """
    if refusal:
        return _kind(a) == _kind(b)
    if (a.error is None) != (b.error is None):
        return False
    if a.error is not None:
        return a.error == b.error if has_other_weights(a) else _kind(a) == _kind(b)
    if damage:
        return a.mutated == b.mutated
    if hold:
        return a.attached == b.attached
    if set(a.outputs) != set(b.outputs):
        return False
    try:
        return all(_is_same(value, b.outputs[name]) for name, value in a.outputs.items())
    except Exception:  # what a student returns may be made to break a comparison
        return False


def glance(
    observation: Observation, *, damage: bool = False, hold: bool = False, refusal: bool = False
) -> tuple[int, float]:
    """Return what is seen of an answer at first sight: a number for the kind of thing it is, and the last of its numbers, or NaN.

    Args:
        observation: the answer.
        damage: as for :func:`same_answer`.
        hold: as for :func:`same_answer`.
        refusal: as for :func:`same_answer`.
    """
    if observation.error is not None or refusal:
        return hash(("error", _kind(observation))), math.nan
    if damage or hold:
        return hash(observation.mutated if damage else observation.attached), math.nan
    try:
        kinds = [
            (name, value.dtype, value.shape) if isinstance(value, Tensor) else (name, type(value))
            for name, value in sorted(observation.outputs.items())
        ]
        numbers = _first_numbers(observation)
        last = math.nan if numbers is None else float(numbers.detach()[(-1,) * numbers.ndim])
        return hash(tuple(kinds)), last
    except Exception:  # what a student returns may be made to break a comparison
        return hash("broken"), math.nan


def alike_at_a_glance(
    mine: Observation, kinds: Tensor, lasts: Tensor, *, damage: bool = False, hold: bool = False, refusal: bool = False
) -> Tensor:
    """Return which of some answers may be the same as one. Of most that are not, it says so without a look at them.

    Args:
        mine: the one.
        kinds: what :func:`glance` says of the others, shape (answers,).
        lasts: their last numbers, shape (answers,).
        damage: as for :func:`same_answer`.
        hold: as for :func:`same_answer`.
        refusal: as for :func:`same_answer`.

    Returns:
        Truth values, shape (answers,). Where it says False, :func:`same_answer` does too.
    """
    kind, last = glance(mine, damage=damage, hold=hold, refusal=refusal)
    alike = kinds == kind
    if math.isnan(last):
        return alike
    numbers = _first_numbers(mine)
    assert numbers is not None, "it has a last number"
    allowed = tolerance_for(numbers.dtype, numbers.device.type)
    return alike & ~((lasts - last).abs() > allowed.absolute + allowed.relative * lasts.abs())


def _first_numbers(observation: Observation) -> Tensor | None:
    """Return the first result that consists of numbers with a fraction and can be read."""
    for _, value in sorted(observation.outputs.items()):
        if isinstance(value, Tensor) and not _unreadable("", value) and value.is_floating_point() and value.numel():
            return value
    return None


def has_other_weights(observation: Observation) -> bool:
    """Whether it came to nothing since the weights are named otherwise, or have other shapes. The text then tells how."""
    return _kind(observation) == WeightsError.__name__


def _failure(observation: Observation) -> str:
    """Say what an observation's error was; what raised nothing is not said to have raised something."""
    kind, _, text = (observation.error or "").partition(": ")
    own_words = (WrongResultError.__name__, WeightsError.__name__)
    return text if kind in own_words else f"it raised {observation.error}"


def _kind(observation: Observation) -> str:
    return (observation.error or "").partition(":")[0]


def _kinds(seen: Observations, expected: Observations) -> str | None:
    """Say where there is no tensor (or shape) in the place of one: who returns nothing has not kept a promise about how it is made."""
    for mine, theirs in zip(seen, expected, strict=True):
        if set(mine.outputs) != set(theirs.outputs):
            return _other_names(mine, theirs)
        for name, value in theirs.outputs.items():
            other = mine.outputs[name]
            if isinstance(value, (Tensor, tuple)) and not isinstance(other, (Tensor, tuple)):
                return f"{name} is a {type(other).__name__}, expected a Tensor"
    return None


def _structure(mine: Observation, theirs: Observation) -> str | None:
    if set(mine.outputs) != set(theirs.outputs):
        return _other_names(mine, theirs)
    for name, value in theirs.outputs.items():
        other = mine.outputs[name]
        if isinstance(value, Tensor) != isinstance(other, Tensor):
            return f"{name} is a {type(other).__name__}, expected a {type(value).__name__}"
        if problem := _unreadable(name, other):
            return problem
        if isinstance(value, Tensor) and other.shape != value.shape:
            return f"{name} has shape {_shape(other)}, expected {_shape(value)}"
    return None


def _is_same(mine: Value, theirs: Value) -> bool:
    if getattr(mine, "dtype", None) != getattr(theirs, "dtype", None):
        return False
    if (
        not isinstance(mine, Tensor)
        or not mine.is_floating_point()
        or _unreadable("", mine)
        or mine.shape != theirs.shape
    ):
        return _difference("", mine, theirs, equal_nan=True) is None
    return _agree(mine, theirs, equal_nan=True)


def _difference(name: str, mine: Value, theirs: Value, *, equal_nan: bool = False) -> str | None:
    if not isinstance(theirs, Tensor) or not isinstance(mine, Tensor):
        same = type(mine) is type(theirs) and (mine == theirs or _near(mine, theirs, equal_nan=equal_nan))
        return None if same else f"{name} is {reprlib.repr(mine)}, expected {reprlib.repr(theirs)}"
    if problem := _unreadable(name, mine):
        return problem
    if mine.shape != theirs.shape:
        return f"{name} has shape {_shape(mine)}, expected {_shape(theirs)}"
    if mine.dtype == torch.bool or theirs.dtype == torch.bool:
        if mine.dtype != theirs.dtype:
            return f"{name} has dtype {_dtype(mine)}, expected {_dtype(theirs)}"
        wrong = int((mine.cpu() != theirs.cpu()).sum())
        return f"{name} differs in {wrong} of {theirs.numel()} places" if wrong else None
    if mine.is_complex():
        return f"{name} has complex numbers"
    if _agree(mine, theirs, equal_nan=equal_nan):
        return None
    allowed = tolerance_for(theirs.dtype, theirs.device.type)
    a, b = mine.detach().cpu().double(), theirs.detach().cpu().double()
    close = torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan)
    if bool(a.isnan().any()) and not bool(b.isnan().any()):
        return f"{name} has {int(a.isnan().sum())} NaN among its {a.numel()} numbers"
    gap = torch.where(close, torch.zeros_like(a), (a - b).abs().nan_to_num(nan=float("inf")))
    where = [int(i) for i in numpy.unravel_index(int(gap.argmax()), gap.shape)]
    at = f" (at {where})" if where else ""
    return (
        f"{name} is off by up to {float(gap.max()):.3g}{at}; {int((~close).sum())} of {a.numel()} numbers differ "
        f"by more than rounding"
    )


def _agree(mine: Tensor, theirs: Tensor, *, equal_nan: bool) -> bool:
    """Whether two tensors of one shape agree as far as rounding lets them. What is right is mostly right to the last bit."""
    if (mine.dtype, mine.device) == (theirs.dtype, theirs.device) and torch.equal(mine, theirs):
        return True
    allowed = tolerance_for(theirs.dtype, theirs.device.type)
    a, b = mine.detach().cpu().double(), theirs.detach().cpu().double()
    over = (a - b).abs_().sub_(b.abs().mul_(allowed.relative).add_(allowed.absolute))
    if bool((over <= 0).all()):
        return True
    # Neither over nor under is a number that is none, or infinite; what to make of those is for isclose to know.
    return not bool((over > 0).any()) and bool(
        torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan).all()
    )


def _near(mine: Value, theirs: Value, *, equal_nan: bool) -> bool:
    """Whether two Python numbers with a fraction are near: no formula has one right order of operations, and none one right precision."""
    if not isinstance(mine, float):
        return False
    both_nan = equal_nan and math.isnan(mine) and math.isnan(theirs)
    return both_nan or math.isclose(mine, theirs, rel_tol=PYTHON_FLOAT.relative, abs_tol=PYTHON_FLOAT.absolute)


def _unreadable(name: str, value: Value) -> str | None:
    """Say what is the matter with a tensor that has no ordinary array of numbers to compare, or nothing."""
    if not isinstance(value, Tensor):
        return None
    if value.device.type == "meta":
        return f"{name} is on the meta device: it has a shape and no numbers"
    if value.is_nested or value.is_quantized or value.layout != torch.strided:
        return f"{name} is a sparse, nested or quantised tensor, expected an ordinary one"
    if type(value) not in (Tensor, nn.Parameter):
        return f"{name} is a {type(value).__name__}, expected an ordinary torch.Tensor"
    if value.numel() > LARGEST:
        return f"{name} has {value.numel()} numbers"
    return None


def _other_names(mine: Observation, theirs: Observation) -> str:
    """Say how many values there should be; where it is not their number, which one is out of place."""
    returned, expected = _names(mine), _names(theirs)
    if returned == expected:
        returned = next(name for name in mine.outputs if name not in theirs.outputs)
        expected = next(name for name in theirs.outputs if name not in mine.outputs)
    return f"it returns {returned}, expected {expected}"


def _names(observation: Observation) -> str:
    names = list(observation.outputs)
    if len(names) != 1:
        return f"{len(names)} values"
    return "one value" if names == ["output"] else names[0]


def _shape(value: Value) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
