"""Attention as alignment: soft (learned attention) and hard (IBM Model 1).

Shapes: B batch, T length of the target, S length of the source, E width of an
embedding, D width of states and annotations, Da width of the hidden layer of a score, V
vocabulary. The batch comes first. Boolean masks are True where a query may attend,
which for a source means its real tokens. Queries are rows, so matrices are applied from
the right.

A score compares the decoder's state (the query) with the encoder's annotation at each
source position (the key). Scores are any real numbers; `masked_softmax` turns them into
weights.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from tfcourse.seq2seq import _check_source_mask

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "content_score",
    "additive_score",
    "location_score",
    "general_score",
    "dot_score",
    "scaled_dot_score",
    "masked_softmax",
    "attend",
    "hard_attend",
    "BidirectionalEncoder",
    "AttentionDecoder",
    "AttentionSeq2Seq",
    "ibm_model_1",
    "best_alignment",
    "SCORES",
]

SCORES = ("content", "additive", "location", "general", "dot", "scaled_dot")
"""The six scores by name, in the order of the lesson's table."""


def content_score(queries: Tensor, keys: Tensor) -> Tensor:
    """Score by content: the cosine similarity of query and key, from -1 to 1.

    The zero vector has cosine 0 with every vector, and its gradient is finite, never
    NaN. For all other vectors the cosine is exact: no epsilon is added to a norm.

    Args:
        queries: Queries, (B, T, D).
        keys: Keys, (B, S, D).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Source:
        Graves et al. 2014, Neural Turing Machines, section 3.3.1, equation 6.
    """
    _check_queries(queries, keys)
    q_norm, k_norm = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (queries, keys))
    # Divided by infinity, a zero vector stays zero, and so does its gradient.
    q_unit = queries / q_norm.masked_fill(q_norm == 0, math.inf)
    k_unit = keys / k_norm.masked_fill(k_norm == 0, math.inf)
    return q_unit @ k_unit.transpose(1, 2)  # (B, T, S)


def additive_score(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Score by a network with one hidden layer: tanh(q W_q + k W_k) · v.

    This equals [q; k] W, where [q; k] is the concatenation and W has W_q above W_k.
    With two matrices, each query and each key is multiplied once, not once per pair.

    Args:
        queries: Queries, (B, T, Dq).
        keys: Keys, (B, S, Dk); Dk may differ from Dq.
        w_q: Query matrix, (Dq, Da).
        w_k: Key matrix, (Dk, Da).
        v: Weights of the hidden layer's output, (Da,).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If the shapes of `w_q`, `w_k` or `v` do not fit, or if queries and
            keys have different batch sizes.

    Source:
        Bahdanau, Cho and Bengio 2015, Neural Machine Translation by Jointly Learning to
        Align and Translate, appendix A.1.2.
    """
    _check_queries(queries, keys, same_width=False)
    if v.ndim != 1 or w_q.shape != (queries.shape[2], len(v)) or w_k.shape != (keys.shape[2], len(v)):
        shapes = ", ".join(str(tuple(x.shape)) for x in (queries, keys, w_q, w_k, v))
        raise ValueError(f"queries, keys, w_q (Dq, Da), w_k (Dk, Da) and v (Da,) do not fit: {shapes}")
    hidden = torch.tanh((queries @ w_q)[:, :, None] + (keys @ w_k)[:, None])  # (B, T, S, Da)
    return hidden @ v  # (B, T, S)


def location_score(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """Score by location: q W, one score per source position, from the query alone.

    The tokens at these positions have no influence. The matrix has one column per
    possible source position.

    Args:
        queries: Queries, (B, T, D).
        w: Matrix, (D, longest): column j gives the score of position j.
        S: Length of the source, at most `longest`.

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If `w` does not fit the queries or has fewer than `S` columns, or if
            `S` is negative.

    Source:
        Luong, Pham and Manning 2015, Effective Approaches to Attention-based Neural
        Machine Translation, section 3.1, equation 8.
    """
    _, _, D = queries.shape
    height, longest = w.shape
    if height != D:
        raise ValueError(f"queries (B, T, D) and w (D, longest) do not fit: {tuple(queries.shape)}, {tuple(w.shape)}")
    if not 0 <= S <= longest:
        raise ValueError(f"w {tuple(w.shape)} has scores for {longest} places, the source has {S}")
    return queries @ w[:, :S]  # (B, T, S)


def general_score(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """Score by a bilinear form, q W kᵀ: W maps the query into the space of the keys.

    Args:
        queries: Queries, (B, T, Dq).
        keys: Keys, (B, S, Dk); Dk may differ from Dq.
        w: Matrix, (Dq, Dk).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If `w` does not fit queries and keys, or if these have different
            batch sizes.

    Source:
        Luong, Pham and Manning 2015, section 3.1, equation 7 ("general").
    """
    _check_queries(queries, keys, same_width=False)
    if w.shape != (queries.shape[2], keys.shape[2]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (queries, keys, w))
        raise ValueError(f"queries (B, T, Dq), keys (B, S, Dk) and w (Dq, Dk) do not fit: {shapes}")
    return queries @ w @ keys.transpose(1, 2)  # (B, T, S)


def dot_score(queries: Tensor, keys: Tensor) -> Tensor:
    """Score by the dot product of query and key, without parameters.

    Args:
        queries: Queries, (B, T, D).
        keys: Keys, (B, S, D).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Source:
        Luong, Pham and Manning 2015, section 3.1, equation 7 ("dot").
    """
    _check_queries(queries, keys)
    return queries @ keys.transpose(1, 2)  # (B, T, S)


def scaled_dot_score(queries: Tensor, keys: Tensor) -> Tensor:
    """Score by the dot product of query and key, divided by sqrt(D).

    Args:
        queries: Queries, (B, T, D).
        keys: Keys, (B, S, D).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Source:
        Vaswani et al. 2017, Attention Is All You Need, section 3.2.1, equation 1.
    """
    _check_queries(queries, keys)
    return queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[2])  # (B, T, S)


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turn scores into weights: a softmax over the permitted positions (last axis).

    Masked positions have weight exactly 0, and the weights of each row sum to 1. A
    fully masked row gives zeros, and its gradients are zeros too, never NaN. Large
    scores do not overflow. The largest permitted score of a row must be above the
    dtype's lowest number, because the softmax of nothing but minus infinities is
    undefined.

    Args:
        scores: Scores, (..., S).
        mask: Boolean, broadcastable to the scores, True where a query may attend; None
            permits every position.

    Returns:
        Weights, (..., S), in the dtype of `scores`.

    Raises:
        ValueError: If `scores` is not floating point, or `mask` is not boolean or
            cannot be broadcast to its shape.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1, equation 6, here for padded sources.
    """
    if not scores.is_floating_point():
        raise ValueError(f"scores are floating-point numbers, got {scores.dtype}")
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if mask is None:
        return torch.softmax(wide, dim=-1).to(scores.dtype)
    fits = mask.ndim <= scores.ndim and all(
        have in (1, want) for have, want in zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    )
    if mask.dtype != torch.bool or not fits:
        seen = f"{mask.dtype} {tuple(mask.shape)} for scores {tuple(scores.shape)}"
        raise ValueError(f"expected a boolean mask that broadcasts to the scores, got {seen}")
    # The lowest finite number in the place of -inf: a row of -inf alone would divide 0 by 0. Such a row comes out uniform,
    # and the second fill makes it zero.
    wide = wide.masked_fill(~mask, torch.finfo(wide.dtype).min)
    return torch.softmax(wide, dim=-1).masked_fill(~mask, 0.0).to(scores.dtype)


def attend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute soft attention: average the values with the softmax of the scores.

    Args:
        scores: Scores, (B, T, S), from any of the score functions.
        values: Values, (B, S, D); in this chapter the annotations, which are also the
            keys.
        mask: Boolean, True where a query may attend: (B, S), the same for all queries
            of an example, or (B, T, S). None permits every position.

    Returns:
        The tuple (weights, context): weights (B, T, S), and one context vector per
        query, (B, T, D). Both are zeros for a fully masked query.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1, equations 5 and 6.
    """
    _check_values(scores, values, mask)
    if mask is not None and mask.ndim == 2:
        mask = mask[:, None]  # (B, 1, S)
    weights = masked_softmax(scores, mask)  # (B, T, S)
    return weights, weights @ values  # (B, T, D)


def hard_attend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute hard attention: each query takes the value with the best permitted score.

    If several scores are equal, the first position wins. Gradients flow into the
    selected values, but not into the scores, because the selection is piecewise
    constant.

    Args:
        scores: Scores, (B, T, S), from any of the score functions.
        values: Values, (B, S, D).
        mask: Boolean, True where a query may attend: (B, S), the same for all queries
            of an example, or (B, T, S). None permits every position.

    Returns:
        The tuple (weights, context): weights (B, T, S), 1 at the selected position and
        0 elsewhere, in the dtype of the scores, and one context vector per query,
        (B, T, D). Both are zeros for a fully masked query.

    Source:
        Xu et al. 2015, Show, Attend and Tell, section 4.1 ("hard" attention; the paper
        samples the position, here it is the most probable one).
    """
    _check_values(scores, values, mask)
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    elif mask.ndim == 2:
        mask = mask[:, None]  # (B, 1, S)
    best = scores.masked_fill(~mask, -math.inf).argmax(dim=-1, keepdim=True)  # (B, T, 1)
    # Even where nothing is permitted argmax gives a place; the mask takes it back.
    taken = (torch.arange(scores.shape[2], device=scores.device) == best) & mask  # (B, T, S)
    weights = taken.to(scores.dtype)
    return weights, weights @ values


class BidirectionalEncoder(nn.Module):
    """Encode the source with two GRUs, one per direction: one annotation per position.

    The layers have PyTorch's default initialisation: `embedding` (`nn.Embedding`, width
    E) and two `nn.GRU`, batch first, from E to D / 2. `forward_gru` reads from the
    left, `backward_gru` from the last real token to the first. The annotation of a
    position is the concatenation of the state of `forward_gru` and the state of
    `backward_gru` at that position.

    Args:
        vocab_size: Number of source tokens V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of the annotations; even, because each direction gives half of
            it.

    Raises:
        ValueError: If `d_model` is odd.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.2.
    """

    def __init__(self, vocab_size: int, d_embedding: int, d_model: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model={d_model} cannot be shared by two directions")
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.forward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)
        self.backward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Compute the annotations of the source.

        Args:
            source: Source tokens, integers, (B, S).
            source_mask: Boolean, (B, S), True at real tokens; padding comes after them.
                None means that all are real.

        Returns:
            Annotations, (B, S, D): zeros at padding. The tokens at padding do not
            affect the other annotations.

        Raises:
            ValueError: If `source_mask` is not boolean or does not have the shape of
                `source`.
        """
        _check_source_mask(source, source_mask)
        if source_mask is None:
            source_mask = torch.ones_like(source, dtype=torch.bool)
        embedded = self.embedding(source)  # (B, S, E)
        forward, _ = self.forward_gru(embedded)  # (B, S, D / 2)
        # Each source is turned about within its own length, so that the backward reading begins at the last real token and
        # not in the padding. The same exchange of places turns the states back.
        places = torch.arange(source.shape[1], device=source.device)
        lengths = source_mask.sum(dim=1, keepdim=True)
        turned = torch.where(places < lengths, lengths - 1 - places, places)[..., None]  # (B, S, 1)
        backward, _ = self.backward_gru(embedded.gather(1, turned.expand_as(embedded)))
        backward = backward.gather(1, turned.expand_as(backward))  # (B, S, D / 2)
        return torch.cat([forward, backward], dim=-1) * source_mask[..., None]


class AttentionDecoder(nn.Module):
    """A decoder that attends to the source before every token.

    The query is the previous state; keys and values are the annotations. Step t gets
    the target token y at position t and the state s of step t - 1. The initial state is
    tanh(bridge(·)) of the backward half of the first annotation, which has read the
    whole source.

        c = attend(score(s, annotations))        the context, from the previous state
        s = cell([y; c], s)                      the new state
        logits = output([s; c; y])               for the token after y

    Here y is the embedding of the token. The layers have PyTorch's default
    initialisation: `embedding` (`nn.Embedding`, width E), `bridge` (`nn.Linear`, D / 2
    to D), `cell` (`nn.GRUCell`, E + D to D) and `output` (`nn.Linear`, 2 D + E to V).
    The weights of the score are parameters of the module itself, uniform within ± 1 /
    sqrt(D). "additive" has `w_q` and `w_k` (D, D) and `v` (D,); "general" has `w`
    (D, D); "location" has `w` (D, max_source); the other scores have no weights.

    Args:
        vocab_size: Number of target tokens V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of states and annotations; even.
        score: Name of the score, one of `SCORES`; kept in the attribute `score`.
        max_source: Largest source length for the score "location".

    Raises:
        ValueError: If `d_model` is odd, `max_source` is less than one, or `score` is
            not one of `SCORES`.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1 and appendix A.2.2 (without the
        maxout layer); Luong, Pham and Manning 2015, section 3.1, for the other scores.
    """

    def __init__(
        self, vocab_size: int, d_embedding: int, d_model: int, *, score: str = "additive", max_source: int = 64
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
        if d_model % 2 or max_source < 1:
            raise ValueError(f"expected an even d_model and a max_source of at least 1, got {d_model} and {max_source}")
        self.score = score
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.bridge = nn.Linear(d_model // 2, d_model)
        self.cell = nn.GRUCell(d_embedding + d_model, d_model)
        self.output = nn.Linear(2 * d_model + d_embedding, vocab_size)
        bound = 1 / math.sqrt(d_model)
        if score == "additive":
            self.w_q = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
            self.w_k = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
            self.v = nn.Parameter(torch.empty(d_model).uniform_(-bound, bound))
        elif score in ("general", "location"):
            columns = d_model if score == "general" else max_source
            self.w = nn.Parameter(torch.empty(d_model, columns).uniform_(-bound, bound))

    def initial_state(self, annotations: Tensor) -> Tensor:
        """Compute the initial state from the backward half of the first annotation.

        Args:
            annotations: Annotations of the source, (B, S, D).

        Returns:
            The state, (B, D).
        """
        D = annotations.shape[2]
        return torch.tanh(self.bridge(annotations[:, 0, D // 2 :]))

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        """Score the annotations with the chosen score function.

        Args:
            queries: States of the decoder, (B, T, D).
            annotations: Annotations of the source, (B, S, D).

        Returns:
            Scores, (B, T, S).

        Raises:
            ValueError: If the score is "location" and the source is longer than
                `max_source`.
        """
        if self.score == "content":
            return content_score(queries, annotations)
        if self.score == "additive":
            return additive_score(queries, annotations, self.w_q, self.w_k, self.v)
        if self.score == "location":
            return location_score(queries, self.w, annotations.shape[1])
        if self.score == "general":
            return general_score(queries, annotations, self.w)
        if self.score == "dot":
            return dot_score(queries, annotations)
        return scaled_dot_score(queries, annotations)

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one decoding step.

        Args:
            token: The token at this step, integers, (B,).
            state: The previous state, (B, D).
            annotations: Annotations of the source, (B, S, D).
            source_mask: Boolean, (B, S), True at real tokens of the source; None means
                that all are real.

        Returns:
            The tuple (logits, state, weights): logits (B, V) for the next token, the
            new state (B, D), and the alignment weights of this step, (B, S).

        Raises:
            ValueError: If the source is too long, as in `scores`, or `source_mask` does
                not fit the annotations.
        """
        embedded = self.embedding(token)  # (B, E)
        weights, context = attend(self.scores(state[:, None], annotations), annotations, source_mask)
        weights, context = weights.squeeze(1), context.squeeze(1)  # (B, S), (B, D)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        logits = self.output(torch.cat([state, context, embedded], dim=-1))
        return logits, state, weights

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Decode a whole target with teacher forcing.

        Args:
            target: Target tokens, integers, (B, T); the first is BOS.
            annotations: Annotations of the source, (B, S, D).
            source_mask: Boolean, (B, S), True at real tokens of the source; None means
                that all are real.

        Returns:
            The tuple (logits, weights): logits (B, T, V), where position t predicts the
            token after target[:, t], and the alignment weights of the same steps,
            (B, T, S).

        Raises:
            ValueError: If the source is too long, as in `scores`, or `source_mask` does
                not fit the annotations.
        """
        state = self.initial_state(annotations)
        logits, weights = [], []
        for token in target.unbind(dim=1):
            step_logits, state, step_weights = self.step(token, state, annotations, source_mask)
            logits.append(step_logits)
            weights.append(step_weights)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


class AttentionSeq2Seq(nn.Module):
    """A translation model with attention.

    Its parts are `encoder` (a `BidirectionalEncoder`) and `decoder` (an
    `AttentionDecoder`).

    Args:
        source_vocab_size: Number of source tokens.
        target_vocab_size: Number of target tokens V.
        d_embedding: Width E of the embeddings, on both sides.
        d_model: Width D of annotations and states; even.
        score: Name of the decoder's score, one of `SCORES`.
        max_source: Largest source length for the score "location".

    Raises:
        ValueError: If `d_model` is odd, `max_source` is less than one, or `score` is
            not one of `SCORES`.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        d_embedding: int,
        d_model: int,
        *,
        score: str = "additive",
        max_source: int = 64,
    ) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(source_vocab_size, d_embedding, d_model)
        self.decoder = AttentionDecoder(target_vocab_size, d_embedding, d_model, score=score, max_source=max_source)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Predict every target token from the source and the target tokens before it.

        Args:
            source: Source tokens, integers, (B, S).
            target: Target tokens, integers, (B, T); the first is BOS.
            source_mask: Boolean, (B, S), True at real tokens; padding comes after them.
                None means that all are real.

        Returns:
            Logits, (B, T, V): position t predicts the token after target[:, t].

        Raises:
            ValueError: If `source_mask` does not fit, as in the encoder.
        """
        return self.decoder(target, self.encoder(source, source_mask), source_mask)[0]

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Return the alignment weights of each target step over the source.

        Row t belongs to the step whose logits predict the token *after* target[:, t],
        which is word t of the target without BOS.

        Args:
            source: Source tokens, integers, (B, S).
            target: Target tokens, integers, (B, T), beginning with BOS.
            source_mask: Boolean, (B, S), True at real tokens; None means that all are
                real.

        Returns:
            Alignment weights, (B, T, S).

        Raises:
            ValueError: If `source_mask` does not fit, as in the encoder.
        """
        return self.decoder(target, self.encoder(source, source_mask), source_mask)[1]


def ibm_model_1(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    source_vocab_size: int,
    target_vocab_size: int,
    iterations: int,
) -> Tensor:
    """Learn translation probabilities from sentence pairs: IBM Model 1, trained with EM.

    EM is expectation maximisation. The model assumes that each target word was
    generated by one word of its source sentence or by the NULL word, token 0, which is
    added to every source. Which word generated it is unknown. The table starts uniform.
    In each iteration the E step distributes every target word over the source words of
    its pair, in proportion to the table. The M step sums these expected counts over all
    pairs and normalises them per source word. A word that occurs twice counts twice.

    Args:
        pairs: Sentence pairs (source, target) of token ids from 1 on. Id 0, padding in
            other chapters, is NULL here; the function adds it to every source. A
            sentence may be empty.
        source_vocab_size: Number of source tokens, including 0.
        target_vocab_size: Number of target tokens, including 0.
        iterations: Number of iterations; after 0 iterations every entry is 1 /
            target_vocab_size.

    Returns:
        The table, (source_vocab_size, target_vocab_size), float64: entry [w, w'] is the
        probability that source word w generates target word w'. Rows sum to 1; row 0 is
        NULL's. The row of a word that occurs in no source stays uniform.

    Raises:
        ValueError: If a token is less than 1 or outside its vocabulary, or `iterations`
            is negative.

    Source:
        Brown, Della Pietra, Della Pietra and Mercer 1993, The Mathematics of
        Statistical Machine Translation, section 4.1.
    """
    _check_tokens("source", (token for source, _ in pairs for token in source), source_vocab_size)
    _check_tokens("target", (token for _, target in pairs for token in target), target_vocab_size)
    if iterations < 0:
        raise ValueError(f"expected 0 iterations or more, got {iterations}")
    table = torch.full((source_vocab_size, target_vocab_size), 1 / target_vocab_size, dtype=torch.float64)
    indices = [
        (torch.tensor([0, *source])[:, None], torch.tensor(list(target), dtype=torch.long)) for source, target in pairs
    ]
    for _ in range(iterations):
        counts = torch.zeros_like(table)
        for rows, columns in indices:
            likely = table[rows, columns]  # (S + 1, T)
            shares = likely / likely.sum(dim=0)
            counts.index_put_((rows, columns), shares, accumulate=True)
        totals = counts.sum(dim=1, keepdim=True)
        table = torch.where(totals > 0, counts / totals, table)
    return table


def best_alignment(table: Tensor, source: Sequence[int], target: Sequence[int]) -> list[int | None]:
    """Return Model 1's hard alignment: the best source position for each target word.

    Positions count from 0. If several source words are equally probable, the first
    wins; NULL wins only if it is more probable than all of them.

    Args:
        table: Translation probabilities, (source vocabulary, target vocabulary), as
            returned by `ibm_model_1`; row 0 is NULL's.
        source: Token ids of the source, without NULL; it may be empty.
        target: Token ids of the target.

    Returns:
        One entry per target word: the position of its source word, or None for NULL.

    Source:
        Brown, Della Pietra, Della Pietra and Mercer 1993, section 4.1: under Model 1
        the most probable (Viterbi) alignment can be chosen separately for each target
        word.
    """
    if table.ndim != 2:
        raise ValueError(f"expected a table of two dimensions, got {tuple(table.shape)}")
    _check_tokens("source", source, table.shape[0])
    _check_tokens("target", target, table.shape[1])
    places: list[int | None] = []
    for word in target:
        probabilities = [float(table[made_by, word]) for made_by in source]
        best = max(probabilities, default=-math.inf)
        places.append(probabilities.index(best) if best >= float(table[0, word]) else None)
    return places


def _check_queries(queries: Tensor, keys: Tensor, *, same_width: bool = True) -> None:
    """Raise a ValueError that names the shapes if queries cannot be compared with keys."""
    seen = f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)}"
    if queries.ndim != 3 or keys.ndim != 3 or queries.shape[0] != keys.shape[0]:
        raise ValueError(f"expected queries (B, T, D) and keys (B, S, D) of one batch, got {seen}")
    if same_width and queries.shape[2] != keys.shape[2]:
        raise ValueError(f"queries and keys must have the same width, got {seen}")


def _check_values(scores: Tensor, values: Tensor, mask: Tensor | None) -> None:
    """Raise a ValueError that names the shapes if scores, values and mask do not fit together."""
    if scores.ndim != 3 or values.ndim != 3 or (scores.shape[0], scores.shape[2]) != values.shape[:2]:
        seen = f"{tuple(scores.shape)} and {tuple(values.shape)}"
        raise ValueError(f"expected scores (B, T, S) and values (B, S, D), got {seen}")
    B, T, S = scores.shape
    if mask is not None and (
        mask.dtype != torch.bool or tuple(mask.shape) not in ((B, S), (B, 1, S), (1, T, S), (B, T, S))
    ):
        seen = f"{mask.dtype} {tuple(mask.shape)} for scores {tuple(scores.shape)}"
        raise ValueError(f"expected a boolean mask (B, S) or (B, T, S), got {seen}")


def _check_tokens(side: str, tokens: Iterable[int], size: int) -> None:
    """Raise a ValueError if a token is not in the table: a negative id would index from the end, and 0 is NULL."""
    strange = sorted({token for token in tokens if not 1 <= token < size})
    if strange:
        raise ValueError(f"tokens of the {side} must be in 1 … {size - 1}, got {strange}")
