"""Describe a wrong answer's outputs on the visible tests, so that instructors can group answers with equal behaviour.

It needs no additional test: it uses observations that the student's process has already sent, and runs none of the student's code. Its cost
is limited by counts, not by a clock, so that equal answers have equal signatures on any machine.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy
import torch
from torch import Tensor

from autograder.checking.request import Observation
from autograder.checking.verdict import VERDICT_MIME
from autograder.engine.checker.remote_subject import pack_request
from autograder.engine.transport.serialization import Opaque

# Another number makes other digests of questions, and with them signatures that are never compared with those of before.
VERSION = 1
# A signature has so many values at most, which makes 3.3 kB of JSON; tensors after them count with dtype and shape alone.
MOST_VALUES = 200
# So much is looked at: elements of one tensor, elements in all, and items of all containers.
_TENSOR_ELEMENTS, _ELEMENTS, _ITEMS = 2**15, 2**22, 20_000
_LONGEST_TEXT = 2_000
_SMALLEST_UNIT, _LARGEST_RATIO = 1e-2, 1e100
_KINDS = {torch.float64: "d", torch.float32: "f", torch.float16: "h", torch.bfloat16: "b"}
_DECIMALS = {"d": 7, "f": 4, "h": 3, "b": 3}
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")


@dataclass(frozen=True)
class VisibleCases:
    """The visible test cases of an exercise."""

    digest: str  # a hash that identifies them
    packed: tuple[bytes, ...]  # each test once, in serialized form
    with_outputs: tuple[bool, ...]  # per test whether outputs are compared; they are not where operations are counted
    units: tuple[Mapping[str, float], ...]  # the scale of the reference's numbers, by test and name of the output


def compute_signature(
    outputs: list[Any], answers: Mapping[bytes, Observation], device: str
) -> tuple[str, dict[str, Any]] | None:
    """Return the exercise of a test cell and its answer's signature; None if the answer is right or indescribable.

    Args:
        outputs: the outputs of the test cell.
        answers: what the student's process has answered in this cell, by packed question.
        device: where the checks put their tensors.
    """
    try:
        exercise = _find_failed_exercise(outputs)
        if exercise is None:
            return None
        questions = collect_visible_cases(exercise, device)
        if not answers.keys() >= set(questions.packed):
            return None
        return exercise, describe_answers(questions, [answers[packed] for packed in questions.packed])
    except Exception:  # a signature is a convenience: nothing about it may cost a student the grade
        return None


def _find_failed_exercise(outputs: list[Any]) -> str | None:
    for output in outputs:
        verdict = output.get("data", {}).get(VERDICT_MIME)
        if verdict is not None:
            return str(verdict["exercise"]) if verdict["score"] < verdict["max_score"] else None
    return None


@lru_cache(maxsize=256)
def collect_visible_cases(exercise: str, device: str) -> VisibleCases:
    """Return the visible test cases of an exercise, which are the same for every seed."""
    from autograder.checks import exercises

    sheet = exercises()[exercise].sheet(hidden=False, seed=0, device=device)
    expected: dict[bytes, tuple[str, Observation]] = {}
    for section in sheet.sections:
        for probe, observations in zip(section.probes, section.expected, strict=True):
            for request, observation in zip(probe.requests, observations, strict=True):
                expected.setdefault(pack_request(request), (request.action, observation))
    units = tuple(
        {name: compute_unit(value) for name, value in observation.outputs.items()}
        for _, observation in expected.values()
    )
    digest = hashlib.sha256(f"{VERSION} {exercise} {units}".encode())
    for packed in expected:
        digest.update(hashlib.sha256(packed).digest())
    with_outputs = tuple(action != "operations" for action, _ in expected.values())
    return VisibleCases(digest.hexdigest()[:16], tuple(expected), with_outputs, units)


def compute_unit(value: Any) -> float:
    """Return the median size of the reference's finite numbers, to two digits, at least 0.01; 1 for non-numeric values.

    Units of the student's own numbers would be useless where a mask has put −1e9 or most rows are zero.
    """
    tensor = _float_tensor(value)
    if tensor is None or tensor.device.type == "meta":
        return 1.0
    numbers = _real_components(tensor).reshape(-1)[:_TENSOR_ELEMENTS].double().cpu()
    numbers = numbers[numbers.isfinite()].abs()
    return max(_SMALLEST_UNIT, float(f"{numbers.median().item():.2g}")) if len(numbers) else 1.0


def describe_answers(questions: VisibleCases, observations: list[Observation]) -> dict[str, Any]:
    """Return the signature of answers as plain data, in the format of ``autograder.grading.record.signatures``."""
    description = _Description()
    ran = any(observation.outputs for observation in observations)
    for observation, compared, units in zip(observations, questions.with_outputs, questions.units, strict=True):
        error = observation.error or ""
        # Where nothing ran there are no numbers, and the texts of errors are all there is.
        description.add_exact("error", error.partition(":")[0] if ran else _remove_addresses(error))
        if compared:
            description.add_exact(
                "state", *sorted(observation.mutated), *sorted(observation.attached), *sorted(observation.containers)
            )
            description.outputs(observation.outputs, units)
    return {
        "sheet": questions.digest,
        "structure": description.digest.hexdigest()[:16],
        "kinds": "".join(description.kinds),
        "values": description.values,
    }


@dataclass
class _Description:
    """Accumulates the signature of an answer."""

    digest: Any = field(default_factory=hashlib.sha256)  # of all that is compared exactly
    kinds: list[str] = field(default_factory=list)  # the dtype of each value's tensor, one letter each
    values: list[float] = field(default_factory=list)
    _elements: int = _ELEMENTS
    _items: int = _ITEMS
    _plain_numbers: list[float] = field(default_factory=list)

    def outputs(self, outputs: Mapping[str, Any], units: Mapping[str, float]) -> None:
        """Add the outputs of one test case; all Python numbers among them together make one value."""
        self.add_exact("outputs", str(len(outputs)))
        for name in sorted(outputs)[: self._items]:
            self.add_exact(name)
            self.add(outputs[name], units.get(name, 1.0))
        if self._plain_numbers:
            self._add_value("f", torch.tensor(self._plain_numbers, dtype=torch.float64), 1.0)
            self._plain_numbers.clear()

    def add_exact(self, *parts: str | bytes) -> None:
        """Hash these parts for exact comparison, each with its length, so that different lists cannot collide."""
        for part in parts:
            data = part if isinstance(part, bytes) else part[:_LONGEST_TEXT].encode("utf-8", "backslashreplace")
            self.digest.update(b"%d:" % len(data))
            self.digest.update(data)
        self.digest.update(b";")

    def add(self, value: Any, unit: float, depth: int = 0) -> None:
        """Add an output value and everything that it contains."""
        self._items -= 1
        if self._items < 0 or depth > 20:
            self.add_exact("more")
        elif isinstance(value, Mapping):
            self.add_exact("mapping", str(len(value)))
            for name, item in value.items():
                self.add_exact(_shorten_plain_data(name))
                self.add(item, unit, depth + 1)
        elif isinstance(value, (list, tuple)):
            self.add_exact("sequence", str(len(value)))
            for item in value:
                self.add(item, unit, depth + 1)
        elif type(value) is float:
            finite = math.isfinite(value)
            self.add_exact("number" if finite else repr(value))
            # A Python number may be float32 that was taken out of its tensor: it has the tolerance of that.
            self._plain_numbers.append(value / unit if finite and abs(value) < _LARGEST_RATIO else 0.0)
        elif (tensor := _float_tensor(value)) is not None:
            self._add_numbers(tensor, unit)
        elif isinstance(value, (Tensor, numpy.ndarray)):
            self._add_content(value)
        else:
            self.add_exact(type(value).__name__, _shorten_plain_data(value))

    def _add_numbers(self, tensor: Tensor, unit: float) -> None:
        self.add_exact("numbers", str(tensor.dtype), str(tuple(tensor.shape)))
        if tensor.device.type == "meta":
            return
        components = _real_components(tensor)
        kind = _KINDS.get(components.dtype, "b")
        numbers = components.reshape(-1)[: self._reserve_elements(components.numel())].double().cpu()
        finite = numbers.isfinite()
        if not finite.all():
            pattern = torch.where(numbers.isnan(), 3, torch.where(finite, 0, 1 + (numbers > 0).long()))
            self.add_exact("not finite", pattern.to(torch.uint8).numpy().tobytes())
        self._add_value(kind, torch.where(finite, numbers, 0.0), unit)

    def _add_value(self, kind: str, numbers: Tensor, unit: float) -> None:
        if len(self.values) < MOST_VALUES:
            self.kinds.append(kind)
            self.values.append(round(summarise_numbers(numbers, unit), _DECIMALS[kind]))

    def _add_content(self, value: Tensor | numpy.ndarray[Any, Any]) -> None:
        self.add_exact("content", str(value.dtype), str(tuple(value.shape)))
        if isinstance(value, Tensor) and value.device.type == "meta":
            return
        flat = value.reshape(-1)
        flat = flat[: self._reserve_elements(len(flat))]
        self.add_exact((flat.cpu().numpy() if isinstance(flat, Tensor) else flat).tobytes())

    def _reserve_elements(self, elements: int) -> int:
        """Return the number of elements of a tensor that may still be processed, and subtract it from the limit."""
        allowed = min(elements, _TENSOR_ELEMENTS, self._elements)
        self._elements -= allowed
        return allowed


def summarise_numbers(numbers: Tensor, unit: float) -> float:
    """Summarise finite numbers in one: the sum of cos(1 + 0.7 i) · asinh(x_i / unit), divided by √n; 0 for n = 0.

    Rounding errors change it no more than the numbers, even if some numbers are large. Different values, orders and signs give different
    results.

    Args:
        numbers: a flat float64 tensor without NaN and infinities.
        unit: the scale of the reference's numbers.
    """
    count = len(numbers)
    if not count:
        return 0.0
    waves = torch.cos(1.0 + 0.7 * torch.arange(count, dtype=torch.float64))
    ratios = (numbers / unit).clamp(-_LARGEST_RATIO, _LARGEST_RATIO)
    return (waves @ ratios.asinh()).item() / math.sqrt(count)


def _float_tensor(value: Any) -> Tensor | None:
    """Return floating-point or complex numbers as a tensor; None for any other value."""
    if isinstance(value, (float, complex)):
        return torch.tensor([value.real, value.imag])
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "fc" and value.dtype.itemsize in (2, 4, 8, 16):
        return torch.from_numpy(numpy.array(value))
    if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach()
    return None


def _real_components(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _shorten_plain_data(value: Any) -> str:
    """Return a text for plain data, whose length is limited before it is built."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        # The digits of a very long number would take the square of their count in time.
        return str(value) if value.bit_length() < 256 else f"{value.bit_length()} bits, {hash(value)}"
    if isinstance(value, str):
        return _remove_addresses(value)
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, Opaque):
        return _remove_addresses(value.description)
    if isinstance(value, (set, frozenset)):
        return f"{len(value)} items"
    return _remove_addresses(str(value)) if isinstance(value, (torch.dtype, torch.device)) else ""


def _remove_addresses(text: str) -> str:
    """Remove memory addresses from a text, because they differ from run to run."""
    return _ADDRESS.sub("0x…", text[:_LONGEST_TEXT])
