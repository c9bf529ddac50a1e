"""Checks of chapter 01: the fixed window and the plain recurrent network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from autograder.checking import aspects as look
from autograder.checking.aspects import Aspect, Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.sections import HEADINGS
from tfcourse import recurrent

CHAPTER = "01_recurrent"
READY_MADE = (
    *("RNN", "LSTM", "GRU", "RNNBase", "RNNCell", "LSTMCell", "GRUCell", "RNNCellBase"),
    *("rnn_tanh", "rnn_relu", "lstm", "gru", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell", "gru_cell"),
    *("_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "quantized_lstm_cell", "quantized_gru_cell"),
)
EXAMPLES = "the examples of the batch"

Four: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]


def padding_behind(draw: Draw, batch: int, length: int) -> Tensor:
    """A mask (B, T) with padding behind the tokens: one sequence is full, one is not, and none is empty."""
    lengths = draw.integers(1, length + 1, batch)
    lengths[0], lengths[1] = length, 1 + int(draw.integers(0, length - 1))
    return torch.arange(length) < lengths[draw.permutation(batch), None]


def weights_by_name(draw: Draw, gates: int, inputs: int, states: int) -> dict[str, Tensor]:
    """The four weights of a recurrent layer by name, biases far from zero among them."""
    return {
        "weight_ih": draw.normal(gates * states, inputs, scale=0.6),
        "weight_hh": draw.normal(gates * states, states, scale=0.6),
        "bias_ih": draw.normal(gates * states, scale=0.6),
        "bias_hh": draw.normal(gates * states, scale=0.6),
    }


def with_four_weights(wrong: Callable[..., Any]) -> Callable[..., Any]:
    """Let a mistake that takes the four weights as one argument be asked like the exercise, which takes them one by one."""

    @wraps(wrong)
    def asked(**arguments: Any) -> Any:
        weights = tuple(arguments.pop(name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        return wrong(**arguments, weights=weights)

    return asked


# ------------------------------------------------------------------------------------------------ the fixed window


def _window_model(
    draw: Draw, windows: int, *, direct: bool | None = None, batch: int = 2, widths: tuple[int, ...] = ()
) -> Case:
    """A model with a window of three, and so many windows of tokens; its widths are drawn if they are not given."""
    e, d = widths or draw.sizes(2, low=4)
    init: dict[str, int | bool] = {"vocabulary": 7, "window": 3, "d_embedding": e, "d_hidden": d}
    if direct is not None:
        init["direct"] = direct
    model = recurrent.NeuralProbabilisticLM(7, 3, e, d, direct=direct is not False)
    return Case({"tokens": draw.integers(0, 7, batch, 2 + windows)}, init=init, state=draw.weights(model))


def one_window(draw: Draw) -> Case:
    """As many tokens as the window holds."""
    return _window_model(draw, 1)


def several_windows(draw: Draw) -> Case:
    """More tokens than the window holds."""
    return _window_model(draw, 4)


def no_direct(draw: Draw) -> Case:
    """A model without direct connections."""
    return _window_model(draw, 2, direct=False)


def many_windows(draw: Draw, factor: int) -> Case:
    """More sequences, and longer ones."""
    return _window_model(draw, 4 * factor, batch=2 * factor, widths=(4, 5))


def too_few_tokens(draw: Draw) -> Case:
    """Fewer tokens than the window holds."""
    return _window_model(draw, 0)


class _Window(nn.Module):
    """The model in steps; each mistake below changes one of them."""

    def __init__(self, vocabulary: int, window: int, d_embedding: int, d_hidden: int, *, direct: bool = True) -> None:
        super().__init__()
        self.window = window
        self.embedding = nn.Embedding(vocabulary, d_embedding)
        self.hidden = nn.Linear(window * d_embedding, d_hidden)
        self.output = nn.Linear(d_hidden, vocabulary)
        self.direct = self.connect(vocabulary, window * d_embedding, direct)

    def connect(self, vocabulary: int, inputs: int, direct: bool) -> nn.Linear | None:
        return nn.Linear(inputs, vocabulary, bias=False) if direct else None

    def admit(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] < self.window:
            raise ValueError(f"{tokens.shape[1]} tokens are no window of {self.window}")
        return tokens

    def cut(self, tokens: Tensor) -> Tensor:
        return tokens.unfold(1, self.window, 1)

    def join(self, embedded: Tensor) -> Tensor:
        return embedded.flatten(2)

    def hide(self, x: Tensor) -> Tensor:
        return torch.tanh(self.hidden(x))

    def finish(self, x: Tensor, hidden: Tensor) -> Tensor:
        logits: Tensor = self.output(hidden)
        return logits if self.direct is None else logits + self.direct(x)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.join(self.embedding(self.cut(self.admit(tokens))))
        return self.finish(x, self.hide(x))


@misconception("newest token first", read="fixed-window")
class NewestFirst(_Window):
    """The embeddings stand in the order from the newest token to the oldest. The place of a token in the window decides which
    columns of the weights it meets, so the order matters: the oldest comes first.
    """

    def cut(self, tokens: Tensor) -> Tensor:
        return super().cut(tokens).flip(-1)


@misconception("columns of the embeddings interleaved", read="fixed-window")
class Interleaved(_Window):
    """The columns of the embeddings alternate: first column 0 of every token, then column 1 of every token. The embeddings stand
    side by side, all of the first token's numbers before those of the second.
    """

    def join(self, embedded: Tensor) -> Tensor:
        return embedded.transpose(2, 3).flatten(2)


@misconception("tanh forgotten", read="fixed-window")
class NoTanh(_Window):
    """The hidden layer has no tanh. Two linear maps in a row are one linear map, and the hidden layer adds nothing."""

    def hide(self, x: Tensor) -> Tensor:
        made: Tensor = self.hidden(x)
        return made


@misconception("sigmoid for tanh", read="fixed-window")
class SigmoidHidden(_Window):
    """The hidden layer is squashed by the logistic function. The model has a hyperbolic tangent there, from -1 to 1."""

    def hide(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.hidden(x))


@misconception("hidden bias not used", read="fixed-window")
class NoHiddenBias(_Window):
    """The bias d of the hidden layer is not used. Call the layer, or hand its bias on as well."""

    def hide(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.hidden.weight.T)


@misconception("output bias not used", read="fixed-window")
class NoOutputBias(_Window):
    """The bias b of the output is not used. It is how the model knows which words are frequent, whatever stands before them."""

    def finish(self, x: Tensor, hidden: Tensor) -> Tensor:
        return super().finish(x, hidden) - self.output.bias


@misconception("direct connections not used", read="fixed-window")
class DirectNotUsed(_Window):
    """The direct connections are made and not used: W x is missing from the sum, and W never learns."""

    def finish(self, x: Tensor, hidden: Tensor) -> Tensor:
        logits: Tensor = self.output(hidden)
        return logits


@misconception("direct connections always there", read="fixed-window")
class DirectAlways(_Window):
    """The direct connections are made whatever `direct` says. Without them there must be no weights for them either."""

    def connect(self, vocabulary: int, inputs: int, direct: bool) -> nn.Linear | None:
        return super().connect(vocabulary, inputs, True)


@misconception("direct connections with a bias", read="fixed-window")
class DirectWithBias(_Window):
    """The direct connections have a bias of their own. The sum has its bias already, in the output layer: the second one would be
    a weight too many, and the names of the weights would not fit those of any other implementation.
    """

    def connect(self, vocabulary: int, inputs: int, direct: bool) -> nn.Linear | None:
        return nn.Linear(inputs, vocabulary) if direct else None


@misconception("probabilities for logits", read="fixed-window")
class Probabilities(_Window):
    """The model returns probabilities. Logits are asked for: whoever computes the loss applies the softmax, and once is enough."""

    def finish(self, x: Tensor, hidden: Tensor) -> Tensor:
        return super().finish(x, hidden).softmax(dim=-1)


@misconception("logarithms of probabilities for logits", read="fixed-window")
class LogProbabilities(_Window):
    """The model returns normalised logarithms of probabilities. Logits are asked for, as they come out of the sum."""

    def finish(self, x: Tensor, hidden: Tensor) -> Tensor:
        return super().finish(x, hidden).log_softmax(dim=-1)


@misconception("last window left out", read="fixed-window")
class LastWindowLeftOut(_Window):
    """The last window is missing: the one whose next token is not in the sequence yet. It is the one that writing on needs."""

    def cut(self, tokens: Tensor) -> Tensor:
        return super().cut(tokens)[:, :-1] if tokens.shape[1] > self.window else super().cut(tokens)


@misconception("windows side by side", read="fixed-window")
class WindowsSideBySide(_Window):
    """The windows do not overlap. The window slides by one token: there is one for every place from which something follows."""

    def cut(self, tokens: Tensor) -> Tensor:
        return tokens.unfold(1, self.window, self.window)


@misconception("last window only", read="fixed-window")
class LastWindowOnly(_Window):
    """Only the last window is looked at. Every window of the sequence gets a prediction, T - N + 1 of them."""

    def cut(self, tokens: Tensor) -> Tensor:
        return super().cut(tokens)[:, -1:]


@misconception("no axis for the windows", read="fixed-window")
class NoAxisForWindows(_Window):
    """The result has no axis for the windows. It is (B, T - N + 1, V) also where there is only one window."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens)[:, -1]


@misconception("one window after another", read="fixed-window")
class LoopOverWindows(_Window):
    """The numbers are right, but a Python loop goes from window to window. All windows can be looked at as one tensor."""

    def forward(self, tokens: Tensor) -> Tensor:
        self.admit(tokens)
        starts = range(tokens.shape[1] - self.window + 1)
        return torch.cat([_Window.forward(self, tokens[:, i : i + self.window]) for i in starts], dim=1)


@misconception("short sequences filled up", read="what-goes-wrong-01")
class FilledUp(_Window):
    """A sequence that is shorter than the window is filled up with token 0 and gets a prediction. The model has not been asked
    about token 0: raise a ValueError that names the shape.
    """

    def admit(self, tokens: Tensor) -> Tensor:
        missing = max(self.window - tokens.shape[1], 0)
        return torch.cat([tokens.new_zeros(len(tokens), missing), tokens], dim=1)


NEURAL_PROBABILISTIC_LM = Exercise(
    reference=recurrent.NeuralProbabilisticLM,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, one_window, several_windows),
        look.values(1.5, one_window, title="The logits after one window are right."),
        look.values(1.5, several_windows, name="windows", title="Every window of a sequence gets its logits."),
        look.values(1, no_direct, name="no direct", title="Without direct connections there are none."),
        look.gradients(1, several_windows, wrt=(), title="Gradients flow back to every weight, and are right."),
        look.attributes(0.5, one_window, names=("window",)),
        look.double_precision(0.5, several_windows),
        look.device(0.5, several_windows),
        look.vectorised(0.5, many_windows, axis="examples or windows"),
        look.refuses(0.5, one_window, too_few_tokens, title="Fewer tokens than the window holds are a ValueError."),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NewestFirst,
        Interleaved,
        NoTanh,
        SigmoidHidden,
        NoHiddenBias,
        NoOutputBias,
        DirectNotUsed,
        DirectAlways,
        DirectWithBias,
        Probabilities,
        LogProbabilities,
        LastWindowLeftOut,
        WindowsSideBySide,
        LastWindowOnly,
        NoAxisForWindows,
        LoopOverWindows,
        FilledUp,
    ),
)


# ------------------------------------------------------------------------------------------------------- one step


def one_step(draw: Draw, gates: int) -> Case:
    """One step of a cell with so many gates."""
    b, e, d = draw.sizes(3)
    return Case({"x": draw.normal(b, e), "h": draw.normal(b, d), **weights_by_name(draw, gates, e, d)})


def steps_of(gates: int) -> Maker:
    """One step of a cell with so many gates."""
    return lambda draw: one_step(draw, gates)


def wide(gates: int, *, cell: bool = False) -> Callable[[Draw, int], Case]:
    """One step of more examples."""

    def make(draw: Draw, factor: int) -> Case:
        case = Case(
            {"x": draw.normal(3 * factor, 4), "h": draw.normal(3 * factor, 5), **weights_by_name(draw, gates, 4, 5)},
        )
        return case.with_arguments(c=draw.normal(3 * factor, 5)) if cell else case

    return make


def unfit(gates: int, wrong: int, *, cell: bool = False) -> Maker:
    """Weights of another kind of cell, with another number of gates."""

    def make(draw: Draw) -> Case:
        case = Case({"x": draw.normal(3, 5), "h": draw.normal(3, 4), **weights_by_name(draw, wrong, 5, 4)})
        return case.with_arguments(c=draw.normal(3, 4)) if cell else case

    return make


def cell_aspects(maker: Maker, wide: Callable[[Draw, int], Case], unfit: Maker, wrt: tuple[str, ...]) -> list[Aspect]:
    """What is asked of every cell beside its numbers."""
    return [
        look.gradients(1, maker, wrt=(*wrt, "weight_ih", "weight_hh", "bias_ih", "bias_hh")),
        look.unmutated(0.5, maker),
        look.half_precision(0.5, maker),
        look.double_precision(0.5, maker),
        look.device(0.5, maker),
        look.vectorised(0.5, wide, axis=EXAMPLES),
        look.refuses(0.5, maker, unfit, title="Weights that do not fit the state are a ValueError."),
    ]


def fit(h: Tensor, weight_hh: Tensor, gates: int) -> None:
    """Refuse weights that do not belong to a state of this width."""
    if len(weight_hh) != gates * h.shape[-1]:
        raise ValueError(f"a state of {h.shape[-1]} and weights of {len(weight_hh)} rows")


def plain_step(draw: Draw) -> Case:
    """One step of a cell without gates."""
    return one_step(draw, 1)


@misconception("tanh forgotten", read="rnn-cell")
@with_four_weights
def cell_without_tanh(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """There is no tanh. Without it the state is a linear function of all inputs, however many steps there are, and nothing keeps it
    from growing.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh


@misconception("sigmoid for tanh", read="rnn-cell")
@with_four_weights
def cell_with_sigmoid(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The sum is squashed by the logistic function, from 0 to 1. This cell has a hyperbolic tangent, from -1 to 1."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return torch.sigmoid(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)


@misconception("ReLU for tanh", read="rnn-cell")
@with_four_weights
def cell_with_relu(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The sum passes through ReLU, which cuts off what is below zero and sets no limit above: over many steps the state can grow
    without end. This cell has a hyperbolic tangent, from -1 to 1.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return torch.relu(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)


@misconception("state matrix not transposed", read="rnn-cell")
@with_four_weights
def cell_not_transposed(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The state is multiplied with weight_hh as it stands. Its rows are the outputs, as nn.Linear keeps them, and a state is a row:
    the matrix must be transposed. Since it is square, no shape tells.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh + bias_hh)


@misconception("old state ignored", read="rnn-cell")
@with_four_weights
def cell_without_state(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The old state does not enter the sum. Without it the network has no memory: it is a layer that sees one input."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return torch.tanh(x @ weight_ih.T + bias_ih + bias_hh)


@misconception("second bias forgotten", read="rnn-cell")
@with_four_weights
def cell_with_one_bias(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The bias bias_hh is missing from the sum. One bias would do, but the weights come with two, and both count."""
    weight_ih, weight_hh, bias_ih, _ = weights
    fit(h, weight_hh, 1)
    return torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T)


@misconception("squashed separately", read="rnn-cell")
@with_four_weights
def cell_squashed_separately(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The input's part and the state's part each pass through a tanh of their own. They are added first: what the state says decides
    what the input does only if they meet inside the tanh.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return torch.tanh(x @ weight_ih.T + bias_ih) + torch.tanh(h @ weight_hh.T + bias_hh)


@misconception("old state added", read="rnn-cell")
@with_four_weights
def cell_with_shortcut(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The old state is added to the new one. That is a good idea, and an LSTM's; this cell replaces its state at every step."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    return h + torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)


@misconception("state overwritten", read="what-goes-wrong-01")
@with_four_weights
def cell_overwrites(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The new state is written into the old one. Whoever called still needs it: to compare, to go back, to compute a gradient."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    new = torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)
    h.copy_(new)
    return new


@misconception("one example after another", read="rnn-cell")
@with_four_weights
def cell_by_examples(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The numbers are right, but a Python loop goes from example to example. One matrix product does all of them."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 1)
    rows = [weight_ih @ one + bias_ih + weight_hh @ old + bias_hh for one, old in zip(x, h, strict=True)]
    return torch.tanh(torch.stack(rows))


@misconception("weights not checked", read="shapes-01")
@with_four_weights
def cell_unchecked(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """Weights of another kind of cell are multiplied as well, and what comes out is no state. Compare their shapes with those of the
    inputs and the state, and raise a ValueError that names them.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    return torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)


# -------------------------------------------------------------------------------------------------------- the run


def run_from_zeros(draw: Draw) -> Case:
    """A sequence without a first state."""
    b, t, e, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, e), **weights_by_name(draw, 1, e, d)})


def run_from_state(draw: Draw) -> Case:
    """A sequence with a first state."""
    case = run_from_zeros(draw)
    return case.with_arguments(h_0=draw.normal(len(case.arguments["x"]), len(case.arguments["weight_hh"])))


def run_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    return Case(
        {"x": draw.normal(3 * factor, 4, 2), **weights_by_name(draw, 1, 2, 5), "h_0": draw.normal(3 * factor, 5)}
    )


def tanh_steps(inputs: Sequence[Tensor], h: Tensor, weights: Four) -> list[Tensor]:
    """The state after every step."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    states = []
    for x_t in inputs:
        h = torch.tanh(x_t @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)
        states.append(h)
    return states


def first_state(x: Tensor, weight_hh: Tensor, h_0: Tensor | None) -> Tensor:
    """Return the state before the first step: the one that is given, or zero."""
    return x.new_zeros(len(x), weight_hh.shape[1]) if h_0 is None else h_0


@misconception("state not carried", read="unrolled")
@with_four_weights
def run_not_carried(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Every step begins with the first state again, so what was read before is forgotten. The state after a step is the state before
    the next one: that is all the memory there is.
    """
    _, weight_hh, _, _ = weights
    h = first_state(x, weight_hh, h_0)
    states = [tanh_steps([x_t], h, weights)[0] for x_t in x.unbind(1)]
    return torch.stack(states, dim=1), states[-1]


@misconception("first state ignored", read="unrolled")
@with_four_weights
def run_ignores_first_state(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The run begins with zeros even where a first state is given. It is how a decoder is told what to say, and how a long text is
    read in pieces.
    """
    _, weight_hh, _, _ = weights
    states = tanh_steps(x.unbind(1), first_state(x, weight_hh, None), weights)
    return torch.stack(states, dim=1), states[-1]


@misconception("states before the steps", read="unrolled")
@with_four_weights
def run_states_before(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The states are those before each step, so the first is the one that was given and the last is missing. At every step the state
    that has seen this step's input is asked for.
    """
    _, weight_hh, _, _ = weights
    h = first_state(x, weight_hh, h_0)
    states = [h, *tanh_steps(x.unbind(1), h, weights)]
    return torch.stack(states[:-1], dim=1), states[-1]


@misconception("time before batch", read="shapes-01")
@with_four_weights
def run_time_first(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The states come out as (T, B, D). PyTorch does so unless it is told batch_first=True; in this course the batch comes first."""
    _, weight_hh, _, _ = weights
    states = tanh_steps(x.unbind(1), first_state(x, weight_hh, h_0), weights)
    return torch.stack(states), states[-1]


@misconception("along the batch", read="shapes-01")
@with_four_weights
def run_along_the_batch(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The run goes along the first axis, so the state is handed from one example of the batch to the next. Time is the second axis."""
    _, weight_hh, _, _ = weights
    h = x.new_zeros(x.shape[1], weight_hh.shape[1])
    states = tanh_steps(x.unbind(0), h, weights)
    return torch.stack(states), states[-1]


@misconception("read from the right", read="unrolled")
@with_four_weights
def run_from_the_right(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The sequence is read from its end to its beginning, so every state has seen the future and nothing of the past."""
    _, weight_hh, _, _ = weights
    states = tanh_steps(x.flip(1).unbind(1), first_state(x, weight_hh, h_0), weights)
    return torch.stack(states[::-1], dim=1), states[-1]


@misconception("an axis too many for the last state", read="shapes-01")
@with_four_weights
def run_with_layer_axis(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The last state has an axis for the layers in front, (1, B, D), as torch.nn.RNN gives it. There is one layer here and no axis
    for it: (B, D), so that it can be handed on as the next h_0.
    """
    _, weight_hh, _, _ = weights
    states = tanh_steps(x.unbind(1), first_state(x, weight_hh, h_0), weights)
    return torch.stack(states, dim=1), states[-1][None]


@misconception("cut off after every step", read="gradient-through-time")
@with_four_weights
def run_cut_off(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The state is detached after every step, so no gradient reaches an earlier one: the network cannot learn to remember. The
    numbers are right all the same.
    """
    _, weight_hh, _, _ = weights
    h = first_state(x, weight_hh, h_0)
    states = []
    for x_t in x.unbind(1):
        h = tanh_steps([x_t], h.detach(), weights)[0]
        states.append(h)
    return torch.stack(states, dim=1), h


@misconception("random first state", read="unrolled")
@with_four_weights
def run_from_random(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Without a first state the run begins with random numbers, so the same sentence gives other states every time. Begin with
    zeros.
    """
    _, weight_hh, _, _ = weights
    h = torch.randn_like(first_state(x, weight_hh, None)) if h_0 is None else h_0
    states = tanh_steps(x.unbind(1), h, weights)
    return torch.stack(states, dim=1), states[-1]


@misconception("first state made on the CPU", read="shapes-01")
@with_four_weights
def run_from_cpu(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The zeros of the beginning are made on the CPU in single precision. It works until the inputs live on a GPU or in another
    precision: take device and dtype from x.
    """
    _, weight_hh, _, _ = weights
    h = torch.zeros(len(x), weight_hh.shape[1], dtype=torch.float32, device="cpu") if h_0 is None else h_0
    states = tanh_steps(x.unbind(1), h, weights)
    return torch.stack(states, dim=1), states[-1]


@misconception("first state overwritten", read="what-goes-wrong-01")
@with_four_weights
def run_overwrites(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The first state is overwritten with the next ones. Whoever gave it wanted to keep it, for example to begin another run there."""
    _, weight_hh, _, _ = weights
    states = tanh_steps(x.unbind(1), first_state(x, weight_hh, h_0), weights)
    if h_0 is not None:
        h_0.copy_(states[-1])
    return torch.stack(states, dim=1), states[-1]


@misconception("one example after another", read="unrolled")
@with_four_weights
def run_by_examples(x: Tensor, weights: Four, h_0: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from example to example. Only the steps must be taken one after another; at each
    of them all examples go together.
    """
    _, weight_hh, _, _ = weights
    h = first_state(x, weight_hh, h_0)
    rows = [torch.cat(tanh_steps(one[:, None].unbind(0), old[None], weights)) for one, old in zip(x, h, strict=True)]
    states = torch.stack(rows)
    return states, states[:, -1]


RNN_FORWARD = Exercise(
    reference=recurrent.rnn_forward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, run_from_zeros, run_from_state),
        look.values(1, run_from_zeros, title="Without a first state it begins with zeros, and every state is right."),
        look.values(1, run_from_state, name="first state", title="A first state that is given is where it begins."),
        look.part(0.5, run_from_state, output="output[1]", name="last state", title="The last state is returned too."),
        look.gradients(1, run_from_state, wrt=("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h_0")),
        look.batch_independence(0.5, run_from_state, batched=("x", "h_0")),
        look.unmutated(0.5, run_from_state),
        look.double_precision(0.5, run_from_zeros),
        look.device(0.5, run_from_zeros),
        look.vectorised(0.5, run_of_many, axis=EXAMPLES),
    ),
    forbidden=READY_MADE,
    rule_case=(run_from_zeros, run_from_state),
    misconceptions=(
        run_not_carried,
        run_ignores_first_state,
        run_states_before,
        run_time_first,
        run_along_the_batch,
        run_from_the_right,
        run_with_layer_axis,
        run_cut_off,
        run_from_random,
        run_from_cpu,
        run_overwrites,
        run_by_examples,
    ),
)
