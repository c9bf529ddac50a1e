"""Chapter 08, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections import namedtuple
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.layers import EncoderLayer
from tfcourse.multihead import MultiHeadAttention

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# -------------------------------------------------------------------------------------------------------------- masking


def _words(tokens, vocab_size, generator):
    return torch.randint(vocab_size, tokens.shape, generator=generator, device=tokens.device).to(tokens.dtype)


@alternative("mask_tokens")
def as_collators_do(tokens, special, *, mask_id, vocab_size, probability=0.15, generator=None):
    """A clone that is written to, and labels of the same."""
    seen, labels = tokens.clone(), tokens.clone()
    matrix = torch.full(tokens.shape, probability, device=tokens.device)
    matrix[special] = 0
    chosen = torch.bernoulli(matrix, generator=generator) == 1
    labels[~chosen] = -100
    masked = (torch.bernoulli(torch.full_like(matrix, 0.8), generator=generator) == 1) & chosen
    seen[masked] = mask_id
    swap = (torch.bernoulli(torch.full_like(matrix, 0.5), generator=generator) == 1) & chosen & ~masked
    words = _words(tokens, vocab_size, generator)
    return torch.where(swap, words, seen), labels


@alternative("mask_tokens")
def by_cases(tokens, special, *, mask_id, vocab_size, probability=0.15, generator=None):
    """A number for what happens at each place: nothing, mask, random, asked only."""
    share = (~special).float() * probability
    draws = [torch.bernoulli(p, generator=generator) for p in (share, torch.ones_like(share) * 0.8, share * 0 + 0.5)]
    words = _words(tokens, vocab_size, generator)
    kind = (draws[0] * torch.where(draws[1] > 0, 1, torch.where(draws[2] > 0, 2, 3))).long()
    options = torch.stack([tokens, torch.full_like(tokens, mask_id), words, tokens])
    return options.gather(0, kind[None])[0], torch.where(kind > 0, tokens, -100)


# ----------------------------------------------------------------------------------------------------------- the model


class _Embeddings(nn.Module):
    """The tables, drawn as BERT's are, and the norm."""

    def __init__(self, vocab_size, d_model, max_length, *, segments=2, dropout=0.1):
        super().__init__()
        tables = [nn.Embedding(rows, d_model) for rows in (vocab_size, max_length, segments)]
        for table in tables:
            nn.init.normal_(table.weight, mean=0.0, std=0.02)
        self.token_embedding, self.position_embedding, self.segment_embedding = tables
        self.norm, self.dropout = nn.LayerNorm(d_model, eps=1e-12), nn.Dropout(dropout)

    def forward(self, tokens, segments=None):
        if tokens.shape[1] > len(self.position_embedding.weight):
            raise ValueError("too long")
        return self.dropout(self.normed(self.summed(tokens, tokens * 0 if segments is None else segments)))

    def normed(self, x):
        return self.norm(x)


@alternative("BertEmbeddings")
class LooksUpByHand(_Embeddings):
    """Rows of the tables by indexing, the norm by its formula, and no module for dropout."""

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        share = self.dropout.p
        del self.dropout
        self.dropout = lambda x: F.dropout(x, share, self.training)

    def summed(self, tokens, segments):
        x = self.token_embedding.weight[tokens] + self.position_embedding.weight[: tokens.size(1)]
        return x + self.segment_embedding.weight[segments]

    def normed(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-12).sqrt() * self.norm.weight + self.norm.bias


@alternative("BertEmbeddings")
class OneHot(_Embeddings):
    """The rows of tokens and segments as products with one-hot vectors."""

    def summed(self, tokens, segments):
        one, two = (
            F.one_hot(chosen, len(table.weight)).to(table.weight.dtype) @ table.weight
            for chosen, table in ((tokens, self.token_embedding), (segments, self.segment_embedding))
        )
        return two + self.position_embedding.weight[None, : tokens.shape[1]] + one


@alternative("BertEmbeddings")
class StackedAndSummed(_Embeddings):
    """Three tensors (B, T, D), stacked and summed, with places for every text."""

    def summed(self, tokens, segments):
        places = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        parts = self.token_embedding(tokens), self.position_embedding(places), self.segment_embedding(segments)
        return torch.stack(parts).sum(dim=0)


@alternative("BertEmbeddings")
class WithVariance(_Embeddings):
    """The places by a running sum, the norm by its variance."""

    def summed(self, tokens, segments):
        places = torch.ones_like(tokens).cumsum(dim=1) - 1
        return self.segment_embedding(segments) + self.token_embedding(tokens) + self.position_embedding(places)

    def normed(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-12) * self.norm.weight + self.norm.bias


@alternative("roberta_positions")
def as_published(tokens, pad):
    """The running sum, zero at padding, plus pad."""
    real = tokens.ne(pad).int()
    return (torch.cumsum(real, dim=1).type_as(real) * real).long() + pad


@alternative("roberta_positions")
def by_a_triangle(tokens, pad):
    """A count of the real tokens up to each one, by a table of comparisons."""
    real = tokens != pad
    length = tokens.shape[1]
    before = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    count = (real[:, None, :] & before).sum(dim=-1)
    return pad + count * real


def _layer(d_model, n_heads, d_ff, dropout):
    made = EncoderLayer(d_model, n_heads, d_ff, dropout=dropout, activation="gelu")
    made.self_attention_norm = nn.LayerNorm(d_model, 1e-12)
    made.feed_forward_norm = nn.LayerNorm(d_model, 1e-12)
    return made


class _OwnLayer(nn.Module):
    """Attention and feed-forward network of chapter 05 under its names, computed by hand."""

    def __init__(self, d_model, n_heads, d_ff, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = EncoderLayer(d_model, n_heads, d_ff, activation="gelu").feed_forward
        self.self_attention_norm = nn.LayerNorm(d_model, eps=1e-12)
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=1e-12)
        self.p = dropout

    def forward(self, x, mask):
        said = F.dropout(self.self_attention(x, mask=mask), self.p, self.training)
        x = self.self_attention_norm(x + said)
        return self.feed_forward_norm(x + F.dropout(self.feed_forward(x), self.p, self.training))


class _Bert(nn.Module):
    """Embeddings, layers and pooler."""

    EMBEDDINGS, LAYER = OneHot, staticmethod(_layer)

    def __init__(self, vocab_size, *, d_model, n_heads, n_layers, d_ff, max_length, segments=2, dropout=0.1):
        super().__init__()
        self.embeddings = self.EMBEDDINGS(vocab_size, d_model, max_length, segments=segments, dropout=dropout)
        self.layers = nn.ModuleList([self.LAYER(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.pooler = nn.Linear(d_model, d_model)

    def forward(self, tokens, segments=None, mask=None):
        hidden = self.encode(tokens, segments, mask)
        return hidden, torch.tanh(self.pooler(hidden[:, 0]))


@alternative("Bert")
class WithNormsExchanged(_Bert):
    """Norms put into ready-made layers, and a mask of all True where none is given."""

    def encode(self, tokens, segments, mask):
        x = self.embeddings(tokens, segments)
        real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        for layer in self.layers:
            x = layer(x, real.unsqueeze(1))
        return x


@alternative("Bert")
class InOneSweep(_Bert):
    """The layers folded over the embeddings."""

    EMBEDDINGS = StackedAndSummed

    def encode(self, tokens, segments, mask):
        keys = mask[:, None, :].expand(-1, tokens.shape[1], -1) if mask is not None else None
        return reduce(lambda state, layer: layer(state, keys), self.layers, self.embeddings(tokens, segments))


@alternative("Bert")
class WithStackedMask(_Bert):
    """Layers written out, the mask stacked, and all states pooled."""

    EMBEDDINGS, LAYER = WithVariance, _OwnLayer

    def encode(self, tokens, segments, mask):
        x = self.embeddings(tokens, segments)
        wide = mask if mask is None else torch.stack([mask] * tokens.shape[1], dim=1)
        for layer in self.layers:
            x = layer(x, wide)
        return x

    def forward(self, tokens, segments=None, mask=None):
        hidden = self.encode(tokens, segments, mask)
        return hidden, self.pooler(hidden[:, :1]).squeeze(1).tanh()


class _Albert(_Bert):
    """Narrow embeddings that are projected, and one layer for all."""

    def __init__(self, vocab_size, *, d_embedding, d_model, n_heads, n_layers, d_ff, max_length, **options):
        nn.Module.__init__(self)
        self.embeddings = self.EMBEDDINGS(vocab_size, d_embedding, max_length, **options)
        self.project, self.pooler = nn.Linear(d_embedding, d_model), nn.Linear(d_model, d_model)
        self.layer = self.LAYER(d_model, n_heads, d_ff, options.get("dropout", 0.1))
        self.times = n_layers


@alternative("Albert")
class AStackThatRepeats(_Albert):
    """A plain list that holds the layer several times."""

    def encode(self, tokens, segments, mask):
        x = self.project(self.embeddings(tokens, segments))
        for layer in [self.layer] * self.times:
            x = layer(x) if mask is None else layer(x, mask.unsqueeze(-2))
        return x


@alternative("Albert")
class AsRecursion(_Albert):
    """A layer calls what is left of it."""

    EMBEDDINGS = StackedAndSummed

    def deeper(self, x, mask, left):
        return x if left == 0 else self.deeper(self.layer(x, mask), mask, left - 1)

    def encode(self, tokens, segments, mask):
        x = self.embeddings(tokens, segments) @ self.project.weight.mT + self.project.bias
        return self.deeper(x, None if mask is None else mask[:, None], self.times)


@alternative("Albert")
class AsABertOfOneLayer(_Albert, WithStackedMask):
    """A BERT whose list of layers is one layer."""

    EMBEDDINGS, LAYER = WithVariance, _OwnLayer

    def encode(self, tokens, segments, mask):
        x = self.project(self.embeddings(tokens, segments))
        wide = mask if mask is None else torch.stack([mask] * tokens.shape[1], dim=1)
        for _ in range(self.times):
            x = self.layer(x, wide)
        return x


# ------------------------------------------------------------------------------------------------------ heads and losses


class _Head(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.transform, self.norm = nn.Linear(d_model, d_model), nn.LayerNorm(d_model, 1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab_size))


@alternative("MaskedLanguageHead")
class WithEinsum(_Head):
    """The product in Einstein's notation, and GELU by the error function."""

    def forward(self, hidden, embedding):
        x = self.transform(hidden)
        x = 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
        return torch.einsum("...d,vd->...v", self.norm(x), embedding).add(self.bias)


@alternative("MaskedLanguageHead")
class WithItsOwnNorm(_Head):
    """The norm by its formula."""

    def forward(self, hidden, embedding):
        x = F.gelu(self.transform(hidden), approximate="none")
        x = x - x.mean(dim=-1, keepdim=True)
        x = x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + 1e-12)
        return (x * self.norm.weight + self.norm.bias) @ embedding.T + self.bias


@alternative("MaskedLanguageHead")
class OverFlatPlaces(_Head):
    """All places in a row."""

    def forward(self, hidden, embedding):
        x = hidden.reshape(-1, hidden.shape[-1])
        x = torch.addmm(self.bias, self.norm(nn.GELU()(self.transform(x))), embedding.t())
        return x.view(*hidden.shape[:-1], -1)


@alternative("masked_language_loss")
def of_the_chosen_rows(logits, labels):
    """Only the rows that count are looked at."""
    counts = labels != -100
    rows = logits[counts]
    right = rows.gather(-1, labels[counts].unsqueeze(-1)).squeeze(-1)
    return (rows.logsumexp(-1) - right).sum() / max(1, len(rows))


@alternative("masked_language_loss")
def by_one_hot(logits, labels):
    """The right tokens as a mask over the vocabulary."""
    log_p = logits - logits.logsumexp(dim=-1, keepdim=True)
    hits = labels.unsqueeze(-1) == torch.arange(logits.shape[-1], device=logits.device)
    number = (labels >= 0).sum()
    return -torch.where(hits, log_p, torch.zeros_like(log_p)).sum() / torch.where(number > 0, number, 1)


@alternative("bert_parameters")
def by_lists(vocab_size, d_model, n_layers, d_ff, *, max_length=512, segments=2, pooler=True):
    """The sizes of all matrices and vectors, summed."""
    Counts = namedtuple("Counts", "embeddings layers pooler total")
    tables = sum(rows * d_model for rows in (vocab_size, max_length, segments)) + d_model + d_model
    maps = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    layer = sum(a * b + b for a, b in maps) + 4 * d_model
    last = d_model * (d_model + 1) * int(pooler)
    return Counts(tables, n_layers * layer, last, tables + n_layers * layer + last)


@alternative("bert_parameters")
def by_a_formula(vocab_size, d_model, n_layers, d_ff, *, max_length=512, segments=2, pooler=True):
    """A plain tuple of the multiplied formulas."""
    D, F_ = d_model, d_ff
    parts = (D * (vocab_size + max_length + segments + 2), n_layers * (4 * D * D + 2 * D * F_ + 9 * D + F_))
    parts += (D * D + D if pooler else 0,)
    Counts = namedtuple("Counts", ["embeddings", "layers", "pooler", "total"])
    return Counts(*parts, sum(parts))


class _Span(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.output = nn.Linear(d_model, 2)


@alternative("SpanHead")
class WithWhere(_Span):
    """Where there is no answer."""

    def forward(self, hidden, mask=None):
        start, end = (score.squeeze(2) for score in self.output(hidden).chunk(2, dim=2))
        if mask is not None:
            nothing = torch.full_like(start, -torch.inf)
            start, end = torch.where(mask, start, nothing), torch.where(mask, end, nothing)
        return start, end


@alternative("SpanHead")
class RowByRow(_Span):
    """Each score by its row of the matrix."""

    def forward(self, hidden, mask=None):
        scores = [hidden @ self.output.weight[i] + self.output.bias[i] for i in (0, 1)]
        if mask is not None:
            scores = [score.masked_fill(mask == 0, -math.inf) for score in scores]
        return tuple(scores)


@alternative("SpanHead")
class Transposed(_Span):
    """The two scores as rows."""

    def forward(self, hidden, mask=None):
        scores = self.output(hidden).transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, :], float("-inf"))
        return scores[:, 0], scores[:, 1]


@alternative("best_span")
def by_a_band(start, end, *, max_length):
    """The table of sums, cut to a band by two triangles."""
    if max_length <= 0:
        raise ValueError(max_length)
    T = start.size(1)
    allowed = start.new_ones(T, T, dtype=torch.bool).triu().tril(max_length - 1)
    table = (start.unsqueeze(2) + end.unsqueeze(1)).where(allowed, start.new_tensor(-math.inf))
    number = table.view(len(start), -1).argmax(1)
    return torch.div(number, T, rounding_mode="floor"), torch.remainder(number, T)


@alternative("best_span")
def by_two_maxima(start, end, *, max_length):
    """The best end of each beginning, then the best beginning."""
    if not max_length >= 1:
        raise ValueError("no answer")
    T = start.shape[1]
    places = torch.arange(T, device=end.device)
    distance = places[None, :] - places[:, None]
    table = start[:, :, None] + end[:, None, :]
    table = table.masked_fill((distance < 0) | (distance >= max_length), -math.inf)
    best, ends = table.max(dim=2)
    first = best.argmax(dim=1)
    return first, ends.gather(1, first[:, None])[:, 0]


@alternative("replaced_token_detection")
@torch.no_grad()
def with_scatter(tokens, chosen, generator_logits, *, generator=None):
    """The guesses by masked scatter."""
    rows = generator_logits[chosen].softmax(-1)
    drawn = torch.multinomial(rows, 1, generator=generator).flatten() if len(rows) else tokens.new_empty(0)
    text = tokens.masked_scatter(chosen, drawn.type_as(tokens))
    return text, torch.ne(text, tokens).type_as(generator_logits)


@alternative("replaced_token_detection")
def with_an_index(tokens, chosen, generator_logits, *, generator=None):
    """The chosen places by number."""
    b, t = torch.nonzero(chosen, as_tuple=True)
    text, labels = torch.clone(tokens), torch.zeros(tokens.shape, dtype=generator_logits.dtype)
    if b.numel() > 0:
        p = torch.exp(torch.log_softmax(generator_logits.detach()[b, t], dim=1))
        text[b, t] = torch.multinomial(p, num_samples=1, generator=generator).squeeze(1).type_as(text)
        labels[b, t] = (text[b, t] != tokens[b, t]).to(labels.dtype)
    return text, labels


@alternative("distillation_loss")
def by_two_entropies(student, teacher, temperature, mask=None):
    """Cross-entropy minus the teacher's entropy, over the chosen rows."""
    if temperature <= 0:
        raise ValueError("temperature")
    if mask is not None:
        student, teacher = student[mask], teacher[mask]
    student, teacher = (x.reshape(-1, x.shape[-1]) / temperature for x in (student, teacher.detach()))
    p = teacher.softmax(-1)
    crossed = -(p * student.log_softmax(-1)).sum(-1)
    own = -(p * teacher.log_softmax(-1)).sum(-1)
    return temperature**2 * (crossed - own).sum() / max(1, len(p))


@alternative("distillation_loss")
def with_weights(student, teacher, temperature, mask=None):
    """A weight for each place."""
    if not temperature > 0:
        raise ValueError(temperature)
    with torch.no_grad():
        target = torch.log_softmax(teacher / temperature, -1)
    difference = target - torch.log_softmax(student / temperature, -1)
    places = (target.exp() * difference).sum(-1)
    weight = torch.ones_like(places) if mask is None else mask.to(places.dtype)
    mean = (places * weight).sum() / torch.clamp(weight.sum(), min=1.0)
    return mean * temperature * temperature


# ------------------------------------------------------------------------------------------------------------ training


@alternative("linear_warmup_rate")
def the_lower_line(step, *, peak, warmup, total):
    """Of two lines the lower one, and never below 0."""
    up = step / warmup if warmup else math.inf
    down = (total - step) / (total - warmup) if total > warmup else math.inf if step < total else 0.0
    return peak * max(0.0, min(up, down, 1.0))


@alternative("linear_warmup_rate")
def by_cases_of_the_step(step, *, peak, warmup, total):
    """Three cases."""
    if step >= total:
        return 0.0
    if step >= warmup:
        return peak - peak * (step - warmup) / (total - warmup)
    return step * (peak / warmup)


def _rate(step, rate, count):
    warmup = max(1, count // 10)
    return the_lower_line(step, peak=rate, warmup=warmup, total=count + 1)


@alternative("finetune")
def with_modes_put_back(model, head, optimizer, batches, *, rate, freeze=False):
    """Model and head are left in the modes in which they came."""
    before = [(module, module.training) for module in (model, head)]
    losses = with_no_grad(model, head, optimizer, batches, rate=rate, freeze=freeze)
    for module, mode in before:
        module.train(mode)
    return losses


@alternative("finetune")
def with_no_grad(model, head, optimizer, batches, *, rate, freeze=False):
    """Another branch for a frozen model, and the loss by hand."""
    losses = []
    model.eval() if freeze else model.train()
    head.train()
    for n in range(len(batches)):
        tokens, classes = batches[n]
        for group in optimizer.param_groups:
            group["lr"] = _rate(n + 1, rate, len(batches))
        optimizer.zero_grad(set_to_none=True)
        real = tokens != 0
        if freeze:
            with torch.no_grad():
                pooled = model(tokens, mask=real)[1]
        else:
            pooled = model(tokens, mask=real)[1]
        log_p = torch.log_softmax(head(pooled), dim=-1)
        loss = -log_p[torch.arange(len(classes)), classes].mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses
