"""Checks of chapter 05: the small parts of a layer: norm, activation, feed-forward network and residual connection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checking.props import Perceptron
from autograder.checks.sections import HEADINGS
from tfcourse import layers

CHAPTER = "05_transformer"
READY_NORMS = (
    *("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", "group_norm", "native_group_norm"),
    *(
        "instance_norm",
        "batch_norm",
        "native_batch_norm",
        "cudnn_batch_norm",
        "_batch_norm_impl_index",
        "_batch_norm_no_update",
    ),
    *("_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional"),
)
NO_LOOP = "examples, positions or columns"


# ------------------------------------------------------------------------------------------------------------- gelu


def numbers(draw: Draw) -> Case:
    """Numbers on both sides of zero, some of them large."""
    a, b = draw.sizes(2, low=3)
    return Case({"x": 2 * draw.normal(a, b)})


def approximated(draw: Draw) -> Case:
    """The form with tanh."""
    return numbers(draw).with_arguments(approximate=True)


def more_numbers(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(4 * factor, 3 * factor)})


def _phi(x: Tensor) -> Tensor:
    return (1 + torch.erf(x / math.sqrt(2))) / 2


def _bend(x: Tensor) -> Tensor:
    return (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _either(x: Tensor, approximate: bool) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * (_bend(wide) if approximate else _phi(wide))).to(x.dtype)


@misconception("ReLU", read="gelu")
def rectified(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The result is that of ReLU. GELU weighs x by the probability that a normal number lies below it: a little of what is negative
    comes through, and the corner at zero is round.
    """
    return torch.relu(x)


@misconception("always the exact form", read="gelu")
def always_exact(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The argument approximate is not used. The two forms differ in the fourth digit, enough to see in a model that was trained with the
    other one.
    """
    return _either(x, False)


@misconception("always the approximation", read="gelu")
def always_approximate(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The form with tanh is used even where the exact one is asked for."""
    return _either(x, True)


@misconception("the two forms exchanged", read="gelu")
def forms_exchanged(x: Tensor, *, approximate: bool = False) -> Tensor:
    """With approximate=True it gives the exact form, and with approximate=False the one with tanh: it is the other way round."""
    return _either(x, not approximate)


@misconception("sigmoid in the place of the normal distribution", read="gelu")
def by_sigmoid(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The product x · sigmoid(1.702 x) is a third form, rougher than both. The exact one uses erf, and the approximation that is asked
    for uses tanh.
    """
    return x * torch.sigmoid(1.702 * x)


@misconception("SiLU", read="gelu")
def swish(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The product x · sigmoid(x) is another activation, SiLU or Swish. GELU weighs x by the normal distribution."""
    return x * torch.sigmoid(x)


@misconception("without x", read="gelu")
def probability_alone(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The probability is returned by itself, a number between 0 and 1. GELU is x times that probability."""
    return _either(torch.ones_like(x) * x, approximate) / x


@misconception("erf without its root", read="gelu")
def unscaled_erf(x: Tensor, *, approximate: bool = False) -> Tensor:
    """Here erf is given x in place of x / sqrt(2). It belongs to a normal distribution of variance one half; the root makes it 1."""
    return _either(x, True) if approximate else x / 2 * (1 + torch.erf(x))


@misconception("twice as large", read="gelu")
def not_halved(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The one half is missing: 1 + erf lies between 0 and 2, and a probability does not."""
    return 2 * _either(x, approximate)


@misconception("cube forgotten", read="gelu")
def without_cube(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The term 0.044715 x³ is missing inside tanh. It is what brings tanh close to erf away from zero."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * x)) if approximate else _either(x, False)


@misconception("root of π / 2", read="gelu")
def root_upside_down(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The factor inside tanh is sqrt(π / 2) in place of sqrt(2 / π)."""
    if not approximate:
        return _either(x, False)
    return x / 2 * (1 + torch.tanh(math.sqrt(math.pi / 2) * (x + 0.044715 * x**3)))


@misconception("single precision returned", read="gelu")
def stays_single(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The function is computed in float32, and what it returns is float32 as well. Round the result to the dtype of x, or the next layer
    refuses it.
    """
    return _either(x.float(), approximate)


@misconception("changes its input", read="gelu")
def halved_in_place(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The argument x is changed in place (*= or an operation with an underscore). The caller may still need it."""
    result = _either(x, approximate)
    x *= 0.5
    return result


@misconception("number by number", read="gelu")
def number_by_number(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The numbers are right, but a Python loop goes from number to number (or row to row). erf and tanh of torch work on whole tensors."""
    return torch.stack([_either(row, approximate) for row in x])


GELU = Exercise(
    reference=layers.gelu,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, numbers),
        look.values(1, numbers, title="The exact form: x times the normal distribution's probability."),
        look.values(1, approximated, name="approximation", title="The approximation with tanh."),
        look.gradients(0.5, numbers, approximated, wrt=("x",), title="Gradients flow back, and are right."),
        look.unmutated(0.5, numbers),
        look.half_precision(0.5, numbers),
        look.double_precision(0.5, numbers),
        look.device(0.5, approximated),
        look.vectorised(0.5, more_numbers, axis="numbers"),
    ),
    forbidden=("gelu", "gelu_", "log_ndtr", "ndtr", "special_log_ndtr", "special_ndtr", "Normal"),
    rule_case=(numbers, approximated),
    misconceptions=(
        rectified,
        always_exact,
        always_approximate,
        forms_exchanged,
        by_sigmoid,
        swish,
        probability_alone,
        unscaled_erf,
        not_halved,
        without_cube,
        root_upside_down,
        stays_single,
        halved_in_place,
        number_by_number,
    ),
)


# ------------------------------------------------------------------------------------------------ feed-forward network


def network(draw: Draw) -> Case:
    """A network with random weights and biases, and sequences for it."""
    b, t, d, f = draw.sizes(4)
    return Case(
        {"x": draw.normal(b, t, d)}, init={"d_model": d, "d_ff": f}, state=draw.weights(layers.FeedForward(d, f))
    )


def rounded_bend(draw: Draw) -> Case:
    """The same with GELU."""
    case = network(draw)
    return replace(case, init={**(case.init or {}), "activation": "gelu"})


def one_vector(draw: Draw) -> Case:
    """A single row."""
    case = network(draw)
    return case.with_arguments(x=case.arguments["x"][0, 0])


def wider_network(draw: Draw, factor: int) -> Case:
    """More of everything."""
    d, f = 4 * factor, 6 * factor
    state = draw.weights(layers.FeedForward(d, f))
    return Case({"x": draw.normal(2 * factor, 3 * factor, d)}, init={"d_model": d, "d_ff": f}, state=state)


def gentle_network(draw: Draw) -> Case:
    """Small weights, so that half precision stays near the right numbers in any order of additions."""
    case = rounded_bend(draw)
    return replace(case, state={name: value / 2 for name, value in (case.state or {}).items()})


def unknown_bend(draw: Draw) -> Case:
    """An activation that nobody has promised."""
    case = network(draw)
    return replace(case, init={**(case.init or {}), "activation": "tanh"})


class _Network(nn.Module):
    """The feed-forward network in steps; each mistake below changes one of them."""

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(activation)
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def bend(self, inner: Tensor) -> Tensor:
        return F.gelu(inner) if self.activation == "gelu" else torch.relu(inner)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down_proj(self.bend(self.up_proj(x)))
        return output


@misconception("no activation", read="feed-forward")
class NoActivation(_Network):
    """There is no activation between the two maps. Two linear maps in a row are one linear map: the width in between buys nothing."""

    def bend(self, inner: Tensor) -> Tensor:
        return inner


@misconception("always ReLU", read="feed-forward")
class AlwaysRelu(_Network):
    """The argument activation is taken and not used: it is ReLU in every case."""

    def bend(self, inner: Tensor) -> Tensor:
        return torch.relu(inner)


@misconception("always GELU", read="feed-forward")
class AlwaysGelu(_Network):
    """GELU is used even where ReLU is asked for."""

    def bend(self, inner: Tensor) -> Tensor:
        return F.gelu(inner)


@misconception("approximate GELU", read="gelu")
class ApproximateGelu(_Network):
    """The approximation with tanh is used. The exact form is asked for."""

    def bend(self, inner: Tensor) -> Tensor:
        return F.gelu(inner, approximate="tanh") if self.activation == "gelu" else torch.relu(inner)


@misconception("activation behind the second map", read="feed-forward")
class BentAtTheEnd(_Network):
    """The activation comes behind the second map in place of between the two. What leaves the network would never be negative, so it could
    only add to what the residual connection carries.
    """

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.down_proj(self.up_proj(x)))


@misconception("activation behind both maps", read="feed-forward")
class BentTwice(_Network):
    """There is an activation behind the second map, too. It belongs between the two maps only: what leaves the network may be negative."""

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(super().forward(x))


@misconception("activation before the first map", read="feed-forward")
class BentAtTheStart(_Network):
    """The activation is applied to the input as well, and throws away what is negative in it before anything has looked at it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.bend(x))


@misconception("residual connection added", read="residual")
class ResidualInside(_Network):
    """The input is added to the output here. The residual connection is wrapped around this network by the layer; with both, x would be
    counted twice.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@misconception("normalised inside", read="post-or-pre-norm")
class NormInside(_Network):
    """The input is normalised here. Where the norm stands is decided by the layer around this network."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.layer_norm(x, x.shape[-1:]))


@misconception("first bias not used", read="feed-forward")
class FirstBiasUnused(_Network):
    """The bias of up_proj is not added. Call the linear layer, or hand its bias to F.linear as well."""

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down_proj(self.bend(x @ self.up_proj.weight.T))
        return output


@misconception("second bias not used", read="feed-forward")
class SecondBiasUnused(_Network):
    """The bias of down_proj is not added. Call the linear layer, or hand its bias to F.linear as well."""

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.up_proj(x)) @ self.down_proj.weight.T


@misconception("without biases", read="feed-forward")
class WithoutBiases(_Network):
    """The two maps are made with bias=False. The original network has both biases, and weights of others bring them along."""

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        super().__init__(d_model, d_ff, activation=activation)
        self.up_proj = nn.Linear(d_model, d_ff, bias=False)
        self.down_proj = nn.Linear(d_ff, d_model, bias=False)


@misconception("always four times as wide", read="feed-forward")
class FourTimes(_Network):
    """The width in between is 4 · d_model whatever d_ff says. That is a habit of the sizes that were published, and no law."""

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        super().__init__(d_model, 4 * d_model, activation=activation)


@misconception("positions mixed", read="feed-forward")
class PositionsMixed(_Network):
    """The rows of a sequence are averaged (or mixed in another way) before the second map. Position-wise means that each row is worked
    on by itself; to exchange something between positions is the task of attention.
    """

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bend(self.up_proj(x))
        if x.ndim > 1:
            inner = inner.mean(-2, keepdim=True).expand_as(inner)
        output: Tensor = self.down_proj(inner)
        return output


@misconception("dropout left on", read="dropout")
class DropsAlways(_Network):
    """Dropout is applied inside the network, and even when nothing is being trained. Residual dropout is the task of the layer."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 0.9


@misconception("changes its input", read="feed-forward")
class ChangesItsInput(_Network):
    """An in-place operation (relu_, +=, an argument inplace=True) reaches the caller's tensor. The residual connection still needs it."""

    def forward(self, x: Tensor) -> Tensor:
        output = super().forward(x)
        x.relu_()
        return output


@misconception("always single precision", read="feed-forward")
class AlwaysSingle(_Network):
    """The bend is computed in float32 and stays there: the second map, in another precision, refuses it."""

    def bend(self, inner: Tensor) -> Tensor:
        return super().bend(inner.float())


@misconception("position by position", read="feed-forward")
class PositionByPosition(_Network):
    """The numbers are right, but a Python loop goes from position to position. A linear layer works on the last axis of a tensor of any
    shape, on all rows at once.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2:
            return super().forward(x)
        return torch.stack([super(PositionByPosition.wrong, self).forward(row) for row in x.unbind(-2)], -2)  # type: ignore[attr-defined]


@misconception("unknown activation accepted", read="feed-forward")
class AnyActivation(_Network):
    """An activation that the network does not know is silently taken for ReLU. A typing error would train another model than the one that
    was meant: raise a ValueError in the constructor.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        super().__init__(d_model, d_ff, activation="gelu" if activation == "gelu" else "relu")


FEED_FORWARD = Exercise(
    reference=layers.FeedForward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, network, one_vector),
        look.values(1.5, network, network, title="Up, a bend, and down again, with both biases."),
        look.values(1, rounded_bend, name="gelu", title='With activation="gelu" the bend is the exact GELU.'),
        look.gradients(0.5, network, wrt=("x",)),
        look.unmutated(0.5, network),
        look.half_precision(0.5, gentle_network),
        look.double_precision(0.5, rounded_bend),
        look.device(0.5, network),
        look.vectorised(0.5, wider_network, axis="examples or positions"),
        look.refuses(0.5, network, unknown_bend, title="An activation that is not known is a ValueError."),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NoActivation,
        AlwaysRelu,
        AlwaysGelu,
        ApproximateGelu,
        BentAtTheEnd,
        BentTwice,
        BentAtTheStart,
        ResidualInside,
        NormInside,
        FirstBiasUnused,
        SecondBiasUnused,
        WithoutBiases,
        FourTimes,
        PositionsMixed,
        DropsAlways,
        ChangesItsInput,
        AlwaysSingle,
        PositionByPosition,
        AnyActivation,
    ),
)


# ------------------------------------------------------------------------------------------------ residual connections

Sublayer = Callable[[Tensor], Tensor]


def wrapped(draw: Draw) -> Case:
    """Sequences, a small network as the sublayer, and the factors and shifts of a norm."""
    b, t, d, hidden = draw.sizes(4)
    model = Perceptron(d, hidden, d)
    sublayer = {
        "kind": "Perceptron",
        "init": {"inputs": d, "hidden": hidden, "outputs": d},
        "state": draw.weights(model),
    }
    x = 2 * draw.normal(b, t, d) + draw.normal(b, t, 1)
    return Case({"x": x, "gamma": draw.normal(d) + 1.5, "beta": draw.normal(d)}, props={"sublayer": sublayer})


def all_dropped(draw: Draw) -> Case:
    """A dropout that drops everything: what is left shows where it was applied."""
    return wrapped(draw).with_arguments(dropout=1.0)


def more_wrapped(draw: Draw, factor: int) -> Case:
    """More of everything."""
    d = 4 * factor
    model = {"kind": "Perceptron", "init": {"inputs": d, "hidden": 3, "outputs": d}}
    return Case(
        {"x": draw.normal(2 * factor, 3 * factor, d), "gamma": draw.normal(d), "beta": draw.normal(d)},
        props={"sublayer": {**model, "state": draw.weights(Perceptron(d, 3, d))}},
    )


def _ln(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return F.layer_norm(x, gamma.shape, gamma, beta)


@misconception("norm before the sublayer", read="post-or-pre-norm")
def post_as_pre(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The norm stands before the sublayer. That is pre-norm, the next exercise; post-norm normalises the sum."""
    return x + F.dropout(sublayer(_ln(x, gamma, beta)), dropout)


@misconception("no residual connection", read="residual")
def post_without_residual(
    x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0
) -> Tensor:
    """The input is not added: only what the sublayer says is normalised. Without the connection a deep stack forgets what it was given, and
    its gradients have to pass through every sublayer.
    """
    return _ln(F.dropout(sublayer(x), dropout), gamma, beta)


@misconception("no norm", read="post-or-pre-norm")
def post_without_norm(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sum is not normalised. With every layer something is added, and the numbers grow."""
    return x + F.dropout(sublayer(x), dropout)


@misconception("only the sublayer's output normalised", read="post-or-pre-norm")
def norm_of_the_branch(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The norm is applied to what the sublayer says, and x is added behind it. Post-norm normalises the sum of the two."""
    return x + _ln(F.dropout(sublayer(x), dropout), gamma, beta)


@misconception("norm before and behind", read="post-or-pre-norm")
def norm_on_both_sides(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The input of the sublayer is normalised and the sum once more. Post-norm has one norm a sublayer, behind the sum."""
    return _ln(x + F.dropout(sublayer(_ln(x, gamma, beta)), dropout), gamma, beta)


@misconception("factors and shifts not used", read="layer-norm")
def post_plain_norm(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sum is normalised without gamma and beta, which would never learn anything."""
    return F.layer_norm(x + F.dropout(sublayer(x), dropout), gamma.shape) + 0 * (gamma + beta)


@misconception("dropout not used", read="dropout")
def post_never_drops(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The argument dropout is not used: nothing is ever dropped."""
    return _ln(x + sublayer(x), gamma, beta)


@misconception("the sum dropped", read="dropout")
def post_drops_sum(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Dropout falls on the sum, so that x is dropped as well. It belongs on what the sublayer says, before x is added: the connection
    past the sublayer stays whole.
    """
    return _ln(F.dropout(x + sublayer(x), dropout), gamma, beta)


@misconception("the result dropped", read="dropout")
def post_drops_result(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Dropout comes last, behind the norm. It belongs on what the sublayer says, before x is added."""
    return F.dropout(_ln(x + sublayer(x), gamma, beta), dropout)


@misconception("the sublayer's input dropped", read="dropout")
def post_drops_input(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Dropout falls on what the sublayer is given. It belongs on what the sublayer says."""
    return _ln(x + sublayer(F.dropout(x, dropout)), gamma, beta)


@misconception("zero divided by zero", read="dropout")
def post_zero_by_zero(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """With a dropout of 1 nothing is kept, and 0 / (1 - 1) is NaN. What is dropped is 0, whatever the others are divided by."""
    said = sublayer(x)
    return _ln(x + said * (torch.rand_like(said) >= dropout) / (1 - dropout), gamma, beta)


@misconception("sublayer not called", read="residual")
def post_never_asks(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sublayer is not called, or what it says is thrown away: only x is normalised. The connection is there to add something to x."""
    return _ln(x, gamma, beta)


@misconception("kept in place of dropped", read="dropout")
def post_keeps(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The argument is read as the probability to keep a number. It is the probability to drop one: 0 drops nothing."""
    return _ln(x + F.dropout(sublayer(x), 1 - dropout), gamma, beta)


@misconception("changes its input", read="residual")
def post_in_place(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sublayer's output is added in place (x += …): the caller's rows are changed."""
    x += F.dropout(sublayer(x), dropout)
    return _ln(x, gamma, beta)


@misconception("cut off from learning", read="residual")
def post_detached(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The connection past the sublayer is detached, so the gradient has no short way back. That way is what the connection is there for."""
    return _ln(x.detach() + F.dropout(sublayer(x), dropout), gamma, beta)


RESIDUAL_POST_NORM = Exercise(
    reference=layers.residual_post_norm,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, wrapped),
        look.values(2, wrapped, wrapped, title="The sublayer's output is added to x, and the sum is normalised."),
        look.values(
            1,
            all_dropped,
            wrapped,
            name="dropout",
            title="Dropout falls on what the sublayer says, and on nothing else: with 1 on all of it, with 0 on none.",
        ),
        look.gradients(
            0.5, wrapped, wrt=("x", "gamma", "beta"), title="Gradients flow back on both ways, and are right."
        ),
        look.unmutated(0.5, wrapped),
        look.double_precision(0.5, wrapped),
        look.device(0.5, wrapped),
    ),
    misconceptions=(
        post_as_pre,
        post_without_residual,
        post_without_norm,
        norm_of_the_branch,
        norm_on_both_sides,
        post_plain_norm,
        post_never_drops,
        post_drops_sum,
        post_drops_result,
        post_drops_input,
        post_zero_by_zero,
        post_never_asks,
        post_keeps,
        post_in_place,
        post_detached,
    ),
)


@misconception("norm behind the sum", read="post-or-pre-norm")
def pre_as_post(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The norm stands behind the sum. That is post-norm, the exercise before; pre-norm normalises what the sublayer is given."""
    return _ln(x + F.dropout(sublayer(x), dropout), gamma, beta)


@misconception("the normalised input carried on", read="post-or-pre-norm")
def pre_from_normalised(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The normalised input is added in place of x itself. What goes past the sublayer must be x as it came: that free way through all
    layers is what pre-norm is for.
    """
    normalised = _ln(x, gamma, beta)
    return normalised + F.dropout(sublayer(normalised), dropout)


@misconception("no residual connection", read="residual")
def pre_without_residual(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The input is not added: only what the sublayer says is returned, and what it does not say is lost."""
    return F.dropout(sublayer(_ln(x, gamma, beta)), dropout)


@misconception("no norm", read="post-or-pre-norm")
def pre_without_norm(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sublayer is given x as it is. In pre-norm it is given the normalised x."""
    return x + F.dropout(sublayer(x), dropout)


@misconception("only the sublayer's output normalised", read="post-or-pre-norm")
def pre_norm_of_the_branch(
    x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0
) -> Tensor:
    """The norm is applied to what the sublayer says. In pre-norm it comes before the sublayer: it is the input that is normalised."""
    return x + F.dropout(_ln(sublayer(x), gamma, beta), dropout)


@misconception("norm before and behind", read="post-or-pre-norm")
def pre_norm_on_both_sides(
    x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0
) -> Tensor:
    """The sum is normalised as well. In pre-norm the sum is left as it is; one more norm comes at the end of the whole stack only."""
    return _ln(x + F.dropout(sublayer(_ln(x, gamma, beta)), dropout), gamma, beta)


@misconception("factors and shifts not used", read="layer-norm")
def pre_plain_norm(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The input is normalised without gamma and beta, which would never learn anything."""
    return x + F.dropout(sublayer(F.layer_norm(x, gamma.shape)), dropout) + 0 * (gamma + beta)


@misconception("dropout not used", read="dropout")
def pre_never_drops(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The argument dropout is not used: nothing is ever dropped."""
    return x + sublayer(_ln(x, gamma, beta))


@misconception("the sum dropped", read="dropout")
def pre_drops_sum(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Dropout falls on the sum, so that x is dropped as well. It belongs on what the sublayer says, before x is added: the connection
    past the sublayer stays whole.
    """
    return F.dropout(x + sublayer(_ln(x, gamma, beta)), dropout)


@misconception("the sublayer's input dropped", read="dropout")
def pre_drops_input(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Dropout falls on what the sublayer is given. It belongs on what the sublayer says."""
    return x + sublayer(F.dropout(_ln(x, gamma, beta), dropout))


@misconception("zero divided by zero", read="dropout")
def pre_zero_by_zero(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """With a dropout of 1 nothing is kept, and 0 / (1 - 1) is NaN. What is dropped is 0, whatever the others are divided by."""
    said = sublayer(_ln(x, gamma, beta))
    return x + said * (torch.rand_like(said) >= dropout) / (1 - dropout)


@misconception("sublayer not called", read="residual")
def pre_never_asks(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sublayer is not called, or what it says is thrown away: x comes out as it went in. The connection is there to add something."""
    return x.clone()


@misconception("kept in place of dropped", read="dropout")
def pre_keeps(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The argument is read as the probability to keep a number. It is the probability to drop one: 0 drops nothing."""
    return x + F.dropout(sublayer(_ln(x, gamma, beta)), 1 - dropout)


@misconception("changes its input", read="residual")
def pre_in_place(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The sublayer's output is added in place (x += …): the caller's rows are changed."""
    x += F.dropout(sublayer(_ln(x, gamma, beta)), dropout)
    return x


@misconception("cut off from learning", read="residual")
def pre_detached(x: Tensor, sublayer: Sublayer, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0) -> Tensor:
    """The connection past the sublayer is detached, so the gradient has no short way back. That way is what the connection is there for."""
    return x.detach() + F.dropout(sublayer(_ln(x, gamma, beta)), dropout)


RESIDUAL_PRE_NORM = Exercise(
    reference=layers.residual_pre_norm,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, wrapped),
        look.values(
            2, wrapped, wrapped, title="The sublayer is given the normalised x; its output is added to x itself."
        ),
        look.values(
            1,
            all_dropped,
            wrapped,
            name="dropout",
            title="Dropout falls on what the sublayer says, and on nothing else: with 1 on all of it, with 0 on none.",
        ),
        look.gradients(
            0.5, wrapped, wrt=("x", "gamma", "beta"), title="Gradients flow back on both ways, and are right."
        ),
        look.unmutated(0.5, wrapped),
        look.double_precision(0.5, wrapped),
        look.device(0.5, wrapped),
    ),
    misconceptions=(
        pre_as_post,
        pre_from_normalised,
        pre_without_residual,
        pre_without_norm,
        pre_norm_of_the_branch,
        pre_norm_on_both_sides,
        pre_plain_norm,
        pre_never_drops,
        pre_drops_sum,
        pre_drops_input,
        pre_zero_by_zero,
        pre_never_asks,
        pre_keeps,
        pre_in_place,
        pre_detached,
    ),
)
