"""The judges, and the order in which errors, shapes and numbers are looked at."""

import math

import pytest
import torch
from torch import nn

from autograder.checking.executed_lines import HIDDEN
from autograder.checking.judges import JUDGES, alike_at_a_glance, glance, judge, look, same_answer
from autograder.checking.request import Observation, containers_in, flatten_outputs
from autograder.checking.tolerance import tolerance_for

X = torch.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 1.5]])


def verdict(name, mine, theirs, **options):
    """Put one pair of outputs to a judge."""
    return judge(name, [Observation(outputs={"output": mine})], [Observation(outputs={"output": theirs})], options)


# ------------------------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_numbers_may_differ_by_the_tolerance_of_their_dtype_and_by_no_more(dtype):
    allowed = tolerance_for(dtype)
    expected = X.to(dtype)
    edge = allowed.absolute + allowed.relative * expected.double().abs()
    assert verdict("matches", expected.double() + 0.5 * edge, expected) is None
    assert "6 numbers in the result are" in verdict("matches", expected.double() + 3 * edge, expected)
    assert allowed.reason


def test_whole_numbers_truth_values_and_text_are_compared_exactly():
    assert verdict("matches", torch.tensor([3, 5]), torch.tensor([3, 5])) is None
    assert verdict("matches", torch.tensor([3, 6]), torch.tensor([3, 5]))
    assert "1 of 2" in verdict("matches", torch.tensor([True, False]), torch.tensor([True, True]))
    assert "dtype" in verdict("matches", torch.tensor([1, 1]), torch.tensor([True, True]))
    assert verdict("matches", "left", "left") is None
    assert verdict("matches", 4.0, 4) == "the result is 4 (a float), expected 4 (an int)"


def test_python_numbers_with_a_fraction_may_differ_by_the_rounding_of_single_precision():
    exact = 0.1 + 0.2
    right = [Observation(outputs={"output": exact})]
    single = (torch.tensor(0.1) + torch.tensor(0.2)).item()
    assert single != 0.3
    refused = (exact * (1 + 1e-4), exact + 1e-4, math.nan, 1, True)
    for value, problem in ((0.3, False), (single, False), *((value, True) for value in refused)):
        said = judge("matches", [Observation(outputs={"output": value})], right, {})
        assert (said is not None) == problem, (value, said)
    nothing = [Observation(outputs={"output": math.nan})]
    assert judge("matches", nothing, nothing, {}) is not None, "NaN is a right answer to no question"


def test_a_wrong_number_is_named_with_its_place_and_how_many_are_wrong():
    wrong = X.clone()
    wrong[1, 0] += 0.25
    assert verdict("matches", wrong, X) == ("1 of 6 numbers in the result is wrong; at [1, 0]: 3.75, expected 3.5")
    wrong[0, 2] = 4.0
    assert verdict("matches", wrong, X) == (
        "2 of 6 numbers in the result are wrong; the worst is at [0, 2]: 4, expected 2"
    )
    assert verdict("matches", X[0, 0], X[0, 1]) == "the result is 0.5, expected -1.25"


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_an_infinity_is_shown_where_it_is(infinite):
    said = verdict("matches", X.masked_fill(X > 1, infinite), X)
    assert said == f"3 of 6 numbers in the result are wrong; at [0, 2]: {infinite}, expected 2"
    said = verdict("matches", X, X.masked_fill(X > 1, infinite))
    assert said == f"3 of 6 numbers in the result are wrong; at [0, 2]: 2, expected {infinite}"
    related = {"views": [[], []], "claim": "the past moves"}
    both = [Observation(outputs={"output": X}), Observation(outputs={"output": X.masked_fill(X > 3, infinite)})]
    assert judge("related", both, both, related) == f"the past moves (at [1, 0]: 3.5 and {infinite})"


def test_numbers_that_look_alike_get_more_digits():
    near = X.double()[:, :1]
    said = verdict("matches", near + torch.tensor([[1e-6], [1e-7]]), near)
    assert said.startswith("all 2 numbers in the result are nearly right, off by up to 3e-07 of the largest")
    assert said.endswith("at [0, 0]: 0.500001, expected 0.5")
    assert verdict("matches", 1.00004, 1.0) == "the result is 1.00004, expected 1"
    assert verdict("matches", True, 1) == "the result is True (a bool), expected 1 (an int)"


def test_long_texts_are_shown_around_their_difference():
    said = verdict("matches", "a" * 50 + "x" + "b" * 50, "a" * 50 + "y" + "b" * 50)
    assert said == f"the result is …'{'a' * 14}x{'b' * 13}'…, expected …'{'a' * 14}y{'b' * 13}'…"


def test_results_are_counted_as_they_are_returned():
    def said(mine, theirs, **options):
        observed = [
            [Observation(outputs=flatten_outputs(value), containers=containers_in(value))] for value in (mine, theirs)
        ]
        return judge("matches", *observed, options)

    cache = (X, X)
    assert said((X, cache, X), (X, cache)) == "the result has 3 items, expected 2 items"
    assert said((X, X), (X, cache)) == "result[1] is a tensor of shape (2, 3), expected a list or tuple of 2 items"
    assert said((X, (X, X, X)), (X, cache)) == "result[1] has 3 items, expected 2 items"
    assert said([1, 2], [1, 2, 3, 4, 5]) == "the result has 2 items, expected 5 items"
    assert said(([], 0.5), (["a"], 0.5)) == "result[0] is an empty list or tuple, expected 1 item"
    assert said((["a"], 0.5), ([], 0.5)) == "result[0] has 1 item, expected an empty list or tuple"
    assert said(X, (X, X)) == "the result is a tensor of shape (2, 3), expected a list or tuple of 2 items"
    assert said({"a": X}, {"a": X, "b": X}) == "result['b'] is missing"
    assert said(X, {"a": X}) == "the result is a tensor of shape (2, 3), expected a dictionary of 1 item"
    fields = {"output[0]": "flops", "output[1]": "bytes"}
    assert said(5, (5, 6), fields=fields) == "the result is an int, expected a list or tuple of 2 items (flops, bytes)"
    assert said([1, 2, 3, 4, 5], [1, 2]) == "the result has 5 items, expected 2 items"
    assert said([], [1]) == "the result is an empty list or tuple, expected 1 item"
    assert said((5, 7), (5, 6), fields=fields) == "result.bytes is 7, expected 6"
    assert said(None, (5, 6)) == "it returns None, expected 2 items: is there a return?"


def test_what_is_no_list_is_described_by_its_type():
    def said(mine, theirs):
        observed = [
            [Observation(outputs=flatten_outputs(value), containers=containers_in(value))] for value in (mine, theirs)
        ]
        return judge("matches", *observed, {})

    assert said((X, X), X) == "the result has 2 items, expected a tensor of shape (2, 3)"
    assert said(((X, 1), (2, (X, X, X))), ((X, 1), (2, (X, X, X, X)))) == "result[1][1] has 3 items, expected 4 items"
    assert said((X, (X, X)), (X, None)) == "result[1] has 2 items, expected None"
    assert said((X, []), (X, 0.5)) == "result[1] is an empty list or tuple, expected a float"
    assert said(None, X) == "the result is None, expected a tensor of shape (2, 3)"
    assert said(None, []) == "it returns None, expected an empty list or tuple: is there a return?"
    shapes = Observation(outputs={"output[0]": (2, 3), "output[1]": (2, 3)})
    assert judge("unmutated", [shapes], [Observation(outputs={"output": (2, 3)})], {}) == (
        "the result has 2 items, expected a tensor of shape (2, 3)"
    )


def test_without_containers_a_gap_tells_an_empty_list():
    lists = Observation(outputs={"output[1]": 0.5}), Observation(outputs={"output[0][0]": "a", "output[1]": 0.5})
    assert judge("matches", [lists[0]], [lists[1]], {}) == "result[0] is empty, expected 1 item"
    assert judge("matches", [lists[1]], [lists[0]], {}) == "result[0] should be empty"


def test_no_message_shows_the_largest_float():
    numbers = [0.0, 1.0, math.inf, -math.inf, math.nan]
    for a in numbers:
        for b in numbers:
            said = verdict("matches", torch.tensor([1.0, a]), torch.tensor([1.0, b])) or ""
            assert "e+308" not in said
            assert "e+38" not in said


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: x.masked_fill(x > 3, math.nan), "1 NaN among its 6 numbers"),
        (lambda x: x.masked_fill(x > 3, math.inf), "1 of 6 numbers in the result is wrong"),
        (lambda x: x.masked_fill(x > 3, -math.inf), "1 of 6 numbers in the result is wrong"),
        (lambda x: x * 0 + math.nan, "6 NaN"),
        (lambda x: x.to(torch.complex64), "complex"),
        (lambda x: x[:, :2], r"shape (2, 2), expected (2, 3)"),
        (lambda x: x.T, r"shape (3, 2), expected (2, 3)"),
        (lambda x: x.tolist(), "a list, expected a tensor"),
        (lambda x: None, "the result is None, expected a tensor"),
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


@pytest.mark.parametrize(
    "same", [lambda x: nn.Parameter(x), lambda x: x.T.contiguous().T, lambda x: x.clone().requires_grad_()]
)
def test_right_numbers_are_right_however_they_are_kept(same):
    assert verdict("matches", same(X.clone()), X) is None


def test_nan_and_infinity_are_right_only_where_they_are_expected():
    odd = torch.tensor([1.5, math.inf, -math.inf])
    assert verdict("matches", odd, odd) is None
    assert verdict("matches", odd, -odd)
    assert verdict("matches", torch.tensor([math.nan]), torch.tensor([math.nan])), "no reference answers NaN"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_comparing_decides_as_isclose_does_whatever_the_numbers_are(dtype):
    allowed = tolerance_for(dtype)
    near = 1 + 0.5 * allowed.relative
    numbers = (
        [0, 1, -1, 3]
        if dtype is torch.int64
        else [0.0, 1.0, near, -1.0, 300.0, 300 * near, math.inf, -math.inf, math.nan]
    )
    for a in numbers:
        for b in numbers:
            # The pair stands at the end, at the beginning, or alone: what is looked at first must not matter.
            for mine, theirs in (([1, a], [1, b]), ([a, 1], [b, 1]), ([a], [b])):
                x, y = torch.tensor(mine, dtype=dtype), torch.tensor(theirs, dtype=dtype)
                tolerances = {"rtol": allowed.relative, "atol": allowed.absolute}
                right = bool(torch.isclose(x.double(), y.double(), **tolerances).all())
                alike = bool(torch.isclose(x.double(), y.double(), **tolerances, equal_nan=True).all())
                said, known = Observation(outputs={"output": x}), Observation(outputs={"output": y})
                assert (judge("matches", [said], [known], {}) is None) == right, (a, b)
                assert same_answer(said, known) == alike, (a, b)


def test_all_outputs_are_looked_at_and_must_have_the_expected_names():
    expected = [Observation(outputs={"output[0]": X, "output[1]": X + 1})]
    assert judge("matches", expected, expected, {}) is None
    assert "result[1]" in judge("matches", [Observation(outputs={"output[0]": X, "output[1]": X})], expected, {})
    assert judge("matches", [Observation(outputs={"output['a']": X})], [Observation(outputs={"output": X})], {}) == (
        "the result has 1 item, expected a tensor of shape (2, 3)"
    )


def test_as_many_tensors_in_other_tuples_are_counted_by_tuple():
    flat = Observation(outputs=flatten_outputs((X, X, X)))
    nested = Observation(outputs=flatten_outputs((X, (X, X))))
    assert judge("matches", [flat], [nested], {}) == "the result has 3 items, expected 2 items"
    assert judge("matches", [nested], [flat], {}) == "the result has 2 items, expected 3 items"


def test_a_part_is_judged_by_itself_but_the_others_must_be_there():
    expected = [Observation(outputs={"output[0]": X, "output[1]": X + 1})]
    second_wrong = [Observation(outputs={"output[0]": X, "output[1]": X})]
    assert judge("matches_part", second_wrong, expected, {"outputs": ["output[0]"]}) is None
    assert judge("matches_part", second_wrong, expected, {"outputs": ["output[1]"]})
    assert judge("matches_part", [Observation(outputs={"output[0]": X})], expected, {"outputs": ["output[0]"]})


def test_shapes_looks_at_shape_and_dtype_and_not_at_numbers():
    assert verdict("shapes", X + 5, X) is None
    assert "dtype float64, expected float32" in verdict("shapes", X.double(), X)
    assert "shape" in verdict("shapes", X[0], X)
    assert verdict("shapes", 5, 4) is None


def test_finite_looks_for_nan_and_infinity_alone():
    assert verdict("finite", X + 5, X) is None
    assert "1 of 6 numbers in the result is NaN or infinite" in verdict("finite", X.masked_fill(X > 3, math.nan), X)
    assert verdict("finite", X.masked_fill(X > 3, math.inf), X)
    assert "shape" in verdict("finite", X[0], X)


# ---------------------------------------------------------------------------------------------------------- behaviour


def test_changed_arguments_are_named():
    changed = [Observation(mutated=("q", "k")), Observation(mutated=("q",))]
    assert judge("unmutated", changed, changed, {}) == "it changes its arguments q, k in place"
    assert judge("unmutated", [Observation()], [Observation(mutated=("q",))], {}) is None


def test_results_that_hang_on_a_graph_are_named():
    kept = [Observation(outputs={"output": X}, attached=("output",))]
    assert judge("detached", kept, kept, {}).startswith("the result is still attached to the graph")
    assert judge("detached", [Observation(outputs={"output": X})], kept, {}) is None
    assert "expected a tensor" in judge("detached", [Observation(outputs={"output": 3})], kept, {})


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
        (torch.full((1, 3, 3), math.nan), "loss of nan"),
        (torch.zeros(1, 3, 2), "shape"),
    ):
        seen = [Observation(outputs={**right, "model.logits": wrong})]
        assert message in judge("reaches", seen, expected, options)
    assert judge("reaches", [Observation(outputs={"output": X})], expected, options)
    assert judge("reaches", [Observation(outputs={**right, "output": None})], expected, options) is None, (
        "what is told of the training is looked at elsewhere"
    )


def test_related_compares_the_subject_with_itself_where_the_views_look():
    options = {"views": [[("narrow", 0, 0, 1)], []], "claim": "alone it is another"}
    both = [Observation(outputs={"output": X}), Observation(outputs={"output": X[:1]})]
    other = [Observation(outputs={"output": X}), Observation(outputs={"output": X[1:]})]
    assert judge("related", both, other, options) is None, "the reference's answers play no part"
    assert judge("related", other, both, options).startswith("alone it is another (at [0, ")


def test_related_refuses_answers_that_it_cannot_compare():
    options = {"views": [[("narrow", -2, 0, 1)], [("narrow", -2, 0, 1)]], "claim": "the past moves"}
    flat = [Observation(outputs={"output": X[0]})] * 2
    assert "lacks the axes" in judge("related", flat, flat, options)
    assert judge("related", [flat[0], Observation()], flat, options)


def test_a_view_narrows_step_by_step_and_knows_nothing_else():
    torch.testing.assert_close(look(X, [("narrow", 0, 1, 1), ("narrow", -1, 0, 2)]), X[1:, :2])
    assert look("text", [("narrow", 0, 0, 1)]) == "text"
    with pytest.raises(ValueError, match="'narrow', not 'flip'"):
        look(X, [("flip", 0)])


@pytest.mark.parametrize(("small", "large", "loop"), [(7, 7, False), (7, 10, False), (7, 21, True), (3, 9, True)])
def test_a_loop_is_told_by_operations_that_grow_with_the_input(small, large, loop):
    seen = [Observation(operations=small), Observation(operations=large)]
    assert bool(judge("same_operations", seen, seen, {"axis": "keys"})) is loop


@pytest.mark.parametrize(("few", "many", "loop"), [(90, 90, False), (90, 88, False), (90, 91, False), (90, 94, True)])
def test_a_loop_is_told_by_lines_that_grow_with_the_input(few, many, loop):
    seen = [Observation(outputs={}, operations=7, lines=lines) for lines in (few, many)]
    assert bool(judge("same_operations", seen, seen, {"axis": "keys", "lines": 2})) is loop
    assert bool(judge("same_operations", seen, seen, {"axis": "keys"})) is loop


def test_who_keeps_lines_from_being_counted_is_told_so():
    seen = [Observation(outputs={}, operations=7, lines=HIDDEN)] * 2
    assert "settrace" in judge("same_operations", seen, seen, {"axis": "keys"})


def test_a_tensor_that_is_too_large_is_told_with_its_size():
    seen = [Observation(largest=90), Observation(largest=120)]
    assert judge("small_tensors", seen, seen, {"limit": 120}) is None
    assert judge("small_tensors", seen, seen, {"limit": 119}) == (
        "it makes a tensor of 120 elements; at most 119 are needed"
    )


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.2, True), (1.3, False), (0.7, False), (math.nan, False)])
def test_weights_drawn_at_random_are_judged_by_how_widely_they_vary(scale, passes):
    drawn = torch.linspace(-1, 1, 20)[:, None] + torch.arange(3)
    seen, expected = Observation(outputs={"output": scale * drawn.flip(0)}), Observation(outputs={"output": drawn})
    told = judge("spread", [seen], [expected], {"dim": 0})
    assert told is None if passes else "standard deviation" in told


def test_a_spread_can_be_judged_more_narrowly():
    drawn = torch.linspace(-1, 1, 20)[:, None] + torch.arange(3)
    seen, expected = Observation(outputs={"output": 1.15 * drawn}), Observation(outputs={"output": drawn})
    assert judge("spread", [seen], [expected], {"dim": 0, "within": 1.2}) is None
    assert "standard deviation" in judge("spread", [seen], [expected], {"dim": 0, "within": 1.1})


def test_forbidden_functions_are_named():
    seen = [Observation(functions=("softmax", "lerp"))]
    assert judge("free_of", seen, seen, {"names": ["dot"]}) is None
    assert judge("free_of", seen, seen, {"names": ["lerp", "softmax"]}).startswith("it calls lerp, softmax,")


# ------------------------------------------------------------------------------------------------------------- errors

GOOD, BAD = Observation(outputs={"output": X}), Observation(error="ValueError: no")


@pytest.mark.parametrize("name", sorted(set(JUDGES) - {"related", "matches_part"}))
def test_an_error_where_an_answer_is_asked_for_fails_whatever_the_judge(name):
    options = {"limit": 5, "names": [], "axis": "keys", "dim": 0}
    seen, expected = [Observation(error="TypeError: oh"), GOOD], [GOOD, GOOD]
    assert judge(name, seen, expected, options) == "it raised TypeError: oh"
    seen = [Observation(error="NotImplementedError", unfinished=True), GOOD]
    assert judge(name, seen, expected, options) == "not written yet"


def test_an_error_that_is_asked_for_must_be_of_its_kind():
    assert judge("answers", [Observation(error="ValueError: other words")], [BAD], {}) is None
    assert "expected a ValueError" in judge("answers", [GOOD], [BAD], {})
    assert "expected a ValueError" in judge("answers", [Observation(error="RuntimeError: x")], [BAD], {})
    assert judge("answers", [Observation(outputs={"output": X + 1})], [GOOD], {}) is None, (
        "what it answers is not asked"
    )


def test_two_answers_are_the_same_if_numbers_errors_and_damage_are():
    nan = Observation(outputs={"output": X * math.nan})
    assert same_answer(nan, Observation(outputs={"output": X * math.nan})), "a mistake can be known by its NaN"
    assert not same_answer(nan, GOOD)
    assert not same_answer(GOOD, Observation(outputs={"output": X + 1}))
    damaging = Observation(outputs={"output": X}, mutated=("q",))
    assert same_answer(GOOD, damaging), "what was damaged is compared where it is judged"
    assert not same_answer(GOOD, damaging, damage=True)
    assert same_answer(Observation(outputs={"output": X + 1}, mutated=("q",)), damaging, damage=True)
    assert not same_answer(GOOD, Observation(outputs={"output[0]": X}))
    assert same_answer(BAD, Observation(error="ValueError: other words"))
    assert not same_answer(BAD, Observation(error="TypeError: no"))
    assert not same_answer(BAD, GOOD)
    assert not same_answer(GOOD, BAD)


def test_numbers_of_two_dtypes_are_two_answers():
    rough = Observation(outputs={"output": X})
    exact = Observation(outputs={"output": X.double() + 1e-7})
    assert not same_answer(exact, rough), "a small slip in double precision is not single precision"
    assert not same_answer(rough, exact)
    assert same_answer(Observation(outputs={"output": X + 1e-7}), rough)


def test_weights_that_do_not_fit_are_alike_where_they_do_not_fit_in_the_same_way():
    bias = Observation(error="WeightsError: its weights are named otherwise: missing none, unexpected ['bias']")
    row = Observation(error="WeightsError: its weights are named otherwise: missing ['row'], unexpected ['line']")
    assert same_answer(bias, Observation(error=bias.error))
    assert not same_answer(bias, row)
    told = judge("matches", [bias], [GOOD], {})
    assert told == "its weights are named otherwise: missing none, unexpected ['bias']"


class Unreadable(torch.Tensor):
    """A tensor that cannot be looked at."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("look away")


ANSWERS = [
    GOOD, BAD,
    *(Observation(outputs={"output": value}) for value in (
        X + 1, X + 1e-7, X.double(), X.T, X.tolist(), X.numpy(), X.to_sparse(), X.to("meta"), X[:0], X > 0, X.int(),
        X.as_subclass(Unreadable), torch.tensor(1.5), 1.5, 1, "text", None, (2, 3), math.nan,
        *(torch.tensor([1, end]) for end in (math.nan, math.inf, -math.inf, 300.0)),
    )),
    Observation(outputs={"output": X, "state": X + 1}),
    Observation(outputs={"output": X, "state": X + 2}),
    Observation(outputs={"output[0]": X}),
    Observation(outputs={"output": X}, mutated=("q",)),
    Observation(outputs={"output": X}, attached=("output",)),
    Observation(error="ValueError: other words"),
    Observation(error="WeightsError: its weights are named otherwise: missing none, unexpected ['bias']"),
    Observation(error="WeightsError: its weights are named otherwise: missing ['row'], unexpected ['line']"),
]  # fmt: skip


@pytest.mark.parametrize("what", [{}, {"damage": True}, {"hold": True}], ids=["results", "damage", "hold"])
def test_a_glance_never_parts_answers_that_are_the_same(what):
    seen = [glance(answer, **what) for answer in ANSWERS]
    kinds = torch.tensor([kind for kind, _ in seen])
    lasts = torch.tensor([last for _, last in seen], dtype=torch.float64)
    for mine in ANSWERS:
        near = alike_at_a_glance(mine, kinds, lasts, **what).tolist()
        for theirs, maybe in zip(ANSWERS, near, strict=True):
            assert maybe or not same_answer(mine, theirs, **what), (mine, theirs)


def test_a_glance_tells_most_answers_apart():
    others = [Observation(outputs={"output": X + step}) for step in range(1, 30)]
    seen = [glance(answer) for answer in [*others, GOOD]]
    kinds, lasts = torch.tensor([kind for kind, _ in seen]), torch.tensor([last for _, last in seen])
    assert alike_at_a_glance(GOOD, kinds, lasts).nonzero().tolist() == [[29]]


def test_a_strange_object_does_not_stop_a_judge():
    class Strange:
        def __repr__(self):
            raise RuntimeError("no words")

    assert verdict("matches", Strange(), 5)
    assert len(verdict("matches", "x" * 10**6, "y")) < 200, "a message is read by people"


def test_an_error_of_the_wrong_kind_is_told_from_the_kind_that_is_asked_for():
    seen, expected = [Observation(error="KeyError: 3")], [Observation(error="ValueError: n")]
    assert judge("answers", seen, expected, {}) == "it raised KeyError: 3; expected a ValueError"
