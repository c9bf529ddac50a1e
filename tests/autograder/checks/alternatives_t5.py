"""Chapter 10, solved in other ways than the reference: right, so each must get all the points."""

import bisect
import math
from collections import namedtuple
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby, pairwise
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


# ------------------------------------------------------------------------------------------------------- span corruption


def _lengths_by_list(total, parts, generator):
    order = torch.randperm(total - 1, generator=generator, device=generator.device).tolist()
    cuts = [0, *sorted(cut + 1 for cut in order[: parts - 1]), total]
    return [after - before for before, after in pairwise(cuts)]


def _counts(length, noise_density, mean_span_length):
    if length < 2:
        raise ValueError("too short")
    if noise_density <= 0 or noise_density >= 1:
        raise ValueError("no such share")
    if mean_span_length < 1:
        raise ValueError("no such mean")
    hidden = max(1, min(length - 1, round(length * noise_density)))
    return hidden, max(1, min(hidden, length - hidden, round(hidden / mean_span_length)))


@alternative("random_span_mask")
def by_lists(length, generator, *, noise_density=0.15, mean_span_length=3.0):
    """Runs of False and of True, one after the other."""
    hidden, spans = _counts(length, noise_density, mean_span_length)
    of_hidden = _lengths_by_list(hidden, spans, generator)
    of_kept = _lengths_by_list(length - hidden, spans, generator)
    mask = []
    for kept, gone in zip(of_kept, of_hidden, strict=True):
        mask += [False] * kept + [True] * gone
    return torch.tensor(mask, device=generator.device)


@alternative("random_span_mask")
def by_counting_borders(length, generator, *, noise_density=0.15, mean_span_length=3.0):
    """A place is hidden if the number of borders up to it is odd."""
    hidden, spans = _counts(length, noise_density, mean_span_length)
    of_hidden = torch.tensor(_lengths_by_list(hidden, spans, generator), device=generator.device)
    of_kept = torch.tensor(_lengths_by_list(length - hidden, spans, generator), device=generator.device)
    borders = torch.stack([of_kept, of_hidden], 1).reshape(-1).cumsum(0)[:-1]
    counted = torch.zeros(length, dtype=torch.long, device=generator.device)
    counted[borders] = 1
    return counted.cumsum(0) % 2 == 1


@alternative("corrupt_spans")
def token_by_token(tokens, noise, sentinels):
    """A loop over the text."""
    source, target, used = [], [], 0
    before = False
    for token, hidden in zip(tokens.tolist(), noise.tolist(), strict=True):
        if hidden and not before:
            if used + 1 >= len(sentinels):
                raise ValueError("not enough sentinels")
            source.append(sentinels[used])
            target.append(sentinels[used])
            used += 1
        (target if hidden else source).append(token)
        before = hidden
    if used >= len(sentinels):
        raise ValueError("not enough sentinels")
    target.append(sentinels[used])
    return tokens.new_tensor(source), tokens.new_tensor(target)


@alternative("corrupt_spans")
def run_by_run(tokens, noise, sentinels):
    """Runs found by groupby."""
    left = iter(sentinels)
    source, target = [], []
    try:
        for hidden, run in groupby(zip(noise.tolist(), tokens.tolist(), strict=True), key=lambda pair: pair[0]):
            part = [token for _, token in run]
            if hidden:
                mark = next(left)
                source.append(mark)
                target.extend([mark, *part])
            else:
                source.extend(part)
        target.append(next(left))
    except StopIteration:
        raise ValueError("not enough sentinels") from None
    return tuple(torch.tensor(part, dtype=tokens.dtype, device=tokens.device) for part in (source, target))


@alternative("restore_spans")
def by_searching(source, target, sentinels):
    """For each sentinel of the source, its place in the target is looked up."""
    written, result = target.tolist(), []
    for token in source.tolist():
        if token not in sentinels:
            result.append(token)
        elif token in written:
            for part in written[len(written) - written[::-1].index(token) :]:
                if part in sentinels:
                    break
                result.append(part)
    return source.new_tensor(result)


@alternative("restore_spans")
def by_cutting_the_target(source, target, sentinels):
    """The target is cut at its sentinels first."""
    marks = set(sentinels)
    places = [place for place, token in enumerate(target.tolist()) if token in marks]
    ends = [*places[1:], len(target)]
    spans = {int(target[place]): target[place + 1 : end] for place, end in zip(places, ends, strict=True)}
    parts = [spans.get(t, target[:0]) if t in marks else source[n : n + 1] for n, t in enumerate(source.tolist())]
    return torch.cat([part.to(source.dtype) for part in parts]) if parts else source.clone()


# ------------------------------------------------------------------------------------------------------------ positions


def _side(bidirectional, n_buckets, max_distance):
    if (bidirectional and n_buckets % 4) or n_buckets % 2:
        raise ValueError("odd")
    side = n_buckets // 2 if bidirectional else n_buckets
    if max_distance <= side // 2:
        raise ValueError("near")
    return side


def _bucket_of(distance, side, max_distance):
    exact = side // 2
    if distance < exact:
        return distance
    # As the reference does, in float32: at exact powers another precision may decide otherwise.
    ratio = torch.log(torch.tensor(float(distance)) / exact) / math.log(max_distance / exact)
    return min(exact + int(ratio * (side - exact)), side - 1)


@alternative("relative_position_bucket")
def by_first_distances(offset, *, bidirectional, n_buckets=32, max_distance=128):
    """A table of the first distance of each bucket, and a search in it."""
    side = _side(bidirectional, n_buckets, max_distance)
    buckets = [_bucket_of(distance, side, max_distance) for distance in range(2 * max_distance)]
    present = sorted(set(buckets))
    firsts = torch.tensor([buckets.index(bucket) for bucket in present], device=offset.device)
    distance = offset.abs() if bidirectional else torch.relu(-offset)
    found = torch.bucketize(distance, firsts, right=True) - 1
    bucket = torch.tensor(present, device=offset.device)[found]
    return torch.where(offset > 0, bucket + side, bucket) if bidirectional else bucket


@alternative("relative_position_bucket")
def one_by_one(offset, *, bidirectional, n_buckets=32, max_distance=128):
    """Every offset by itself, in Python."""
    side = _side(bidirectional, n_buckets, max_distance)
    buckets = []
    for number in offset.flatten().tolist():
        distance = abs(number) if bidirectional else max(-number, 0)
        buckets.append(_bucket_of(distance, side, max_distance) + (side if bidirectional and number > 0 else 0))
    return torch.tensor(buckets, dtype=torch.long, device=offset.device).reshape(offset.shape)


@alternative("relative_position_bias")
def by_embedding(table, T, S, *, bidirectional, max_distance=128, start=0):
    """Looked up by F.embedding, head by head in the end."""
    places = torch.arange(S, device=table.device).unsqueeze(0)
    asking = torch.arange(T, device=table.device).unsqueeze(1) + start
    bucket = one_by_one(
        places - asking, bidirectional=bidirectional, n_buckets=table.shape[0], max_distance=max_distance
    )
    return torch.stack([F.embedding(bucket, head[:, None]).squeeze(-1) for head in table.T])


@alternative("relative_position_bias")
def by_one_row(table, T, S, *, bidirectional, max_distance=128, start=0):
    """All offsets that occur, once; then each row is a window of that."""
    offsets = torch.arange(-(start + T - 1), S - start, device=table.device)
    values = table[
        by_first_distances(offsets, bidirectional=bidirectional, n_buckets=len(table), max_distance=max_distance)
    ].T
    return torch.stack([values[:, T - 1 - t : T - 1 - t + S] for t in range(T)], dim=1)


# --------------------------------------------------------------------------------------------------------------- layers


@alternative("rms_norm")
def by_the_length(x, gamma, eps=1e-6):
    """The length of a row, shared among its columns."""
    wide = x if x.dtype == torch.float64 else x.float()
    mean = (wide**2).sum(-1, keepdim=True) / x.shape[-1]
    return (wide / (mean + eps).sqrt() * gamma).to(x.dtype)


@alternative("rms_norm")
def by_einsum(x, gamma, eps=1e-6):
    """The squares by einsum."""
    wide = x.double()
    squares = torch.einsum("...d,...d->...", wide, wide).unsqueeze(-1) / wide.size(-1)
    return (wide * torch.pow(squares + eps, -0.5) * gamma.double()).type_as(x)


def _attend(scores, v, mask):
    """Softmax over what is permitted, zeros where nothing is; scores (B, H, T, S)."""
    if mask is not None:
        while mask.ndim < 3:
            mask = mask.unsqueeze(0)
        if mask.ndim == 3:
            mask = mask[:, None]
        scores = scores.masked_fill(~mask, float("-inf"))
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    highest = wide.amax(-1, keepdim=True)
    weights = torch.exp(wide - torch.where(highest.isinf(), 0.0, highest))
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, 1.0, total)).to(v.dtype) @ v


class _Attention(nn.Module):
    def __init__(self, d_model, n_heads, d_head):
        super().__init__()
        self.h, self.dh = n_heads, d_head
        for name in ("q_proj", "k_proj", "v_proj"):
            self.add_module(name, nn.Linear(d_model, n_heads * d_head, bias=False))
        self.o_proj = nn.Linear(n_heads * d_head, d_model, bias=False)

    def forward(self, x, context=None, mask=None, bias=None):
        if context is None:
            context = x
        return self.attend(x, context, mask, 0 if bias is None else bias)


@alternative("T5Attention")
class ByEinsum(_Attention):
    """The scores by einsum."""

    def attend(self, x, context, mask, bias):
        q, k, v = (
            project(part).unflatten(-1, (self.h, self.dh))
            for project, part in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = torch.einsum("bthd,bshd->bhts", q, k) + bias
        return self.o_proj(_attend(scores, v.permute(0, 2, 1, 3), mask).permute(0, 2, 1, 3).flatten(2))


@alternative("T5Attention")
class SummedOutputs(_Attention):
    """Each head's part of the output map by itself, all at once."""

    def attend(self, x, context, mask, bias):
        q, k, v = (
            torch.stack(project(part).split(self.dh, dim=-1), dim=1)
            for project, part in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        mixed = _attend(q @ k.mT + bias, v, mask)
        return torch.einsum("bhtd,ohd->bto", mixed, self.o_proj.weight.unflatten(1, (self.h, self.dh)))


@alternative("T5Attention")
class WithAdditiveMask(_Attention):
    """The mask as an addend, and zeros where nothing is left."""

    def attend(self, x, context, mask, bias):
        q, k, v = (
            project(part).reshape(*part.shape[:2], self.h, self.dh).swapaxes(1, 2)
            for project, part in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = q @ k.mT + bias
        if mask is not None:
            allowed = mask.unsqueeze(-3) if mask.ndim == 3 else mask
            some = allowed.any(-1, keepdim=True)
            scores = scores + torch.zeros_like(allowed, dtype=scores.dtype).masked_fill(some & ~allowed, -torch.inf)
        weights = scores.to(torch.promote_types(x.dtype, torch.float32)).softmax(-1).to(x.dtype)
        weights = weights if mask is None else weights * some
        return self.o_proj((weights @ v).swapaxes(1, 2).reshape(*x.shape[:2], -1))


class _Network(nn.Module):
    def __init__(self, d_model, d_ff, *, gated=False):
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_ff, bias=False)
        self.down_proj = nn.Linear(d_ff, d_model, bias=False)
        if gated:
            self.gate_proj = nn.Linear(d_model, d_ff, bias=False)
        self.gated = gated


@alternative("T5FeedForward")
class ByClamp(_Network):
    """ReLU as clamp, GELU written out."""

    def forward(self, x):
        hidden = self.up_proj(x)
        if not self.gated:
            return self.down_proj(hidden.clamp(min=0))
        g = self.gate_proj(x)
        bent = g / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))
        return self.down_proj(bent * hidden)


@alternative("T5FeedForward")
class ByMatrices(_Network):
    """Products with the weights themselves."""

    def forward(self, x):
        up = x @ self.up_proj.weight.T
        bent = up.relu() if not self.gated else nn.GELU("tanh")(x @ self.gate_proj.weight.T).mul(up)
        return bent @ self.down_proj.weight.T


@alternative("T5FeedForward")
class WithModules(_Network):
    """The activation as a module."""

    def __init__(self, d_model, d_ff, *, gated=False):
        super().__init__(d_model, d_ff, gated=gated)
        self.bend = nn.GELU(approximate="tanh") if gated else nn.ReLU()

    def forward(self, x):
        bent = self.bend(self.gate_proj(x) if self.gated else self.up_proj(x))
        return self.down_proj(bent * self.up_proj(x) if self.gated else bent)


def _past(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()


class _Layer(nn.Module):
    attention: Any = SummedOutputs
    network: Any = WithModules

    def __init__(self, d_model, n_heads, d_head, d_ff, *, decoder, gated=False, dropout=0.0):
        super().__init__()
        self.self_attention = self.attention(d_model, n_heads, d_head)
        self.self_attention_norm = nn.RMSNorm(d_model, eps=1e-6)
        if decoder:
            self.cross_attention = self.attention(d_model, n_heads, d_head)
            self.cross_attention_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.feed_forward = self.network(d_model, d_ff, gated=gated)
        self.feed_forward_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.decoder, self.p = decoder, dropout

    def drop(self, x):
        return F.dropout(x, self.p, self.training)

    def forward(self, x, memory=None, mask=None, bias=None):
        own = _past(x) if self.decoder else mask
        x = x + self.drop(self.self_attention(self.self_attention_norm(x), None, own, bias))
        if self.decoder:
            x = x + self.drop(self.cross_attention(self.cross_attention_norm(x), memory, mask))
        return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))


@alternative("T5Layer")
class LayerByEinsum(_Layer):
    """Of other parts."""

    attention, network = ByEinsum, ByClamp


@alternative("T5Layer")
class LayerWithAList(_Layer):
    """Sublayers as a list of functions."""

    def forward(self, x, memory=None, mask=None, bias=None):
        own = ~torch.triu(torch.ones_like(x[0] @ x[0].T, dtype=torch.bool), 1) if self.decoder else mask
        steps = [(self.self_attention_norm, lambda y: self.self_attention(y, mask=own, bias=bias))]
        if self.decoder:
            steps += [(self.cross_attention_norm, lambda y: self.cross_attention(y, memory, mask=mask))]
        steps += [(self.feed_forward_norm, self.feed_forward)]
        for norm, sublayer in steps:
            x = x + self.drop(sublayer(norm(x)))
        return x


@alternative("T5Layer")
class LayerWithNormsByHand(_Layer):
    """Norms as formulas, dropout as a module."""

    attention, network = WithAdditiveMask, ByMatrices

    def __init__(self, *sizes, dropout=0.0, **options):
        super().__init__(*sizes, dropout=dropout, **options)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory=None, mask=None, bias=None):
        def normed(norm):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * norm.weight

        own = torch.ones(len(x[0]), len(x[0]), device=x.device).tril() > 0 if self.decoder else mask
        x = x + self.dropout(self.self_attention(normed(self.self_attention_norm), mask=own, bias=bias))
        if self.decoder:
            x = x + self.dropout(self.cross_attention(normed(self.cross_attention_norm), memory, mask=mask))
        return x + self.dropout(self.feed_forward(normed(self.feed_forward_norm)))


# ---------------------------------------------------------------------------------------------------------------- model


class _Model(nn.Module):
    layer: Any = LayerWithNormsByHand

    def __init__(
        self,
        vocab_size,
        *,
        d_model,
        n_heads,
        d_head,
        d_ff,
        n_layers,
        gated=False,
        tie_weights=True,
        n_buckets=32,
        max_distance=128,
        dropout=0.0,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.encoder_bias, self.decoder_bias = (nn.Embedding(n_buckets, n_heads) for _ in range(2))
        sizes, options = (d_model, n_heads, d_head, d_ff), {"gated": gated, "dropout": dropout}
        for name, kind in (("encoder_layers", False), ("decoder_layers", True)):
            stack = [self.layer(*sizes, decoder=kind, **options) for _ in range(n_layers)]
            self.add_module(name, nn.ModuleList(stack))
        self.encoder_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.decoder_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.tied, self.far, self.drop = tie_weights, max_distance, nn.Dropout(dropout)
        if not tie_weights:
            self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.draw(d_model, n_heads, d_head, d_ff)

    def draw(self, d, h, dh, f):
        for name, weight in self.named_parameters():
            if name == "embedding.weight":
                weight.data.normal_()
            elif "q_proj" in name:
                weight.data.normal_(0, 1 / math.sqrt(d * dh))
            elif "o_proj" in name:
                weight.data.normal_(0, 1 / math.sqrt(h * dh))
            elif "down_proj" in name:
                weight.data.normal_(0, 1 / math.sqrt(f))
            elif "norm" not in name:
                weight.data.normal_(0, 1 / math.sqrt(d))

    def bias(self, table, size, bidirectional):
        places = torch.arange(size, device=table.weight.device)
        offsets = places[None] - places[:, None]
        sizes = {"n_buckets": table.num_embeddings, "max_distance": self.far}
        return table(by_first_distances(offsets, bidirectional=bidirectional, **sizes)).movedim(-1, 0)

    def encode(self, source, source_mask=None):
        mask = source_mask[:, None, :] if source_mask is not None else None
        x, bias = self.drop(self.embedding(source)), self.bias(self.encoder_bias, source.size(1), True)
        for layer in self.encoder_layers:
            x = layer(x, mask=mask, bias=bias)
        return self.encoder_norm(x)

    def logits(self, x):
        if self.tied:
            return x @ self.embedding.weight.T / math.sqrt(x.shape[-1])
        return self.output(x)

    def decode(self, target, memory, source_mask=None):
        mask = source_mask[:, None, :] if source_mask is not None else None
        x, bias = self.drop(self.embedding(target)), self.bias(self.decoder_bias, target.size(1), False)
        for layer in self.decoder_layers:
            x = layer(x, memory, mask, bias)
        return self.logits(self.decoder_norm(x))

    def forward(self, source, target, source_mask=None):
        return self.decode(target, self.encode(source, source_mask), source_mask)


@alternative("T5")
class OfNormsByHand(_Model):
    """Of layers whose norms are formulas."""


@alternative("T5")
class WithBatchOfBiases(_Model):
    """The bias with an axis for the batch."""

    layer = LayerWithAList

    def bias(self, table, size, bidirectional):
        return super().bias(table, size, bidirectional).unsqueeze(0)


@alternative("T5")
class WithInit(_Model):
    """Weights drawn by nn.init, module by module."""

    layer = LayerByEinsum

    def draw(self, d, h, dh, f):
        spreads = {"q_proj": (d * dh) ** -0.5, "o_proj": (h * dh) ** -0.5, "down_proj": f**-0.5, "embedding": 1.0}
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, 0.0, spreads.get(name.split(".")[-1], d**-0.5))


# --------------------------------------------------------------------------------------------------- text and parameters


@alternative("score_to_text")
def by_decimals(score, *, step=0.2):
    """Exact decimals."""
    if step <= 0:
        raise ValueError("step")
    width = Decimal(str(step))
    steps = (Decimal(str(round(score, 9))) / width).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    return f"{steps * width:.1f}"


@alternative("score_to_text")
def by_searching_multiples(score, *, step=0.2):
    """The multiples around the score, and a comparison."""
    if step <= 0:
        raise ValueError("step")
    multiples = [step * n for n in range(int(score / step) + 3)]
    above = bisect.bisect_left(multiples, score)
    below = max(above - 1, 0)
    nearer = above if multiples[above] - score <= score - multiples[below] + 1e-9 else below
    return format(multiples[nearer], ".1f")


_Counts = namedtuple("_Counts", ("embedding", "encoder", "decoder", "biases", "total"))


@alternative("t5_parameters")
def by_parts(vocab_size, d_model, n_heads, d_head, d_ff, n_layers, *, gated=False, tied=True, n_buckets=32):
    """Each part of a layer by itself."""
    inner = n_heads * d_head
    attention = 3 * d_model * inner + inner * d_model
    network = d_model * d_ff * (2 + gated)
    encoder = sum(attention + d_model + network + d_model for _ in range(n_layers)) + d_model
    decoder = sum(2 * (attention + d_model) + network + d_model for _ in range(n_layers)) + d_model
    embedding = vocab_size * d_model + (0 if tied else vocab_size * d_model)
    tables = 2 * n_buckets * n_heads
    return _Counts(embedding, encoder, decoder, tables, embedding + encoder + decoder + tables)


@alternative("t5_parameters")
def as_a_tuple(vocab_size, d_model, n_heads, d_head, d_ff, n_layers, *, gated=False, tied=True, n_buckets=32):
    """A plain tuple, with what both stacks share first."""
    shared = n_layers * (4 * d_model * n_heads * d_head + (2 + int(gated)) * d_model * d_ff + 2 * d_model) + d_model
    more = n_layers * (4 * n_heads * d_head + 1) * d_model
    parts = ((2 - bool(tied)) * vocab_size * d_model, shared, shared + more, 2 * n_buckets * n_heads)
    return (*parts, sum(parts))
