"""Chapter 01, solved in other ways than the reference: right, so each must get all the points."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


def step(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """One step of the plain cell; an exercise may use those before it, but not the course's own solutions of this chapter."""
    return torch.tanh(F.linear(x, weight_ih, bias_ih) + F.linear(h, weight_hh, bias_hh))


def memory(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """One step of the LSTM."""
    a, b, g, o = torch.chunk(F.linear(x, weight_ih, bias_ih) + F.linear(h, weight_hh, bias_hh), 4, dim=1)
    c = b.sigmoid() * c + a.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def run(x, weights, mask=None, state=None):
    """An LSTM along a sequence."""
    T = x.shape[1]
    h, c = state or (torch.zeros_like(x[:, 0, :1] @ weights[1][:1]),) * 2
    out = []
    for t in range(T):
        new_h, new_c = memory(x[:, t], h, c, *weights)
        keep = torch.ones_like(new_h[:, :1]) if mask is None else mask[:, t : t + 1].to(x.dtype)
        h, c = keep * new_h + (1 - keep) * h, keep * new_c + (1 - keep) * c
        out.append(keep * new_h)
    return torch.stack(out, 1), (h, c)


# --------------------------------------------------------------------------------------------------- the fixed window


class Window(nn.Module):
    """What the solutions below share: the layers."""

    def __init__(self, vocab_size, window, d_embedding, d_hidden, *, direct=True):
        super().__init__()
        if window <= 0:
            raise ValueError(window)
        self.window = window
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.hidden = nn.Linear(window * d_embedding, d_hidden)
        self.output = nn.Linear(d_hidden, vocab_size)
        self.direct = nn.Linear(window * d_embedding, vocab_size, bias=False) if direct else None

    def check(self, tokens):
        """Refuse too few tokens."""
        if tokens.dim() != 2 or tokens.size(1) < self.window:
            raise ValueError(f"{tuple(tokens.shape)} and a window of {self.window}")


@alternative("NeuralProbabilisticLM")
class EmbedsFirst(Window):
    """Embeds every token once and slides the window over the embeddings."""

    def forward(self, tokens):
        self.check(tokens)
        e = self.embedding(tokens)
        count = tokens.shape[1] - self.window + 1
        x = torch.cat([e[:, i : i + count] for i in range(self.window)], dim=-1)
        y = self.output(self.hidden(x).tanh())
        if self.direct is not None:
            y = y + self.direct(x)
        return y


@alternative("NeuralProbabilisticLM")
class AsConvolution(Window):
    """The hidden layer as a convolution along the tokens."""

    def forward(self, tokens):
        self.check(tokens)
        e = self.embedding(tokens).transpose(1, 2)  # (B, E, T)

        def slide(layer):
            kernel = layer.weight.reshape(len(layer.weight), self.window, -1).transpose(1, 2)
            return F.conv1d(e, kernel, layer.bias).transpose(1, 2)

        logits = self.output(torch.tanh(slide(self.hidden)))
        return logits if self.direct is None else logits + slide(self.direct)


@alternative("NeuralProbabilisticLM")
class SumsOverPlaces(Window):
    """Each place of the window has its own part of the weights; the parts are added up."""

    def forward(self, tokens):
        self.check(tokens)
        n = tokens.shape[1] - self.window + 1
        embedded = F.embedding(tokens, self.embedding.weight)

        def combine(weight):
            parts = weight.chunk(self.window, dim=1)
            return sum(embedded[:, i : i + n] @ part.T for i, part in enumerate(parts))

        hidden = torch.tanh(combine(self.hidden.weight) + self.hidden.bias)
        logits = F.linear(hidden, self.output.weight, self.output.bias)
        if self.direct is not None:
            logits = logits + combine(self.direct.weight)
        return logits


# ------------------------------------------------------------------------------------------------- the plain network


@alternative("rnn_cell")
def cell_by_linear(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """F.linear knows the layout."""
    if weight_ih.shape != (h.shape[1], x.shape[1]) or weight_hh.shape != (h.shape[1], h.shape[1]):
        raise ValueError(f"{weight_ih.shape}, {weight_hh.shape}")
    return step(x, h, weight_ih, weight_hh, bias_ih, bias_hh)


@alternative("rnn_cell")
def cell_by_einsum(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Einstein's sum, and tanh by the logistic function."""
    if weight_hh.shape[0] != weight_hh.shape[1]:
        raise ValueError(weight_hh.shape)
    a = torch.einsum("be,de->bd", x, weight_ih) + torch.einsum("bc,dc->bd", h, weight_hh) + bias_ih + bias_hh
    return 2 * torch.sigmoid(2 * a) - 1


@alternative("rnn_forward")
def run_by_index(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0=None):
    """An index for the time, and a list that begins with the first state."""
    states = [h_0 if h_0 is not None else torch.zeros(len(x), len(weight_hh), dtype=x.dtype, device=x.device)]
    for t in range(x.size(1)):
        states.append(step(x[:, t, :], states[-1], weight_ih, weight_hh, bias_ih, bias_hh))
    return torch.stack(states[1:], dim=1), states[-1]


@alternative("rnn_forward")
def run_with_projection_first(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0=None):
    """What the inputs say is computed for all steps at once, before the loop."""
    said = F.linear(x, weight_ih, bias_ih)
    h = said[:, 0] * 0 if h_0 is None else h_0
    states = torch.empty_like(said)
    collected = []
    for now in said.transpose(0, 1):
        h = torch.tanh(now + F.linear(h, weight_hh, bias_hh))
        collected.append(h[:, None])
    assert states.shape[0] == len(x)
    return torch.cat(collected, dim=1), h


# ------------------------------------------------------------------------------------------------------- gradients


def fits_states(x, weight_hh, grad_last):
    """Refuse inputs without three dimensions, and a gradient that is not one for each state."""
    if x.ndim != 3 or grad_last.shape != (x.shape[0], weight_hh.shape[0]):
        raise ValueError(f"{tuple(x.shape)} and {tuple(grad_last.shape)}")


@alternative("gradient_norm_through_time")
def norms_by_jacobian(x, weight_ih, weight_hh, bias_ih, bias_hh, grad_last, h_0=None):
    """The Jacobian of every step as a matrix, (B, D, D), multiplied up from the end."""
    fits_states(x, weight_hh, grad_last)
    states, _ = run_by_index(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0)
    gradient = grad_last[:, None, :]  # (B, 1, D)
    norms = [gradient.pow(2).sum((1, 2)).sqrt()]
    for t in reversed(range(1, x.shape[1])):
        jacobian = (1 - states[:, t].square()).unsqueeze(-1) * weight_hh  # (B, D, D): rows are outputs
        gradient = gradient @ jacobian
        norms.insert(0, gradient.pow(2).sum((1, 2)).sqrt())
    return torch.stack(norms, dim=-1)


@alternative("gradient_norm_through_time")
def norms_of_all_at_once(x, weight_ih, weight_hh, bias_ih, bias_hh, grad_last, h_0=None):
    """The gradients are stacked first, and one norm is taken of all."""
    fits_states(x, weight_hh, grad_last)
    states = run_with_projection_first(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0)[0]
    gradients = [grad_last]
    for state in states[:, 1:].flip(1).unbind(1):
        gradients += [torch.einsum("bi,ij->bj", gradients[-1] * (1 - state * state), weight_hh)]
    return torch.stack(gradients[::-1], dim=1).norm(dim=2)


@alternative("clip_gradient_norm")
def clip_by_branch(gradients, max_norm):
    """A branch in place of a minimum, and Python's own numbers."""
    if max_norm <= 0 or len(gradients) == 0:
        raise ValueError(f"max_norm must be positive, got {max_norm}")
    total = sum((g.float() ** 2).sum() for g in gradients) ** 0.5
    if float(total) <= max_norm:
        return [g.clone() for g in gradients], total
    return [(g.float() * (max_norm / total)).to(g.dtype) for g in gradients], total


@alternative("clip_gradient_norm")
def clip_as_pytorch_does(gradients, max_norm):
    """The norm of the norms, and a small number added so that nothing is divided by zero."""
    if max_norm <= 0 or not list(gradients):
        raise ValueError(max_norm)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in gradients]))
    scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    return tuple((g.float() * scale).to(g.dtype) for g in gradients), norm


# ------------------------------------------------------------------------------------------------------ gated cells


@alternative("lstm_cell")
def lstm_by_linear(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """F.linear and chunk."""
    if weight_hh.shape != (4 * h.shape[1], h.shape[1]) or c.shape != h.shape:
        raise ValueError(weight_hh.shape)
    return memory(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh)


@alternative("lstm_cell")
def lstm_gate_by_gate(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """Each gate from its own rows."""
    D = h.shape[-1]
    if len(weight_ih) != 4 * D or c.shape != h.shape:
        raise ValueError(f"{len(weight_ih)} rows for 4 gates of {D}")

    def gate(k):
        rows = slice(k * D, (k + 1) * D)
        return x @ weight_ih[rows].T + bias_ih[rows] + h @ weight_hh[rows].T + bias_hh[rows]

    new = gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh()
    return gate(3).sigmoid() * new.tanh(), new


@alternative("lstm_cell")
def lstm_by_one_matrix(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """One matrix for input and state, and an axis for the gates."""
    D = h.size(1)
    if weight_ih.size(0) != D * 4 or len(c) != len(h):
        raise ValueError(weight_ih.size(0))
    gates = torch.cat((x, h), 1) @ torch.cat((weight_ih, weight_hh), 1).T + (bias_ih + bias_hh)
    i, f, g, o = gates.view(-1, 4, D).unbind(1)
    i, f, o = torch.sigmoid(torch.stack([i, f, o])).unbind(0)
    new_c = torch.addcmul(f * c, i, g.tanh())
    return [o * new_c.tanh(), new_c]


@alternative("lstm_forward")
def lstm_run_by_product(x, weight_ih, weight_hh, bias_ih, bias_hh, state=None, mask=None):
    """The mask as a number, zero or one, that mixes new and old."""
    return run(x, (weight_ih, weight_hh, bias_ih, bias_hh), mask, state)


@alternative("lstm_forward")
def lstm_run_then_erase(x, weight_ih, weight_hh, bias_ih, bias_hh, state=None, mask=None):
    """States are held at padded steps, and the padded steps are erased from the result at the end."""
    h, c = state if state is not None else (x.new_zeros(x.shape[0], bias_hh.shape[0] // 4),) * 2
    kept = []
    for t in range(x.shape[1]):
        new = memory(x[:, t], h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        if mask is None:
            h, c = new
        else:
            padded = ~mask[:, t].unsqueeze(1)
            h, c = new[0].masked_fill(padded, 0) + h * padded, new[1].masked_fill(padded, 0) + c * padded
        kept.append(h)
    states = torch.stack(kept, 1)
    return (states if mask is None else states.masked_fill(~mask[..., None], 0.0)), (h, c)


@alternative("gru_cell")
def gru_by_linear(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """F.linear and chunk, the state moved towards the candidate."""
    if len(weight_ih) != 3 * h.shape[1]:
        raise ValueError(len(weight_ih))
    a, b = F.linear(x, weight_ih, bias_ih).chunk(3, 1), F.linear(h, weight_hh, bias_hh).chunk(3, 1)
    r, z = (a[0] + b[0]).sigmoid(), (a[1] + b[1]).sigmoid()
    n = (a[2] + r * b[2]).tanh()
    return n + z * (h - n)


@alternative("gru_cell")
def gru_by_rows(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Both gates from their common rows, the candidate from its own."""
    D = h.shape[1]
    if weight_hh.shape[0] != 3 * D:
        raise ValueError(weight_hh.shape)
    gates = x @ weight_ih[: 2 * D].T + bias_ih[: 2 * D] + h @ weight_hh[: 2 * D].T + bias_hh[: 2 * D]
    r, z = torch.sigmoid(gates).split(D, dim=1)
    past = h @ weight_hh[2 * D :].T + bias_hh[2 * D :]
    n = torch.tanh(x @ weight_ih[2 * D :].T + bias_ih[2 * D :] + r * past)
    return torch.lerp(n, h, z)


# ----------------------------------------------------------------------------------------------- both ways, on top


@alternative("bidirectional_forward")
def both_by_flip(x, forward_weights, backward_weights, mask=None):
    """Turned round, run, turned back."""
    left, (h1, c1) = run(x, forward_weights, mask)
    right, (h2, c2) = run(x.flip(1), backward_weights, None if mask is None else mask.flip(1))
    return torch.cat((left, right.flip(dims=[1])), dim=2), (torch.stack((h1, h2)), torch.stack((c1, c2)))


@alternative("bidirectional_forward")
def both_by_index(x, forward_weights, backward_weights, mask=None):
    """An index that runs down, and nothing is turned round."""
    order = torch.arange(x.shape[1] - 1, -1, -1, device=x.device)
    left = run(x, forward_weights, mask)
    right = run(x[:, order], backward_weights, mask if mask is None else mask[:, order])
    ends = tuple(torch.stack(pair) for pair in zip(left[1], right[1], strict=True))
    return torch.cat([left[0], right[0].index_select(1, order)], -1), ends


@alternative("stacked_forward")
def stack_by_loop(x, layers, mask=None):
    """Layer after layer."""
    if len(layers) == 0:
        raise ValueError("no layers")
    ends = []
    for layer in layers:
        x, end = run(x, layer, mask)
        ends.append(end)
    h, c = zip(*ends, strict=True)
    return x, (torch.stack(h), torch.stack(c))


@alternative("stacked_forward")
def stack_by_recursion(x, layers, mask=None):
    """The bottom layer, then the stack above it."""
    if not layers:
        raise ValueError("a stack needs a layer")
    states, (h, c) = run(x, layers[0], mask)
    if len(layers) == 1:
        return states, (h[None], c[None])
    states, (hs, cs) = stack_by_recursion(states, layers[1:], mask)
    return states, (torch.cat([h[None], hs]), torch.cat([c[None], cs]))


# ------------------------------------------------------------------------------------------------- language models


@alternative("language_model_blocks")
def blocks_by_unfold(tokens, block_length):
    """Windows of one token more than a block, a block apart."""
    if tokens.ndim != 1 or block_length < 1 or len(tokens) < block_length + 1:
        raise ValueError(tuple(tokens.shape))
    windows = tokens.unfold(0, block_length + 1, block_length)
    return windows[:, :-1], windows[:, 1:]


@alternative("language_model_blocks")
def blocks_by_index(tokens, block_length):
    """A table of places, and the same table plus one."""
    if not (block_length > 0 and len(tokens.shape) == 1):
        raise ValueError("a corpus has one dimension")
    count = (len(tokens) - 1) // block_length
    if count == 0:
        raise ValueError("too short")
    places = torch.arange(count * block_length, device=tokens.device).unflatten(0, (count, block_length))
    return tokens[places], tokens[places + 1]


def boolean_places(targets, mask):
    """Refuse a mask that is not boolean, or not one place for each target."""
    if mask is not None and (mask.dtype is not torch.bool or mask.shape != targets.shape):
        raise ValueError("mask")


@alternative("sequence_negative_log_likelihood")
def likelihood_by_logsumexp(logits, targets, mask=None):
    """The logarithm of the sum less the logit that came."""
    boolean_places(targets, mask)
    if logits.ndim != 3 or logits.shape[:-1] != targets.shape:
        raise ValueError(f"{logits.shape} {targets.shape}")
    cost = logits.logsumexp(-1) - logits.gather(2, targets.unsqueeze(2)).squeeze(2)
    return (cost if mask is None else torch.where(mask, cost, 0.0)).sum(1)


@alternative("sequence_negative_log_likelihood")
def likelihood_by_one_hot(logits, targets, mask=None):
    """One hot targets, and the mask as a factor."""
    boolean_places(targets, mask)
    if logits.ndim != 3 or logits.shape[1] != targets.shape[1]:
        raise ValueError("lengths differ")
    vocabulary = torch.arange(logits.shape[-1], device=logits.device)
    hot = (targets.unsqueeze(-1) == vocabulary).to(logits.dtype)
    cost = -(logits.log_softmax(2) * hot).sum(2)
    return cost.sum(1) if mask is None else (cost * mask).sum(1)


@alternative("sequence_negative_log_likelihood")
def likelihood_by_hand(logits, targets, mask=None):
    """The softmax by hand, with the largest logit taken away first."""
    boolean_places(targets, mask)
    B, T = targets.shape
    if logits.ndim != 3 or tuple(logits.shape[:2]) != (B, T):
        raise ValueError(tuple(logits.shape))
    shifted = logits - logits.amax(-1, keepdim=True).detach()
    chosen = torch.take_along_dim(shifted, targets[:, :, None], dim=2)[:, :, 0]
    terms = shifted.exp().sum(-1).log() - chosen
    if mask is not None:
        terms = terms * mask
    return torch.einsum("bt->b", terms)


@alternative("sample_autoregressive")
def sample_by_list(model, prompt, steps, *, temperature=1.0, generator=None):
    """A list of columns, put together for every question."""
    if temperature < 0 or steps < 0 or prompt.dim() != 2 or prompt.size(1) == 0:
        raise ValueError(temperature)
    columns = [prompt]
    while len(columns) <= steps:
        logits = model(torch.cat(columns, dim=1))[:, -1, :]
        if temperature > 0:
            columns.append(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
        else:
            columns.append(logits.max(dim=-1, keepdim=True).indices)
    return torch.cat(columns, dim=1)


@alternative("sample_autoregressive")
def sample_by_recursion(model, prompt, steps, *, temperature=1.0, generator=None):
    """One token, then the rest."""
    if temperature < 0 or steps < 0 or len(prompt.shape) != 2 or prompt.shape[-1] < 1:
        raise ValueError("negative")
    if steps == 0:
        return prompt
    logits = model(prompt).select(1, -1)
    if temperature:
        token = torch.multinomial(torch.exp(torch.log_softmax(logits / temperature, -1)), 1, generator=generator)
    else:
        token = logits.argmax(-1)[:, None]
    return sample_by_recursion(
        model, torch.hstack([prompt, token]), steps - 1, temperature=temperature, generator=generator
    )
