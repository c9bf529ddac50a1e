"""Judge observations: each judge compares answers with the expected ones and returns a message, or None.

A judge has a name and plain options, so that a recorded check can be written to a file and used without the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor, nn

from autograder.checking.difference import (
    describe_difference,
    describe_disagreement,
    dtype_text,
    explain_unreadable,
    shape_text,
    tensors_agree,
)
from autograder.checking.executed_lines import HIDDEN
from autograder.checking.props import build_fixtures
from autograder.checking.request import Observation, Request, Value, WeightsError, WrongResultError
from autograder.checking.tolerance import choose_tolerance
from autograder.checking.value_text import describe_other_items, result_name, type_name
from autograder.checking.verdict import NOT_WRITTEN

Observations: TypeAlias = Sequence[Observation]
Judge: TypeAlias = Callable[[Observations, Observations, Mapping[str, Value]], str | None]


def find_mismatch(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return what is wrong with the outputs' names, shapes or values, or None; in single precision with ``single``."""
    if options.get("single"):
        observed, expected = ([_to_single_precision(each) for each in side] for side in (observed, expected))
    for answer, reference in zip(observed, expected, strict=True):
        fields = _output_field_names(options)
        problem = _find_structural_difference(answer, reference, fields) or next(
            (
                p
                for name, value in reference.outputs.items()
                if (p := describe_difference(result_name(name, fields), answer.outputs[name], value))
            ),
            None,
        )
        if problem:
            return problem
    return None


def find_non_finite(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return which output has NaN or infinite numbers, or None; other numbers are ignored."""
    for answer, reference in zip(observed, expected, strict=True):
        if problem := _find_structural_difference(answer, reference):
            return problem
        for name, value in answer.outputs.items():
            if isinstance(value, Tensor) and not bool(value.isfinite().all()):
                bad = value.numel() - int(value.isfinite().sum())
                are = "is" if bad == 1 else "are"
                return f"{bad} of {value.numel()} numbers in {result_name(name)} {are} NaN or infinite"
    return None


def find_part_mismatch(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return what is wrong with the outputs in the option ``outputs``, or None; others need only exist."""
    for answer, reference in zip(observed, expected, strict=True):
        if problem := _find_other_container(answer, reference, _output_field_names(options)):
            return problem
        for name in options["outputs"]:
            label = result_name(name, _output_field_names(options))
            if problem := describe_difference(label, answer.outputs[name], reference.outputs[name]):
                return problem
    return None


def accept_any_answer(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Accept any answer: :func:`judge` has checked that an error is raised exactly where it should be."""
    return None


def find_shape_mismatch(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return what is wrong with the outputs' names, shapes or dtypes, or None; values are ignored."""
    for answer, reference in zip(observed, expected, strict=True):
        if problem := _find_structural_difference(answer, reference, _output_field_names(options)):
            return problem
        for name, value in reference.outputs.items():
            other = answer.outputs[name]
            if isinstance(value, Tensor) and other.dtype != value.dtype:
                label = result_name(name, _output_field_names(options))
                return f"{label} has dtype {dtype_text(other)}, expected {dtype_text(value)}"
    return None


def find_mutation(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return which arguments were changed in place by a call that returned the right kinds of outputs, or None."""
    if problem := _find_missing_tensor(observed, expected):
        return problem
    changed = [name for observation in observed for name in observation.mutated]
    names = list(dict.fromkeys(changed))
    return f"it changes its argument{'s' * (len(names) > 1)} {', '.join(names)} in place" if names else None


def find_wrong_spread(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return what is wrong with the spread of randomly drawn weights along ``dim``, up to a factor, or None."""
    within = options.get("within", 1.25)
    for answer, reference in zip(observed, expected, strict=True):
        if problem := _find_structural_difference(answer, reference):
            return problem
        for name, value in reference.outputs.items():
            drawn, required = (
                float(item.double().std(dim=options["dim"]).mean()) for item in (answer.outputs[name], value)
            )
            if not required / within <= drawn <= required * within:
                message = f"{result_name(name)} has a standard deviation of {drawn:.2g}, expected {required:.2g}"
                return f"with freshly drawn weights {message}"
    return None


def find_attached(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return which results are attached to the autograd graph, which keeps earlier steps in memory, or None."""
    if problem := _find_missing_tensor(observed, expected):
        return problem
    names = list(dict.fromkeys(result_name(name) for observation in observed for name in observation.attached))
    if not names:
        return None
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} still attached to the graph, which keeps all earlier steps in memory"


def find_missed_goal(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return a problem if a trained model has a loss above ``loss`` on ``inputs``, or classifies less than ``right`` right.

    The model is built here from the weights that were left, as ``kind`` and ``init`` say, so nothing is taken on trust.
    """
    for answer, reference in zip(observed, expected, strict=True):
        weights = {name: value for name, value in reference.outputs.items() if name.startswith("model.")}
        held = Observation(outputs={name: answer.outputs[name] for name in weights if name in answer.outputs})
        if problem := _find_structural_difference(held, Observation(outputs=weights)):
            return problem
        state = {name.removeprefix("model."): value.cpu() for name, value in held.outputs.items()}
        model = build_fixtures({"model": {"kind": options["kind"], "init": options["init"], "state": state}})[
            "model"
        ].eval()
        with torch.no_grad():
            logits = model(*options["inputs"]).flatten(0, -2)
        targets = options["targets"].flatten()
        loss = float(nn.functional.cross_entropy(logits, targets))
        right = float((logits.argmax(dim=-1) == targets).double().mean())
        if not loss <= options["loss"] or right < options["right"]:
            return (
                f"on examples it was not trained on, the model gets {right:.0%} right with a loss of {loss:.2g}, "
                f"expected at least {options['right']:.0%} right with a loss of at most {options['loss']:g}"
            )
    return None


def find_broken_relation(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return where the outputs of two requests differ in the ``views``, a list of steps for each of them, or None."""
    if problem := _find_missing_tensor(observed, expected):
        return problem
    first, second = observed
    for name, value in first.outputs.items():
        try:
            a, b = (
                select_view(item, view)
                for item, view in zip((value, second.outputs[name]), options["views"], strict=True)
            )
        except (IndexError, RuntimeError):
            return f"{result_name(name)} has shape {shape_text(value)}, which lacks the axes that are compared"
        if describe_difference(name, b, a):
            return f"{options['claim']}{describe_disagreement(a, b)}"
    return None


def find_growing_cost(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return a problem if the numbers of dispatched operations or executed lines grow with the input's size, or None.

    If there is a loop, the number of lines grows by the option ``lines`` or more.
    """
    if problem := _find_missing_tensor(observed, expected):
        return problem
    small, large = (observation.operations or 0 for observation in observed)
    if large > small * 1.2 + 2:
        counts = f"it runs {small} PyTorch operations on a small input and {large} on a larger one"
        return f"{counts}: there is a Python loop over {options['axis']}"
    few, many = (observation.lines or 0 for observation in observed)
    if max(few, many) >= HIDDEN:
        return "it keeps the check from counting the lines that it executes (sys.settrace)"
    if many - few >= options["lines"]:
        counts = f"it executes {few} lines of Python on a small input and {many} on a larger one"
        return f"{counts}: there is a Python loop over {options['axis']}"
    return None


def find_large_tensor(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return a problem if an operation makes a tensor of more than ``limit`` elements, or None."""
    if problem := _find_missing_tensor(observed, expected):
        return problem
    largest = max(observation.largest or 0 for observation in observed)
    if largest > options["limit"]:
        return f"it makes a tensor of {largest} elements; at most {options['limit']} are needed"
    return None


def find_forbidden_calls(observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Return which of the functions in the option ``names`` were called, or None."""
    used = sorted({name for observation in observed for name in observation.functions} & set(options["names"]))
    # The student did not write PyTorch's internal calls.
    written = [name for name in used if not name.startswith("_")] or used
    return f"it calls {', '.join(written)}, which this exercise asks you to write yourself" if used else None


JUDGES: dict[str, Judge] = {
    "matches": find_mismatch,
    "matches_part": find_part_mismatch,
    "answers": accept_any_answer,
    "finite": find_non_finite,
    "shapes": find_shape_mismatch,
    "unmutated": find_mutation,
    "spread": find_wrong_spread,
    "detached": find_attached,
    "reaches": find_missed_goal,
    "related": find_broken_relation,
    "same_operations": find_growing_cost,
    "small_tensors": find_large_tensor,
    "free_of": find_forbidden_calls,
}


def judge(name: str, observed: Observations, expected: Observations, options: Mapping[str, Value]) -> str | None:
    """Apply a judge by name; an unexpected exception, or a missing one, is a failure for every judge."""
    for answer, reference in zip(observed, expected, strict=True):
        if answer.error is not None and reference.error is None:
            return NOT_WRITTEN if answer.unfinished else _describe_failure(answer)
        if answer.error is None and reference.error is not None:
            return f"it accepts wrong input, expected a {_error_kind(reference)}"
        if answer.error is not None and reference.error is not None and _error_kind(answer) != _error_kind(reference):
            return f"{_describe_failure(answer).rstrip('.')}; expected a {_error_kind(reference)}"
    try:
        return JUDGES[name](observed, expected, options)
    except Exception as error:  # what a student returns may be made to break a comparison
        return f"its result cannot be compared with the expected one ({type(error).__name__})"


def is_wrong_result(name: str, requests: Sequence[Request], observed: Observations, expected: Observations) -> bool:
    """Return whether a judge's finding is a wrong result: other numbers, another shape, or no result."""
    if any(observation.error for observation in (*observed, *expected)) or name == "answers":
        return False
    if name in ("matches", "matches_part", "shapes"):
        return all(request.action != "attributes" for request in requests)
    try:
        return any(
            _find_structural_difference(answer, reference) for answer, reference in zip(observed, expected, strict=True)
        )
    except Exception:  # what a student returns may be made to break a comparison
        return True


def select_view(value: Value, steps: Sequence[Sequence[Value]]) -> Value:
    """Return the part of a tensor that a view selects, a list of steps ``("narrow", dim, start, length)``."""
    if not isinstance(value, Tensor):
        return value
    for kind, dim, *rest in steps:
        if kind != "narrow":
            raise ValueError(f"a view knows 'narrow', not {kind!r}")
        value = value.narrow(dim, *rest)
    return value


def is_same_answer(
    a: Observation, b: Observation, *, damage: bool = False, hold: bool = False, refusal: bool = False
) -> bool:
    """Return whether two subjects gave the same answer to a request; NaN equals NaN.

    Numbers of different dtypes differ: an answer with errors in the last digits of float64 is not one that was computed in float32.
    Misfitting weights are equal if they misfit in the same way.

    Args:
        a: the answer of one subject.
        b: the answer of the other.
        damage: compare in-place changes of the arguments instead of results.
        hold: compare which results are still attached to a graph instead of their values.
        refusal: compare whether they raised, and the type of error, instead of results.
    """
    if refusal:
        return _error_kind(a) == _error_kind(b)
    if (a.error is None) != (b.error is None):
        return False
    if a.error is not None:
        return a.error == b.error if has_other_weights(a) else _error_kind(a) == _error_kind(b)
    if damage:
        return a.mutated == b.mutated
    if hold:
        return a.attached == b.attached
    if set(a.outputs) != set(b.outputs) or (a.containers and b.containers and set(a.containers) != set(b.containers)):
        return False
    try:
        return all(_is_same(value, b.outputs[name]) for name, value in a.outputs.items())
    except Exception:  # what a student returns may be made to break a comparison
        return False


def fingerprint_answer(
    observation: Observation, *, damage: bool = False, hold: bool = False, refusal: bool = False
) -> tuple[int, float]:
    """Return a fingerprint of an answer: a number for its structure, and its last number or NaN.

    Args:
        observation: the answer.
        damage: as for :func:`is_same_answer`.
        hold: as for :func:`is_same_answer`.
        refusal: as for :func:`is_same_answer`.
    """
    if observation.error is not None or refusal:
        return hash(("error", _error_kind(observation))), math.nan
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


def match_fingerprints(
    answer: Observation,
    kinds: Tensor,
    lasts: Tensor,
    *,
    damage: bool = False,
    hold: bool = False,
    refusal: bool = False,
) -> Tensor:
    """Compare fingerprints, and return which of several answers may equal a given answer.

    Args:
        answer: the given answer.
        kinds: the others' first values of :func:`fingerprint_answer`, shape (answers,).
        lasts: the others' last numbers, shape (answers,).
        damage: as for :func:`is_same_answer`.
        hold: as for :func:`is_same_answer`.
        refusal: as for :func:`is_same_answer`.

    Returns:
        Truth values, shape (answers,). False implies that :func:`is_same_answer` is False, too.
    """
    kind, last = fingerprint_answer(answer, damage=damage, hold=hold, refusal=refusal)
    alike = kinds == kind
    if math.isnan(last):
        return alike
    numbers = _first_numbers(answer)
    assert numbers is not None, "it has a last number"
    allowed = choose_tolerance(numbers.dtype, numbers.device.type)
    return alike & ~((lasts - last).abs() > allowed.absolute + allowed.relative * lasts.abs())


def _first_numbers(observation: Observation) -> Tensor | None:
    """Return the first readable floating-point result; None without one."""
    for _, value in sorted(observation.outputs.items()):
        if (
            isinstance(value, Tensor)
            and not explain_unreadable("", value)
            and value.is_floating_point()
            and value.numel()
        ):
            return value
    return None


def has_other_weights(observation: Observation) -> bool:
    """Return whether an observation failed because of wrong names or shapes of weights."""
    return _error_kind(observation) == WeightsError.__name__


def _describe_failure(observation: Observation) -> str:
    """Describe an observation's error; limits are not described as exceptions of the code."""
    kind, _, text = (observation.error or "").partition(": ")
    own_words = (WrongResultError.__name__, WeightsError.__name__)
    return text if kind in own_words else f"it raised {observation.error}"


def _error_kind(observation: Observation) -> str:
    return (observation.error or "").partition(":")[0]


def _find_missing_tensor(observed: Observations, expected: Observations) -> str | None:
    """Describe a missing tensor or shape: code without a result must not pass a row about its computation."""
    for answer, reference in zip(observed, expected, strict=True):
        if set(answer.outputs) != set(reference.outputs):
            return describe_other_items(answer, reference, {})
        for name, value in reference.outputs.items():
            other = answer.outputs[name]
            if isinstance(value, (Tensor, tuple)) and not isinstance(other, (Tensor, tuple)):
                return f"{result_name(name)} is {type_name(other)}, expected a tensor"
    return None


def _find_structural_difference(
    answer: Observation, reference: Observation, fields: Mapping[str, str] | None = None
) -> str | None:
    if problem := _find_other_container(answer, reference, fields or {}):
        return problem
    for name, value in reference.outputs.items():
        other, label = answer.outputs[name], result_name(name, fields)
        if isinstance(value, Tensor) != isinstance(other, Tensor):
            return f"{label} is {type_name(other)}, expected {type_name(value)}"
        if problem := explain_unreadable(label, other):
            return problem
        if isinstance(value, Tensor) and other.shape != value.shape:
            return f"{label} has shape {shape_text(other)}, expected {shape_text(value)}"
    return None


def _to_single_precision(observation: Observation) -> Observation:
    outputs = {
        name: value.float() if isinstance(value, Tensor) and value.dtype == torch.float64 else value
        for name, value in observation.outputs.items()
    }
    return replace(observation, outputs=outputs)


def _output_field_names(options: Mapping[str, Value]) -> Mapping[str, str]:
    """Return the field names of a named-tuple result, by the names of its items in an observation."""
    fields: Mapping[str, str] = options.get("fields", {})
    return fields


def _is_same(answer: Value, reference: Value) -> bool:
    if getattr(answer, "dtype", None) != getattr(reference, "dtype", None):
        return False
    if (
        not isinstance(answer, Tensor)
        or not answer.is_floating_point()
        or explain_unreadable("", answer)
        or answer.shape != reference.shape
    ):
        return describe_difference("", answer, reference, equal_nan=True) is None
    return tensors_agree(answer, reference, equal_nan=True)


def _find_other_container(answer: Observation, reference: Observation, fields: Mapping[str, str]) -> str | None:
    """Describe how a result's structure or container differs from the expected one; None if it does not."""
    if set(answer.outputs) != set(reference.outputs):
        return describe_other_items(answer, reference, fields)
    if set(answer.containers) == set(reference.containers):
        return None
    returned, expected = (
        dict(text.rsplit(": ", 1) for text in observation.containers) for observation in (answer, reference)
    )
    name = next(name for name in sorted({*expected, *returned}) if returned.get(name) != expected.get(name))
    # The names of its items reveal a non-empty list or tuple.
    filled = any(item.startswith(f"{name}[") for item in reference.outputs)
    actual_kind = _CONTAINERS.get(returned.get(name, ""), "a list or tuple" if filled else "missing")
    expected_kind = _CONTAINERS.get(expected.get(name, ""), "a list or tuple" if filled else "nothing there")
    return f"{result_name(name, fields)} is {actual_kind}, expected {expected_kind}"


_CONTAINERS = {
    "mapping": "a dictionary",
    "empty mapping": "an empty dictionary",
    "sequence": "a list or tuple",
    "empty sequence": "an empty list or tuple",
}
