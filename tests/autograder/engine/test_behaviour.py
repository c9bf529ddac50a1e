"""A signature moves less than its tolerance with rounding errors, tells other answers apart, and survives any answer."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from autograder.checking.decision import decide
from autograder.checking.request import Observation
from autograder.checking.verdict import VERDICT_MIME
from autograder.checks import exercise
from autograder.engine.checker import behaviour
from autograder.engine.checker.behaviour import (
    MOST_VALUES,
    VisibleCases,
    collect_visible_cases,
    compute_signature,
    compute_unit,
    describe_answers,
)
from autograder.engine.transport.serialization import Opaque
from autograder.grading.record.signatures import Signature
from autograder.marking.behaviour_groups import TOLERANCES

from .student import Student

ONE = VisibleCases("digest", (b"q",), (True,), ({"output": 1.0},))
MOST_BYTES = 3_300
DTYPES = {"d": torch.float64, "f": torch.float32, "h": torch.float16, "b": torch.bfloat16}
NUMBERS = st.lists(
    st.one_of(st.floats(-10, 10), st.floats(-1e4, 1e4), st.sampled_from([0.0, 1e-8])), min_size=1, max_size=40
)


def of(value: Any, **more: Any) -> Signature:
    """Return the signature of one answer to one question."""
    return Signature.from_dict(describe_answers(ONE, [Observation(outputs={"output": value}, **more)]))


def differ(one: Signature, other: Signature) -> bool:
    """Whether two signatures are told apart."""
    exact = one.structure != other.structure or one.kinds != other.kinds
    return exact or any(
        abs(a - b) > TOLERANCES[kind] for kind, a, b in zip(one.kinds, one.values, other.values, strict=True)
    )


def with_noise(numbers: Tensor, seed: int) -> Tensor:
    """Return numbers that are off by about a unit in the last place."""
    generator = torch.Generator().manual_seed(seed)
    errors = torch.randn(numbers.shape, generator=generator, dtype=torch.float64).clamp(-2, 2)
    return (numbers.double() * (1 + errors * torch.finfo(numbers.dtype).eps / 2)).to(numbers.dtype)


@pytest.mark.parametrize("kind", DTYPES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(numbers=NUMBERS, seed=st.integers(0, 2**20))
def test_rounding_errors_stay_within_the_tolerance(kind: str, numbers: list[float], seed: int) -> None:
    exact = torch.tensor(numbers, dtype=DTYPES[kind])
    assert not differ(of(exact), of(with_noise(exact, seed)))


@pytest.mark.parametrize("fill", [-1e9, torch.finfo(torch.float32).min, 3e38])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(numbers=NUMBERS, seed=st.integers(0, 2**20))
def test_masked_scores_do_not_drown_the_others(fill: float, numbers: list[float], seed: int) -> None:
    masked = torch.tensor([fill, *numbers, fill])
    noisy = torch.cat([masked[:1], with_noise(masked[1:-1], seed), masked[-1:]])
    assert not differ(of(masked), of(noisy))
    changed = masked.clone()
    changed[1] += 0.5 + changed[1].abs()
    assert differ(of(masked), of(changed))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**20))
def test_other_numbers_are_told_apart(seed: int) -> None:
    # Three tensors, as even a small exercise returns: the value of a single one is the same by accident once in some thousand times.
    numbers = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(seed))
    others = (numbers * 1.1, -numbers, numbers.flip(1), numbers.roll(1, 2), numbers + 0.1, numbers.mT.reshape(3, 4, 5))
    for other in others:
        assert differ(of(list(numbers)), of(list(other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.ones(3), torch.ones(3, 1)),
        (torch.ones(3), torch.ones(3).double()),
        (torch.ones(3), torch.tensor([1.0, 1.0, float("nan")])),
        (torch.tensor([float("inf"), 0.0]), torch.tensor([float("-inf"), 0.0])),
        (torch.tensor([float("nan"), 0.0]), torch.tensor([0.0, float("nan")])),
        (torch.tensor([1, 2]), torch.tensor([2, 1])),
        (torch.tensor([True]), torch.tensor([False])),
        (["ab", "c"], ["a", "bc"]),
        (torch.empty(0), torch.empty(0, 2)),
        (torch.empty(2, device="meta"), torch.empty(3, device="meta")),
        (1, 1.0),
        (1, True),
        (10**100, 10**100 + 1),
        (10**2000, 10**2000 + 1),
        (None, 0),
        (torch.tensor([1 + 2j]), torch.tensor([2 + 1j])),
        (numpy.array([1.0]), numpy.array([2.0])),
        (numpy.array(["a"]), numpy.array(["b"])),
        ({"a": 1}, {"b": 1}),
        ((1, 2), ((1,), 2)),
        (b"a", b"b"),
    ],
)
def test_what_is_compared_exactly_tells_apart(one: Any, other: Any) -> None:
    assert differ(of(one), of(other))
    assert not differ(of(one), of(one))


def test_an_error_counts_by_kind_where_anything_ran() -> None:
    two = VisibleCases("digest", (b"p", b"q"), (True, True), ({}, {}))
    ran = Observation(outputs={"output": 1})
    texts = [
        describe_answers(two, [first, Observation(error=error)])["structure"]
        for first in (ran, Observation(error="ValueError: a"))
        for error in ("ValueError: 3 rows", "ValueError: 4 rows", "TypeError: 3 rows")
    ]
    assert texts[0] == texts[1] != texts[2]
    errors = [Observation(error=f"TypeError: <f at {address}> is none") for address in ("0x7f01ab", "0x7f99cd")]
    assert describe_answers(ONE, errors[:1]) == describe_answers(ONE, errors[1:]), "addresses in memory do not count"
    assert len(set(texts[3:])) == 3


def test_the_unit_is_the_references_median() -> None:
    assert compute_unit(torch.tensor([0.0, -2.04, 8.0])) == 2.0
    assert compute_unit(torch.tensor([0.0, 0.0, 1.0])) == compute_unit(torch.zeros(3)) == 0.01
    assert compute_unit(torch.tensor([float("nan"), float("-inf"), 3.0])) == 3.0
    assert compute_unit(torch.empty(0)) == compute_unit("text") == compute_unit(torch.tensor([float("nan")])) == 1.0


HOSTILE: list[Any] = [
    [float(number) for number in range(15_000)],
    torch.zeros(2**22),
    torch.full((2**16,), float("nan")),
    torch.zeros(3, 0, 5),
    torch.tensor(torch.finfo(torch.float64).max, dtype=torch.float64),
    torch.tensor(5e-324, dtype=torch.float64),
    -(10**3000),
    "é\ud800" * 10_000,
    {f"key {number}": [number] for number in range(15_000)},
    [[[[[[[[[[[[[[[[[[[[[[[[[0.0]]]]]]]]]]]]]]]]]]]]]]]]],
    {frozenset({(1, "a")}): {1, 2}},
    numpy.zeros(10, dtype="U9"),
    numpy.zeros((3, 3), dtype=">f8"),
    numpy.zeros(3, dtype=">f2")[::-1],
    numpy.longdouble(1) * numpy.ones(3),
    torch.ones(2, 3).mT.conj(),
    torch.ones(2, dtype=torch.complex64).conj(),
    torch.eye(3).to_sparse(),
    Opaque("anything at 0x7fffffff"),
    slice(1, None),
    [torch.zeros(2**14)] * 400,
    object(),
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_any_answer_has_a_short_finite_signature(value: Any) -> None:
    described = signature_of_one(value)
    assert described is None or len(json.dumps(described, separators=(",", ":"), allow_nan=False)) <= MOST_BYTES
    if described is not None:
        assert Signature.from_dict(json.loads(json.dumps(described))).to_dict() == described


def signature_of_one(value: Any) -> dict[str, Any] | None:
    """Return the signature of an answer that may make it fail, by the way that never raises."""
    questions = collect_visible_cases("soft_lookup", "cpu")
    answers = {packed: Observation(outputs={"output": value}) for packed in questions.packed}
    result = compute_signature(outputs("soft_lookup", 0.0), answers, "cpu")
    return None if result is None else result[1]


def outputs(name: str, score: float) -> list[Any]:
    """Return the outputs of a test cell."""
    return [{"data": {VERDICT_MIME: {"exercise": name, "score": score, "max_score": 4.0}}}]


def test_the_work_is_bounded_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    monkeypatch.setattr(behaviour, "summarise_numbers", lambda numbers, unit: looked_at.append(len(numbers)) or 0.0)
    many = VisibleCases("digest", (b"q",) * 50, (True,) * 50, ({},) * 50)
    describe_answers(many, [Observation(outputs={"output": [torch.zeros(2**17)] * 50})] * 50)
    assert len(looked_at) == MOST_VALUES
    assert sum(looked_at) <= 2**22
    assert max(looked_at) <= 2**15


@pytest.mark.parametrize(
    "shown",
    [
        [],
        [{}],
        [{"data": None}],
        [{"data": {VERDICT_MIME: None}}],
        [{"data": {VERDICT_MIME: {"score": "?"}}}],
        outputs("no_such_exercise", 0.0),
        outputs("soft_lookup", 4.0),
        outputs("soft_lookup", float("nan")),
    ],
)
def test_only_lost_points_make_a_signature(shown: list[Any]) -> None:
    assert compute_signature(shown, {}, "cpu") is None


def test_neither_a_failure_of_its_own_nor_a_refused_answer_is_a_signature(
    student: Student, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def soft_lookup(query, keys, values):\n    raise NotImplementedError"
    assert graded(student, source) == (0, None)

    def fail(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(behaviour, "describe_answers", fail)
    assert signature_of_one(1.0) is None


def graded(student: Student, source: str) -> tuple[float, tuple[str, dict[str, Any]] | None]:
    """Check a student's soft_lookup as a test cell does; return the score and the signature."""
    student.begin()
    student.pretend_to_refuse()
    verdict = decide(exercise("soft_lookup").sheet(hidden=True, seed=3), student.define(source, "soft_lookup"))
    shown = [{"data": {"text/plain": str(verdict), VERDICT_MIME: verdict.to_dict()}}]
    return verdict.score, compute_signature(shown, student.conversation.known, "cpu")


def test_the_same_mistake_in_other_words_is_alike(student: Student) -> None:
    sources = (
        "def soft_lookup(query, keys, values):\n    return torch.softmax(keys @ query / 2, 0) @ values",
        "def soft_lookup(query, keys, values):\n    w = torch.softmax(0.5 * query @ keys.mT, -1)\n    return (w[:, None] * values).sum(0)",
        "def soft_lookup(query, keys, values):\n    return torch.softmax(query @ keys.T, -1) @ values * 2",
    )
    results = [graded(student, source)[1] for source in sources]
    one, same, other = (Signature.from_dict(item[1]) for item in results if item is not None)
    assert one.values
    assert not differ(one, same)
    assert differ(one, other)


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('x' * 10**6)",
        "return [0.0] * 4_000",
        "import os; os._exit(3)",
        "return type('Loud', (), {'__repr__': lambda self: 1 / 0, '__eq__': lambda self, other: 1 / 0})()",
        "return torch.full((2**16,), float('nan'))",
        "class Lie(torch.Tensor):\n        def __len__(self): raise SystemExit\n    return torch.ones(3).as_subclass(Lie)",
    ],
)
def test_hostile_code_cannot_make_it_fail(student: Student, body: str) -> None:
    score, result = graded(student, f"def soft_lookup(query, keys, values):\n    {body}")
    assert score == 0
    assert result is not None
    assert len(json.dumps(result[1])) <= MOST_BYTES
