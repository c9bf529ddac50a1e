"""Recurrent networks: RNN, LSTM and GRU cells, sequences, language models and sampling.

Shapes: B batch, T sequence length, E input width, D state width, L layers, V
vocabulary, N length of a window or block. The batch comes first. Weights have the
layout and gate order of `torch.nn.RNN`, `torch.nn.LSTM` and `torch.nn.GRU`, so that
they can be copied in both directions. Boolean masks are True at real tokens.
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
    """The weights of an LSTM, gates in the order i, f, g, o; a plain tuple also works."""

    weight_ih: Tensor
    """From input to gates, (4·D, E)."""
    weight_hh: Tensor
    """From state to gates, (4·D, D)."""
    bias_ih: Tensor
    """(4·D,)."""
    bias_hh: Tensor
    """(4·D,)."""


class NeuralProbabilisticLM(nn.Module):
    """A language model with a fixed window of N tokens.

    All positions of the window share one embedding. The concatenated N embeddings,
    oldest token first, are the x of y = b + W x + U tanh(d + H x). The layers have
    PyTorch's default initialisation: `embedding` (`nn.Embedding`, V rows of E numbers),
    `hidden` (`nn.Linear`: H and d), `output` (`nn.Linear`: U and b) and `direct`
    (`nn.Linear` without a bias: W). `direct` is None without direct connections. N is
    the attribute `window`.

    Args:
        vocab_size: Number of tokens V.
        window: Number N of tokens in the window.
        d_embedding: Width E of an embedding.
        d_hidden: Width D of the hidden layer.
        direct: Whether the embeddings are also connected directly to the output.

    Raises:
        ValueError: If `window` is less than one.

    Source:
        Bengio et al. 2003, A Neural Probabilistic Language Model, section 2, equation
        1.
    """

    def __init__(self, vocab_size: int, window: int, d_embedding: int, d_hidden: int, *, direct: bool = True) -> None:
        super().__init__()
        if window < 1:
            raise ValueError(f"the window must hold at least one token, got window={window}")
        self.window = window
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.hidden = nn.Linear(window * d_embedding, d_hidden)
        self.output = nn.Linear(d_hidden, vocab_size)
        self.direct = nn.Linear(window * d_embedding, vocab_size, bias=False) if direct else None

    def forward(self, tokens: Tensor) -> Tensor:
        """Predict the token after every window of `tokens`.

        Args:
            tokens: Integers in 0 … V - 1, (B, T), with T at least N.

        Returns:
            Logits, (B, T - N + 1, V): entry i predicts the token after the window
            tokens[:, i : i + N], so the last entry predicts the token after the whole
            sequence.

        Raises:
            ValueError: If `tokens` does not have two dimensions, or has fewer than N
                tokens.
        """
        if tokens.ndim != 2 or tokens.shape[1] < self.window:
            raise ValueError(f"expected tokens (B, T) with T at least {self.window}, got {tuple(tokens.shape)}")
        windows = tokens.unfold(1, self.window, 1)  # (B, T - N + 1, N)
        x = self.embedding(windows).flatten(2)  # (B, T - N + 1, N·E)
        logits = self.output(torch.tanh(self.hidden(x)))  # (B, T - N + 1, V)
        return logits if self.direct is None else logits + self.direct(x)


def rnn_cell(x: Tensor, h: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor) -> Tensor:
    """Compute one RNN step: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        x: Inputs of this step, (B, E).
        h: Previous hidden state, (B, D).
        weight_ih: From input to state, (D, E), in the layout of `nn.Linear`.
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,). One bias would suffice; PyTorch has two.

    Returns:
        The new hidden state, (B, D).

    Raises:
        ValueError: If the shapes of inputs, state and weights do not fit.

    Source:
        Elman 1990, Finding Structure in Time; layout of `torch.nn.RNNCell`.
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
    """Run `rnn_cell` over a sequence.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to state, (D, E).
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,).
        h_0: Initial hidden state, (B, D); None means zeros.

    Returns:
        The hidden state after every step, (B, T, D), and after the last step, (B, D).

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
    """Compute the gradient norm at every step of backpropagation through time.

    The loss depends only on the last state. Its gradient with respect to the state one
    step earlier is d loss/dh_{t-1} = W_hhᵀ ((1 - h_t²) ⊙ d loss/dh_t). Compute it
    without automatic differentiation, with one product per step from the end to the
    beginning.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to state, (D, E).
        weight_hh: From state to state, (D, D).
        bias_ih: (D,).
        bias_hh: (D,).
        grad_last: Gradient d loss/dh_T of the loss with respect to the last state,
            (B, D).
        h_0: Initial hidden state, (B, D); None means zeros.

    Returns:
        Euclidean norms, (B, T): column t is the norm of the gradient with respect to
        the state after step t, counted from 0, so the last column is the norm of
        `grad_last`.

    Raises:
        ValueError: If `x` does not have three dimensions, or the shapes do not fit.

    Source:
        Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural
        networks, section 2, equation 5.
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
    """Clip the global norm of the gradients without changing their direction.

    All tensors together form one vector. If its norm is above `max_norm`, every tensor
    is multiplied by max_norm / norm; otherwise the gradients are unchanged. The squares
    of float16 and bfloat16 gradients are summed in float32.

    Args:
        gradients: At least one tensor, of any shapes.
        max_norm: The largest norm allowed, positive.

    Returns:
        The clipped gradients, new tensors of the same shapes and dtypes, and the norm
        before clipping, a scalar tensor (in float32 for float16 and bfloat16
        gradients). Gradients that are all zero stay zero. If the sum of the squares
        overflows, the norm is infinite and finite gradients become zero, as in PyTorch.

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
    """Compute one LSTM step, with forget, input and output gates.

    W_ih x + b_ih + W_hh h + b_hh has 4·D numbers: four blocks of D, in the order i, f,
    g, o. The logistic function is applied to the blocks i, f and o, and tanh to g. The
    cell state becomes c' = f ⊙ c + i ⊙ g, and the hidden state h' = o ⊙ tanh(c').

    Args:
        x: Inputs of this step, (B, E).
        h: Previous hidden state, (B, D).
        c: Previous cell state, (B, D).
        weight_ih: From input to gates, (4·D, E): D rows each for i, f, g and o.
        weight_hh: From state to gates, (4·D, D), in the same order.
        bias_ih: (4·D,).
        bias_hh: (4·D,).

    Returns:
        The new hidden state h' and cell state c', each (B, D).

    Raises:
        ValueError: If the shapes of inputs, states and weights do not fit.

    Source:
        Hochreiter and Schmidhuber 1997, Long Short-Term Memory; with the forget gate of
        Gers, Schmidhuber and Cummins 2000; layout of `torch.nn.LSTMCell`.
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
    """Run `lstm_cell` over a sequence; padded steps leave both states unchanged.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        weight_ih: From input to gates, (4·D, E), gates in the order i, f, g, o.
        weight_hh: From state to gates, (4·D, D).
        bias_ih: (4·D,).
        bias_hh: (4·D,).
        state: Initial hidden and cell state, each (B, D); None means zeros.
        mask: Boolean, (B, T), True at real tokens; None means that all are real.
            Padding may be anywhere.

    Returns:
        The hidden state after every step, (B, T, D), with zeros at padded steps; and
        the hidden and cell state after the last real step, each (B, D).

    Source:
        Hochreiter and Schmidhuber 1997; zeros at padded steps as in
        `torch.nn.utils.rnn.pad_packed_sequence`.
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
    """Compute one GRU step, with a reset and an update gate but no cell state.

    W_ih x + b_ih has 3·D numbers, and so has W_hh h + b_hh: three blocks of D each, in
    the order r, z, n. With the logistic function σ, r = σ(r_i + r_h), z = σ(z_i + z_h),
    n = tanh(n_i + r ⊙ n_h), and h' = (1 - z) ⊙ n + z ⊙ h.

    Args:
        x: Inputs of this step, (B, E).
        h: Previous hidden state, (B, D).
        weight_ih: From input to gates, (3·D, E): D rows each for r, z and n.
        weight_hh: From state to gates, (3·D, D), in the same order.
        bias_ih: (3·D,).
        bias_hh: (3·D,); its block for n is multiplied by r, so here the two biases are
            not equivalent to one.

    Returns:
        The new hidden state, (B, D).

    Raises:
        ValueError: If the shapes of inputs, state and weights do not fit.

    Source:
        Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder,
        section 2.3; position of r and layout of `torch.nn.GRUCell`.
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
    """Run two LSTMs over a sequence, in both directions, and concatenate their states.

    The first D columns come from the left-to-right LSTM, the next D from the
    right-to-left LSTM, each after it has read the token at this position. Both start
    from zeros.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        forward_weights: The four weights of the left-to-right LSTM.
        backward_weights: The four weights of the right-to-left LSTM.
        mask: Boolean, (B, T), True at real tokens; None means that all are real.

    Returns:
        The concatenated hidden states, (B, T, 2·D), with zeros at padded steps; and the
        final hidden and cell states of both directions, each (2, B, D). Entry 0 is the
        left-to-right LSTM after the last token, entry 1 the right-to-left LSTM after
        the first token.

    Source:
        Schuster and Paliwal 1997, Bidirectional Recurrent Neural Networks; layout of
        `torch.nn.LSTM`.
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
    """Run stacked LSTMs: the hidden states of a layer are the next layer's inputs.

    Args:
        x: Inputs, (B, T, E), with T at least one.
        layers: The four weights of each of the L layers, from bottom to top. weight_ih
            is (4·D, E) in the first layer and (4·D, D) in the others. Every layer
            starts from zeros.
        mask: Boolean, (B, T), True at real tokens; None means that all are real.

    Returns:
        The hidden states of the top layer, (B, T, D), with zeros at padded steps; and
        the final hidden and cell states of all layers, each (L, B, D), from bottom to
        top.

    Raises:
        ValueError: If there are no layers.

    Source:
        Graves 2013, Generating Sequences With Recurrent Neural Networks, section 2;
        layout of `torch.nn.LSTM`.
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
    """Split a corpus into training blocks: each target is the next token in the corpus.

    The blocks do not overlap. The last target of a block is the first input of the next
    block. Tokens at the end that do not fill a block are dropped.

    Args:
        tokens: The corpus, integers, (M,).
        block_length: Number of tokens N in a block.

    Returns:
        Inputs and targets, each ((M - 1) // N, N).

    Raises:
        ValueError: If `tokens` does not have one dimension, `block_length` is less than
            one, or the corpus is too short for one block with its targets.

    Source:
        Radford et al. 2018, Improving Language Understanding by Generative
        Pre-Training, equation 1: max Σ log P(u_i | u_{i-N} … u_{i-1}).
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
    """Compute the negative log-likelihood of whole sequences.

    By the chain rule, the log-probability of a sequence is the sum of the
    log-probabilities of its tokens.

    Args:
        logits: The model's logits for each target, (B, T, V).
        targets: The actual tokens, integers in 0 … V - 1, (B, T).
        mask: Boolean, (B, T), True at real tokens; padded positions add nothing. None
            means that all are real.

    Returns:
        One number per sequence, in nats, (B,), in the dtype of `logits`.

    Raises:
        ValueError: If `logits` is not (B, T, V) and `targets` (B, T) with the same B
            and T, or `mask` is not boolean or not (B, T).

    Source:
        Bengio et al. 2003, section 1 (the chain rule) and section 2 (the likelihood
        that is maximised).
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
    """Sample a continuation: draw a token, append it, and call the model again.

    At every step the last logits are divided by the temperature and converted to
    probabilities (B, V). One call of `torch.multinomial`, with `generator`, draws the
    next token of every sequence. With temperature 0 nothing is drawn: the most probable
    token is taken.

    Args:
        model: Maps tokens (B, T) to logits (B, T', V); the last position predicts the
            next token.
        prompt: The prompts, integers, (B, T), with T at least one.
        steps: Number of tokens to append.
        temperature: Below 1 sharpens the distribution, above 1 flattens it; not
            negative.
        generator: Source of randomness; None means PyTorch's own generator.

    Returns:
        Prompts and appended tokens, (B, T + steps).

    Raises:
        ValueError: If `steps` or `temperature` is negative, or `prompt` does not have
            two dimensions and at least one token per sequence.

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
    """Raise a ValueError if the shapes of inputs, states and weights do not fit: broadcasting could hide the mismatch."""
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
    """Raise a ValueError if the inputs are not a batch of sequences or the mask does not have one entry per step."""
    if x.ndim != 3 or x.shape[1] < 1:
        raise ValueError(f"expected x of shape (B, T, E) with T at least one, got {tuple(x.shape)}")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError(f"expected a boolean mask {tuple(x.shape[:2])}, got {mask.dtype} {tuple(mask.shape)}")
