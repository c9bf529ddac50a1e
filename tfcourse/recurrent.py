"""Recurrent networks: one small network, used again at every step, that carries a state from each step to the next.

Shapes: B batch, T length of a sequence, E width of an input, D width of a state, L layers, V vocabulary, N length of a
window or of a block. The batch comes first everywhere. Weights have the layout and the order of gates of `torch.nn.RNN`,
`torch.nn.LSTM` and `torch.nn.GRU`, so that they can be copied both ways. Boolean masks are True at real tokens.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "NeuralProbabilisticLM",
    "rnn_cell",
    "rnn_forward",
    "gradient_norm_through_time",
    "clip_gradient_norm",
    "lstm_cell",
    "lstm_forward",
    "gru_cell",
    "bidirectional_forward",
    "stacked_forward",
    "language_model_blocks",
    "sequence_negative_log_likelihood",
    "sample_autoregressive",
    "LstmWeights",
]


class LstmWeights(NamedTuple):
    """The weights of one LSTM, gates in the order i, f, g, o; a plain tuple of the four does as well."""

    weight_ih: Tensor
    """From input to gates, (4·D, E)."""
    weight_hh: Tensor
    """From state to gates, (4·D, D)."""
    bias_ih: Tensor
    """(4·D,)."""
    bias_hh: Tensor
    """(4·D,)."""


class NeuralProbabilisticLM(nn.Module):
    """Language model with a fixed window: the next token from the N tokens before it, whatever stood before those.

    One embedding is shared by all places of the window. The N embeddings, side by side with the oldest token first, are
    the x of y = b + W x + U tanh(d + H x). The layers, with PyTorch's default initialisation, are `embedding`
    (`nn.Embedding`, V rows of E numbers), `hidden` (`nn.Linear`: H and d), `output` (`nn.Linear`: U and b) and `direct`
    (`nn.Linear` without a bias: W), which is None if there are no direct connections. N is the attribute `window`.

    Args:
        vocabulary: Number of tokens V.
        window: How many tokens N the model sees.
        d_embedding: Width E of an embedding.
        d_hidden: Width D of the hidden layer.
        direct: Whether the embeddings are also connected to the output directly, past the hidden layer.

    Raises:
        ValueError: If `window` is less than one.

    Source:
        Bengio et al. 2003, A Neural Probabilistic Language Model, section 2, equation 1.
    """

    def __init__(self, vocabulary: int, window: int, d_embedding: int, d_hidden: int, *, direct: bool = True) -> None:
        super().__init__()
        if window < 1:
            raise ValueError(f"the window must hold at least one token, got window={window}")
        self.window = window
        self.embedding = nn.Embedding(vocabulary, d_embedding)
        self.hidden = nn.Linear(window * d_embedding, d_hidden)
        self.output = nn.Linear(d_hidden, vocabulary)
        self.direct = nn.Linear(window * d_embedding, vocabulary, bias=False) if direct else None

    def forward(self, tokens: Tensor) -> Tensor:
        """Predict the token after every window of `tokens`.

        Args:
            tokens: Integers in 0 … V - 1, (B, T), with T at least N.

        Returns:
            Logits, (B, T - N + 1, V): entry i predicts the token after the window tokens[:, i : i + N], so the last one
            predicts the token after the whole sequence.

        Raises:
            ValueError: If `tokens` does not have two dimensions, or has fewer than N tokens.
        """
        if tokens.ndim != 2 or tokens.shape[1] < self.window:
            raise ValueError(f"expected tokens (B, T) with T at least {self.window}, got {tuple(tokens.shape)}")
        windows = tokens.unfold(1, self.window, 1)  # (B, T - N + 1, N)
        x = self.embedding(windows).flatten(2)  # (B, T - N + 1, N·E)
        logits: Tensor = self.output(torch.tanh(self.hidden(x)))  # (B, T - N + 1, V)
        return logits if self.direct is None else logits + self.direct(x)


def rnn_cell(x: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor) -> Tensor:
    """One step of a recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        x: The inputs of this step, (B, E).
        h: The state before it, (B, D).
        weight_ih: From input to state, (D, E): one row a state number, as `nn.Linear` keeps it.
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,). One bias would do; there are two because PyTorch has two.

    Returns:
        The state after the step, (B, D).

    Raises:
        ValueError: If the shapes of inputs, state and weights do not fit.

    Source:
        Elman 1990, Finding Structure in Time; the layout is that of `torch.nn.RNNCell`.
    """
    _check_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, gates=1)
    return torch.tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)  # (B, D)


def rnn_forward(
    x: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    h_0: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run `rnn_cell` along a sequence: the same weights at every step, the state carried from each step to the next.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to state, (D, E).
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,).
        h_0: The state before the first step, (B, D); None means zeros.

    Returns:
        The state after every step, (B, T, D), and the state after the last one, (B, D).

    Source:
        Elman 1990; Goodfellow et al. 2016, Deep Learning, section 10.2.
    """
    _check_sequence(x)
    h = x.new_zeros(x.shape[0], weight_hh.shape[1]) if h_0 is None else h_0
    states = []
    for x_t in x.unbind(dim=1):
        h = rnn_cell(x_t, h, weight_ih, weight_hh, bias_ih, bias_hh)
        states.append(h)
    return torch.stack(states, dim=1), h


def gradient_norm_through_time(
    x: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    grad_last: Tensor,
    h_0: Tensor | None = None,
) -> Tensor:
    """How large the gradient still is at every step on its way back from the last state.

    For a loss that depends on the last state only, the gradient by the state one step earlier is
    d loss/dh_{t-1} = W_hhᵀ ((1 - h_t²) ⊙ d loss/dh_t). No automatic differentiation: one product a step, from the end to the
    beginning.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to state, (D, E).
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,).
        grad_last: The gradient d loss/dh_T of the loss by the last state, (B, D).
        h_0: The state before the first step, (B, D); None means zeros.

    Returns:
        Euclidean norms, (B, T): column t is that of the gradient by the state after step t, counted from 0, so the last
        column is the norm of `grad_last`.

    Raises:
        ValueError: If `x` does not have three dimensions, or the shapes do not fit.

    Source:
        Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks, section 2, equation 5.
    """
    states, h_last = rnn_forward(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0)
    if grad_last.shape != h_last.shape:
        raise ValueError(
            f"grad_last must have the shape {tuple(h_last.shape)} of a state, got {tuple(grad_last.shape)}"
        )
    gradient = grad_last
    norms = [gradient.norm(dim=-1)]
    for t in range(x.shape[1] - 1, 0, -1):
        # The slope of tanh, written with its value; then back through W_hh, whose rows are the outputs: no transpose here.
        gradient = (gradient * (1 - states[:, t] ** 2)) @ weight_hh  # (B, D)
        norms.append(gradient.norm(dim=-1))
    return torch.stack(norms[::-1], dim=1)  # (B, T)


def clip_gradient_norm(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Shorten a gradient that is too long, without turning it.

    All the tensors together are one long vector with one norm. If that norm is above `max_norm`, every tensor is multiplied
    by the same number, max_norm / norm; otherwise all stay as they are. The squares of float16 and bfloat16 gradients are
    summed in float32.

    Args:
        gradients: At least one tensor, of any shapes.
        max_norm: The largest norm allowed, positive.

    Returns:
        The clipped gradients, new tensors of the same shapes and dtypes, and the norm before clipping, a tensor without
        dimensions (in float32 for float16 and bfloat16 gradients). Gradients that are all zero stay zero. If the sum of the
        squares is too large for its dtype, the norm is infinite, and what was finite becomes zero, as it does with PyTorch.

    Raises:
        ValueError: If there are no gradients, or `max_norm` is not positive.

    Source:
        Pascanu, Mikolov and Bengio 2013, section 3.2, algorithm 1.
    """
    if not gradients or not max_norm > 0:
        raise ValueError(f"expected gradients and a positive max_norm, got {len(gradients)} and {max_norm}")
    wide = [gradient.to(torch.promote_types(gradient.dtype, torch.float32)) for gradient in gradients]
    norm = torch.stack([gradient.square().sum() for gradient in wide]).sum().sqrt()
    # A norm of zero gives infinity here, and one after the clamp: nothing is divided 0 / 0.
    scale = (max_norm / norm).clamp(max=1.0)
    return [(scale * w).to(gradient.dtype) for w, gradient in zip(wide, gradients, strict=True)], norm


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory: what to forget, what to write, what to show.

    W_ih x + b_ih + W_hh h + b_hh has 4·D numbers: four runs of D, in the order i, f, g, o. The logistic function turns
    the runs of i, f and o into gates, tanh that of g; the cell becomes c' = f ⊙ c + i ⊙ g, and the state h' = o ⊙ tanh(c').

    Args:
        x: The inputs of this step, (B, E).
        h: The state before it, (B, D).
        c: The cell before it, (B, D).
        weight_ih: From input to gates, (4·D, E): the D rows of i first, then those of f, g and o.
        weight_hh: From state to gates, (4·D, D), in the same order.
        bias_ih: (4·D,).
        bias_hh: (4·D,).

    Returns:
        The state h' and the cell c' after the step, each (B, D).

    Raises:
        ValueError: If the shapes of inputs, state, cell and weights do not fit.

    Source:
        Hochreiter and Schmidhuber 1997, Long Short-Term Memory; with the forget gate of Gers, Schmidhuber and Cummins 2000;
        the layout is that of `torch.nn.LSTMCell`.
    """
    _check_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, gates=4, c=c)
    gates = x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh  # (B, 4·D)
    i, f, g, o = gates.chunk(4, dim=-1)  # (B, D) each
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm_forward(
    x: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    state: tuple[Tensor, Tensor] | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run `lstm_cell` along a sequence, past the padding: a padded step changes neither state nor cell.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to gates, (4·D, E), gates in the order i, f, g, o.
        weight_hh: From state to gates, (4·D, D).
        bias_ih: (4·D,).
        bias_hh: (4·D,).
        state: State and cell before the first step, each (B, D); None means zeros.
        mask: Boolean, (B, T), True at real tokens; None means that all are real. Padding may stand anywhere.

    Returns:
        The state after every step, (B, T, D), with zeros at padded steps; and state and cell after the last real step,
        each (B, D).

    Source:
        Hochreiter and Schmidhuber 1997; zeros at padded steps as `torch.nn.utils.rnn.pad_packed_sequence` gives them.
    """
    _check_sequence(x, mask)
    if state is None:
        zeros = x.new_zeros(x.shape[0], weight_hh.shape[1])  # (B, D)
        state = (zeros, zeros)
    h, c = state
    states = []
    for t, x_t in enumerate(x.unbind(dim=1)):
        h_new, c_new = lstm_cell(x_t, h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        if mask is None:
            h, c, shown = h_new, c_new, h_new
        else:
            real = mask[:, t, None]  # (B, 1)
            h, c = torch.where(real, h_new, h), torch.where(real, c_new, c)
            shown = torch.where(real, h_new, torch.zeros_like(h_new))
        states.append(shown)
    return torch.stack(states, dim=1), (h, c)


def gru_cell(x: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor) -> Tensor:
    """One step of a gated recurrent unit: a state that is its own memory, with a reset and an update gate.

    W_ih x + b_ih has 3·D numbers, and so has W_hh h + b_hh: three runs of D each, in the order r, z, n. With σ the
    logistic function, r = σ(r_i + r_h), z = σ(z_i + z_h), n = tanh(n_i + r ⊙ n_h), and h' = (1 - z) ⊙ n + z ⊙ h.

    Args:
        x: The inputs of this step, (B, E).
        h: The state before it, (B, D).
        weight_ih: From input to gates, (3·D, E): the D rows of r first, then those of z and n.
        weight_hh: From state to gates, (3·D, D), in the same order.
        bias_ih: (3·D,).
        bias_hh: (3·D,); its part for n is multiplied with r, so that here the two biases are not one.

    Returns:
        The state after the step, (B, D).

    Raises:
        ValueError: If the shapes of inputs, state and weights do not fit.

    Source:
        Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder, section 2.3; the place of r and the
        layout are those of `torch.nn.GRUCell`.
    """
    _check_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, gates=3)
    r_i, z_i, n_i = (x @ weight_ih.T + bias_ih).chunk(3, dim=-1)  # (B, D) each
    r_h, z_h, n_h = (h @ weight_hh.T + bias_hh).chunk(3, dim=-1)  # (B, D) each
    r, z = torch.sigmoid(r_i + r_h), torch.sigmoid(z_i + z_h)
    n = torch.tanh(n_i + r * n_h)
    return (1 - z) * n + z * h


def bidirectional_forward(
    x: Tensor, forward_weights: LstmWeights, backward_weights: LstmWeights, mask: Tensor | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Read a sequence twice with two LSTMs, from the left and from the right, and put what they say side by side.

    At every step the first D columns come from the LSTM that has read up to this step from the left, the next D from the
    LSTM that has read up to this step from the right. Both begin with zeros.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        forward_weights: The four weights of the LSTM that reads from the left.
        backward_weights: Those of the LSTM that reads from the right.
        mask: Boolean, (B, T), True at real tokens; None means that all are real.

    Returns:
        Both states at every step, (B, T, 2·D), with zeros at padded steps; and the last state and the last cell of both
        directions, each (2, B, D): first that of the left-to-right LSTM after the last token, then that of the
        right-to-left LSTM after the first token.

    Source:
        Schuster and Paliwal 1997, Bidirectional Recurrent Neural Networks; the layout is that of `torch.nn.LSTM`.
    """
    _check_sequence(x, mask)
    left, (h_left, c_left) = lstm_forward(x, *forward_weights, mask=mask)
    # With the mask turned round too, the padding comes first and leaves the zeros of the beginning as they are.
    turned = None if mask is None else mask.flip(1)
    right, (h_right, c_right) = lstm_forward(x.flip(1), *backward_weights, mask=turned)
    states = torch.cat([left, right.flip(1)], dim=-1)  # (B, T, 2·D)
    return states, (torch.stack([h_left, h_right]), torch.stack([c_left, c_right]))


def stacked_forward(
    x: Tensor, layers: Sequence[LstmWeights], mask: Tensor | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Put LSTMs on top of each other: the states of each layer, at every step, are the inputs of the next one.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        layers: The four weights of each of the L layers, from the bottom to the top. The weight_ih of the first is (4·D, E),
            that of the others (4·D, D). Every layer begins with zeros.
        mask: Boolean, (B, T), True at real tokens; None means that all are real.

    Returns:
        The states of the top layer, (B, T, D), with zeros at padded steps; and the last state and the last cell of every
        layer, each (L, B, D), from the bottom to the top.

    Raises:
        ValueError: If there are no layers.

    Source:
        Graves 2013, Generating Sequences With Recurrent Neural Networks, section 2; the layout is that of `torch.nn.LSTM`.
    """
    if not layers:
        raise ValueError("expected at least one layer, got none")
    last_states, last_cells = [], []
    for weights in layers:
        x, (h, c) = lstm_forward(x, *weights, mask=mask)
        last_states.append(h)
        last_cells.append(c)
    return x, (torch.stack(last_states), torch.stack(last_cells))


def language_model_blocks(tokens: Tensor, block_length: int) -> tuple[Tensor, Tensor]:
    """Cut a corpus into blocks to learn from: at every place the target is the token that comes next in the corpus.

    The blocks follow each other without overlap. The last target of a block is the first input of the next, and what is
    left at the end and fills no block is dropped.

    Args:
        tokens: The corpus, integers, (M,).
        block_length: Number of tokens N in a block.

    Returns:
        Inputs and targets, each ((M - 1) // N, N).

    Raises:
        ValueError: If `tokens` does not have one dimension, `block_length` is less than one, or the corpus is too short for
            one block and its targets.

    Source:
        Radford et al. 2018, Improving Language Understanding by Generative Pre-Training, equation 1: max Σ log P(u_i | u_{i-N} … u_{i-1}).
    """
    if tokens.ndim != 1 or block_length < 1 or len(tokens) <= block_length:
        raise ValueError(
            f"expected a corpus (M,) longer than one block, got tokens {tuple(tokens.shape)} and block_length={block_length}"
        )
    blocks = (len(tokens) - 1) // block_length
    inputs = tokens[: blocks * block_length].reshape(blocks, block_length)
    targets = tokens[1 : blocks * block_length + 1].reshape(blocks, block_length)
    return inputs, targets


def sequence_negative_log_likelihood(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """How surprised a model is by whole sequences: minus the logarithm of the probability that it gives to each.

    By the chain rule the probability of a sequence is the product of those of its tokens, so its logarithm is their sum.

    Args:
        logits: What the model says before every target, (B, T, V), not normalised.
        targets: The tokens that came, integers in 0 … V - 1, (B, T).
        mask: Boolean, (B, T), True at real tokens; a padded place adds nothing. None means that all are real.

    Returns:
        One number a sequence, in nats, (B,), in the dtype of `logits`.

    Raises:
        ValueError: If `logits` is not (B, T, V) and `targets` (B, T) with the same B and T, or `mask` is not boolean or not (B, T).

    Source:
        Bengio et al. 2003, section 1 (the chain rule) and section 2 (the likelihood that is maximised).
    """
    if logits.ndim != 3 or logits.shape[:2] != targets.shape:
        raise ValueError(f"expected logits (B, T, V), targets (B, T): {tuple(logits.shape)}, {tuple(targets.shape)}")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != targets.shape):
        raise ValueError(f"expected a boolean mask {tuple(targets.shape)}, got {mask.dtype} {tuple(mask.shape)}")
    log_probabilities = torch.log_softmax(logits, dim=-1)  # (B, T, V)
    chosen = log_probabilities.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (B, T)
    if mask is not None:
        chosen = chosen.masked_fill(~mask, 0.0)
    return -chosen.sum(dim=-1)


def sample_autoregressive(
    model: Callable[[Tensor], Tensor],
    prompt: Tensor,
    steps: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Let a model write on: draw a token, append it, and ask again with all that has been written so far.

    At every step the last logits are divided by the temperature and turned into probabilities (B, V), from which one call of
    `torch.multinomial`, with `generator`, draws the next token of every sequence of the batch. With temperature 0 nothing is
    drawn: the most probable token is taken.

    Args:
        model: Turns tokens (B, T) into logits (B, T', V), of which the last predict the next token.
        prompt: How the sequences begin, integers, (B, T), with T at least one.
        steps: How many tokens to append.
        temperature: Below 1 the likely tokens become likelier, above 1 all become more alike; not negative.
        generator: Where the random numbers come from; None means PyTorch's own generator.

    Returns:
        Prompt and appended tokens, (B, T + steps).

    Raises:
        ValueError: If `steps` or `temperature` is negative, or `prompt` does not have two dimensions and a token in each
            sequence.

    Source:
        Graves 2013, Generating Sequences With Recurrent Neural Networks, section 1.
    """
    if steps < 0 or temperature < 0 or prompt.ndim != 2 or prompt.shape[1] < 1:
        raise ValueError(
            f"expected a prompt (B, T) with T at least one, steps and a temperature that are not negative, "
            f"got {tuple(prompt.shape)}, {steps} and {temperature}"
        )
    tokens = prompt
    for _ in range(steps):
        with torch.no_grad():  # nothing is learned from what is drawn
            logits = model(tokens)[:, -1]  # (B, V)
        if temperature == 0:
            drawn = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
        else:
            probabilities = torch.softmax(logits / temperature, dim=-1)  # (B, V)
            drawn = torch.multinomial(probabilities, 1, generator=generator)  # (B, 1)
        tokens = torch.cat([tokens, drawn], dim=1)
    return tokens


def _check_cell(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    *,
    gates: int,
    c: Tensor | None = None,
) -> None:
    """Make sure that inputs, state and weights fit each other: with a wrong one, broadcasting may go on without a word."""
    if x.ndim != 2 or h.ndim != 2 or len(x) != len(h):
        raise ValueError(f"expected x (B, E) and h (B, D), got {tuple(x.shape)} and {tuple(h.shape)}")
    if c is not None and c.shape != h.shape:
        raise ValueError(f"the cell must have the shape {tuple(h.shape)} of the state, got {tuple(c.shape)}")
    E, D = x.shape[1], h.shape[1]
    wanted = ((gates * D, E), (gates * D, D), (gates * D,), (gates * D,))
    weights = tuple(tuple(weight.shape) for weight in (weight_ih, weight_hh, bias_ih, bias_hh))
    if weights != wanted:
        raise ValueError(
            f"weight_ih, weight_hh, bias_ih and bias_hh do not fit x {tuple(x.shape)} and h {tuple(h.shape)}: "
            f"expected {wanted}, got {weights}"
        )


def _check_sequence(x: Tensor, mask: Tensor | None = None) -> None:
    """Make sure that there is a batch of sequences, and that a mask has a place for every step of it."""
    if x.ndim != 3 or x.shape[1] < 1:
        raise ValueError(f"expected x of shape (B, T, E) with T at least one, got {tuple(x.shape)}")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError(f"expected a boolean mask {tuple(x.shape[:2])}, got {mask.dtype} {tuple(mask.shape)}")
