"""Checks of chapter 01: the gated cells, and the ways to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.aspects import Aspect, Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.recurrent import (
    CHAPTER,
    EXAMPLES,
    READY_MADE,
    Four,
    cell_aspects,
    fit,
    one_step,
    padding_behind,
    steps_of,
    unfit,
    weights_by_name,
    wide,
    with_four_weights,
)
from autograder.checks.sections import HEADINGS
from tfcourse import recurrent

Run: TypeAlias = tuple[Tensor, tuple[Tensor, Tensor]]


def four_weights(draw: Draw, inputs: int, states: int) -> Four:
    """The four weights of an LSTM as a tuple."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights_by_name(draw, 4, inputs, states).values()
    return weight_ih, weight_hh, bias_ih, bias_hh


# ----------------------------------------------------------------------------------------------- the LSTM, one step


def memory_step(draw: Draw) -> Case:
    """One step of an LSTM."""
    case = one_step(draw, 4)
    return case.with_arguments(c=draw.normal(*case.arguments["h"].shape))


def _gates(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The four runs of numbers side by side, before they are squashed."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 4)
    return x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh


def _remember(i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _lstm_step(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    i, f, g, o = _gates(x, h, weights).chunk(4, -1)
    return _remember(i, f, g, o, c)


@misconception("output gate before the candidate", read="lstm")
@with_four_weights
def lstm_gates_ifog(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The runs are taken in the order i, f, o, g. In the weights the candidate g comes third and the output gate o last. All runs have
    the same size, so nothing but the numbers tells.
    """
    i, f, o, g = _gates(x, h, weights).chunk(4, -1)
    return _remember(i, f, g, o, c)


@misconception("forget and input gate swapped", read="lstm")
@with_four_weights
def lstm_gates_figo(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The forget gate and the input gate have changed places: what should be kept is overwritten, and the other way round. In the
    weights the input gate comes first.
    """
    f, i, g, o = _gates(x, h, weights).chunk(4, -1)
    return _remember(i, f, g, o, c)


@misconception("gates dealt out in turn", read="lstm")
@with_four_weights
def lstm_gates_dealt_out(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The numbers are dealt out like cards, the first to i, the second to f and so on. Each gate owns a run of D neighbouring rows."""
    gates = _gates(x, h, weights)
    i, f, g, o = gates.reshape(len(x), -1, 4).unbind(-1)
    return _remember(i, f, g, o, c)


@misconception("tanh of the cell forgotten", read="lstm")
@with_four_weights
def lstm_shows_raw_cell(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The output gate lets the cell itself through. The cell may grow without limit; what is shown of it passes through tanh first."""
    i, f, g, o = _gates(x, h, weights).chunk(4, -1)
    c = _remember(i, f, g, o, c)[1]
    return torch.sigmoid(o) * c, c


@misconception("tanh stays in the cell", read="lstm")
@with_four_weights
def lstm_squashes_cell(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The cell that is handed on has been squashed by tanh. Only what is shown is squashed: the cell is carried on by a product and a
    sum alone, and that is why its gradient lives so long.
    """
    h, c = _lstm_step(x, h, c, weights)
    return h, torch.tanh(c)


@misconception("sigmoid for the candidate", read="lstm")
@with_four_weights
def lstm_candidate_sigmoid(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The candidate g is squashed like a gate, from 0 to 1, so the cell can only grow. It is what is written, not how much of it: tanh."""
    i, f, g, o = _gates(x, h, weights).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.sigmoid(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@misconception("candidate not squashed", read="lstm")
@with_four_weights
def lstm_candidate_raw(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The candidate g is written into the cell as it is. It passes through tanh first, so that one step adds no more than one to
    the cell.
    """
    i, f, g, o = _gates(x, h, weights).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * g
    return torch.sigmoid(o) * torch.tanh(c), c


@misconception("writes what it does not keep", read="lstm")
@with_four_weights
def lstm_coupled(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The candidate is weighed with 1 - f. A gated recurrent unit does so; an LSTM has an input gate of its own, and can keep and write
    at once.
    """
    _, f, g, o = _gates(x, h, weights).chunk(4, -1)
    return _remember(-f, f, g, o, c)


@misconception("old cell shown", read="lstm")
@with_four_weights
def lstm_shows_old_cell(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The output gate looks at the cell from before the step. What has just been written must be seen at once: take the new cell."""
    i, f, g, o = _gates(x, h, weights).chunk(4, -1)
    return torch.sigmoid(o) * torch.tanh(c), _remember(i, f, g, o, c)[1]


@misconception("state in the place of the cell", read="lstm")
@with_four_weights
def lstm_keeps_state(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The forget gate is applied to the state h. What is kept is the cell c; the state has passed the output gate, and what that held
    back would be lost.
    """
    return _lstm_step(x, h, h + 0 * c, weights)


@misconception("state and cell swapped", read="lstm")
@with_four_weights
def lstm_returns_cell_first(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The cell is returned first. It is state, then cell, here as in PyTorch."""
    h, c = _lstm_step(x, h, c, weights)
    return c, h


@misconception("second bias forgotten", read="lstm")
@with_four_weights
def lstm_one_bias(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The bias bias_hh is missing from the gates. One bias would do, but the weights come with two, and both count."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    return _lstm_step(x, h, c, (weight_ih, weight_hh, bias_ih, bias_hh * 0))


@misconception("an axis for the layers", read="shapes-01")
@with_four_weights
def lstm_with_layer_axis(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """State and cell have an axis for the layers in front, (1, B, D), as those of torch.nn.LSTM have. A cell is one step of one layer."""
    h, c = _lstm_step(x, h, c, weights)
    return h[None], c[None]


@misconception("results made on the CPU", read="shapes-01")
@with_four_weights
def lstm_on_the_cpu(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The results are filled into tensors that the function makes, in single precision on the CPU. Let the products make them: they have
    the dtype and the device of their factors.
    """
    new = torch.zeros(2, *h.shape, dtype=torch.float32, device="cpu")
    new[0], new[1] = _lstm_step(x, h, c, weights)
    return new[0], new[1]


@misconception("cell overwritten", read="what-goes-wrong-01")
@with_four_weights
def lstm_overwrites_cell(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The new cell is written into the old one. Whoever called still needs it: to compare, to go back, to compute a gradient."""
    h_new, c_new = _lstm_step(x, h, c.clone(), weights)
    c.copy_(c_new)
    return h_new, c_new


@misconception("one example after another", read="lstm")
@with_four_weights
def lstm_by_examples(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from example to example. One matrix product does all of them."""
    pairs = [_lstm_step(x[b : b + 1], h[b : b + 1], c[b : b + 1], weights) for b in range(len(x))]
    return torch.cat([pair[0] for pair in pairs]), torch.cat([pair[1] for pair in pairs])


@misconception("weights not checked", read="shapes-01")
@with_four_weights
def lstm_unchecked(x: Tensor, h: Tensor, c: Tensor, weights: Four) -> tuple[Tensor, Tensor]:
    """Weights of another kind of cell end in an error about something else, or in none. Compare their shapes with those of the inputs
    and the state, and raise a ValueError that names them.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    i, f, g, o = (x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh).chunk(4, -1)
    return _remember(i, f, g, o, c)


# --------------------------------------------------------------------------------------------------- the LSTM's run


def memory_run(draw: Draw) -> Case:
    """A sequence without a first state."""
    b, t, e, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, e), **weights_by_name(draw, 4, e, d)})


def memory_run_from_state(draw: Draw) -> Case:
    """A sequence with a first state and cell."""
    case = memory_run(draw)
    b, d = len(case.arguments["x"]), case.arguments["weight_hh"].shape[1]
    return case.with_arguments(state=(draw.normal(b, d), draw.normal(b, d)))


def memory_run_padded(draw: Draw) -> Case:
    """Padding behind the tokens, and a first state."""
    case = memory_run_from_state(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def memory_run_in_front(draw: Draw) -> Case:
    """Padding in front of the tokens, and a first state."""
    case = memory_run_padded(draw)
    return case.with_arguments(mask=case.arguments["mask"].flip(1))


def memory_run_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    mask = torch.ones(3 * factor, 4, dtype=torch.bool)
    mask[1:, 2:] = False
    return Case({"x": draw.normal(3 * factor, 4, 2), **weights_by_name(draw, 4, 2, 3), "mask": mask})


def padding_does_not_count(points: float, maker: Maker) -> Aspect:
    """What stands at padded steps has no influence."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        x, mask = case.arguments["x"], case.arguments["mask"]
        return case.with_arguments(x=torch.where(mask[..., None], x, draw.normal(*x.shape))), [], []

    title = "It does not matter what stands at padded steps."
    return look.relation("padding", title, points, maker, change, claim="what stands at a padded step has an influence")


class _Memory:
    """The run in steps; each mistake below changes one of them."""

    def begin(self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        zeros = x.new_zeros(len(x), weights[1].shape[1])
        return (zeros, zeros) if state is None else state

    def enter(self, h: Tensor, c: Tensor, start: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return h, c

    def hold(self, real: Tensor, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return torch.where(real, new[0], old[0]), torch.where(real, new[1], old[1])

    def show(self, real: Tensor, new: Tensor, held: Tensor) -> Tensor:
        return torch.where(real, new, torch.zeros_like(new))

    def finish(self, states: Tensor, h: Tensor, c: Tensor) -> Run:
        return states, (h, c)

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        start = self.begin(x, weights, state)
        h, c = start
        shown = []
        for t, x_t in enumerate(x.unbind(1)):
            new = _lstm_step(x_t, *self.enter(h, c, start), weights)
            if mask is None:
                (h, c), seen = new, new[0]
            else:
                h, c = self.hold(mask[:, t, None], new, (h, c))
                seen = self.show(mask[:, t, None], new[0], h)
            shown.append(seen)
        return self.finish(torch.stack(shown, dim=1), h, c)

    def __call__(
        self,
        x: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        state: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Run:
        return self.run(x, (weight_ih, weight_hh, bias_ih, bias_hh), state, mask)


def _mistaken(name: str, *, read: str) -> Callable[[type[_Memory]], Any]:
    """Declare a run with a changed step as a mistake; its docstring is what is told."""

    def declare(kind: type[_Memory]) -> Any:
        run = kind()

        def wrong(
            x: Tensor,
            weight_ih: Tensor,
            weight_hh: Tensor,
            bias_ih: Tensor,
            bias_hh: Tensor,
            state: tuple[Tensor, Tensor] | None = None,
            mask: Tensor | None = None,
        ) -> Run:
            return run(x, weight_ih, weight_hh, bias_ih, bias_hh, state, mask)

        wrong.__doc__ = kind.__doc__
        return misconception(name, read=read)(wrong)

    return declare


@_mistaken("state not carried", read="unrolled")
class StateNotCarried(_Memory):
    """Every step begins with the first state again; only the cell is carried. Both are: the gates look at the state to decide."""

    def enter(self, h: Tensor, c: Tensor, start: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return start[0], c


@_mistaken("cell not carried", read="lstm")
class CellNotCarried(_Memory):
    """Every step begins with the first cell again; only the state is carried. The cell is the memory: without it this is a plain
    recurrent network with odd gates.
    """

    def enter(self, h: Tensor, c: Tensor, start: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return h, start[1]


@_mistaken("first state ignored", read="unrolled")
class FirstStateIgnored(_Memory):
    """The run begins with zeros even where a state is given. It is how a decoder is told what to say."""

    def begin(self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        return super().begin(x, weights, None)


@_mistaken("first state and cell swapped", read="lstm")
class FirstStateSwapped(_Memory):
    """The pair that is given is taken for cell and state. It is state and cell, in this order, here as in PyTorch."""

    def begin(self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        h, c = super().begin(x, weights, state)
        return c, h


@_mistaken("first state made on the CPU", read="shapes-01")
class FirstStateOnCpu(_Memory):
    """The zeros of the beginning are made on the CPU in single precision. It works until the inputs live on a GPU or in another
    precision: take device and dtype from x.
    """

    def begin(self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        zeros = torch.zeros(len(x), weights[1].shape[1], dtype=torch.float32, device="cpu")
        return (zeros, zeros) if state is None else state


@_mistaken("mask ignored", read="what-goes-wrong-01")
class MaskIgnored(_Memory):
    """The mask is not used: the network reads the padding as if it were text, and its last state depends on how much there is of it."""

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        return super().run(x, weights, state, None)


@_mistaken("mask inverted", read="what-goes-wrong-01")
class MaskInverted(_Memory):
    """The mask is read the wrong way round: the padding is read and the text is skipped. True means a real token."""

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        return super().run(x, weights, state, None if mask is None else ~mask)


@_mistaken("padding erases the state", read="what-goes-wrong-01")
class PaddingErases(_Memory):
    """At a padded step state and cell are set to zero, so everything that was read is forgotten. They stay as they were."""

    def hold(self, real: Tensor, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return new[0] * real, new[1] * real


@_mistaken("cell moves at padded steps", read="what-goes-wrong-01")
class CellMoves(_Memory):
    """At a padded step the state stays as it was and the cell does not. Both are carried, so both must stay."""

    def hold(self, real: Tensor, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return torch.where(real, new[0], old[0]), new[1]


@_mistaken("state repeated at padded steps", read="shapes-01")
class StateRepeated(_Memory):
    """At padded steps the state that was carried over is shown again. Zeros are asked for there, as PyTorch's packed sequences give
    them: nothing has been read.
    """

    def show(self, real: Tensor, new: Tensor, held: Tensor) -> Tensor:
        return held


@_mistaken("padded steps shown", read="shapes-01")
class PaddedShown(_Memory):
    """State and cell are carried past the padding, and yet the states of padded steps are shown. Zeros are asked for there."""

    def show(self, real: Tensor, new: Tensor, held: Tensor) -> Tensor:
        return new


@_mistaken("along the batch", read="shapes-01")
class AlongTheBatch(_Memory):
    """The run goes along the first axis, so state and cell are handed from example to example. Time is the second axis."""

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        states, end = super().run(x.transpose(0, 1), weights, state, None if mask is None else mask.T)
        return states.transpose(0, 1), end


@_mistaken("last column for the last state", read="what-goes-wrong-01")
class LastColumn(_Memory):
    """The last state is taken from the last column, which is padding for all but the longest sequences. It is the state after the last
    real token.
    """

    def finish(self, states: Tensor, h: Tensor, c: Tensor) -> Run:
        return states, (states[:, -1], c)


@_mistaken("lengths taken for places", read="what-goes-wrong-01")
class LengthsForPlaces(_Memory):
    """Only the number of real tokens is looked at: so many steps from the left are taken for the text. That goes wrong where the
    padding stands in front. The mask says of every step by itself whether it is real.
    """

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        if mask is not None:
            mask = torch.arange(x.shape[1], device=x.device) < mask.sum(1, keepdim=True)
        return super().run(x, weights, state, mask)


@_mistaken("one example after another", read="unrolled")
class OneByOne(_Memory):
    """The numbers are right, but a Python loop goes from example to example. Only the steps must be taken one after another; at each
    of them all examples go together.
    """

    def run(
        self, x: Tensor, weights: Four, state: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Run:
        h, c = self.begin(x, weights, state)
        rows = [
            _Memory().run(x[s], weights, (h[s], c[s]), None if mask is None else mask[s])
            for s in (slice(b, b + 1) for b in range(len(x)))
        ]
        return torch.cat([row[0] for row in rows]), (
            torch.cat([row[1][0] for row in rows]),
            torch.cat([row[1][1] for row in rows]),
        )


LSTM_FORWARD = Exercise(
    reference=recurrent.lstm_forward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, memory_run, memory_run_padded),
        look.values(1, memory_run, title="Without a first state it begins with zeros, and every state is right."),
        look.values(1, memory_run_from_state, name="first state", title="A first state and cell are where it begins."),
        look.values(
            1.5, memory_run_padded, name="mask", title="Padding changes neither state nor cell, and shows zeros."
        ),
        look.values(
            0.5, memory_run_in_front, name="padding in front", title="Padding in front of the tokens is skipped too."
        ),
        padding_does_not_count(0.5, memory_run_padded),
        look.gradients(1, memory_run_padded, wrt=("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh")),
        look.batch_independence(0.5, memory_run, batched=("x",)),
        look.double_precision(0.5, memory_run),
        look.device(0.5, memory_run_padded, memory_run),
        look.vectorised(0.5, memory_run_of_many, axis=EXAMPLES),
    ),
    forbidden=READY_MADE,
    rule_case=(memory_run, memory_run_padded),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        StateNotCarried,
        CellNotCarried,
        FirstStateIgnored,
        FirstStateSwapped,
        FirstStateOnCpu,
        MaskIgnored,
        MaskInverted,
        PaddingErases,
        CellMoves,
        StateRepeated,
        PaddedShown,
        AlongTheBatch,
        LastColumn,
        LengthsForPlaces,
        OneByOne,
    ),
)


# -------------------------------------------------------------------------------------------------- the gated unit

gated_step = steps_of(3)


def _thirds(x: Tensor, h: Tensor, weights: Four) -> tuple[Tensor, ...]:
    """The three runs of the input and the three of the state."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    fit(h, weight_hh, 3)
    return (*(x @ weight_ih.T + bias_ih).chunk(3, -1), *(h @ weight_hh.T + bias_hh).chunk(3, -1))


def _update(r: Tensor, z: Tensor, n_i: Tensor, n_h: Tensor, h: Tensor) -> Tensor:
    z = torch.sigmoid(z)
    return (1 - z) * torch.tanh(n_i + torch.sigmoid(r) * n_h) + z * h


@misconception("update gate the other way round", read="gru")
@with_four_weights
def gru_update_reversed(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The candidate is weighed with z and the old state with 1 - z. Some papers write it so; in these weights z says how much of the old
    state stays.
    """
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    return _update(r_i + r_h, -(z_i + z_h), n_i, n_h, h)


@misconception("reset and update gate swapped", read="gru")
@with_four_weights
def gru_gates_swapped(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The reset gate and the update gate have changed places. In the weights the reset gate comes first, then the update gate."""
    z_i, r_i, n_i, z_h, r_h, n_h = _thirds(x, h, weights)
    return _update(r_i + r_h, z_i + z_h, n_i, n_h, h)


@misconception("reset before the matrix", read="gru")
@with_four_weights
def gru_reset_first(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The reset gate is applied to the state before it meets the matrix. That is how the paper of 2014 has it; PyTorch, and this course
    with it, applies the gate to what comes out of the matrix, which lets all products be done at once.
    """
    _, weight_hh, _, bias_hh = weights
    r_i, z_i, n_i, r_h, z_h, _ = _thirds(x, h, weights)
    D = h.shape[-1]
    n_h = (torch.sigmoid(r_i + r_h) * h) @ weight_hh[2 * D :].T + bias_hh[2 * D :]
    z = torch.sigmoid(z_i + z_h)
    return (1 - z) * torch.tanh(n_i + n_h) + z * h


@misconception("reset gate past the bias", read="gru")
@with_four_weights
def gru_reset_past_bias(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The reset gate is multiplied with the product alone, and the bias of the state's part is added afterwards. The bias belongs to what
    is reset; that is why this cell needs two of them.
    """
    _, _, _, bias_hh = weights
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    bias = bias_hh[2 * h.shape[-1] :]
    return _update(r_i + r_h, z_i + z_h, n_i + bias, n_h - bias, h)


@misconception("reset gate not used", read="gru")
@with_four_weights
def gru_without_reset(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The reset gate is not used: the old state enters the candidate in full, and the cell cannot begin anew."""
    _, z_i, n_i, _, z_h, n_h = _thirds(x, h, weights)
    z = torch.sigmoid(z_i + z_h)
    return (1 - z) * torch.tanh(n_i + n_h) + z * h


@misconception("reset gate on the input", read="gru")
@with_four_weights
def gru_resets_input(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The reset gate is multiplied with the input's part. It is the past that can be reset: the state's part."""
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    return _update(r_i + r_h, z_i + z_h, n_h, n_i, h)


@misconception("sigmoid for the candidate", read="gru")
@with_four_weights
def gru_candidate_sigmoid(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The candidate n is squashed like a gate, from 0 to 1, so the state can never become negative. It passes through tanh."""
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    z = torch.sigmoid(z_i + z_h)
    return (1 - z) * torch.sigmoid(n_i + torch.sigmoid(r_i + r_h) * n_h) + z * h


@misconception("candidate first in the weights", read="gru")
@with_four_weights
def gru_candidate_first(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The first run is taken for the candidate. The order is r, z, n. All runs have the same size, so nothing but the numbers tells."""
    n_i, r_i, z_i, n_h, r_h, z_h = _thirds(x, h, weights)
    return _update(r_i + r_h, z_i + z_h, n_i, n_h, h)


@misconception("old state lost", read="gru")
@with_four_weights
def gru_loses_state(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The part of the old state that stays is missing: only (1 - z) ⊙ n is returned. Carrying the state over unchanged is what this
    cell is for.
    """
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    return _update(r_i + r_h, z_i + z_h, n_i, n_h, h * 0)


@misconception("an axis for the layers", read="shapes-01")
@with_four_weights
def gru_with_layer_axis(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The state has an axis for the layers in front, (1, B, D), as torch.nn.GRU gives it. A cell is one step of one layer: (B, D)."""
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    return _update(r_i + r_h, z_i + z_h, n_i, n_h, h)[None]


@misconception("result made on the CPU", read="shapes-01")
@with_four_weights
def gru_on_the_cpu(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The result is filled into a tensor that the function makes, in single precision on the CPU. Let the products make it: they have
    the dtype and the device of their factors.
    """
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    new = torch.zeros(h.shape, dtype=torch.float32, device="cpu")
    new[:] = _update(r_i + r_h, z_i + z_h, n_i, n_h, h)
    return new


@misconception("state overwritten", read="what-goes-wrong-01")
@with_four_weights
def gru_overwrites(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The new state is written into the old one. Whoever called still needs it."""
    r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x, h, weights)
    new = _update(r_i + r_h, z_i + z_h, n_i, n_h, h.clone())
    h.copy_(new)
    return new


@misconception("one example after another", read="gru")
@with_four_weights
def gru_by_examples(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """The numbers are right, but a Python loop goes from example to example. One matrix product does all of them."""
    rows = []
    for b in range(len(x)):
        old = h[b : b + 1]
        r_i, z_i, n_i, r_h, z_h, n_h = _thirds(x[b : b + 1], old, weights)
        rows.append(_update(r_i + r_h, z_i + z_h, n_i, n_h, old))
    return torch.cat(rows)


@misconception("weights not checked", read="shapes-01")
@with_four_weights
def gru_unchecked(x: Tensor, h: Tensor, weights: Four) -> Tensor:
    """Weights of another kind of cell end in an error about something else, or in none. Compare their shapes with those of the inputs
    and the state, and raise a ValueError that names them.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    r_i, z_i, n_i = (x @ weight_ih.T + bias_ih).chunk(3, -1)
    r_h, z_h, n_h = (h @ weight_hh.T + bias_hh).chunk(3, -1)
    return _update(r_i + r_h, z_i + z_h, n_i, n_h, h)


# ------------------------------------------------------------------------------------------------- both directions


def both_ways(draw: Draw) -> Case:
    """A sequence to read from both sides."""
    b, t, e, d = draw.sizes(4)
    return Case(
        {
            "x": draw.normal(b, t, e),
            "forward_weights": four_weights(draw, e, d),
            "backward_weights": four_weights(draw, e, d),
        }
    )


def both_ways_padded(draw: Draw) -> Case:
    """Sequences of different lengths, padding behind them."""
    case = both_ways(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def both_ways_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    return Case(
        {
            "x": draw.normal(3 * factor, 4, 2),
            "forward_weights": four_weights(draw, 2, 3),
            "backward_weights": four_weights(draw, 2, 3),
        }
    )


def _turn(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.flip(1)


def _read_both(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None) -> tuple[Run, Run]:
    """What the two LSTMs say, that of the right-to-left one still in the order in which it reads."""
    return _Memory().run(x, forward_weights, None, mask), _Memory().run(x.flip(1), backward_weights, None, _turn(mask))


def _beside(left: Tensor, right: Tensor, ends: tuple[Run, Run]) -> Run:
    (_, (h_left, c_left)), (_, (h_right, c_right)) = ends
    return torch.cat([left, right], -1), (torch.stack([h_left, h_right]), torch.stack([c_left, c_right]))


@misconception("not turned back", read="stacked-bidirectional")
def both_not_turned_back(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The states of the right-to-left LSTM are in the order in which it read: beside the first token stands what it said of the last
    one. Turn them round again, so that both halves of a row are about the same token.
    """
    ends = _read_both(x, forward_weights, backward_weights, mask)
    return _beside(ends[0][0], ends[1][0], ends)


@misconception("both from the left", read="stacked-bidirectional")
def both_from_the_left(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """Both LSTMs read from the left, so no state knows what comes after it. The second gets the sequence turned round."""
    ends = _Memory().run(x, forward_weights, None, mask), _Memory().run(x, backward_weights, None, mask)
    return _beside(ends[0][0], ends[1][0], ends)


@misconception("one set of weights", read="stacked-bidirectional")
def both_with_one_set(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """Both directions use the weights of the first. They are two networks, and reading backwards is another trade."""
    ends = _read_both(x, forward_weights, forward_weights, mask)
    return _beside(ends[0][0], ends[1][0].flip(1), ends)


@misconception("weights swapped", read="stacked-bidirectional")
def both_swapped(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """Each direction uses the weights of the other one: `forward_weights` belongs to the LSTM that reads from the left."""
    ends = _read_both(x, backward_weights, forward_weights, mask)
    return _beside(ends[0][0], ends[1][0].flip(1), ends)


@misconception("right half first", read="stacked-bidirectional")
def both_right_first(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The states of the right-to-left LSTM come first. The first D columns belong to the LSTM that reads from the left."""
    ends = _read_both(x, forward_weights, backward_weights, mask)
    return _beside(ends[1][0].flip(1), ends[0][0], ends)


@misconception("states added up", read="stacked-bidirectional")
def both_added(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The states of the two directions are added up. They are put side by side, (B, T, 2·D), so that what comes after can tell the past
    from the future.
    """
    ends = _read_both(x, forward_weights, backward_weights, mask)
    return ends[0][0] + ends[1][0].flip(1), _beside(ends[0][0], ends[1][0], ends)[1]


@misconception("batch turned round", read="stacked-bidirectional")
def both_batch_turned(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The batch is turned round in place of the sequences: the second LSTM reads the other examples, from the left. Time is axis 1."""
    turned = None if mask is None else mask.flip(0)
    ends = _Memory().run(x, forward_weights, None, mask), _Memory().run(x.flip(0), backward_weights, None, turned)
    return _beside(ends[0][0], ends[1][0].flip(0), ends)


@misconception("last column for the last state", read="stacked-bidirectional")
def both_last_column(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The last state of the right-to-left LSTM is taken from the last column, where it has read a single token. It ends at the first
    token: there it has seen everything.
    """
    ends = _read_both(x, forward_weights, backward_weights, mask)
    states, (h, c) = _beside(ends[0][0], ends[1][0].flip(1), ends)
    return states, (torch.stack([h[0], ends[1][0][:, 0]]), c)


@misconception("last states side by side", read="shapes-01")
def both_ends_side_by_side(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The last states stand side by side, (B, 2·D). They stand one behind the other, (2, B, D), as torch.nn.LSTM has them."""
    ends = _read_both(x, forward_weights, backward_weights, mask)
    states, (h, c) = _beside(ends[0][0], ends[1][0].flip(1), ends)
    return states, (torch.cat(h.unbind(), -1), torch.cat(c.unbind(), -1))


@misconception("mask not turned", read="what-goes-wrong-01")
def both_mask_not_turned(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The sequence is turned round and its mask is not, so the second LSTM skips text and reads padding. They belong together."""
    ends = _Memory().run(x, forward_weights, None, mask), _Memory().run(x.flip(1), backward_weights, None, mask)
    return _beside(ends[0][0], ends[1][0].flip(1), ends)


@misconception("mask for one direction", read="what-goes-wrong-01")
def both_mask_for_one(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """Only the LSTM that reads from the left has the mask. The other one meets the padding first, and starts its text in a state that
    depends on how much of it there was.
    """
    ends = _Memory().run(x, forward_weights, None, mask), _Memory().run(x.flip(1), backward_weights)
    return _beside(ends[0][0], ends[1][0].flip(1), ends)


@misconception("mask ignored", read="what-goes-wrong-01")
def both_mask_ignored(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The mask is not used: both LSTMs read the padding as if it were text."""
    ends = _read_both(x, forward_weights, backward_weights, None)
    return _beside(ends[0][0], ends[1][0].flip(1), ends)


@misconception("second begins where the first ends", read="stacked-bidirectional")
def both_in_a_row(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The LSTM that reads from the right begins with the last state of the other one. They know nothing of each other: both begin with
    zeros.
    """
    left = _Memory().run(x, forward_weights, None, mask)
    ends = left, _Memory().run(x.flip(1), backward_weights, left[1], _turn(mask))
    return _beside(left[0], ends[1][0].flip(1), ends)


@misconception("one example after another", read="unrolled")
def both_by_examples(x: Tensor, forward_weights: Four, backward_weights: Four, mask: Tensor | None = None) -> Run:
    """The numbers are right, but a Python loop goes from example to example. At every step all examples go together."""
    rows = []
    for b in range(len(x)):
        ends = _read_both(x[b : b + 1], forward_weights, backward_weights, None if mask is None else mask[b : b + 1])
        rows.append(_beside(ends[0][0], ends[1][0].flip(1), ends))
    states = torch.cat([row[0] for row in rows])
    return states, (torch.cat([row[1][0] for row in rows], 1), torch.cat([row[1][1] for row in rows], 1))


BIDIRECTIONAL_FORWARD = Exercise(
    reference=recurrent.bidirectional_forward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, both_ways),
        look.part(
            1.5, both_ways, output="output[0]", name="values", title="Both states of every token stand side by side."
        ),
        look.part(0.5, both_ways, output="output[1][0]", name="last states", title="The last states are right."),
        look.part(0.5, both_ways, output="output[1][1]", name="last cells", title="The last cells are right."),
        look.values(
            1.5, both_ways_padded, name="mask", title="Padding changes nothing, from whichever side one reads."
        ),
        look.gradients(0.5, both_ways, wrt=("x",), title="Gradients flow back to the inputs, and are right."),
        look.double_precision(0.5, both_ways),
        look.device(0.5, both_ways_padded),
        look.vectorised(0.5, both_ways_of_many, axis=EXAMPLES),
    ),
    forbidden=READY_MADE,
    rule_case=(both_ways, both_ways_padded),
    misconceptions=(
        both_not_turned_back,
        both_from_the_left,
        both_with_one_set,
        both_swapped,
        both_right_first,
        both_added,
        both_batch_turned,
        both_last_column,
        both_ends_side_by_side,
        both_mask_not_turned,
        both_mask_for_one,
        both_mask_ignored,
        both_in_a_row,
        both_by_examples,
    ),
)


# ----------------------------------------------------------------------------------------------------- the storeys


def _storeys(draw: Draw, n_layers: int, *, same_width: bool = False) -> Case:
    b, t, e, d = draw.sizes(4)
    e = d if same_width else e
    layers = [four_weights(draw, e if layer == 0 else d, d) for layer in range(n_layers)]
    return Case({"x": draw.normal(b, t, e), "layers": layers})


def two_storeys(draw: Draw) -> Case:
    """Two layers, inputs of another width."""
    return _storeys(draw, 2)


def three_alike(draw: Draw) -> Case:
    """Three layers, and inputs as wide as the states: a mix-up of layers goes unseen by the shapes."""
    return _storeys(draw, 3, same_width=True)


def one_storey(draw: Draw) -> Case:
    """One layer."""
    return _storeys(draw, 1)


def storeys_padded(draw: Draw) -> Case:
    """Two layers, and padding behind the tokens."""
    case = _storeys(draw, 2)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def storeys_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    return Case({"x": draw.normal(3 * factor, 4, 2), "layers": [four_weights(draw, 2, 3), four_weights(draw, 3, 3)]})


def no_storey(draw: Draw) -> Case:
    """No layer at all."""
    return Case({"x": draw.normal(2, 3, 4), "layers": []})


def _climb(x: Tensor, layers: Sequence[Four], mask: Tensor | None) -> list[Run]:
    """What every layer says."""
    if not layers:
        raise ValueError("no layers")
    runs: list[Run] = []
    for weights in layers:
        runs.append(_Memory().run(runs[-1][0] if runs else x, weights, None, mask))
    return runs


def _pile(states: Tensor, runs: Sequence[Run]) -> Run:
    return states, (torch.stack([run[1][0] for run in runs]), torch.stack([run[1][1] for run in runs]))


@misconception("every layer reads the inputs", read="stacked-bidirectional")
def stack_beside(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Every layer reads the inputs x. That is several networks beside each other; here each reads the states of the one below it."""
    _climb(x, layers[:1], mask)
    runs = [_Memory().run(x, weights, None, mask) for weights in layers]
    return _pile(runs[-1][0], runs)


@misconception("first layer's weights everywhere", read="stacked-bidirectional")
def stack_of_the_first(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Every layer uses the weights of the first. Layers share nothing; it is along time that one network is used again."""
    runs = _climb(x, [layers[0] for _ in layers], mask) if layers else _climb(x, layers, mask)
    return _pile(runs[-1][0], runs)


@misconception("bottom layer returned", read="stacked-bidirectional")
def stack_shows_bottom(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The states of the bottom layer are returned. It is those of the top layer that are asked for."""
    runs = _climb(x, layers, mask)
    return _pile(runs[0][0], runs)


@misconception("last state handed up", read="stacked-bidirectional")
def stack_hands_up(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Each layer begins with the last state of the layer below, which has seen the whole sequence: the future leaks into the first step.
    Every layer begins with zeros.
    """
    _climb(x, layers, mask)
    runs: list[Run] = []
    for weights in layers:
        runs.append(
            _Memory().run(runs[-1][0] if runs else x, weights, runs[-1][1] if runs else None, mask),
        )
    return _pile(runs[-1][0], runs)


@misconception("top layer's last state only", read="shapes-01")
def stack_ends_of_top(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Only the last state and cell of the top layer are returned. Each layer has its own, and a decoder with as many layers needs them
    all: (L, B, D).
    """
    runs = _climb(x, layers, mask)
    return _pile(runs[-1][0], runs[-1:])


@misconception("last states from top to bottom", read="shapes-01")
def stack_ends_reversed(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The last states stand in the order from the top to the bottom. Entry 0 belongs to the bottom layer."""
    runs = _climb(x, layers, mask)
    return _pile(runs[-1][0], runs[::-1])


@misconception("layers behind the batch", read="shapes-01")
def stack_ends_batch_first(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The axis of the layers stands behind the batch, (B, L, D). It is the first one, (L, B, D), as torch.nn.LSTM has it: also there the
    batch does not come first in these two.
    """
    runs = _climb(x, layers, mask)
    states, (h, c) = _pile(runs[-1][0], runs)
    return states, (h.transpose(0, 1), c.transpose(0, 1))


@misconception("inputs added", read="stacked-bidirectional")
def stack_residual(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """What a layer says is added to what it read. Such connections help deep stacks, and chapter 05 has them; this stack does not."""
    _climb(x, layers, mask)
    runs: list[Run] = []
    for weights in layers:
        states, end = _Memory().run(x, weights, None, mask)
        x = states if states.shape != x.shape else x + states
        runs.append((x, end))
    return _pile(x, runs)


@misconception("squashed between the layers", read="stacked-bidirectional")
def stack_squashed(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The states pass through a tanh on their way to the next layer. They have come out of one already, and are handed on as they are."""
    _climb(x, layers, mask)
    runs: list[Run] = []
    for weights in layers:
        runs.append(_Memory().run(torch.tanh(runs[-1][0]) if runs else x, weights, None, mask))
    return _pile(runs[-1][0], runs)


@misconception("states of all layers side by side", read="stacked-bidirectional")
def stack_shows_all(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The states of all layers are put side by side, (B, T, L·D). Only the top layer speaks to the outside."""
    runs = _climb(x, layers, mask)
    return _pile(torch.cat([run[0] for run in runs], -1), runs)


@misconception("mask for the first layer only", read="what-goes-wrong-01")
def stack_mask_below(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Only the bottom layer has the mask. The layers above read the zeros of the padded steps as if they were text, and zeros change a
    state as well.
    """
    _climb(x, layers, mask)
    runs: list[Run] = []
    for weights in layers:
        runs.append(_Memory().run(runs[-1][0] if runs else x, weights, None, None if runs else mask))
    return _pile(runs[-1][0], runs)


@misconception("mask ignored", read="what-goes-wrong-01")
def stack_mask_ignored(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The mask is not used: all layers read the padding as if it were text."""
    runs = _climb(x, layers, None)
    return _pile(runs[-1][0], runs)


@misconception("one example after another", read="unrolled")
def stack_by_examples(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """The numbers are right, but a Python loop goes from example to example. At every step all examples go together."""
    rows = []
    for b in range(len(x)):
        runs = _climb(x[b : b + 1], layers, None if mask is None else mask[b : b + 1])
        rows.append(_pile(runs[-1][0], runs))
    states = torch.cat([row[0] for row in rows])
    return states, (torch.cat([row[1][0] for row in rows], 1), torch.cat([row[1][1] for row in rows], 1))


@misconception("no layers accepted", read="what-goes-wrong-01")
def stack_of_nothing(x: Tensor, layers: Sequence[Four], mask: Tensor | None = None) -> Run:
    """Without a layer the inputs are handed back as if they were states. Raise a ValueError: somebody forgot the weights."""
    if not layers:
        return x, (x[:, -1], x[:, -1])
    runs = _climb(x, layers, mask)
    return _pile(runs[-1][0], runs)


STACKED_FORWARD = Exercise(
    reference=recurrent.stacked_forward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, two_storeys, one_storey),
        look.values(1, two_storeys, title="Two layers: the states of the top one, the ends of both."),
        look.values(1, three_alike, name="three layers", title="Three layers, with inputs as wide as the states."),
        look.part(
            0.5, three_alike, output="output[0]", name="top layer", title="The states of the top layer are right."
        ),
        look.values(1, storeys_padded, name="mask", title="Padding changes nothing in any layer."),
        look.gradients(0.5, two_storeys, wrt=("x",), title="Gradients flow back to the inputs, and are right."),
        look.double_precision(0.5, two_storeys),
        look.device(0.5, storeys_padded),
        look.vectorised(0.5, storeys_of_many, axis=EXAMPLES),
        look.refuses(0.5, one_storey, no_storey, title="No layer at all is a ValueError."),
    ),
    forbidden=READY_MADE,
    rule_case=(two_storeys, storeys_padded),
    misconceptions=(
        stack_beside,
        stack_of_the_first,
        stack_shows_bottom,
        stack_hands_up,
        stack_ends_of_top,
        stack_ends_reversed,
        stack_ends_batch_first,
        stack_residual,
        stack_squashed,
        stack_shows_all,
        stack_mask_below,
        stack_mask_ignored,
        stack_by_examples,
        stack_of_nothing,
    ),
)
