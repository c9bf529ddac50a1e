"""Every row lets right code through and catches what it is there to catch."""

import pytest
import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.judges import judge
from autograder.checking.subject import LocalSubject


def attend(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """A small attention: right in every respect."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("widths differ")
    scores = x @ y.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1) @ y


def inputs(draw: Draw) -> Case:
    """Two sequences."""
    b, t, s, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "y": draw.normal(b, s, d)})


def causal(draw: Draw) -> Case:
    """Two sequences of one length, and a causal mask."""
    b, t, d = draw.sizes(3, low=3)
    mask = torch.ones(t, t, dtype=torch.bool).tril()
    return Case({"x": draw.normal(b, t, d), "y": draw.normal(b, t, d), "mask": mask})


def unequal(draw: Draw) -> Case:
    """Two widths."""
    case = inputs(draw)
    return case.with_arguments(x=case.arguments["x"][..., 1:])


def longer(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(2 * factor, 3 * factor, 4), "y": draw.normal(2 * factor, 5 * factor, 4)})


def problem(row, candidate, reference=attend):
    """What the row finds wrong with a candidate, on three draws."""
    for seed in range(3):
        for probe in row.probes(Draw("rows", row.name, seed)):
            mine, theirs = (
                [LocalSubject(code).observe(request) for request in probe.requests] for code in (candidate, reference)
            )
            if found := judge(probe.judge, mine, theirs, probe.options):
                return found
    return None


def loop(x, y, mask=None):
    """Query by query."""
    return torch.cat([attend(x[:, t : t + 1], y, None if mask is None else mask[t]) for t in range(x.shape[1])], 1)


def ordered(x, y, mask=None):
    """The first keys count more."""
    place = torch.arange(y.shape[-2], device=y.device, dtype=y.dtype)
    return torch.softmax(x @ y.transpose(-2, -1) - place, -1) @ y


ROWS = {
    "values": rows.numbers(1, inputs),
    "edge": rows.edge(1, inputs, name="edge", title="An edge."),
    "precision": rows.precision(1, inputs),
    "float64": rows.precision(1, inputs, half=False),
    "finite": rows.finite_gradients(1, inputs, wrt=("x", "y"), name="finite", title="Finite."),
    "inputs": rows.inputs_kept(1, inputs),
    "device": rows.device(1, inputs),
    "loops": rows.no_loop(1, longer, over="queries"),
    "memory": rows.memory(
        1, inputs, limit=lambda case: case.arguments["x"].shape[1] * case.arguments["y"].numel(), title="Small."
    ),
    "batch": rows.batch_independence(1, inputs, batched=("x", "y")),
    "causality": rows.causality(1, causal, future=("x", "y")),
    "permutation": rows.permutation(1, inputs, keys=("y",)),
    "errors": rows.errors(1, inputs, unequal, title="Widths that differ are a ValueError."),
}

CAUGHT = [
    ("values", lambda x, y: attend(x, y)[0], "shape"),
    ("values", lambda x, y: attend(x, y).double(), "dtype"),
    ("values", lambda x, y: attend(x * 1.01, y), "wrong"),
    ("float64", lambda x, y: attend(x.float(), y.float()), "float32, expected float64"),
    ("float64", lambda x, y: attend(x.float(), y.float()).double(), "nearly right, off by up to"),
    ("precision", lambda x, y: attend(x.double(), y.double()), "float64, expected bfloat16"),
    ("precision", lambda x, y: attend(x, y) + 0.2, "wrong"),
    ("values", lambda x, y: attend(x, y.detach()), "gradient of y"),
    ("values", lambda x, y: attend(x.detach(), y.detach()), "cut off"),
    ("finite", lambda x, y: attend(x, y) + (x * 0).norm(dim=-1, keepdim=True).sqrt() * 0, "NaN"),
    ("edge", lambda x, y: attend(x * 1.01, y), "wrong"),
    ("edge", lambda x, y: attend(x, y.detach()), "gradient of y"),
    ("edge", lambda x, y: attend(x.float(), y.float()).double(), "dtype"),
    ("loops", lambda x, y: attend(x, y) * (1 if x.shape[1] % 3 else 2), "wrong"),
    ("inputs", lambda x, y: attend(x.mul_(1.5), y), "changes its argument x"),
    ("device", lambda x, y: attend(x, y) + torch.zeros(y.shape[-1]), "device"),
    ("loops", loop, "a Python loop over queries"),
    ("memory", lambda x, y: attend(x, y.repeat(9, 1, 1)[: len(y)]) + torch.zeros(9999).sum(), "9999 elements"),
    ("batch", lambda x, y: attend(x, y - y.mean(0, keepdim=True)), "in a batch than alone"),
    ("causality", lambda x, y, mask: attend(x, y), "earlier output moves"),
    ("causality", lambda x, y, mask: attend(x - x.mean(-2, keepdim=True), y, mask), "earlier output moves"),
    ("permutation", ordered, "shuffling the key/value pairs"),
    ("errors", lambda x, y: attend(x, y[..., : x.shape[-1]]), "accepts wrong input"),
    ("errors", lambda x, y: x @ y.transpose(-2, -1) @ y, "expected a ValueError"),
]


@pytest.mark.parametrize("name", ROWS)
def test_right_code_passes(name):
    assert problem(ROWS[name], attend) is None


@pytest.mark.parametrize(("name", "wrong", "message"), CAUGHT)
def test_wrong_code_is_caught_with_a_reason(name, wrong, message):
    assert message in problem(ROWS[name], wrong)


def test_a_part_of_several_outputs_is_judged_alone():
    row = rows.part(1, inputs, output="output[1]", name="second", title="The second.")
    assert problem(row, lambda x, y: (x, x + 1), lambda x, y: (y, x + 1)) is None
    assert "result[1]" in problem(row, lambda x, y: (y, x), lambda x, y: (y, x + 1))


def test_the_cause_of_a_causal_question_is_the_future_alone():
    probe = rows.causality(1, causal, future=("x", "y")).probes(Draw("c"))[0]
    before, after = (request.arguments for request in probe.requests)
    keep = before["x"].shape[-2] // 2
    for name in ("x", "y"):
        torch.testing.assert_close(before[name][:, :keep], after[name][:, :keep], rtol=0, atol=0)
        assert (before[name][:, keep:] != after[name][:, keep:]).all()


def test_numbers_ask_for_gradients_by_every_input_of_floating_point_and_by_no_other() -> None:
    def asked(row: rows.Row) -> list[tuple[str, ...]]:
        probes = row.probes(Draw("g"))
        return [request.wrt for probe in probes for request in probe.requests if request.action == "gradients"]

    assert asked(rows.numbers(1, causal)) == [("x", "y")]
    assert asked(rows.numbers(1, causal, without=("y",))) == [("x",)]
    assert asked(rows.numbers(1, causal, gradients=False)) == []
    assert asked(rows.numbers(1, lambda draw: Case({"ids": draw.integers(0, 5, 3)}))) == []


def test_the_sizes_at_which_operations_are_counted_are_known_of_visible_questions_alone() -> None:
    def lengths(draw: Draw) -> list[int]:
        (counted, *_) = rows.no_loop(1, longer, over="queries").probes(draw)
        return [request.arguments["x"].shape[1] // 3 for request in counted.requests]

    assert {tuple(lengths(Draw("loops", seed))) for seed in range(20)} == {(2, 6)}
    assert {tuple(lengths(Draw("loops", seed, hidden=True))) for seed in range(40)} == {(2, 6), (3, 9), (4, 12)}


def test_rows_of_numbers_pay_alone_and_the_others_by_them() -> None:
    numbers = {name for name, row in ROWS.items() if not row.side}
    assert numbers == {"values", "edge", "precision", "float64"}


def lists(draw: Draw) -> Case:
    """A list of one to nine digits, which repeat."""
    return Case({"digits": draw.integers(0, 3, 1 + int(draw.integers(0, 9))).tolist()})


def distinct(digits: list[int]) -> list[int]:
    """The digits without repetitions, in order."""
    return list(dict.fromkeys(digits))


def neighbours_joined(digits: list[int]) -> list[int]:
    """Another algorithm: right where equal digits are neighbours."""
    return [digit for index, digit in enumerate(digits) if index == 0 or digit != digits[index - 1]]


def test_many_cases_find_another_algorithm_and_show_its_smallest_failure() -> None:
    probes = rows.many(1, lists, title="Repetitions go.").probes(Draw("many"))
    assert len(probes) == 64
    right, other = (
        [LocalSubject(function).observe(probe.requests[0]) for probe in probes]
        for function in (distinct, neighbours_joined)
    )
    wrong = [
        len(probe.requests[0].arguments["digits"])
        for probe, answer, reference in zip(probes, other, right, strict=True)
        if judge(probe.judge, [answer], [reference], probe.options)
    ]
    assert 0 < len(wrong) < 64
    assert wrong[0] == min(wrong) == 3


def angles(count: int) -> Tensor:
    """Angles in double precision."""
    return torch.arange(1, count + 1, dtype=torch.float64) / 3


def test_single_precision_accepts_either_dtype_and_no_wrong_number() -> None:
    (probe,) = rows.single_precision(1, lambda draw: Case({"count": 5}), title="Thirds.").probes(Draw("single"))
    expected = LocalSubject(angles).observe(probe.requests[0])
    for function, is_right in (
        (lambda count: angles(count).float(), True),
        (lambda count: angles(count) * 1.001, False),
        (lambda count: angles(count)[:-1], False),
    ):
        answer = LocalSubject(function).observe(probe.requests[0])
        assert (judge(probe.judge, [answer], [expected], probe.options) is None) == is_right
