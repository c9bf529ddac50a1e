"""Every aspect lets right code through and catches what it is there to catch."""

import pytest
import torch
from torch import Tensor, nn

from autograder.checking import aspects as look
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


def problem(aspect, candidate, reference=attend):
    """What the aspect finds wrong with a candidate, on three draws."""
    for seed in range(3):
        for probe in aspect.probes(Draw("aspects", aspect.name, seed)):
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


ASPECTS = {
    "shape": look.shape(1, inputs),
    "values": look.values(1, inputs),
    "float64": look.double_precision(1, inputs),
    "half precision": look.half_precision(1, inputs),
    "gradients": look.gradients(1, inputs, wrt=("x", "y")),
    "finite": look.finite_gradients(1, inputs, wrt=("x", "y"), name="finite", title="Finite."),
    "inputs": look.unmutated(1, inputs),
    "device": look.device(1, inputs),
    "vectorised": look.vectorised(1, longer, axis="queries"),
    "memory": look.memory(
        1, inputs, limit=lambda case: case.arguments["x"].shape[1] * case.arguments["y"].numel(), title="Small."
    ),
    "batch": look.batch_independence(1, inputs, batched=("x", "y")),
    "causality": look.causality(1, causal, future=("x", "y")),
    "permutation": look.permutation(1, inputs, keys=("y",)),
    "errors": look.refuses(1, inputs, unequal, title="Widths that differ are a ValueError."),
}

CAUGHT = [
    ("shape", lambda x, y: attend(x, y)[0], "shape"),
    ("shape", lambda x, y: attend(x, y).double(), "dtype"),
    ("values", lambda x, y: attend(x * 1.01, y), "off by"),
    ("float64", lambda x, y: attend(x.float(), y.float()), "float32, expected float64"),
    ("float64", lambda x, y: attend(x.float(), y.float()).double(), "off by"),
    ("half precision", lambda x, y: attend(x.float(), y.float()), "float32, expected bfloat16"),
    ("half precision", lambda x, y: attend(x, y) + 0.2, "off by"),
    ("gradients", lambda x, y: attend(x, y.detach()), "gradient of y"),
    ("gradients", lambda x, y: attend(x.detach(), y.detach()), "cut off"),
    ("finite", lambda x, y: attend(x, y) + (x * 0).norm(dim=-1, keepdim=True).sqrt() * 0, "NaN"),
    ("inputs", lambda x, y: attend(x.mul_(1.5), y), "changes its argument x"),
    ("device", lambda x, y: attend(x, y) + torch.zeros(y.shape[-1]), "device"),
    ("vectorised", loop, "a Python loop over queries"),
    ("memory", lambda x, y: attend(x, y.repeat(9, 1, 1)[: len(y)]) + torch.zeros(9999).sum(), "9999 elements"),
    ("batch", lambda x, y: attend(x, y - y.mean(0, keepdim=True)), "in a batch than alone"),
    ("causality", lambda x, y, mask: attend(x, y), "earlier output moves"),
    ("causality", lambda x, y, mask: attend(x - x.mean(-2, keepdim=True), y, mask), "earlier output moves"),
    ("permutation", ordered, "shuffling the key/value pairs"),
    ("errors", lambda x, y: attend(x, y[..., : x.shape[-1]]), "accepts wrong input"),
    ("errors", lambda x, y: x @ y.transpose(-2, -1) @ y, "a ValueError is asked for"),
]


@pytest.mark.parametrize("name", ASPECTS)
def test_right_code_passes(name):
    assert problem(ASPECTS[name], attend) is None


@pytest.mark.parametrize(("name", "wrong", "message"), CAUGHT)
def test_wrong_code_is_caught_with_a_reason(name, wrong, message):
    assert message in problem(ASPECTS[name], wrong)


def test_every_aspect_here_is_tried_on_wrong_code():
    assert {name for name, _, _ in CAUGHT} == set(ASPECTS)


def test_a_part_of_several_outputs_is_judged_alone():
    aspect = look.part(1, inputs, output="output[1]", name="second", title="The second.")
    assert problem(aspect, lambda x, y: (x, x + 1), lambda x, y: (y, x + 1)) is None
    assert "output[1]" in problem(aspect, lambda x, y: (y, x), lambda x, y: (y, x + 1))


def test_attributes_of_a_class_are_looked_at():
    class Right(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

    class Wrong(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n + 1

    aspect = look.attributes(1, lambda draw: Case({}, init={"n": int(draw.integers(2, 9))}), names=("n",))
    assert problem(aspect, Right, Right) is None
    assert "n is" in problem(aspect, Wrong, Right)


def test_the_cause_of_a_causal_question_is_the_future_alone():
    probe = look.causality(1, causal, future=("x", "y")).probes(Draw("c"))[0]
    before, after = (request.arguments for request in probe.requests)
    keep = before["x"].shape[-2] // 2
    for name in ("x", "y"):
        torch.testing.assert_close(before[name][:, :keep], after[name][:, :keep], rtol=0, atol=0)
        assert (before[name][:, keep:] != after[name][:, keep:]).all()
