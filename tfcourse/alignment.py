"""Attention as alignment: which source word belongs to which target word, learned softly or counted hard.

Shapes: B batch, T length of the target, S length of the source, E width of an embedding, D width of states and annotations,
Da width of the hidden layer of a score, V vocabulary. The batch comes first. Boolean masks are True where a query may attend,
so at the real tokens of a source. Matrices are applied from the right: a query is a row.

A score compares what the decoder has in mind (its state, the query) with what stands at each place of the source (an
annotation, the key). Scores are numbers of any size; `masked_softmax` makes weights of them.
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
    """Score by content: the cosine of the angle between a query and a key, between -1 and 1 whatever their lengths.

    The zero vector has cosine 0 with every vector, never NaN. For all others the cosine is exact: no small number is added
    to a length.

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
    scores: Tensor = q_unit @ k_unit.transpose(1, 2)  # (B, T, S)
    return scores


def additive_score(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Score by a small network with one hidden layer: tanh(q W_q + k W_k) · v.

    One matrix for the two, put side by side, is the same: [q; k] W with W_q on top of W_k. Kept apart, queries and keys are
    each multiplied once, not once for every pair.

    Args:
        queries: Queries, (B, T, Dq).
        keys: Keys, (B, S, Dk); they need not be as wide as the queries.
        w_q: Query matrix, (Dq, Da).
        w_k: Key matrix, (Dk, Da).
        v: Weights of the hidden layer's output, (Da,).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If `w_q` does not fit the queries, `w_k` the keys or `v` the two, or if queries and keys are not of one batch.

    Source:
        Bahdanau, Cho and Bengio 2015, Neural Machine Translation by Jointly Learning to Align and Translate, appendix A.1.2.
    """
    _check_queries(queries, keys, same_width=False)
    if v.ndim != 1 or w_q.shape != (queries.shape[2], len(v)) or w_k.shape != (keys.shape[2], len(v)):
        shapes = ", ".join(str(tuple(x.shape)) for x in (queries, keys, w_q, w_k, v))
        raise ValueError(f"queries, keys, w_q (Dq, Da), w_k (Dk, Da) and v (Da,) do not fit: {shapes}")
    hidden = torch.tanh((queries @ w_q)[:, :, None] + (keys @ w_k)[:, None])  # (B, T, S, Da)
    return hidden @ v  # (B, T, S)


def location_score(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """Score by place: from the query alone, one score for each of the first S places of the source, q W.

    What stands at those places is not looked at. The matrix has a column for every place that a source may have.

    Args:
        queries: Queries, (B, T, D).
        w: Matrix, (D, longest): column j gives the score of place j.
        S: Length of the source, at most `longest`.

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If `w` does not fit the queries or has fewer than `S` columns, or if `S` is negative.

    Source:
        Luong, Pham and Manning 2015, Effective Approaches to Attention-based Neural Machine Translation, section 3.1,
        equation 8.
    """
    _, _, D = queries.shape
    height, longest = w.shape
    if height != D:
        raise ValueError(f"queries (B, T, D) and w (D, longest) do not fit: {tuple(queries.shape)}, {tuple(w.shape)}")
    if not 0 <= S <= longest:
        raise ValueError(f"w {tuple(w.shape)} has scores for {longest} places, the source has {S}")
    return queries @ w[:, :S]  # (B, T, S)


def general_score(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """Score by a matrix in between: q W kᵀ, a dot product after the query was turned into the language of the keys.

    Args:
        queries: Queries, (B, T, Dq).
        keys: Keys, (B, S, Dk); they need not be as wide as the queries.
        w: Matrix, (Dq, Dk).

    Returns:
        Scores, (B, T, S), in the dtype of the inputs.

    Raises:
        ValueError: If `w` does not fit queries and keys, or if these are not of one batch.

    Source:
        Luong, Pham and Manning 2015, section 3.1, equation 7 ("general").
    """
    _check_queries(queries, keys, same_width=False)
    if w.shape != (queries.shape[2], keys.shape[2]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (queries, keys, w))
        raise ValueError(f"queries (B, T, Dq), keys (B, S, Dk) and w (Dq, Dk) do not fit: {shapes}")
    return queries @ w @ keys.transpose(1, 2)  # (B, T, S)


def dot_score(queries: Tensor, keys: Tensor) -> Tensor:
    """Score by the dot product of query and key: no weights at all.

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
    """Score by the dot product of query and key, divided by the square root of their width.

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
    """Turn scores into weights: a softmax over the last axis, among the permitted places only.

    A forbidden place gets weight exactly 0, and the permitted ones of a row sum to 1. A row in which nothing is permitted
    gets zeros only; gradients through it are zeros too, never NaN. Scores of any size are safe, as long as the highest
    permitted one of a row stands above the lowest number of the dtype: of minus infinities alone there is no softmax.

    Args:
        scores: Scores, (..., S).
        mask: Boolean, broadcastable to the scores, True where a query may attend; None permits every place.

    Returns:
        Weights, (..., S), in the dtype of `scores`.

    Raises:
        ValueError: If `scores` are no floating-point numbers, or `mask` is not boolean or cannot be broadcast to their shape.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1, equation 6, for sources that are padded to one length.
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
    """Attend softly: blend the values, each in proportion to the softmax of its score.

    Args:
        scores: Scores, (B, T, S), from any of the score functions.
        values: Values, (B, S, D); in this chapter the annotations, which are the keys as well.
        mask: Boolean, True where a query may attend: (B, S), the same for all queries of an example, or (B, T, S). None
            permits every place.

    Returns:
        The tuple (weights, context): weights (B, T, S), and one context a query, (B, T, D). A query that may attend to
        nothing has weights and context of zeros.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1, equations 5 and 6.
    """
    _check_values(scores, values, mask)
    if mask is not None and mask.ndim == 2:
        mask = mask[:, None]  # (B, 1, S)
    weights = masked_softmax(scores, mask)  # (B, T, S)
    return weights, weights @ values  # (B, T, D)


def hard_attend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attend hard: each query takes one value, that of its highest permitted score; among equals, the first.

    Gradients reach the values that were taken. None reaches the scores: a small change of a score changes nothing, until it
    changes everything.

    Args:
        scores: Scores, (B, T, S), from any of the score functions.
        values: Values, (B, S, D).
        mask: Boolean, True where a query may attend: (B, S), the same for all queries of an example, or (B, T, S). None
            permits every place.

    Returns:
        The tuple (weights, context): weights (B, T, S), 1 at the place that was taken and 0 elsewhere, in the dtype of the
        scores, and one context a query, (B, T, D). A query that may attend to nothing has weights and context of zeros.

    Source:
        Xu et al. 2015, Show, Attend and Tell, section 4.1 ("hard" attention; there the place is drawn, here it is the likeliest).
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
    """Read the source in both directions: one annotation for every place, of what stands before it and behind it.

    The layers, with PyTorch's default initialisation, are `embedding` (`nn.Embedding`, E wide) and two `nn.GRU`, batch first,
    from E to D / 2: `forward_gru` reads from the left, `backward_gru` from the last real token to the first. The annotation of
    a place is the state that the one has there, followed by the state that the other has at the same place.

    Args:
        vocabulary: Number of source tokens V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of the annotations; even, for each direction gives one half.

    Raises:
        ValueError: If `d_model` is odd.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.2.
    """

    def __init__(self, vocabulary: int, d_embedding: int, d_model: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model={d_model} cannot be shared by two directions")
        self.embedding = nn.Embedding(vocabulary, d_embedding)
        self.forward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)
        self.backward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Annotate every place of the source.

        Args:
            source: Source tokens, integers, (B, S).
            source_mask: Boolean, (B, S), True at real tokens; padding stands behind them. None means that all are real.

        Returns:
            Annotations, (B, S, D). They are zeros at the padding, and what stands there changes no other annotation.

        Raises:
            ValueError: If `source_mask` is not boolean or does not have the shape of `source`.
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
    """Write the target, looking back at the source before every token: query = the state before, keys = values = annotations.

    Step t is given the token y that stands at t and the state s of step t-1 (at first s = tanh(bridge(·)) of the backward half
    of the first annotation, which has read the whole source):

        c = attend(score(s, annotations))        the context, from the state before
        s = cell([y; c], s)                      the new state
        logits = output([s; c; y])               about the token after y

    where y is embedded. The layers, with PyTorch's default initialisation, are `embedding` (`nn.Embedding`, E wide), `bridge`
    (`nn.Linear`, D / 2 to D), `cell` (`nn.GRUCell`, E + D to D) and `output` (`nn.Linear`, 2 D + E to V). The weights of the score
    are parameters of the module itself, uniform within ± 1 / sqrt(D): for "additive" `w_q` and `w_k` (D, D) and `v` (D,), for "general" `w`
    (D, D), for "location" `w` (D, max_source); the other scores have none.

    Args:
        vocabulary: Number of target tokens V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of states and annotations; even.
        score: Name of the score, one of `SCORES`; kept in the attribute `score`.
        max_source: The longest source that the score "location" can look at.

    Raises:
        ValueError: If `d_model` is odd, `max_source` is less than one, or `score` is not one of `SCORES`.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.1 and appendix A.2.2 (without the maxout layer); Luong, Pham and Manning
        2015, section 3.1, for the other scores.
    """

    def __init__(
        self, vocabulary: int, d_embedding: int, d_model: int, *, score: str = "additive", max_source: int = 64
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
        if d_model % 2 or max_source < 1:
            raise ValueError(f"expected an even d_model and a max_source of at least 1, got {d_model} and {max_source}")
        self.score = score
        self.embedding = nn.Embedding(vocabulary, d_embedding)
        self.bridge = nn.Linear(d_model // 2, d_model)
        self.cell = nn.GRUCell(d_embedding + d_model, d_model)
        self.output = nn.Linear(2 * d_model + d_embedding, vocabulary)
        bound = 1 / math.sqrt(d_model)
        if score == "additive":
            self.w_q = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
            self.w_k = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
            self.v = nn.Parameter(torch.empty(d_model).uniform_(-bound, bound))
        elif score in ("general", "location"):
            columns = d_model if score == "general" else max_source
            self.w = nn.Parameter(torch.empty(d_model, columns).uniform_(-bound, bound))

    def initial_state(self, annotations: Tensor) -> Tensor:
        """The state before the first step: tanh(bridge(·)) of the backward half of the first annotation.

        Args:
            annotations: Annotations of the source, (B, S, D).

        Returns:
            The state, (B, D).
        """
        D = annotations.shape[2]
        return torch.tanh(self.bridge(annotations[:, 0, D // 2 :]))

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        """Score the annotations by the chosen score function.

        Args:
            queries: States of the decoder, (B, T, D).
            annotations: Annotations of the source, (B, S, D).

        Returns:
            Scores, (B, T, S).

        Raises:
            ValueError: If the score is "location" and the source is longer than `max_source`.
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
        """Do one step.

        Args:
            token: The token at this step, integers, (B,).
            state: The state of the step before, (B, D).
            annotations: Annotations of the source, (B, S, D).
            source_mask: Boolean, (B, S), True at real tokens of the source; None means that all are real.

        Returns:
            The tuple (logits, state, weights): logits (B, V) about the next token, the new state (B, D), and the
            alignment weights of this step, (B, S).

        Raises:
            ValueError: If the source is too long, as in `scores`, or `source_mask` does not fit the annotations.
        """
        embedded = self.embedding(token)  # (B, E)
        weights, context = attend(self.scores(state[:, None], annotations), annotations, source_mask)
        weights, context = weights.squeeze(1), context.squeeze(1)  # (B, S), (B, D)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        logits = self.output(torch.cat([state, context, embedded], dim=-1))
        return logits, state, weights

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Go through a whole target with teacher forcing.

        Args:
            target: Target tokens, integers, (B, T); the first is the token that begins every sentence (BOS).
            annotations: Annotations of the source, (B, S, D).
            source_mask: Boolean, (B, S), True at real tokens of the source; None means that all are real.

        Returns:
            The tuple (logits, weights): logits (B, T, V), those at t about the token after target[:, t], and the
            alignment weights, (B, T, S), those at t of the step that gave these logits.

        Raises:
            ValueError: If the source is too long, as in `scores`, or `source_mask` does not fit the annotations.
        """
        state = self.initial_state(annotations)
        logits, weights = [], []
        for token in target.unbind(dim=1):
            step_logits, state, step_weights = self.step(token, state, annotations, source_mask)
            logits.append(step_logits)
            weights.append(step_weights)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


class AttentionSeq2Seq(nn.Module):
    """A translator that looks back: a `BidirectionalEncoder` named `encoder` and an `AttentionDecoder` named `decoder`.

    Args:
        source_vocabulary: Number of source tokens.
        target_vocabulary: Number of target tokens V.
        d_embedding: Width E of the embeddings, on both sides.
        d_model: Width D of annotations and states; even.
        score: Name of the decoder's score, one of `SCORES`.
        max_source: The longest source that the score "location" can look at.

    Raises:
        ValueError: If `d_model` is odd, `max_source` is less than one, or `score` is not one of `SCORES`.

    Source:
        Bahdanau, Cho and Bengio 2015, section 3.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_embedding: int,
        d_model: int,
        *,
        score: str = "additive",
        max_source: int = 64,
    ) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(source_vocabulary, d_embedding, d_model)
        self.decoder = AttentionDecoder(target_vocabulary, d_embedding, d_model, score=score, max_source=max_source)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Predict every target token from the source and the target tokens before it.

        Args:
            source: Source tokens, integers, (B, S).
            target: Target tokens, integers, (B, T); the first is the token that begins every sentence (BOS).
            source_mask: Boolean, (B, S), True at real tokens; padding stands behind them. None means that all are real.

        Returns:
            Logits, (B, T, V): those at t predict the token after target[:, t].

        Raises:
            ValueError: If `source_mask` does not fit, as in the encoder.
        """
        logits: Tensor = self.decoder(target, self.encoder(source, source_mask), source_mask)[0]
        return logits

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Tell where in the source the translator looked while it went through the target.

        Row t belongs to the step whose logits predict the token *after* target[:, t]: so it is about the word in place t of a
        target from which BOS was taken away.

        Args:
            source: Source tokens, integers, (B, S).
            target: Target tokens, integers, (B, T), beginning with BOS.
            source_mask: Boolean, (B, S), True at real tokens; None means that all are real.

        Returns:
            Alignment weights, (B, T, S).

        Raises:
            ValueError: If `source_mask` does not fit, as in the encoder.
        """
        weights: Tensor = self.decoder(target, self.encoder(source, source_mask), source_mask)[1]
        return weights


def ibm_model_1(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    source_vocabulary: int,
    target_vocabulary: int,
    iterations: int,
) -> Tensor:
    """Learn a table of translations from sentence pairs alone: IBM Model 1, by expectation and maximisation (EM).

    Every target word was made by one word of its source sentence, or by the NULL word, which stands in every source sentence
    and has number 0. Nobody knows by which one. From a uniform table, each iteration (E) shares every target word out among
    the words that may have made it, in proportion to the table, and (M) adds the shares up over all pairs and divides them by
    their sum for each source word. A word that occurs twice takes part twice.

    Args:
        pairs: Sentence pairs (source, target): token numbers from 1 on. The number 0, padding elsewhere, is NULL and stands in
            neither; the function puts it into every source itself. A sentence may be empty.
        source_vocabulary: Number of source tokens, with 0.
        target_vocabulary: Number of target tokens, with 0.
        iterations: How many times to iterate; after 0 iterations the table is uniform, 1 / target_vocabulary.

    Returns:
        The table, (source_vocabulary, target_vocabulary), float64: entry [w, w'] is the probability that source word w
        makes target word w'. Rows sum to one; row 0 is NULL's. A row whose word occurs in no source stays uniform.

    Raises:
        ValueError: If a token is less than 1 or not within its vocabulary, or `iterations` is negative.

    Source:
        Brown, Della Pietra, Della Pietra and Mercer 1993, The Mathematics of Statistical Machine Translation, section 4.1.
    """
    _check_tokens("source", (token for source, _ in pairs for token in source), source_vocabulary)
    _check_tokens("target", (token for _, target in pairs for token in target), target_vocabulary)
    if iterations < 0:
        raise ValueError(f"expected 0 iterations or more, got {iterations}")
    table = torch.full((source_vocabulary, target_vocabulary), 1 / target_vocabulary, dtype=torch.float64)
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
    """For every word of a target, the place of the source word that most probably made it: Model 1's hard alignment.

    Places count from 0. Among source words that are equally probable the first is taken, and NULL only if it is more probable
    than all of them.

    Args:
        table: Probabilities of translation, (source vocabulary, target vocabulary), as `ibm_model_1` returns them; row 0 is
            NULL's.
        source: Token numbers of the source, without NULL; it may be empty.
        target: Token numbers of the target.

    Returns:
        One entry for each target word: the place of its source word, or None for NULL.

    Source:
        Brown, Della Pietra, Della Pietra and Mercer 1993, section 4.1: under Model 1 the most probable (Viterbi) alignment
        chooses for each target word by itself.
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
    """Make sure that words are in a table: a negative number would count its rows from the end, and 0 is NULL."""
    strange = sorted({token for token in tokens if not 1 <= token < size})
    if strange:
        raise ValueError(f"tokens of the {side} must be in 1 … {size - 1}, got {strange}")
