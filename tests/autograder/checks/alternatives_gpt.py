"""Chapter 09, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.attention import causal_mask, scaled_dot_product_attention
from tfcourse.multihead import MultiHeadAttention
from tfcourse.sampling import sampler_chain

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ------------------------------------------------------------------------------------------------------------ measures


@alternative("next_token_loss")
def of_the_chosen_rows(logits, tokens, pad=None):
    """Flat rows, and of these those that count."""
    rows = logits[:, :-1].reshape(-1, logits.shape[-1])
    targets = tokens[:, 1:].flatten()
    if pad is not None:
        rows, targets = rows[targets != pad], targets[targets != pad]
    right = rows.gather(1, targets.view(-1, 1)).squeeze(1)
    return (rows.logsumexp(dim=1) - right).sum() / max(len(targets), 1)


@alternative("next_token_loss")
def by_one_hot(logits, tokens, pad=None):
    """The right tokens as a mask over the vocabulary."""
    following = tokens.narrow(1, 1, tokens.shape[1] - 1)
    log_p = F.log_softmax(logits.narrow(1, 0, tokens.shape[1] - 1), dim=2)
    right = following.unsqueeze(2) == torch.arange(logits.shape[2], device=logits.device)
    if pad is not None:
        right = right & (following != pad)[..., None]
    return -torch.where(right, log_p, torch.zeros_like(log_p)).sum() / right.sum().clamp_min(1)


@alternative("sequence_log_probability")
def with_logsumexp(logits, tokens, first):
    """Logits of the right tokens minus the logarithm of the sums."""
    before, after = logits[:, :-1], tokens[:, 1:]
    right = torch.take_along_dim(before, after.unsqueeze(-1), dim=-1).squeeze(-1)
    return first.gather(0, tokens[:, 0]) + (right - torch.logsumexp(before, -1)).sum(-1)


@alternative("sequence_log_probability")
def with_all_factors(logits, tokens, first):
    """The first distribution put before the others."""
    others = logits[:, :-1].log_softmax(dim=-1)
    factors = torch.cat([first.expand(len(tokens), 1, -1), others], dim=1)
    return factors.gather(2, tokens.unsqueeze(2)).sum(dim=(1, 2))


@alternative("bits_per_byte")
def by_the_whole_text(loss, n_tokens, n_bytes):
    """All bits first."""
    if n_bytes <= 0:
        raise ValueError("empty")
    bits = loss * n_tokens * math.log2(math.e)
    return bits / n_bytes


@alternative("bits_per_byte")
def by_tokens_a_byte(loss, n_tokens, n_bytes):
    """A logarithm to the base 2."""
    if not n_bytes:
        raise ValueError(n_bytes)
    return math.log2(math.exp(loss)) * (n_tokens / n_bytes)


# ------------------------------------------------------------------------------------------------------------ the model


@alternative("cached_attention")
def by_places(q, k, v, past=None):
    """A mask by comparing places."""
    before = 0
    if past is not None:
        before = past[0].shape[-2]
        k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
    asks = torch.arange(before, before + q.shape[-2], device=q.device)
    mask = asks[:, None] >= torch.arange(k.shape[-2], device=q.device)[None, :]
    return scaled_dot_product_attention(q, k, v, mask), (k, v)


@alternative("cached_attention")
def by_hand(q, k, v, past=None):
    """The last rows of the causal mask, and attention written out."""
    keys = k if past is None else torch.cat([past[0], k], 2)
    values = v if past is None else torch.cat([past[1], v], 2)
    hidden = ~causal_mask(keys.shape[2], q.device)[-q.shape[2] :]
    scores = torch.einsum("bhtd,bhsd->bhts", q, keys) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    return weights @ values, (keys, values)


def _tanh_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


class _Block(nn.Module):
    """The parts under their names; what comes below goes through them in other ways."""

    def __init__(self, d_model, n_heads, d_ff, *, dropout=0.0):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)
        self.n_heads, self.p = n_heads, dropout

    def drop(self, x):
        """Dropout, in training."""
        return F.dropout(x, self.p, self.training)

    def heads(self, x):
        """(B, T, D) to (B, H, T, Dh)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def qkv(self, x):
        """Queries, keys, values of all heads."""
        a = self.attention
        return self.heads(a.q_proj(x)), self.heads(a.k_proj(x)), self.heads(a.v_proj(x))

    def think(self, x):
        """The feed-forward network."""
        return self.down_proj(_tanh_gelu(self.up_proj(self.feed_forward_norm(x))))


@alternative("GptBlock")
class Unflattened(_Block):
    """Heads by unflatten and flatten."""

    def forward(self, x, past=None):
        """Two sums."""
        said, cache = by_places(*self.qkv(self.attention_norm(x)), past)
        x = x + self.drop(self.attention.o_proj(said.transpose(1, 2).flatten(2)))
        return x + self.drop(self.think(x)), cache


@alternative("GptBlock")
class WrittenOut(_Block):
    """Attention by hand, GELU of PyTorch."""

    def forward(self, x, past=None):
        """Each step a line."""
        q, k, v = self.qkv(self.attention_norm(x))
        said, cache = by_hand(q, k, v, past)
        B, H, T, Dh = said.shape
        merged = said.permute(0, 2, 1, 3).reshape(B, T, H * Dh)
        middle = self.drop(self.attention.o_proj(merged)) + x
        hidden = F.gelu(self.up_proj(self.feed_forward_norm(middle)), approximate="tanh")
        return self.drop(self.down_proj(hidden)) + middle, cache


@alternative("GptBlock")
class JoinedMaps(_Block):
    """One product for queries, keys and values."""

    def forward(self, x, past=None):
        """The three matrices joined."""
        a = self.attention
        weight = torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight])
        bias = torch.cat([a.q_proj.bias, a.k_proj.bias, a.v_proj.bias])
        parts = F.linear(self.attention_norm(x), weight, bias).chunk(3, dim=-1)
        said, cache = by_hand(*map(self.heads, parts), past)
        x = torch.add(x, self.drop(F.linear(said.transpose(1, 2).flatten(2), a.o_proj.weight, a.o_proj.bias)))
        return torch.add(x, self.drop(self.think(x))), cache


class _Model(nn.Module):
    """A model of blocks of another making."""

    block: type[nn.Module] = Unflattened

    def __init__(self, vocab_size, max_length, *, d_model, n_heads, n_layers, d_ff=None, dropout=0.0):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        width = d_ff if d_ff is not None else 4 * d_model
        self.blocks = nn.ModuleList([self.block(d_model, n_heads, width, dropout=dropout) for _ in range(n_layers)])
        self.final_norm = nn.LayerNorm(d_model)
        self.p = dropout
        self.apply(self._draw)
        for block in self.blocks:
            for layer in (block.attention.o_proj, block.down_proj):
                nn.init.normal_(layer.weight, 0.0, 0.02 * (2 * n_layers) ** -0.5)

    def _draw(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, 0.0, 0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def embed(self, tokens, before):
        """Tokens and places."""
        end = before + tokens.shape[1]
        if end > len(self.position_embedding.weight):
            raise ValueError("too long")
        x = self.token_embedding(tokens) + self.position_embedding.weight[before:end]
        return F.dropout(x, self.p, self.training)

    def forward(self, tokens, cache=None):
        """Block by block."""
        x = self.embed(tokens, 0 if cache is None else cache[0][0].size(-2))
        pasts = [None] * len(self.blocks) if cache is None else cache
        kept = []
        for block, past in zip(self.blocks, pasts, strict=True):
            x, pair = block(x, past)
            kept.append(pair)
        return self.logits(self.final_norm(x)), kept

    def logits(self, x):
        """The tied matrix."""
        return F.linear(x, self.token_embedding.weight)


@alternative("Gpt")
class OfUnflattenedBlocks(_Model):
    """The plain way."""


@alternative("Gpt")
class OfWrittenOutBlocks(_Model):
    """Logits in Einstein's notation."""

    block = WrittenOut

    def logits(self, x):
        """Letter by letter."""
        return torch.einsum("btd,vd->btv", x, self.token_embedding.weight)


@alternative("Gpt")
class OfJoinedMaps(_Model):
    """Places by a running sum."""

    block = JoinedMaps

    def embed(self, tokens, before):
        """Ones, summed."""
        if before + tokens.shape[1] > self.position_embedding.num_embeddings:
            raise ValueError(tokens.shape)
        places = torch.ones_like(tokens).cumsum(1) + (before - 1)
        return F.dropout(self.position_embedding(places) + self.token_embedding(tokens), self.p, self.training)


# ------------------------------------------------------------------------------------------------------------- writing


@alternative("generate")
def with_a_list(
    model, prompt, *, max_new_tokens, chain=(), greedy=False, eos=None, pad=0, generator=None, use_cache=True
):
    """Columns in a list."""
    if max_new_tokens < 0:
        raise ValueError("negative")
    columns, cache, new = [prompt], None, prompt
    done = torch.zeros_like(prompt[:, 0], dtype=torch.bool)
    with torch.no_grad():
        while len(columns) <= max_new_tokens:
            text = torch.cat(columns, dim=1)
            logits, cache = model(new, cache) if use_cache else (model(text, None)[0], None)
            last = sampler_chain(logits[:, -1, :], text, chain, generator=generator)
            likeliest = last.argmax(-1, keepdim=True)
            new = likeliest if greedy else torch.multinomial(last.softmax(-1), 1, generator=generator)
            new = torch.where(done[:, None], pad, new).to(prompt.dtype)
            columns.append(new)
            done = done | ((new[:, 0] == eos) if eos is not None else False)
            if done.all():
                break
    return torch.cat(columns, dim=1)


@alternative("generate")
@torch.inference_mode()
def into_a_table(
    model, prompt, *, max_new_tokens, chain=(), greedy=False, eos=None, pad=0, generator=None, use_cache=True
):
    """A table of padding that is filled, and cut at the end."""
    if not max_new_tokens >= 0:
        raise ValueError(max_new_tokens)
    T = prompt.shape[1]
    table = prompt.new_full((len(prompt), T + max_new_tokens), pad)
    table[:, :T] = prompt
    running = torch.ones(len(prompt), dtype=torch.bool, device=prompt.device)
    cache, seen, end = None, 0, T
    for place in range(T, T + max_new_tokens):
        logits, cache = model(table[:, seen:place], cache)
        if use_cache:
            seen = place
        else:
            cache = None
        p = sampler_chain(logits[:, -1], table[:, :place], chain, generator).softmax(dim=-1)
        token = p.max(dim=-1).indices if greedy else torch.multinomial(p, 1, generator=generator).view(-1)
        table[running, place] = token[running].to(prompt.dtype)
        running = running & (token != eos) if eos is not None else running
        end = place + 1
        if not running.any():
            break
    return table[:, :end].clone()


# --------------------------------------------------------------------------------------------------------------- sizes


@alternative("gpt_parameters")
def by_lists(vocab_size, max_length, d_model, n_layers, d_ff=None):
    """The sizes of all matrices and vectors, summed."""
    d_ff = d_ff or 4 * d_model
    maps = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    block = sum(a * b + b for a, b in maps) + 2 * 2 * d_model
    parts = (vocab_size * d_model, max_length * d_model, n_layers * block, d_model + d_model)
    return namedtuple("Parts", "tokens positions blocks final_norm total")(*parts, sum(parts))


@alternative("gpt_parameters")
def by_a_formula(vocab_size, max_length, d_model, n_layers, d_ff=None):
    """Multiplied out."""
    D, F_ = d_model, 4 * d_model if d_ff is None else d_ff
    blocks = n_layers * (4 * D**2 + 2 * D * F_ + 9 * D + F_)
    Parts = namedtuple("Parts", ["tokens", "positions", "blocks", "final_norm", "total"])
    return Parts(vocab_size * D, max_length * D, blocks, 2 * D, (vocab_size + max_length + 2) * D + blocks)


@alternative("training_flops")
def forward_and_back(parameters, tokens):
    """Forward, and twice that."""
    forward = 2 * parameters * tokens
    return forward + 2 * forward


@alternative("training_flops")
def by_the_token(parameters, tokens):
    """A token's share, times the tokens."""
    return tokens * (parameters * 6.0)


@alternative("chinchilla_loss")
def by_negative_powers(parameters, tokens, constants=None):
    """Negative exponents."""
    if constants is None:
        constants = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
    E, A, B, alpha, beta = (constants[name] for name in ("E", "A", "B", "alpha", "beta"))
    return E + A * parameters**-alpha + B * tokens**-beta


@alternative("chinchilla_loss")
def by_exponentials(parameters, tokens, constants=None):
    """Powers by exponentials of logarithms."""
    c = constants or {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
    terms = [c["E"], c["A"] * math.exp(-c["alpha"] * math.log(parameters))]
    return sum([*terms, c["B"] * math.exp(-c["beta"] * math.log(tokens))])


@alternative("chinchilla_optimal")
def by_logarithms(flops, constants=None):
    """The sum of logarithms."""
    if flops <= 0:
        raise ValueError("flops")
    c = constants or {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
    a, b = c["alpha"], c["beta"]
    log_n = (math.log(a * c["A"]) - math.log(b * c["B"]) + b * math.log(flops / 6)) / (a + b)
    return math.exp(log_n), math.exp(math.log(flops / 6) - log_n)


@alternative("chinchilla_optimal")
def by_bisection(flops, constants=None):
    """The zero of the derivative along the budget."""
    if not flops > 0:
        raise ValueError(flops)
    c = constants or {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
    low, high = -50.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        n = math.exp(middle)
        d = flops / 6 / n
        # The term of the size falls, that of the tokens rises.
        falls = c["alpha"] * c["A"] * n ** -c["alpha"] > c["beta"] * c["B"] * d ** -c["beta"]
        low, high = (middle, high) if falls else (low, middle)
    return math.exp(low), flops / (6 * math.exp(low))


# --------------------------------------------------------------------------------------------------------------- rates


@alternative("discriminative_rates")
def from_the_top(rate, n_groups, factor=2.6):
    """Divided again and again, and turned round."""
    if not n_groups > 0:
        raise ValueError("no groups")
    rates = [rate]
    while len(rates) < n_groups:
        rates.append(rates[-1] / factor)
    return rates[::-1]


@alternative("discriminative_rates")
def by_negative_powers_of_the_factor(rate, n_groups, factor=2.6):
    """Negative exponents."""
    if n_groups <= 0:
        raise ValueError(n_groups)
    return [rate * factor**-k for k in reversed(range(n_groups))]


@alternative("slanted_triangular_rate")
def between_two_rates(step, total, *, peak=0.01, cut=0.1, ratio=32):
    """From the low rate to the peak and back."""
    if step < 0 or step > total or total <= 0 or cut < 0 or cut >= 1:
        raise ValueError("out of range")
    low, top = peak / ratio, int(total * cut)
    if step < top:
        return low + (peak - low) * step / top
    return peak - (peak - low) * (step - top) / (total - top)


@alternative("slanted_triangular_rate")
def the_lower_line(step, total, *, peak=0.01, cut=0.1, ratio=32):
    """Of two lines the lower one."""
    if not 0 <= step <= total or total < 1 or not 0 <= cut < 1:
        raise ValueError(step)
    top = int(total * cut)
    up = step / top if top else 1.0
    height = min(up, (total - step) / (total - top))
    return peak * (1 / ratio + height * (1 - 1 / ratio))
