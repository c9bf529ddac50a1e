"""Chapter 02, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfcourse.recurrent import gru_cell

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ------------------------------------------------------------------------------------------------------------- scores


@alternative("content_score")
def content_by_einsum(queries: Tensor, keys: Tensor) -> Tensor:
    """The dot products, divided by the products of the lengths, which are never zero."""
    norms = torch.einsum("bt,bs->bts", queries.norm(dim=-1), keys.norm(dim=-1))
    return torch.einsum("btd,bsd->bts", queries, keys) / norms.clamp(min=torch.finfo(norms.dtype).tiny)


@alternative("content_score")
def content_by_normalize(queries: Tensor, keys: Tensor) -> Tensor:
    """Unit vectors by F.normalize, compared by a product of matrices."""
    return torch.bmm(F.normalize(queries, dim=2), F.normalize(keys, dim=2).mT)


@alternative("additive_score")
def additive_side_by_side(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """One matrix for query and key put side by side, as Bahdanau's formula is often written."""
    (B, T, _), S = queries.shape, keys.shape[1]
    if len(w_q) != queries.shape[2] or len(w_k) != keys.shape[2] or v.shape != w_q.shape[1:] or len(keys) != B:
        raise ValueError("the matrices do not fit")
    pairs = torch.cat([queries.unsqueeze(2).expand(B, T, S, -1), keys.unsqueeze(1).expand(B, T, S, -1)], dim=-1)
    return torch.tanh(pairs @ torch.cat([w_q, w_k])) @ v


@alternative("additive_score")
def additive_by_einsum(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Everything by einsum; PyTorch's own error is turned into the one that was asked for."""
    try:
        q, k = torch.einsum("btd,da->bta", queries, w_q), torch.einsum("bsd,da->bsa", keys, w_k)
        return torch.matmul((q.unsqueeze(2) + k.unsqueeze(1)).tanh(), v.reshape(w_q.shape[-1]))
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@alternative("additive_score")
def additive_by_linear(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Linear maps, whose weights are transposed, and a weighted sum at the end."""
    if queries.size(-1) != w_q.size(0) or keys.size(-1) != w_k.size(0) or v.dim() != 1 or len(v) != w_k.size(1):
        raise ValueError((w_q.shape, w_k.shape))
    if queries.size(0) != keys.size(0):
        raise ValueError((queries.shape, keys.shape))
    hidden = F.linear(keys, w_k.T)[:, None, :, :] + F.linear(queries, w_q.T)[:, :, None, :]
    return (hidden.tanh() * v).sum(dim=-1)


@alternative("location_score")
def location_by_narrow(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """All scores first; those of the first places are kept."""
    if queries.shape[-1] != w.shape[0]:
        raise ValueError((queries.shape, w.shape))
    scores = torch.einsum("btd,ds->bts", queries, w)
    if scores.shape[-1] < S or S < 0:
        raise ValueError(f"no more than {scores.shape[-1]} places")
    return scores.narrow(-1, 0, S)


@alternative("location_score")
def location_by_linear(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """A linear map with the transposed columns."""
    columns = w.T[:S]
    if S < 0 or len(columns) < S or w.size(0) != queries.size(2):
        raise ValueError(S)
    return F.linear(queries, columns)


@alternative("general_score")
def general_by_einsum(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """One einsum for all three."""
    if tuple(w.shape) != (queries.shape[-1], keys.shape[-1]) or len(queries) != len(keys):
        raise ValueError(w.shape)
    return torch.einsum("btd,de,bse->bts", queries, w, keys)


@alternative("general_score")
def general_keys_first(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The keys are turned into the language of the queries, not the other way round."""
    if queries.shape[-1] != w.shape[0] or keys.shape[-1] != w.shape[1] or keys.shape[0] != queries.shape[0]:
        raise ValueError("no fit")
    return torch.bmm(queries, (keys @ w.T).transpose(1, 2))


@alternative("dot_score")
def dot_by_einsum(queries: Tensor, keys: Tensor) -> Tensor:
    """By einsum."""
    return torch.einsum("btd,bsd->bts", queries, keys)


@alternative("dot_score")
def dot_by_broadcasting(queries: Tensor, keys: Tensor) -> Tensor:
    """Every query times every key, number by number, and then the sum."""
    return (queries[:, :, None] * keys[:, None]).sum(-1)


@alternative("scaled_dot_score")
def scaled_queries_first(queries: Tensor, keys: Tensor) -> Tensor:
    """The queries are scaled before the product."""
    return torch.bmm(queries * queries.shape[-1] ** -0.5, keys.transpose(1, 2))


@alternative("scaled_dot_score")
def scaled_half_and_half(queries: Tensor, keys: Tensor) -> Tensor:
    """The fourth root of the width for either side."""
    scale = keys.shape[-1] ** 0.25
    return torch.einsum("btd,bsd->bts", queries / scale, keys / scale)


# --------------------------------------------------------------------------------------------------- weights, contexts


def _refuse_scores(scores: Tensor, mask: Tensor | None) -> None:
    """Every solution has to refuse scores that are whole numbers, and masks that are not boolean or do not fit."""
    if not scores.dtype.is_floating_point:
        raise ValueError(scores.dtype)
    if mask is None:
        return
    if mask.dtype is not torch.bool:
        raise ValueError("the mask is not boolean")
    try:
        mask.expand_as(scores)
    except RuntimeError as error:
        raise ValueError("the mask does not fit") from error


@alternative("masked_softmax")
def softmax_by_hand(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Exponentials of what is left when the largest permitted score is taken off; an empty row is divided by one."""
    _refuse_scores(scores, mask)
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    top = torch.where(allowed, wide, torch.finfo(wide.dtype).min).amax(-1, keepdim=True).detach()
    grown = torch.where(allowed, torch.where(allowed, wide - top, 0.0).exp(), 0.0)
    total = grown.sum(-1, keepdim=True)
    return (grown / torch.where(total > 0, total, 1.0)).to(scores.dtype)


@alternative("masked_softmax")
def softmax_with_open_rows(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Empty rows are opened for the softmax, and closed again."""
    _refuse_scores(scores, mask)
    if mask is None:
        return F.softmax(scores, dim=-1)
    empty = ~mask.any(dim=-1, keepdim=True)
    weights = F.softmax(scores.masked_fill(~(mask | empty), float("-inf")), dim=-1)
    return weights.masked_fill(empty, 0.0)


def _softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    return softmax_by_hand(scores, mask[:, None] if mask is not None and mask.ndim == 2 else mask)


@alternative("attend")
def attend_by_einsum(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """By einsum."""
    weights = _softmax(scores, mask)
    return weights, torch.einsum("bts,bsd->btd", weights, values)


@alternative("attend")
def attend_by_bmm(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is expanded to the shape of the scores first."""
    if mask is not None:
        mask = (mask.unsqueeze(1) if mask.dim() == 2 else mask).expand_as(scores)
    weights = softmax_with_open_rows(scores, mask)
    return weights, torch.bmm(weights, values)


@alternative("hard_attend")
def hard_by_one_hot(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One-hot vectors of the places."""
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    allowed = (allowed[:, None] if allowed.ndim == 2 else allowed).expand_as(scores)
    places = torch.where(allowed, scores, float("-inf")).argmax(-1)
    weights = F.one_hot(places, scores.shape[-1]).to(scores.dtype) * allowed
    return weights, weights @ values


@alternative("hard_attend")
def hard_by_scatter(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A 1 is scattered to the place of the maximum; its value is gathered."""
    if mask is not None and mask.ndim == 2:
        mask = mask.unsqueeze(1)
    masked = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    places = masked.max(dim=-1, keepdim=True).indices  # (B, T, 1)
    found = values.gather(1, places.expand(-1, -1, values.shape[2]))
    weights = torch.zeros_like(scores).scatter(-1, places, 1.0)
    if mask is not None:
        some = mask.any(-1, keepdim=True)
        weights, found = weights * some, found * some
    return weights, found


@alternative("hard_attend")
def hard_by_counting(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Where the score is the highest for the first time."""
    open_ = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    open_ = open_[:, None] if open_.ndim == 2 else open_
    masked = scores.detach().masked_fill(~open_, torch.finfo(scores.dtype).min)
    best = (masked == masked.amax(-1, keepdim=True)) & open_
    weights = (best & (best.cumsum(-1) == 1)).type_as(scores)
    return weights, torch.einsum("bts,bsd->btd", weights, values)


# ------------------------------------------------------------------------------------------------------------ encoder


class _Layers(nn.Module):
    """The encoder's layers, and the check of its inputs."""

    def __init__(self, vocab_size: int, d_embedding: int, d_model: int) -> None:
        super().__init__()
        half, rest = divmod(d_model, 2)
        if rest:
            raise ValueError(d_model)
        self.backward_gru, self.forward_gru = (nn.GRU(d_embedding, half, batch_first=True) for _ in range(2))
        self.embedding = nn.Embedding(vocab_size, d_embedding)

    def mask(self, source: Tensor, source_mask: Tensor | None) -> Tensor:
        mask = source.new_ones(source.shape, dtype=torch.bool) if source_mask is None else source_mask
        if mask.dtype != torch.bool or mask.shape != source.shape:
            raise ValueError("the mask does not fit the source")
        return mask


@alternative("BidirectionalEncoder")
class ByOneBidirectionalCall(_Layers):
    """PyTorch's own bidirectional run of a packed batch, with the weights of the two layers."""

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        mask = self.mask(source, source_mask)
        embedded = self.embedding(source)
        packed = pack_padded_sequence(embedded, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        weights = [*self.forward_gru.parameters(), *self.backward_gru.parameters()]
        start = embedded.new_zeros(2, len(source), self.forward_gru.hidden_size)
        data, _ = torch._VF.gru(packed.data, packed.batch_sizes, start, weights, True, 1, 0.0, False, True)
        states, _ = pad_packed_sequence(packed._replace(data=data), batch_first=True, total_length=source.shape[1])
        return states


@alternative("BidirectionalEncoder")
class ByCells(_Layers):
    """Step by step with chapter 01's cell; where there is padding, the backward state stays zero."""

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        mask = self.mask(source, source_mask)
        embedded = self.embedding(source)
        halves = []
        for gru, places in (
            (self.forward_gru, range(source.shape[1])),
            (self.backward_gru, range(source.shape[1] - 1, -1, -1)),
        ):
            weights = [gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0]
            h = embedded.new_zeros(len(source), gru.hidden_size)
            states = {}
            for s in places:
                h = gru_cell(embedded[:, s], h, *weights) * mask[:, s, None]
                states[s] = h
            halves.append(torch.stack([states[s] for s in range(source.shape[1])], dim=1))
        return torch.cat(halves, dim=2)


@alternative("BidirectionalEncoder")
class ByRolling(_Layers):
    """The flipped row has its padding in front; it is rolled to the end, row by row, by an index taken modulo the length of the row."""

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        mask = self.mask(source, source_mask)
        places = torch.arange(source.size(1), device=source.device).expand(source.shape)
        turned = (mask.sum(dim=1, keepdim=True) - 1 - places) % source.size(
            1
        )  # an exchange of places, padding among itself
        forward, _ = self.forward_gru(self.embedding(source))
        backward, _ = self.backward_gru(self.embedding(source.gather(1, turned)))
        backward = backward.gather(1, turned.unsqueeze(-1).expand(-1, -1, backward.size(2)))
        return torch.cat((forward, backward), dim=2).masked_fill(~mask.unsqueeze(-1), 0.0)


# ------------------------------------------------------------------------------------------------------------ decoder


class _Writer(nn.Module):
    """The decoder's layers, in an order of their own."""

    def __init__(
        self, vocab_size: int, d_embedding: int, d_model: int, score: str = "additive", max_source: int = 64
    ) -> None:
        super().__init__()
        shapes = {
            "additive": {"w_q": (d_model, d_model), "w_k": (d_model, d_model), "v": (d_model,)},
            "general": {"w": (d_model, d_model)},
            "location": {"w": (d_model, max_source)},
            "content": {},
            "dot": {},
            "scaled_dot": {},
        }
        if score not in shapes:
            raise ValueError(f"no score is named {score}")
        if d_model % 2 or max_source < 1:
            raise ValueError((d_model, max_source))
        self.score, self.d_model = score, d_model
        self.output = nn.Linear(d_embedding + 2 * d_model, vocab_size)
        self.cell = nn.GRUCell(d_model + d_embedding, d_model)
        self.bridge = nn.Linear(d_model // 2, d_model)
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        for name, shape in shapes[score].items():
            self.register_parameter(name, nn.Parameter((torch.rand(shape) * 2 - 1) / math.sqrt(d_model)))

    def initial_state(self, annotations: Tensor) -> Tensor:
        return self.bridge(annotations[:, 0].chunk(2, dim=-1)[1]).tanh()

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        keys = annotations.transpose(1, 2)
        match self.score:
            case "content":
                return F.normalize(queries, dim=-1) @ F.normalize(annotations, dim=-1).transpose(1, 2)
            case "additive":
                return torch.tanh((queries @ self.w_q).unsqueeze(2) + (annotations @ self.w_k).unsqueeze(1)) @ self.v
            case "location":
                return (queries @ self.w)[..., : annotations.shape[1]]
            case "general":
                return queries @ self.w @ keys
            case "dot":
                return queries @ keys
            case _:
                return queries @ keys / self.d_model**0.5

    def look(self, state: Tensor, annotations: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        weights = _softmax(self.scores(state.unsqueeze(1), annotations), mask)
        return weights.squeeze(1), (weights @ annotations).squeeze(1)

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights, context = self.look(state, annotations, source_mask)
        y = self.embedding(token)
        state = self.cell(torch.cat((y, context), 1), state)
        return self.output(torch.cat((state, context, y), 1)), state, weights

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state, logits, weights = self.initial_state(annotations), [], []
        for t in range(target.shape[1]):
            told, state, looked = self.step(target[:, t], state, annotations, source_mask)
            logits.append(told)
            weights.append(looked)
        return torch.stack(logits, 1), torch.stack(weights, 1)


@alternative("AttentionDecoder")
class OutputAtTheEnd(_Writer):
    """States, contexts and words are collected; the output layer takes them all at once."""

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        words = self.embedding(target)
        state, states, contexts, weights = self.initial_state(annotations), [], [], []
        for y in words.unbind(1):
            looked, context = self.look(state, annotations, source_mask)
            state = self.cell(torch.cat((y, context), -1), state)
            states.append(state)
            contexts.append(context)
            weights.append(looked)
        read = torch.cat([torch.stack(states, 1), torch.stack(contexts, 1), words], dim=-1)
        return self.output(read), torch.stack(weights, 1)


@alternative("AttentionDecoder")
class ByChapterOnesCell(_Writer):
    """The cell's arithmetic by the function of chapter 01."""

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights, context = self.look(state, annotations, source_mask)
        y = self.embedding(token)
        cell = self.cell
        x = torch.cat((y, context), -1)
        state = gru_cell(x, state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return self.output(torch.cat((state, context, y), -1)), state, weights


@alternative("AttentionDecoder")
class OutputInThree(_Writer):
    """The output layer's columns are cut in three, one part for each of what it reads."""

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        _, state, weights = super().step(token, state, annotations, source_mask)
        context = torch.einsum("bs,bsd->bd", weights, annotations)
        y = self.embedding(token)
        parts = self.output.weight.split([self.d_model, self.d_model, y.shape[1]], dim=1)
        logits = sum(x @ part.T for x, part in zip((state, context, y), parts, strict=True))
        return logits + self.output.bias, state, weights


# --------------------------------------------------------------------------------------------------------- translator


def _translator(encoder: type[nn.Module], decoder: type[nn.Module]) -> type[nn.Module]:
    """A translator of two parts."""

    class Translator(nn.Module):
        def __init__(
            self,
            source_vocab_size: int,
            target_vocab_size: int,
            d_embedding: int,
            d_model: int,
            score: str = "additive",
            max_source: int = 64,
        ) -> None:
            super().__init__()
            self.decoder = decoder(target_vocab_size, d_embedding, d_model, score=score, max_source=max_source)
            self.encoder = encoder(source_vocab_size, d_embedding, d_model)

        def both(self, source: Tensor, target: Tensor, source_mask: Tensor | None) -> tuple[Tensor, Tensor]:
            annotations = self.encoder(source, source_mask)
            return self.decoder(target, annotations, source_mask)

        def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
            logits, _ = self.both(source, target, source_mask)
            return logits

        def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
            _, weights = self.both(source, target, source_mask)
            return weights

    Translator.__qualname__ = f"{encoder.__qualname__}And{decoder.__qualname__}"
    return Translator


for _encoder, _decoder in (
    (ByOneBidirectionalCall, OutputAtTheEnd),
    (ByCells, ByChapterOnesCell),
    (ByRolling, OutputInThree),
):
    alternative("AttentionSeq2Seq")(_translator(_encoder, _decoder))


# ------------------------------------------------------------------------------------------------------------ Model 1


def _refuse(pairs: Any, sizes: tuple[int, int], iterations: int) -> None:
    if iterations < 0:
        raise ValueError(iterations)
    for pair in pairs:
        for tokens, size in zip(pair, sizes, strict=True):
            if any(token <= 0 or token >= size for token in tokens):
                raise ValueError(tokens)


@alternative("ibm_model_1")
def model_1_by_matrices(pairs: Any, source_vocab_size: int, target_vocab_size: int, iterations: int) -> Tensor:
    """Sentences as counts of words: how often a word stands in a sentence multiplies its share."""
    _refuse(pairs, (source_vocab_size, target_vocab_size), iterations)
    n = len(pairs)
    e = torch.zeros(n, source_vocab_size, dtype=torch.float64)
    f = torch.zeros(n, target_vocab_size, dtype=torch.float64)
    for i, (source, target) in enumerate(pairs):
        e[i] = torch.bincount(torch.tensor([0, *source]), minlength=source_vocab_size)
        f[i] = torch.bincount(torch.tensor(list(target), dtype=torch.long), minlength=target_vocab_size)
    table = torch.ones(source_vocab_size, target_vocab_size, dtype=torch.float64) / target_vocab_size
    for _ in range(iterations):
        norms = e @ table  # (n, target_vocab_size)
        counts = table * (e.T @ torch.where(f > 0, f / norms, 0.0))
        totals = counts.sum(1)
        table[totals > 0] = counts[totals > 0] / totals[totals > 0, None]
    return table


@alternative("ibm_model_1")
def model_1_by_pairs_of_words(pairs: Any, source_vocab_size: int, target_vocab_size: int, iterations: int) -> Tensor:
    """Every pair of words of every pair of sentences in one long row; sums by index_add."""
    _refuse(pairs, (source_vocab_size, target_vocab_size), iterations)
    links = [
        (s, t, number)
        for number, (t, source) in enumerate((t, source) for source, target in pairs for t in target)
        for s in (0, *source)
    ]
    table = torch.full((source_vocab_size * target_vocab_size,), 1 / target_vocab_size, dtype=torch.float64)
    made_by, made, word = torch.tensor(links).unbind(1)
    cell = made_by * target_vocab_size + made
    for _ in range(iterations):
        likely = table[cell]
        norms = torch.zeros(int(word.max()) + 1, dtype=torch.float64).index_add(0, word, likely)
        counts = torch.zeros_like(table).index_add(0, cell, likely / norms[word]).view(source_vocab_size, -1)
        learned = counts / counts.sum(1, keepdim=True)  # NaN where a word never occurs
        table = torch.where(learned.isnan(), table.view_as(learned), learned).flatten()
    return table.view(source_vocab_size, target_vocab_size)


@alternative("best_alignment")
def best_by_argmax(table: Tensor, source: Any, target: Any) -> list[int | None]:
    """NULL is put behind the source, so that argmax prefers a word among equals."""
    likely = table[torch.tensor([*source, 0])][:, torch.tensor(list(target))]
    return [None if place == len(source) else place for place in likely.argmax(0).tolist()]


@alternative("best_alignment")
def best_by_max(table: Tensor, source: Any, target: Any) -> list[int | None]:
    """The maximum of the places by a key; max takes the first of equals."""
    places: list[int | None] = [*range(len(source)), None]
    return [
        max(places, key=lambda place, t=t: table[0 if place is None else source[place], t].item())  # type: ignore[misc]
        for t in target
    ]
