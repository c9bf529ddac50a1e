"""The judges, and the order in which errors, shapes and numbers are looked at."""

import itertools
import math

import pytest
import torch
from torch import nn

from autograder.checking.executed_lines import HIDDEN
from autograder.checking.judges import (
    JUDGES,
    fingerprint_answer,
    is_same_answer,
    judge,
    match_fingerprints,
    select_view,
)
from autograder.checking.request import Observation, flatten_outputs, list_container_kinds
from autograder.checking.tolerance import choose_tolerance

X = torch.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 1.5]])
INF, NAN = math.inf, math.nan


def seen(value, **fields):
    """An observation of a result, as it is returned."""
    return Observation(outputs=flatten_outputs(value), containers=list_container_kinds(value), **fields)


def verdict(name, mine, theirs, **options):
    """Put one pair of results to a judge."""
    return judge(name, [seen(mine)], [seen(theirs)], options)


# ------------------------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_numbers_may_differ_by_the_tolerance_of_their_dtype_and_by_no_more(dtype):
    allowed = choose_tolerance(dtype)
    expected = X.to(dtype)
    edge = allowed.absolute + allowed.relative * expected.double().abs()
    assert verdict("matches", expected.double() + 0.5 * edge, expected) is None
    assert "6 numbers in the result are" in verdict("matches", expected.double() + 3 * edge, expected)


EXACT = 0.1 + 0.2
SINGLE = (torch.tensor(0.1) + torch.tensor(0.2)).item()
ONE_WRONG = X + torch.tensor([[0, 0, 0], [0.25, 0, 0]])
TWO_WRONG = ONE_WRONG + torch.tensor([[0, 0, 2.0], [0, 0, 0]])
NEAR = X.double()[:, :1]
CACHE = (X, X)
FIELDS = {"fields": {"output[0]": "flops", "output[1]": "bytes"}}


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        # Whole numbers, truth values and text are compared exactly.
        (torch.tensor([3, 5]), torch.tensor([3, 5]), None),
        (torch.tensor([3, 6]), torch.tensor([3, 5]), "1 of 2 numbers"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "1 of 2 truth values"),
        (torch.tensor([1, 1]), torch.tensor([True, True]), "dtype"),
        ("left", "left", None),
        (4.0, 4, "4 (a float), expected 4 (an int)"),
        (True, 1, "True (a bool), expected 1 (an int)"),
        (5, 6, "5, expected 6"),
        # Numbers of Python may differ by the rounding of single precision. NaN is a right answer to no question.
        (0.3, EXACT, None),
        (SINGLE, EXACT, None),
        (EXACT * (1 + 1e-4), EXACT, "expected"),
        (EXACT + 1e-4, EXACT, "expected"),
        (NAN, EXACT, "nan"),
        (1, EXACT, "int"),
        (True, EXACT, "bool"),
        (NAN, NAN, "nan"),
        # A wrong number is named with its place and how many are wrong; an infinity where it is.
        (ONE_WRONG, X, "1 of 6 numbers in the result is wrong; at [1, 0]: 3.75, expected 3.5"),
        (TWO_WRONG, X, "2 of 6 numbers in the result are wrong; the worst is at [0, 2]: 4, expected 2"),
        (X[0, 0], X[0, 1], "the result is 0.5, expected -1.25"),
        (X.masked_fill(X > 1, INF), X, "3 of 6 numbers in the result are wrong; at [0, 2]: inf, expected 2"),
        (X.masked_fill(X > 1, -INF), X, "at [0, 2]: -inf, expected 2"),
        (X, X.masked_fill(X > 1, -INF), "at [0, 2]: 2, expected -inf"),
        # Numbers that look alike get more digits, long texts are shown around their difference.
        (NEAR + torch.tensor([[1e-6], [1e-7]]), NEAR, "off by up to 3e-07"),
        (NEAR + torch.tensor([[1e-6], [1e-7]]), NEAR, "at [0, 0]: 0.500001, expected 0.5"),
        (1.00004, 1.0, "1.00004, expected 1"),
        ("a" * 50 + "x" + "b" * 50, "a" * 50 + "y" + "b" * 50, f"…'{'a' * 14}x{'b' * 13}'…"),
        # Shapes, kinds and names come before numbers.
        (X.tolist(), X, "a tensor"),
        (torch.zeros(1).expand(10**12), torch.zeros(1).expand(10**12), "more than"),
        (nn.Parameter(X), X, None),
        # Results are counted as they are returned.
        ((X, CACHE, X), (X, CACHE), "the result has 3 items, expected 2"),
        (CACHE, (X, CACHE), "result[1] is a tensor of shape (2, 3), expected a list or tuple of 2 items"),
        ((X, (X, X, X)), (X, CACHE), "result[1] has 3 items, expected 2"),
        ((X, X, X), (X, CACHE), "the result has 3 items, expected 2"),
        ((X, CACHE), (X, X, X), "the result has 2 items, expected 3"),
        ([1, 2], [1, 2, 3, 4, 5], "2 items, expected 5"),
        (([], 0.5), (["a"], 0.5), "result[0] is an empty list or tuple, expected 1 item"),
        ((["a"], 0.5), ([], 0.5), "result[0] has 1 item, expected an empty list or tuple"),
        ([], [1], "empty list or tuple, expected 1 item"),
        (X, (X, X), "a tensor of shape (2, 3), expected a list or tuple of 2 items"),
        ({"a": X}, {"a": X, "b": X}, "result['b'] is missing"),
        (X, {"a": X}, "expected a dictionary of 1 item"),
        ({"a": X}, X, "has 1 item, expected a tensor of shape (2, 3)"),
        (None, (5, 6), "it returns None, expected 2 items"),
        ((X, X), X, "2 items, expected a tensor of shape (2, 3)"),
        (((X, 1), (2, (X, X, X))), ((X, 1), (2, (X, X, X, X))), "result[1][1] has 3 items, expected 4"),
        ((X, CACHE), (X, None), "result[1] has 2 items, expected None"),
        ((X, []), (X, 0.5), "result[1] is an empty list or tuple, expected a float"),
        (None, X, "the result is None, expected a tensor of shape (2, 3)"),
        (None, [], "it returns None, expected an empty list or tuple"),
        ((X, X + 1), (X, X), "result[1]"),
    ],
)
def test_a_result_is_compared_by_kind_shape_and_number_and_the_first_difference_is_told(mine, theirs, words):
    message = verdict("matches", mine, theirs)
    assert message is None if words is None else words in message, message


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (5, (5, 6), "expected a list or tuple of 2 items (flops, bytes)"),
        ((5, 7), (5, 6), "result.bytes is 7, expected 6"),
    ],
)
def test_a_named_tuple_is_told_by_its_fields(mine, theirs, words):
    assert words in verdict("matches", mine, theirs, **FIELDS)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: x.masked_fill(x > 3, math.nan), "1 NaN among its 6 numbers"),
        (lambda x: x * 0 + math.nan, "6 NaN"),
        (lambda x: x.to(torch.complex64), "complex"),
        (lambda x: x[:, :2], r"shape (2, 2), expected (2, 3)"),
        (lambda x: x.T, r"shape (3, 2), expected (2, 3)"),
        (lambda x: x.numpy(), "a ndarray, expected a tensor"),
        (lambda x: x.to("meta"), "meta device"),
        (lambda x: x.to_sparse(), "sparse"),
        (lambda x: torch.quantize_per_tensor(x, 0.25, 0, torch.qint8), "quantised"),
        (lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]), "nested"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_right_answer_is_refused_with_its_reason(spoil, message):
    assert message in verdict("matches", spoil(X), X)


def test_where_no_containers_are_told_a_gap_tells_an_empty_list():
    lists = Observation(outputs={"output[1]": 0.5}), Observation(outputs={"output[0][0]": "a", "output[1]": 0.5})
    assert "result[0] is empty" in judge("matches", [lists[0]], [lists[1]], {})
    assert "result[0] should be empty" in judge("matches", [lists[1]], [lists[0]], {})


def test_comparing_decides_as_isclose_does_whatever_the_numbers_are_and_no_message_shows_the_largest_float():
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64):
        allowed = choose_tolerance(dtype)
        tolerances = {"rtol": allowed.relative, "atol": allowed.absolute}
        near = 1 + 0.5 * allowed.relative
        floats = [0.0, 1.0, near, -1.0, 300.0, 300 * near, INF, -INF, NAN]
        numbers = [0, 1, -1, 3] if dtype is torch.int64 else floats
        for a, b in itertools.product(numbers, numbers):
            # The pair stands at the end, at the beginning, or alone: what is looked at first must not matter.
            for mine, theirs in (([1, a], [1, b]), ([a, 1], [b, 1]), ([a], [b])):
                x, y = torch.tensor(mine, dtype=dtype), torch.tensor(theirs, dtype=dtype)
                right = bool(torch.isclose(x.double(), y.double(), **tolerances).all())
                alike = bool(torch.isclose(x.double(), y.double(), **tolerances, equal_nan=True).all())
                said = verdict("matches", x, y)
                assert (said is None) == right, (a, b)
                assert "e+308" not in (said or "")
                assert "e+38" not in (said or "")
                assert is_same_answer(seen(x), seen(y)) == alike, (a, b)


# ---------------------------------------------------------------------------------------------------------- behaviour

PLAIN = Observation(outputs={"output": X})
PART, OTHER_PART = {"outputs": ["output[0]"]}, {"outputs": ["output[1]"]}
WIDE = torch.linspace(-1, 1, 20)[:, None] + torch.arange(3)
FIRST, LAST, CLAIM = seen(X[:1]), seen(X[1:]), {"views": [[("narrow", 0, 0, 1)], []], "claim": "alone it is another"}
FLAT, EMPTY = seen(X[0]), Observation()
AXES = {"views": [[("narrow", -2, 0, 1)]] * 2, "claim": "the past moves"}
WHOLE = {"views": [[], []], "claim": "the past moves"}
SPREAD, NARROW, BOUND = {"dim": 0}, {"dim": 0, "within": 1.1}, {"dim": 0, "within": 1.2}
LOOP = {"axis": "keys", "lines": 2}


def counted(*operations):
    return [Observation(operations=number) for number in operations]


def lined(*lines):
    return [Observation(operations=7, lines=number) for number in lines]


@pytest.mark.parametrize(
    ("name", "mine", "theirs", "options", "words"),
    [
        ("matches", [seen((X, X + 1))], [seen((X, X + 1))], {}, None),
        ("matches_part", [seen((X, X))], [seen((X, X + 1))], PART, None),
        ("matches_part", [seen((X, X))], [seen((X, X + 1))], OTHER_PART, "result[1]"),
        ("matches_part", [seen((X,))], [seen((X, X + 1))], PART, "1 item"),
        ("shapes", [seen(X + 5)], [PLAIN], {}, None),
        ("shapes", [seen(5)], [seen(4)], {}, None),
        ("shapes", [seen(X.double())], [PLAIN], {}, "dtype float64, expected float32"),
        ("shapes", [seen(X[0])], [PLAIN], {}, "shape"),
        ("finite", [seen(X + 5)], [PLAIN], {}, None),
        ("finite", [seen(X.masked_fill(X > 3, NAN))], [PLAIN], {}, "1 of 6"),
        ("finite", [seen(X.masked_fill(X > 3, INF))], [PLAIN], {}, "1 of 6"),
        ("finite", [seen(X[0])], [PLAIN], {}, "shape"),
        ("unmutated", [Observation(mutated=("q", "k")), Observation(mutated=("q",))], [EMPTY] * 2, {}, "s q, k in"),
        ("unmutated", [EMPTY], [Observation(mutated=("q",))], {}, None),
        ("unmutated", [Observation(outputs={"output[0]": 1, "output[1]": 2})], [PLAIN], {}, "2 items"),
        ("detached", [seen(X, attached=("output",))], [PLAIN], {}, "attached"),
        ("detached", [PLAIN], [seen(X, attached=("output",))], {}, None),
        ("detached", [seen(3)], [PLAIN], {}, "a tensor"),
        # A subject is compared with itself where the views look: the reference's answers play no part.
        ("related", [PLAIN, FIRST], [PLAIN, LAST], CLAIM, None),
        ("related", [PLAIN, LAST], [PLAIN, FIRST], CLAIM, "alone it is another (at [0, "),
        ("related", [PLAIN, seen(X.masked_fill(X > 3, INF))], [PLAIN] * 2, WHOLE, "(at [1, 0]: 3.5 and inf)"),
        ("related", [FLAT, FLAT], [FLAT, FLAT], AXES, "axes"),
        ("related", [FLAT, EMPTY], [FLAT, FLAT], AXES, "the result"),
        # A loop is told by operations, or by lines, that grow with the input.
        ("same_operations", counted(7, 7), counted(1, 1), LOOP, None),
        ("same_operations", counted(7, 10), counted(1, 1), LOOP, None),
        ("same_operations", counted(7, 21), counted(1, 1), LOOP, "21"),
        ("same_operations", counted(3, 9), counted(1, 1), LOOP, "keys"),
        *[("same_operations", lined(90, many), counted(1, 1), LOOP, None) for many in (90, 88, 91)],
        *[("same_operations", lined(90, many), counted(1, 1), LOOP, str(many)) for many in (92, 94)],
        ("same_operations", lined(HIDDEN, HIDDEN), counted(1, 1), LOOP, "settrace"),
        ("small_tensors", [Observation(largest=n) for n in (90, 120)], [EMPTY] * 2, {"limit": 120}, None),
        ("small_tensors", [Observation(largest=n) for n in (90, 120)], [EMPTY] * 2, {"limit": 119}, "120 elements"),
        # Weights drawn at random are judged by how widely they vary.
        *[("spread", [seen(scale * WIDE.flip(0))], [seen(WIDE)], SPREAD, None) for scale in (1.0, 1.2)],
        *[("spread", [seen(scale * WIDE)], [seen(WIDE)], SPREAD, "deviation") for scale in (1.3, 0.7, NAN)],
        ("spread", [seen(1.15 * WIDE)], [seen(WIDE)], BOUND, None),
        ("spread", [seen(1.15 * WIDE)], [seen(WIDE)], NARROW, "deviation"),
        ("free_of", [Observation(functions=("softmax", "lerp"))], [EMPTY], {"names": ["dot"]}, None),
        ("free_of", [Observation(functions=("softmax", "lerp"))], [EMPTY], {"names": ["lerp"]}, "calls lerp,"),
        # An error that is asked for must be of its kind; what is answered otherwise is not asked.
        ("answers", [Observation(error="ValueError: other")], [Observation(error="ValueError: no")], {}, None),
        ("answers", [PLAIN], [Observation(error="ValueError: no")], {}, "expected a ValueError"),
        ("answers", [Observation(error="KeyError: 3")], [Observation(error="ValueError: n")], {}, "KeyError: 3; expected"),
        ("answers", [seen(X + 1)], [PLAIN], {}, None),
    ],
)  # fmt: skip
def test_each_judge_passes_what_is_right_and_tells_what_is_not(name, mine, theirs, options, words):
    message = judge(name, mine, theirs, options)
    assert message is None if words is None else words in message, message


def test_a_model_that_was_trained_is_examined_by_the_weights_that_are_left_of_it():
    right = {"output": X, "model.logits": 20 * torch.eye(3)[None]}  # says the token that it is shown
    tokens = torch.tensor([[0, 1, 2, 1]])
    options = {
        **{"kind": "TokenTable", "init": {"vocab_size": 3}, "inputs": (tokens,), "targets": tokens},
        **{"loss": 0.1, "right": 0.9},
    }
    expected = [Observation(outputs=right)]
    assert judge("reaches", expected, expected, options) is None
    for wrong, message in (
        (torch.zeros(1, 3, 3), "loss of 1.1"),
        (20 * torch.eye(3).roll(1, 0)[None], "gets 0% right"),
        (20 * torch.tensor([[[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]]]), "gets 50% right"),
        (torch.full((1, 3, 3), NAN), "loss of nan"),
        (torch.zeros(1, 3, 2), "shape"),
    ):
        assert message in judge("reaches", [Observation(outputs={**right, "model.logits": wrong})], expected, options)
    assert judge("reaches", [PLAIN], expected, options)
    # What is told of the training is looked at elsewhere.
    assert judge("reaches", [Observation(outputs={**right, "output": None})], expected, options) is None


def test_a_view_narrows_step_by_step_and_knows_nothing_else():
    torch.testing.assert_close(select_view(X, [("narrow", 0, 1, 1), ("narrow", -1, 0, 2)]), X[1:, :2])
    assert select_view("text", [("narrow", 0, 0, 1)]) == "text"
    with pytest.raises(ValueError, match="flip"):
        select_view(X, [("flip", 0)])


# ------------------------------------------------------------------------------------------------------------- errors

BAD = Observation(error="ValueError: no")


@pytest.mark.parametrize("name", sorted(set(JUDGES) - {"related", "matches_part"}))
def test_an_error_where_an_answer_is_asked_for_fails_whatever_the_judge(name):
    options = {"limit": 5, "names": [], "axis": "keys", "dim": 0}
    failed = [Observation(error="TypeError: oh"), PLAIN]
    assert "TypeError: oh" in judge(name, failed, [PLAIN, PLAIN], options)
    unwritten = [Observation(error="NotImplementedError", unfinished=True), PLAIN]
    assert "not written" in judge(name, unwritten, [PLAIN, PLAIN], options)


BIAS = Observation(error="WeightsError: its weights are named otherwise: missing none, unexpected ['bias']")
MISFIT = Observation(error="WeightsError: its weights are named otherwise: missing ['row'], unexpected ['line']")
DAMAGING, HELD = seen(X, mutated=("q",)), seen(X, attached=("output",))


@pytest.mark.parametrize(
    ("one", "other", "options", "same"),
    [
        (seen(X * NAN), seen(X * NAN), {}, True),  # a mistake can be known by its NaN
        (seen(X * NAN), PLAIN, {}, False),
        (PLAIN, seen(X + 1), {}, False),
        (PLAIN, DAMAGING, {}, True),  # what was damaged is compared where it is judged
        (PLAIN, DAMAGING, {"damage": True}, False),
        (seen(X + 1, mutated=("q",)), DAMAGING, {"damage": True}, True),
        (PLAIN, HELD, {}, True),
        (PLAIN, HELD, {"hold": True}, False),
        (PLAIN, seen([X]), {}, False),
        (BAD, Observation(error="ValueError: other words"), {}, True),
        (BAD, Observation(error="TypeError: no"), {}, False),
        (BAD, PLAIN, {}, False),
        # A small slip in double precision is not single precision.
        (seen(X.double() + 1e-7), PLAIN, {}, False),
        (seen(X + 1e-7), PLAIN, {}, True),
        (BIAS, Observation(error=BIAS.error), {}, True),
        (BIAS, MISFIT, {}, False),
    ],
)
def test_two_answers_are_the_same_if_numbers_errors_and_damage_are(one, other, options, same):
    assert is_same_answer(one, other, **options) is same
    assert is_same_answer(other, one, **options) is same


def test_weights_that_do_not_fit_are_told_without_the_kind_of_error():
    assert judge("matches", [BIAS], [PLAIN], {}) == (BIAS.error or "").partition(": ")[2]


class Unreadable(torch.Tensor):
    """A tensor that cannot be looked at."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("look away")


ANSWERS = [
    PLAIN, BAD, BIAS, MISFIT, DAMAGING, HELD,
    *(Observation(outputs={"output": value}) for value in (
        X + 1, X + 1e-7, X.double(), X.T, X.tolist(), X.numpy(), X.to_sparse(), X.to("meta"), X[:0], X > 0, X.int(),
        X.as_subclass(Unreadable), torch.tensor(1.5), 1.5, 1, "text", None, (2, 3), math.nan,
        *(torch.tensor([1, end]) for end in (math.nan, math.inf, -math.inf, 300.0)),
    )),
    Observation(outputs={"output": X, "state": X + 1}),
    Observation(outputs={"output": X, "state": X + 2}),
    Observation(outputs={"output[0]": X}),
    Observation(error="ValueError: other words"),
]  # fmt: skip


@pytest.mark.parametrize("what", [{}, {"damage": True}, {"hold": True}], ids=["results", "damage", "hold"])
def test_a_glance_never_parts_answers_that_are_the_same(what):
    glances = [fingerprint_answer(answer, **what) for answer in ANSWERS]
    kinds = torch.tensor([kind for kind, _ in glances])
    lasts = torch.tensor([last for _, last in glances], dtype=torch.float64)
    for mine in ANSWERS:
        near = match_fingerprints(mine, kinds, lasts, **what).tolist()
        for theirs, maybe in zip(ANSWERS, near, strict=True):
            assert maybe or not is_same_answer(mine, theirs, **what), (mine, theirs)


def test_a_strange_object_does_not_stop_a_judge():
    class Strange:
        def __repr__(self):
            raise RuntimeError("no words")

    assert verdict("matches", Strange(), 5)
    assert len(verdict("matches", "x" * 10**6, "y")) < 200, "a message is read by people"
