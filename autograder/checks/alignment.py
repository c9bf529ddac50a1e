"""Checks of chapter 02: scores, weights and contexts, and Model 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.attention import FUSED
from autograder.checks.sections import HEADINGS
from tfcourse import alignment

CHAPTER = "02_alignment"
NO_LOOP = "examples, queries or keys"


def _transposed(scores: Tensor) -> Tensor:
    return scores.transpose(1, 2)


def _length(x: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    return x.pow(2).sum(dim, keepdim=keepdim).sqrt()


def _cosine(queries: Tensor, keys: Tensor) -> Tensor:
    norms = _length(queries, dim=-1)[:, :, None] * _length(keys, dim=-1)[:, None]
    return _dot(queries, keys) / norms.masked_fill(norms == 0, math.inf)


def _dot(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.transpose(1, 2)


def _softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    """Weights that are right but for the axis, if another is asked for."""
    if mask is None:
        return torch.softmax(scores, dim)
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim).masked_fill(~mask, 0.0)


# ---------------------------------------------------------------------------------- two that have no weights, and content


def pair(draw: Draw) -> Case:
    """Queries and keys of one width."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, s, d)})


def one_pair(draw: Draw) -> Case:
    """Queries and keys of a single example."""
    t, s, d = draw.sizes(3)
    return Case({"queries": draw.normal(1, t, d), "keys": draw.normal(1, s, d)})


def as_many(draw: Draw) -> Case:
    """As many queries as keys: axes that changed places go unseen by the shapes."""
    b, t, d = draw.sizes(3)
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, t, d)})


def more_pairs(draw: Draw, factor: int) -> Case:
    """Queries and keys, more of everything."""
    b, t, s, d = factor, 2 * factor, 3 * factor, 4
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, s, d)})


def other_width(draw: Draw) -> Case:
    """Keys that are not as wide as the queries."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, s, d + 1)})


def odd_pair(draw: Draw) -> Case:
    """Queries and keys of a width whose square root is no whole number: rounded to another precision it shows."""
    b, t, s = draw.sizes(3)
    d = (3, 5, 7)[int(draw.integers(0, 3))]
    return Case({"queries": draw.normal(b, t, d), "keys": draw.normal(b, s, d)})


def with_zeros(draw: Draw) -> Case:
    """A query and a key that are zero vectors."""
    case = pair(draw)
    queries, keys = case.arguments["queries"].clone(), case.arguments["keys"].clone()
    queries[0, 0] = 0.0
    keys[0, 1] = 0.0
    return case.with_arguments(queries=queries, keys=keys)


@misconception("lengths left in", read="content-score")
def lengths_left_in(queries: Tensor, keys: Tensor) -> Tensor:
    """The score is the dot product itself. A cosine is divided by the lengths of both vectors, so that only their directions count."""
    return _dot(queries, keys)


@misconception("only the keys normalised", read="content-score")
def only_keys_normalised(queries: Tensor, keys: Tensor) -> Tensor:
    """The keys are divided by their lengths, the queries are not. A long query then gets larger scores than a short one in the
    same direction.
    """
    return _cosine(queries, keys) * _length(queries, dim=-1, keepdim=True)


@misconception("only the queries normalised", read="content-score")
def only_queries_normalised(queries: Tensor, keys: Tensor) -> Tensor:
    """The queries are divided by their lengths, the keys are not, so that a long key is found by everybody."""
    return _cosine(queries, keys) * _length(keys, dim=-1)[:, None]


@misconception("normalised along the wrong axis", read="content-score")
def normalised_along_positions(queries: Tensor, keys: Tensor) -> Tensor:
    """The lengths are taken along the sequence. The length of a vector runs over its components, the last axis."""
    q, k = (x / _length(x, dim=1, keepdim=True).clamp(min=1e-6) for x in (queries, keys))
    return _dot(q, k)


@misconception("NaN for a zero vector", read="content-score")
def nan_for_zero(queries: Tensor, keys: Tensor) -> Tensor:
    """A zero vector is divided by its length, zero by zero, and gives NaN. Its cosine is defined as 0."""
    norms = _length(queries, dim=-1)[:, :, None] * _length(keys, dim=-1)[:, None]
    return _dot(queries, keys) / norms


@misconception("a small number added", read="content-score")
def small_number_added(queries: Tensor, keys: Tensor) -> Tensor:
    """A small number such as 1e-8 is added to the lengths to keep zero out of the divisor. It shows in every score, in double precision
    at least, and the score of a vector with itself is no longer 1. Only a zero vector needs help: its length may be replaced.
    """
    q, k = (x / (_length(x, keepdim=True) + 1e-8) for x in (queries, keys))
    return _dot(q, k)


@misconception("squared lengths", read="content-score")
def squared_lengths(queries: Tensor, keys: Tensor) -> Tensor:
    """The products are divided by the squares of the lengths: a root is missing. The cosine of a vector with itself must be 1."""
    norms = (queries**2).sum(-1)[:, :, None] * (keys**2).sum(-1)[:, None]
    return _dot(queries, keys) / norms.masked_fill(norms == 0, math.inf)


@misconception("the angle itself", read="content-score")
def the_angle(queries: Tensor, keys: Tensor) -> Tensor:
    """The score is the angle. It is smallest where query and key agree, and a score must be largest there: that is what the cosine
    of the angle does.
    """
    return torch.acos(_cosine(queries, keys).clamp(-0.999999, 0.999999))


@misconception("keys ask queries", read="scores")
def content_transposed(queries: Tensor, keys: Tensor) -> Tensor:
    """The scores come out as (B, S, T), one row a key. A row belongs to a query: (B, T, S)."""
    return _transposed(_cosine(queries, keys))


@misconception("weights in place of scores", read="scores")
def content_softmax(queries: Tensor, keys: Tensor) -> Tensor:
    """A softmax has been taken already. Scores are what goes into the softmax; masked_softmax makes the weights."""
    return torch.softmax(_cosine(queries, keys), -1)


@misconception("one query after another", read="scores")
def content_loop(queries: Tensor, keys: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. A matrix product compares all queries with all keys."""
    return torch.stack([_cosine(queries[:, t : t + 1], keys)[:, 0] for t in range(queries.shape[1])], 1)


CONTENT_SCORE = Exercise(
    reference=alignment.content_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, pair, one_pair),
        look.values(1, pair, as_many),
        look.values(0.5, with_zeros, name="zero vector", title="A zero vector has cosine 0 with every vector."),
        look.gradients(0.5, pair, wrt=("queries", "keys")),
        look.double_precision(0.5, pair),
        look.device(0.5, pair),
        look.vectorised(0.5, more_pairs, axis=NO_LOOP),
    ),
    forbidden=("cosine_similarity", "CosineSimilarity", *FUSED),
    rule_case=pair,
    misconceptions=(
        lengths_left_in,
        only_keys_normalised,
        only_queries_normalised,
        normalised_along_positions,
        nan_for_zero,
        small_number_added,
        squared_lengths,
        the_angle,
        content_transposed,
        content_softmax,
        content_loop,
    ),
)


@misconception("scaled", read="multiplicative-scores")
def dot_scaled(queries: Tensor, keys: Tensor) -> Tensor:
    """The dot products are divided by the square root of the width. That is the last score of the table; this one takes them as they
    are.
    """
    return _dot(queries, keys) / math.sqrt(queries.shape[2])


@misconception("cosine", read="multiplicative-scores")
def dot_cosine(queries: Tensor, keys: Tensor) -> Tensor:
    """The vectors are divided by their lengths first. In a dot product their lengths count."""
    return _cosine(queries, keys)


@misconception("keys ask queries", read="scores")
def dot_transposed(queries: Tensor, keys: Tensor) -> Tensor:
    """The scores come out as (B, S, T), one row a key. A row belongs to a query: (B, T, S)."""
    return _transposed(_dot(queries, keys))


@misconception("weights in place of scores", read="scores")
def dot_softmax(queries: Tensor, keys: Tensor) -> Tensor:
    """A softmax has been taken already. Scores are what goes into the softmax; masked_softmax makes the weights."""
    return torch.softmax(_dot(queries, keys), -1)


@misconception("examples mixed", read="scores")
def dot_examples_mixed(queries: Tensor, keys: Tensor) -> Tensor:
    """A query is compared with the keys of all examples, added up over the batch. Every example has keys of its own."""
    return queries @ keys.sum(0).T


@misconception("place by place", read="multiplicative-scores")
def dot_place_by_place(queries: Tensor, keys: Tensor) -> Tensor:
    """Query t is compared with key t only. Every query is compared with every key: that is why the scores have two axes, T and S."""
    return (queries * keys).sum(-1)[:, :, None].expand(-1, -1, keys.shape[1])


@misconception("one query after another", read="scores")
def dot_loop(queries: Tensor, keys: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. A matrix product compares all queries with all keys."""
    return torch.stack([_dot(queries[:, t : t + 1], keys)[:, 0] for t in range(queries.shape[1])], 1)


DOT_SCORE = Exercise(
    reference=alignment.dot_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, pair, one_pair),
        look.values(1, pair, as_many),
        look.gradients(0.5, pair, wrt=("queries", "keys")),
        look.batch_independence(0.5, pair, batched=("queries", "keys")),
        look.vectorised(0.5, more_pairs, axis=NO_LOOP),
    ),
    forbidden=FUSED,
    rule_case=pair,
    misconceptions=(
        dot_scaled,
        dot_cosine,
        dot_transposed,
        dot_softmax,
        dot_examples_mixed,
        dot_place_by_place,
        dot_loop,
    ),
)


@misconception("no scale", read="multiplicative-scores")
def not_scaled(queries: Tensor, keys: Tensor) -> Tensor:
    """The dot products are not divided by anything. Their variance grows with the width, which the root is there to undo."""
    return _dot(queries, keys)


@misconception("scaled by the width", read="multiplicative-scores")
def scaled_by_width(queries: Tensor, keys: Tensor) -> Tensor:
    """The dot products are divided by the width itself, not by its square root."""
    return _dot(queries, keys) / queries.shape[2]


@misconception("scaled by the length of the source", read="multiplicative-scores")
def scaled_by_length(queries: Tensor, keys: Tensor) -> Tensor:
    """The number of keys stands under the root. A dot product is a sum over the components of a vector: it is their number, the
    width, that makes it large.
    """
    return _dot(queries, keys) / math.sqrt(keys.shape[1])


@misconception("multiplied by the root", read="multiplicative-scores")
def multiplied_by_root(queries: Tensor, keys: Tensor) -> Tensor:
    """The dot products are multiplied by the square root of the width. They are too large already: divide."""
    return _dot(queries, keys) * math.sqrt(queries.shape[2])


@misconception("root in single precision", read="multiplicative-scores")
def root_in_single(queries: Tensor, keys: Tensor) -> Tensor:
    """The root is a tensor of its own, made in single precision: in double precision it has only seven right digits, and so have
    the scores. The width is a Python number: math.sqrt, or a power of one half, gives its root in full.
    """
    return _dot(queries, keys) / torch.sqrt(torch.tensor(float(queries.shape[2])))


@misconception("keys ask queries", read="scores")
def scaled_transposed(queries: Tensor, keys: Tensor) -> Tensor:
    """The scores come out as (B, S, T), one row a key. A row belongs to a query: (B, T, S)."""
    return _transposed(_dot(queries, keys)) / math.sqrt(queries.shape[2])


@misconception("weights in place of scores", read="scores")
def scaled_softmax(queries: Tensor, keys: Tensor) -> Tensor:
    """A softmax has been taken already. Scores are what goes into the softmax; masked_softmax makes the weights."""
    return torch.softmax(_dot(queries, keys) / math.sqrt(queries.shape[2]), -1)


@misconception("cosine", read="multiplicative-scores")
def scaled_cosine(queries: Tensor, keys: Tensor) -> Tensor:
    """The vectors are divided by their lengths. The scale depends on the width alone, not on the numbers in the vectors."""
    return _cosine(queries, keys)


@misconception("one query after another", read="scores")
def scaled_loop(queries: Tensor, keys: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. A matrix product compares all queries with all keys."""
    rows = [_dot(queries[:, t : t + 1], keys)[:, 0] / math.sqrt(queries.shape[2]) for t in range(queries.shape[1])]
    return torch.stack(rows, 1)


SCALED_DOT_SCORE = Exercise(
    reference=alignment.scaled_dot_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, pair, one_pair),
        look.values(1.5, pair, as_many),
        look.gradients(0.5, pair, wrt=("queries", "keys")),
        look.double_precision(0.5, odd_pair),
        look.device(0.5, pair),
        look.vectorised(0.5, more_pairs, axis=NO_LOOP),
    ),
    forbidden=FUSED,
    rule_case=pair,
    misconceptions=(
        not_scaled,
        scaled_by_width,
        scaled_by_length,
        multiplied_by_root,
        root_in_single,
        scaled_transposed,
        scaled_softmax,
        scaled_cosine,
        scaled_loop,
    ),
)


# ------------------------------------------------------------------------------------------------------------- additive


def additive(draw: Draw) -> Case:
    """Queries and keys of two widths, and a hidden layer of a third."""
    b, t, s, dq, dk, da = draw.sizes(6)
    return _additive(draw, b, t, s, dq, dk, da)


def additive_square(draw: Draw) -> Case:
    """All widths equal, and as many queries as keys: nothing that changed places is seen by the shapes."""
    b, t, d = draw.sizes(3)
    return _additive(draw, b, t, t, d, d, d)


def more_additive(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return _additive(draw, factor, 2 * factor, 3 * factor, 4, 3, 5)


def additive_misfit(draw: Draw) -> Case:
    """A key matrix with too many rows."""
    case = additive(draw)
    rows, columns = case.arguments["w_k"].shape
    return case.with_arguments(w_k=draw.normal(rows + 1, columns))


def _additive(draw: Draw, b: int, t: int, s: int, dq: int, dk: int, da: int) -> Case:
    weights = {"w_q": draw.normal(dq, da), "w_k": draw.normal(dk, da), "v": draw.normal(da)}
    return Case({"queries": draw.normal(b, t, dq), "keys": draw.normal(b, s, dk), **weights})


def _sum(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor) -> Tensor:
    return (queries @ w_q)[:, :, None] + (keys @ w_k)[:, None]


@misconception("no tanh", read="additive-score")
def no_tanh(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The hyperbolic tangent is missing. Without it the score is a number of the query plus a number of the key: the softmax cancels
    the first, and every query gets the same weights.
    """
    return _sum(queries, keys, w_q, w_k) @ v


@misconception("v before tanh", read="additive-score")
def v_before_tanh(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The weights v are applied before the hyperbolic tangent, which then squeezes the score itself between -1 and 1. The tangent
    belongs to the hidden layer; v adds up what comes out of it.
    """
    return torch.tanh(_sum(queries, keys, w_q, w_k) @ v)


@misconception("a tanh for each", read="additive-score")
def a_tanh_for_each(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Query and key go through the hyperbolic tangent one by one and are added afterwards. They must meet inside it, or they do not
    meet at all: a sum of two scores cannot say whether query and key fit together.
    """
    return torch.tanh(queries @ w_q)[:, :, None] @ v + torch.tanh(keys @ w_k)[:, None] @ v


@misconception("multiplied in place of added", read="additive-score")
def multiplied(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The projected query and key are multiplied. In this score they are added, which is where its name comes from."""
    return torch.tanh((queries @ w_q)[:, :, None] * (keys @ w_k)[:, None]) @ v


@misconception("v left out", read="additive-score")
def v_left_out(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The numbers of the hidden layer are added up as they are. Each of them has a weight of its own in v."""
    return torch.tanh(_sum(queries, keys, w_q, w_k)).sum(-1)


@misconception("sigmoid in place of tanh", read="additive-score")
def sigmoid_in_place(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The hidden layer has a sigmoid. The formula asks for the hyperbolic tangent, whose values lie on both sides of zero."""
    return torch.sigmoid(_sum(queries, keys, w_q, w_k)) @ v


@misconception("matrices swapped", read="additive-score")
def matrices_swapped(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The queries are multiplied with the matrix of the keys, and the keys with that of the queries."""
    if queries.shape[2] != w_q.shape[0] or keys.shape[2] != w_k.shape[0]:
        raise ValueError("the matrices do not fit")
    return torch.tanh(_sum(queries, keys, w_k, w_q)) @ v


@misconception("query and keys swapped", read="scores")
def additive_transposed(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """Queries and keys have changed places: the scores come out as (B, S, T), one row a key. A row belongs to a query: (B, T, S)."""
    return _transposed(torch.tanh(_sum(queries, keys, w_q, w_k)) @ v)


@misconception("weights in place of scores", read="scores")
def additive_softmax(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """A softmax has been taken already. Scores are what goes into the softmax; masked_softmax makes the weights."""
    return torch.softmax(torch.tanh(_sum(queries, keys, w_q, w_k)) @ v, -1)


@misconception("one query after another", read="scores")
def additive_loop(queries: Tensor, keys: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. An axis of one for the keys in the queries, and one for the
    queries in the keys, and broadcasting adds every query to every key.
    """
    rows = [torch.tanh((queries[:, t] @ w_q)[:, None] + keys @ w_k) @ v for t in range(queries.shape[1])]
    return torch.stack(rows, 1)


ADDITIVE_SCORE = Exercise(
    reference=alignment.additive_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, additive),
        look.values(2, additive, additive_square),
        look.gradients(1, additive, wrt=("queries", "keys", "w_q", "w_k", "v")),
        look.batch_independence(0.5, additive, batched=("queries", "keys")),
        look.double_precision(0.5, additive),
        look.device(0.5, additive),
        look.vectorised(0.5, more_additive, axis=NO_LOOP),
        look.refuses(
            0.5, additive, additive_misfit, title="A matrix that does not fit queries or keys is a ValueError."
        ),
    ),
    forbidden=FUSED,
    rule_case=additive,
    misconceptions=(
        no_tanh,
        v_before_tanh,
        a_tanh_for_each,
        multiplied,
        v_left_out,
        sigmoid_in_place,
        matrices_swapped,
        additive_transposed,
        additive_softmax,
        additive_loop,
    ),
)


# ------------------------------------------------------------------------------------------------- location and general


def located(draw: Draw) -> Case:
    """A matrix with more columns than the source has places."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "w": draw.normal(d, s + 3), "S": s})


def longest(draw: Draw) -> Case:
    """A source that needs every column of the matrix."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "w": draw.normal(d, s), "S": s})


def located_square(draw: Draw) -> Case:
    """A matrix with as many rows as columns."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"queries": draw.normal(b, t, s), "w": draw.normal(s, s), "S": s - 1})


def too_long(draw: Draw) -> Case:
    """A source with more places than the matrix has columns."""
    case = longest(draw)
    return case.with_arguments(S=case.arguments["S"] + 1)


def more_places(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"queries": draw.normal(factor, 2 * factor, 4), "w": draw.normal(4, 60), "S": 5 * factor})


def _refuse(w: Tensor, S: int) -> None:
    if w.shape[1] < S:
        raise ValueError(f"{w.shape[1]} places, not {S}")


@misconception("all places of the matrix", read="location-score")
def all_places(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """There is a score for every column of the matrix. A source has S places, and only the first S columns are about them."""
    _refuse(w, S)
    return queries @ w


@misconception("the last places", read="location-score")
def last_places(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """The last S columns are used. Place 0 of the source belongs to column 0."""
    _refuse(w, S)
    return queries @ w[:, w.shape[1] - S :]


@misconception("too long a source accepted", read="location-score")
def too_long_accepted(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """A source that is longer than the matrix has columns gets too few scores, without a word. Compare the two numbers and raise a
    ValueError that names them.
    """
    return queries @ w[:, :S]


@misconception("matrix transposed", read="location-score")
def location_transposed(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """The matrix is transposed. It stands to the right of the query, so it has one row for each component and one column a place."""
    _refuse(w, S)
    return queries @ w.T[:, :S]


@misconception("weights in place of scores", read="location-score")
def location_softmax(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """A softmax has been taken already. The paper's formula has it, but padding must be masked first: return the scores, and
    masked_softmax makes the weights.
    """
    _refuse(w, S)
    return torch.softmax(queries @ w[:, :S], -1)


@misconception("one row for all queries", read="location-score")
def one_row(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """All queries get the scores of the first. They are asked where to look one by one: a row for each."""
    _refuse(w, S)
    return (queries[:, :1] @ w[:, :S]).expand(-1, queries.shape[1], -1)


@misconception("one query after another", read="scores")
def location_loop(queries: Tensor, w: Tensor, S: int) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. One matrix product takes all of them."""
    _refuse(w, S)
    return torch.stack([queries[:, t] @ w[:, :S] for t in range(queries.shape[1])], 1)


LOCATION_SCORE = Exercise(
    reference=alignment.location_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, located, longest),
        look.values(1, located, longest, located_square),
        look.gradients(0.5, located, wrt=("queries", "w")),
        look.vectorised(0.5, more_places, axis="examples or queries"),
        look.refuses(
            0.5, located, too_long, title="A source with more places than the matrix has columns is a ValueError."
        ),
    ),
    misconceptions=(
        all_places,
        last_places,
        too_long_accepted,
        location_transposed,
        location_softmax,
        one_row,
        location_loop,
    ),
)


def general(draw: Draw) -> Case:
    """Queries and keys of two widths."""
    b, t, s, dq, dk = draw.sizes(5)
    return Case({"queries": draw.normal(b, t, dq), "keys": draw.normal(b, s, dk), "w": draw.normal(dq, dk)})


def general_square(draw: Draw) -> Case:
    """Queries and keys of one width, and as many: nothing that changed places is seen by the shapes."""
    case = as_many(draw)
    width = case.arguments["keys"].shape[2]
    return case.with_arguments(w=draw.normal(width, width))


def more_general(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, s = factor, 2 * factor, 3 * factor
    return Case({"queries": draw.normal(b, t, 4), "keys": draw.normal(b, s, 3), "w": draw.normal(4, 3)})


def general_misfit(draw: Draw) -> Case:
    """A matrix with one column too many."""
    case = general(draw)
    rows, columns = case.arguments["w"].shape
    return case.with_arguments(w=draw.normal(rows, columns + 1))


def _general_fits(queries: Tensor, keys: Tensor, w: Tensor) -> None:
    if w.shape != (queries.shape[2], keys.shape[2]):
        raise ValueError("w does not fit")


@misconception("matrix ignored", read="multiplicative-scores")
def matrix_ignored(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The matrix is not used: this is the plain dot product, which cannot even compare vectors of two widths."""
    _general_fits(queries, keys, w)
    return _dot(queries, keys)


@misconception("matrix transposed", read="multiplicative-scores")
def general_w_transposed(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The matrix is transposed: it is the keys that are multiplied with its rows. Its rows belong to the queries, its columns to the
    keys.
    """
    _general_fits(queries, keys, w)
    return queries @ w.T @ keys.transpose(1, 2)


@misconception("keys ask queries", read="scores")
def general_transposed(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The scores come out as (B, S, T), one row a key. A row belongs to a query: (B, T, S)."""
    _general_fits(queries, keys, w)
    return _transposed(_dot(queries @ w, keys))


@misconception("a tanh in between", read="multiplicative-scores")
def general_tanh(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The projected query goes through a hyperbolic tangent. That belongs to the additive score; this one is linear in query and key."""
    _general_fits(queries, keys, w)
    return _dot(torch.tanh(queries @ w), keys)


@misconception("scaled", read="multiplicative-scores")
def general_scaled(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The scores are divided by the square root of the width. The matrix is learned, and takes care of its own scale."""
    _general_fits(queries, keys, w)
    return _dot(queries @ w, keys) / math.sqrt(keys.shape[2])


@misconception("weights in place of scores", read="scores")
def general_softmax(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """A softmax has been taken already. Scores are what goes into the softmax; masked_softmax makes the weights."""
    _general_fits(queries, keys, w)
    return torch.softmax(_dot(queries @ w, keys), -1)


@misconception("one query after another", read="scores")
def general_loop(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. Two matrix products compare all queries with all keys."""
    _general_fits(queries, keys, w)
    return torch.stack([_dot(queries[:, t : t + 1] @ w, keys)[:, 0] for t in range(queries.shape[1])], 1)


GENERAL_SCORE = Exercise(
    reference=alignment.general_score,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, general),
        look.values(1.5, general, general_square),
        look.gradients(0.5, general, wrt=("queries", "keys", "w")),
        look.batch_independence(0.5, general, batched=("queries", "keys")),
        look.vectorised(0.5, more_general, axis=NO_LOOP),
        look.refuses(0.5, general, general_misfit, title="A matrix that does not fit queries or keys is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=general,
    misconceptions=(
        matrix_ignored,
        general_w_transposed,
        general_transposed,
        general_tanh,
        general_scaled,
        general_softmax,
        general_loop,
    ),
)


# ------------------------------------------------------------------------------------------------------- masked softmax


def scores_alone(draw: Draw) -> Case:
    """Scores without a mask."""
    return Case({"scores": draw.normal(*draw.sizes(3, low=3))})


def one_row_of_scores(draw: Draw) -> Case:
    """A single row of scores with its mask."""
    (s,) = draw.sizes(1, low=4)
    return Case({"scores": draw.normal(s), "mask": draw.mask(1, s)[0]})


def masked_scores(draw: Draw) -> Case:
    """Scores with a mask of their own shape."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, t, s)})


def padded_scores(draw: Draw) -> Case:
    """Scores with one mask for all queries of an example."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, 1, s)})


def empty_scores(draw: Draw) -> Case:
    """Scores of which one row permits nothing."""
    case = masked_scores(draw)
    mask = case.arguments["mask"].clone()
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def large_scores(draw: Draw) -> Case:
    """Scores in the hundreds, of either sign; the largest of all is forbidden."""
    b, t, s = draw.sizes(3, low=3)
    scores, mask = 300 * draw.normal(b, t, s), draw.mask(b, t, s)
    scores[:, 0], mask[:, 0] = scores[:, 0].abs() + 200, True
    scores[:, 1] = -scores[:, 1].abs() - 200
    return Case({"scores": scores, "mask": mask})


def more_scores(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, s = 2 * factor, 3 * factor, 4 * factor
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, t, s)})


def number_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


def _boolean(mask: Tensor | None) -> None:
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("the mask is not boolean")


@misconception("softmax over the wrong axis", read="masked-softmax")
def softmax_over_queries(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax runs over the queries, so that columns sum to one. A query's row must: the softmax goes over the last axis."""
    _boolean(mask)
    return _softmax(scores, mask, dim=-2 if scores.ndim > 1 else -1)


@misconception("mask after softmax", read="masked-softmax")
def mask_after_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax. The forbidden places have taken their share by then, and the others no longer sum to
    one.
    """
    _boolean(mask)
    weights = torch.softmax(scores, -1)
    return weights if mask is None else weights * mask


@misconception("divided again after the softmax", read="masked-softmax")
def divided_again(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax, and the rest divided by its sum. Where a forbidden score is far above the others, it has
    taken everything by then: what is left is zero, and cannot be divided up again. Mask the scores, before the softmax.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    kept = torch.softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1) * mask
    return (kept / kept.sum(-1, keepdim=True).clamp(min=1e-30)).to(scores.dtype)


@misconception("mask inverted", read="masked-softmax")
def mask_inverted(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: True means that a place is real and may be attended to."""
    _boolean(mask)
    return _softmax(scores, None if mask is None else ~mask)


@misconception("padding gets weight", read="masked-softmax")
def mask_ignored(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used: the padding takes its share of the weights."""
    _boolean(mask)
    return torch.softmax(scores, -1)


@misconception("scores set to zero", read="masked-softmax")
def scores_set_to_zero(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are set to zero. Zero is a score like any other, its exponential is 1, and it beats every negative score."""
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores * mask, -1)


@misconception("NaN in an empty row", read="masked-softmax")
def nan_in_empty_row(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row in which nothing is permitted gives NaN: with all scores at minus infinity the softmax divides zero by zero. Such a row
    gets zeros.
    """
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), -1)


@misconception("empty row uniform", read="masked-softmax")
def empty_row_uniform(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row in which nothing is permitted gets uniform weights: the same large negative score stands everywhere. It must get zeros."""
    _boolean(mask)
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, lowest), -1)


@misconception("NaN in the gradients", read="masked-softmax")
def nan_in_gradients(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of an empty row are right, but NaN was made on the way and overwritten afterwards. On the way back the gradient
    passes there again and is NaN: the NaN must not arise.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores + torch.where(mask, 0.0, -math.inf), -1)
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0)


@misconception("forbidden places dropped", read="masked-softmax")
def forbidden_dropped(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Only the permitted scores are kept, all in one long row. Then nobody knows any more whose they are: the weights have the shape of
    the scores, with zeros at the forbidden places.
    """
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores[mask.expand(scores.shape)], -1)


@misconception("constant left on the CPU", read="masked-softmax")
def constant_on_cpu(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A tensor that the function makes for itself stays on the CPU when the scores are on a GPU. Give it their device, or use a plain
    number.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    lowest = torch.full((scores.shape[-1],), torch.finfo(scores.dtype).min, dtype=scores.dtype, device="cpu")
    return torch.softmax(torch.where(mask, scores, lowest), -1).masked_fill(~mask, 0.0)


@misconception("exponential overflows", read="masked-softmax")
def exponential_overflows(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow to infinity, very
    negative ones all become zero, and both give NaN.
    """
    _boolean(mask)
    grown = scores.exp() if mask is None else scores.exp() * mask
    total = grown.sum(-1, keepdim=True)
    if mask is None:
        return grown / total
    return grown / torch.where(mask.any(-1, keepdim=True), total, 1.0)


@misconception("not negative enough", read="masked-softmax")
def not_negative_enough(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are set to a number such as -100, which is not below all others: permitted scores may be lower still, and
    then the forbidden places win.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    return torch.softmax(scores.masked_fill(~mask, -100.0), -1) * mask


@misconception("changes its input", read="what-goes-wrong-02")
def changes_scores(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are masked in place (masked_fill_ or an assignment), so the caller's tensor is changed."""
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1).masked_fill(~mask, 0.0)


@misconception("always float32", read="masked-softmax")
def softmax_in_float32(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Everything is converted to float32 and stays there. Compute in float32 where the scores are of half precision, and give back
    the dtype that came.
    """
    _boolean(mask)
    return _softmax(scores.float(), mask)


@misconception("one query after another", read="masked-softmax")
def softmax_loop(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from row to row. The softmax takes an axis: all rows are done at once."""
    _boolean(mask)
    if scores.ndim < 2:
        return _softmax(scores, mask)
    everywhere = None if mask is None else mask.expand(scores.shape)
    rows = [
        _softmax(scores[..., t, :], None if everywhere is None else everywhere[..., t, :])
        for t in range(scores.shape[-2])
    ]
    return torch.stack(rows, -2)


@misconception("numbers accepted as a mask", read="masked-softmax")
def numbers_accepted(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A mask of numbers is accepted. `~` of a 1 is -2, not False: such a mask works by luck or not at all, and a ValueError is the
    kinder answer.
    """
    return _softmax(scores, None if mask is None else mask.bool())


MASKED_SOFTMAX = Exercise(
    reference=alignment.masked_softmax,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, scores_alone, masked_scores),
        look.values(0.5, scores_alone, name="no mask", title="Without a mask it is a softmax over the last axis."),
        look.values(
            2,
            one_row_of_scores,
            masked_scores,
            padded_scores,
            name="mask",
            title="Forbidden places get weight 0, and the others sum to one.",
        ),
        look.empty_row(1, empty_scores, title="A row in which nothing is permitted gets zeros."),
        look.values(1, large_scores, name="large scores", title="Scores in the hundreds give finite, right weights."),
        look.gradients(1, masked_scores, wrt=("scores",), title="Gradients are right."),
        look.unmutated(0.5, masked_scores),
        look.half_precision(0.5, masked_scores),
        look.double_precision(0.5, masked_scores),
        look.device(0.5, masked_scores),
        look.vectorised(0.5, more_scores, axis="rows"),
        look.refuses(0.5, masked_scores, number_mask, title="A mask that is not boolean is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=(scores_alone, masked_scores),
    misconceptions=(
        softmax_over_queries,
        mask_after_softmax,
        divided_again,
        mask_inverted,
        mask_ignored,
        scores_set_to_zero,
        nan_in_empty_row,
        empty_row_uniform,
        nan_in_gradients,
        forbidden_dropped,
        constant_on_cpu,
        exponential_overflows,
        not_negative_enough,
        changes_scores,
        softmax_in_float32,
        softmax_loop,
        numbers_accepted,
    ),
)


# ------------------------------------------------------------------------------------------------------- soft and hard


def blend(draw: Draw) -> Case:
    """Scores and values, no mask."""
    b, t, s, d = draw.sizes(4)
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d)})


def blend_square(draw: Draw) -> Case:
    """As many queries as values: axes that changed places go unseen by the shapes."""
    b, t, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, t, t), "values": draw.normal(b, t, d)})


def padded_blend(draw: Draw) -> Case:
    """A mask (B, S): the same for all queries of an example. The first example may look at everything, the last one not."""
    b, t, s, d = draw.sizes(4)
    mask = draw.mask(b, s)
    mask[0], mask[-1, 0], mask[-1, -1] = True, True, False
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d), "mask": mask})


def as_many_queries(draw: Draw) -> Case:
    """A mask (B, S) and as many examples as queries: examples that are taken for queries go unseen by the shapes."""
    b, s, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, b, s), "values": draw.normal(b, s, d), "mask": draw.mask(b, s)})


def masked_blend(draw: Draw) -> Case:
    """A mask (B, T, S), of which one row permits nothing."""
    case = blend(draw)
    mask = draw.mask(*case.arguments["scores"].shape)
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def more_blend(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, s = factor, 2 * factor, 3 * factor
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, 4), "mask": draw.mask(b, s)})


def _place(mask: Tensor | None) -> Tensor | None:
    return mask[:, None] if mask is not None and mask.ndim == 2 else mask


@misconception("softmax over the queries", read="attend")
def attend_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The softmax runs over the queries, so that they compete for each value. A query shares itself out among the values: the softmax
    goes over the last axis.
    """
    weights = _softmax(scores, _place(mask), dim=1)
    return weights, weights @ values


@misconception("context over the queries", read="attend")
def context_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The context is summed along the wrong axis of the weights: over the queries. Each query's context is a sum over the S values."""
    weights = _softmax(scores, _place(mask))
    return weights, weights.transpose(1, 2) @ values


@misconception("context first", read="attend")
def context_first(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The two results are in the wrong order: the weights come first, then the context."""
    weights = _softmax(scores, _place(mask))
    return weights @ values, weights


@misconception("scores in place of weights", read="attend")
def scores_blend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The values are blended with the scores, not with the weights. Scores may be negative and sum to anything."""
    return _softmax(scores, _place(mask)), scores @ values


@misconception("averaged again", read="attend")
def averaged_again(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weighted values are averaged in place of summed. The weights sum to one already, so this divides twice."""
    weights = _softmax(scores, _place(mask))
    return weights, weights @ values / scores.shape[2]


@misconception("mask ignored", read="attend")
def attend_mask_ignored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is not handed on to the softmax, and the padding is blended in."""
    weights = _softmax(scores, None)
    return weights, weights @ values


@misconception("mask inverted", read="attend")
def attend_mask_inverted(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is read the wrong way round: only the padding is attended to. True means that a place is real."""
    weights = _softmax(scores, _place(None if mask is None else ~mask))
    return weights, weights @ values


@misconception("examples taken for queries", read="attend")
def examples_for_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A mask (B, S) meets scores (B, T, S) without a place for the queries. Broadcasting aligns from the right, so examples are taken
    for queries: an error as a rule, and wrong without a word where there are as many.
    """
    weights = _softmax(scores, mask)
    return weights, weights @ values


@misconception("values masked, weights not", read="attend")
def values_masked(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Forbidden places are taken out after the softmax. They have had their share by then, so that the weights of the rest do not sum
    to one and the context is too short.
    """
    weights = torch.softmax(scores, -1)
    place = _place(mask)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("NaN in an empty row", read="attend")
def attend_empty_nan(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A query that may attend to nothing gets NaN in weights and context. Both must be zeros; masked_softmax sees to it."""
    place = _place(mask)
    weights = torch.softmax(scores if place is None else scores.masked_fill(~place, -math.inf), -1)
    return weights, weights @ values


@misconception("one example after another", read="attend")
def attend_loop(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from example to example. A product of three-dimensional tensors takes all of
    them at once.
    """
    weights = _softmax(scores, _place(mask))
    return weights, torch.stack([weights[b] @ values[b] for b in range(len(values))])


ATTEND = Exercise(
    reference=alignment.attend,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, blend, padded_blend),
        look.part(
            1,
            blend,
            blend_square,
            output="output[0]",
            name="weights",
            title="The weights of each query are those of its scores.",
        ),
        look.part(
            1.5,
            blend,
            blend_square,
            output="output[1]",
            name="context",
            title="The context of each query is the sum of the values, each times its weight.",
        ),
        look.values(
            1,
            padded_blend,
            as_many_queries,
            name="padding",
            title="A mask (B, S) holds for all queries of its example.",
        ),
        look.empty_row(
            0.5, masked_blend, title="A mask (B, T, S) holds for each query, and who may attend to nothing gets zeros."
        ),
        look.gradients(0.5, padded_blend, wrt=("scores", "values")),
        look.batch_independence(0.5, padded_blend, batched=("scores", "values", "mask")),
        look.vectorised(0.5, more_blend, axis="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
    misconceptions=(
        attend_over_queries,
        context_over_queries,
        context_first,
        scores_blend,
        averaged_again,
        attend_mask_ignored,
        attend_mask_inverted,
        examples_for_queries,
        values_masked,
        attend_empty_nan,
        attend_loop,
    ),
)


def ties(draw: Draw) -> Case:
    """Scores that are small whole numbers, so that many are equal."""
    b, t, s, d = draw.sizes(4, low=3)
    return Case({"scores": draw.integers(0, 2, b, t, s).float(), "values": draw.normal(b, s, d)})


def below_zero(draw: Draw) -> Case:
    """Scores that are all negative, with a mask (B, S)."""
    case = padded_blend(draw)
    return case.with_arguments(scores=-1 - case.arguments["scores"].abs())


def _taken(scores: Tensor, place: Tensor | None, dim: int = -1) -> Tensor:
    """One 1 for each query, right but for the axis, if another is asked for."""
    open_ = torch.ones_like(scores, dtype=torch.bool) if place is None else place.expand(scores.shape)
    best = scores.masked_fill(~open_, -math.inf).argmax(dim, keepdim=True)
    return torch.zeros_like(scores).scatter(dim, best, 1.0) * open_


@misconception("soft", read="hard-attention")
def soft(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weights are those of a softmax. Hard attention takes a single value whole, and none of the others."""
    weights = _softmax(scores, _place(mask))
    return weights, weights @ values


@misconception("the last of equals", read="hard-attention")
def last_of_equals(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Among equal scores the last is taken. The first one is asked for."""
    place = _place(mask)
    weights = _taken(scores.flip(-1), None if place is None else place.flip(-1)).flip(-1)
    return weights, weights @ values


@misconception("equals share", read="hard-attention")
def equals_share(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Every place with the highest score gets a 1, so that the values of equals are added up. One place is taken: the first."""
    place = _place(mask)
    lowest = torch.finfo(scores.dtype).min
    masked = scores if place is None else scores.masked_fill(~place, lowest)
    weights = (masked == masked.amax(-1, keepdim=True)).to(scores.dtype)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("the best query of a place", read="hard-attention")
def hard_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The highest score is sought among the queries, so every place takes a query. Every query takes a place: the last axis."""
    weights = _taken(scores, _place(mask), dim=1)
    return weights, weights @ values


@misconception("mask ignored", read="hard-attention")
def hard_mask_ignored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is not used, and padding can be taken."""
    weights = _taken(scores, None)
    return weights, weights @ values


@misconception("mask inverted", read="hard-attention")
def hard_mask_inverted(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is read the wrong way round: only padding is taken. True means that a place is real."""
    weights = _taken(scores, _place(None if mask is None else ~mask))
    return weights, weights @ values


@misconception("mask after the choice", read="hard-attention")
def hard_mask_after(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The highest score is sought among all places, and a choice that is forbidden is struck out afterwards. Then some queries take
    nothing, though there is something that they may take.
    """
    place = _place(mask)
    weights = _taken(scores, None)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("forbidden scores set to zero", read="hard-attention")
def hard_zeroed(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Forbidden scores are set to zero before the highest is sought. Where all permitted scores are negative, zero is the highest."""
    place = _place(mask)
    weights = _taken(scores if place is None else scores * place, None)
    if place is not None:
        weights = weights * place.any(-1, keepdim=True)
    return weights, weights @ values


@misconception("empty row takes the first place", read="hard-attention")
def hard_empty(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A query that may attend to nothing takes the first place: among scores that are all minus infinity, argmax still names one. It
    must get zeros.
    """
    place = _place(mask)
    weights = _taken(scores if place is None else scores.masked_fill(~place, -math.inf), None)
    return weights, weights @ values


@misconception("the score is left in", read="hard-attention")
def hard_scored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The place that is taken gets its score as a weight. A choice is a 1, however high its score."""
    weights = _taken(scores, _place(mask)) * scores
    return weights, weights @ values


@misconception("places in place of weights", read="hard-attention")
def hard_places(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The number of the place is returned. Asked for are weights as in soft attention, (B, T, S): a 1 at the place, 0 elsewhere."""
    weights = _taken(scores, _place(mask))
    return weights.argmax(-1), weights @ values


@misconception("weights of another dtype", read="hard-attention")
def hard_integers(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weights are whole numbers, as one_hot makes them. Weights have the dtype of the scores, whichever kind of attention made
    them.
    """
    weights = _taken(scores, _place(mask))
    return weights.long(), weights @ values


@misconception("one query after another", read="hard-attention")
def hard_loop(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from query to query. argmax takes an axis: all queries choose at once."""
    place = _place(mask)
    everywhere = None if place is None else place.expand(scores.shape)
    rows = [_taken(scores[:, t], None if everywhere is None else everywhere[:, t]) for t in range(scores.shape[1])]
    weights = torch.stack(rows, 1)
    return weights, weights @ values


HARD_ATTEND = Exercise(
    reference=alignment.hard_attend,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, blend, padded_blend),
        look.values(1.5, blend, blend_square, title="Each query takes the value of its highest score, whole."),
        look.values(0.5, ties, name="ties", title="Among equal scores the first place is taken."),
        look.values(
            1,
            below_zero,
            as_many_queries,
            name="padding",
            title="A mask (B, S) holds for all queries of its example, also where all scores are negative.",
        ),
        look.values(
            0.5, masked_blend, name="empty row", title="A query that may attend to nothing has weights and context 0."
        ),
        look.gradients(
            0.5,
            padded_blend,
            wrt=("scores", "values"),
            title="Gradients reach the values that were taken, and only them.",
        ),
        look.double_precision(0.5, padded_blend),
        look.device(0.5, padded_blend),
        look.vectorised(0.5, more_blend, axis="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
    misconceptions=(
        soft,
        last_of_equals,
        equals_share,
        hard_over_queries,
        hard_mask_ignored,
        hard_mask_inverted,
        hard_mask_after,
        hard_zeroed,
        hard_empty,
        hard_scored,
        hard_places,
        hard_integers,
        hard_loop,
    ),
)


# -------------------------------------------------------------------------------------------------------------- Model 1

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def corpus(draw: Draw) -> Case:
    """A few short pairs, in which words come again, some of them within a sentence; one source word never occurs."""
    words = int(draw.integers(4, 6))
    pairs = [
        (draw.integers(1, words, 2 + i % 2).tolist(), draw.integers(1, words + 1, 3 - i % 2).tolist()) for i in range(4)
    ]
    pairs.append(([1, 1, 2], [2, 3, 3]))
    sizes = {"source_vocabulary": words + 1, "target_vocabulary": words + 2}
    return Case({"pairs": pairs, **sizes, "iterations": 3})


def one_iteration(draw: Draw) -> Case:
    """A single iteration from the uniform table."""
    return corpus(draw).with_arguments(iterations=1)


def no_iteration(draw: Draw) -> Case:
    """No iteration at all."""
    return corpus(draw).with_arguments(iterations=0)


def many_iterations(draw: Draw) -> Case:
    """So many iterations that the table has nearly settled."""
    return corpus(draw).with_arguments(iterations=12)


def null_among_words(draw: Draw) -> Case:
    """A source sentence in which 0 stands, which is NULL's number."""
    case = corpus(draw)
    return case.with_arguments(pairs=[([0, 1], [1]), *case.arguments["pairs"]])


class _Em:
    """EM in steps; each mistake below changes one of them."""

    def __init__(self, pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> None:
        self.sizes = (source_vocabulary, target_vocabulary)
        self.pairs = [(self.words(source), list(target)) for source, target in pairs]
        self.check(pairs)
        table = self.start()
        for _ in range(iterations):
            table = self.iterate(table)
        self.table = table

    def check(self, pairs: Pairs) -> None:
        for side, size in enumerate(self.sizes):
            if any(not 1 <= token < size for pair in pairs for token in pair[side]):
                raise ValueError("a token is not within its vocabulary")

    def words(self, source: Sequence[int]) -> list[int]:
        return [0, *source]

    def start(self) -> Tensor:
        return torch.full(self.sizes, 1 / self.sizes[1], dtype=torch.float64)

    def empty(self, table: Tensor) -> Tensor:
        return torch.zeros_like(table)

    def share(self, likely: Tensor) -> Tensor:
        return likely / likely.sum(0)

    def count(self, counts: Tensor, source: list[int], target: list[int], shares: Tensor) -> None:
        counts.index_put_((torch.tensor(source)[:, None], torch.tensor(target)), shares, accumulate=True)

    def divide(self, counts: Tensor, table: Tensor) -> Tensor:
        totals = counts.sum(1, keepdim=True)
        return torch.where(totals > 0, counts / totals, table)

    def iterate(self, table: Tensor) -> Tensor:
        counts = self.empty(table)
        for source, target in self.pairs:
            self.count(counts, source, target, self.share(table[torch.tensor(source)[:, None], torch.tensor(target)]))
        return self.divide(counts, table)


@misconception("no NULL word", read="ibm-model-1")
def no_null(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """No source sentence has a NULL word. Then every target word must come from a real one, also those to which nothing in the source
    corresponds.
    """

    class Em(_Em):
        def words(self, source: Sequence[int]) -> list[int]:
            return list(source)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("divided on the wrong side", read="ibm-model-1")
def wrong_side(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The counts are divided by their sums for each target word, so that columns sum to one. The table says what a source word makes:
    its row sums to one.
    """

    class Em(_Em):
        def divide(self, counts: Tensor, table: Tensor) -> Tensor:
            totals = counts.sum(0, keepdim=True)
            return torch.where(totals > 0, counts / totals, table)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("counts not begun afresh", read="ibm-model-1")
def counts_kept(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The counts are carried on from one iteration to the next. What was counted with an older, worse table must not count again."""

    class Em(_Em):
        kept: Tensor | None = None

        def empty(self, table: Tensor) -> Tensor:
            self.kept = torch.zeros_like(table) if self.kept is None else self.kept
            return self.kept

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("shared out the wrong way", read="ibm-model-1")
def shared_wrong_way(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Each source word is shared out among the target words of the pair. It is a target word that was made by one source word: its
    shares, over the source words, sum to one.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return likely / likely.sum(1, keepdim=True)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("not shared at all", read="ibm-model-1")
def not_shared(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Probabilities of the table are counted as they are. First they must be divided by their sum over the source words, or a target
    word counts for more or less than one.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return likely

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("the likeliest takes all", read="ibm-model-1")
def likeliest_takes_all(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A target word is given whole to its likeliest source word. EM shares it out in proportion; a choice made from a uniform table is
    made blindly, and never taken back.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return torch.zeros_like(likely).scatter(0, likely.argmax(0, keepdim=True), 1.0)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("repeated words counted once", read="ibm-model-1")
def counted_once(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A word that occurs twice in a sentence is counted once: counts[rows, columns] += … keeps only one of the numbers for one place.
    Add them one by one, or with accumulate=True.
    """

    class Em(_Em):
        def count(self, counts: Tensor, source: list[int], target: list[int], shares: Tensor) -> None:
            last = {(s, t): shares[i, j] for i, s in enumerate(source) for j, t in enumerate(target)}
            for (s, t), share in last.items():
                counts[s, t] += share

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("one iteration too many", read="ibm-model-1")
def one_too_many(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """There is one iteration more than asked for. After 0 iterations the table is still the uniform one."""
    return _Em(pairs, source_vocabulary, target_vocabulary, iterations + 1).table


@misconception("a word that never occurs", read="ibm-model-1")
def never_occurs(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The row of a source word that occurs in no pair is divided by a sum of zero, and is NaN. Nothing was learned about it: it stays
    uniform.
    """

    class Em(_Em):
        def divide(self, counts: Tensor, table: Tensor) -> Tensor:
            return counts / counts.sum(1, keepdim=True)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("the other direction", read="ibm-model-1")
def other_direction(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Source and target have changed places: the table says which target word makes a source word. Here it is the source that makes
    the target, word by word.
    """
    _Em(pairs, source_vocabulary, target_vocabulary, 0)
    turned = [(target, source) for source, target in pairs]
    return _Em(turned, target_vocabulary, source_vocabulary, iterations).table.T


@misconception("the table changes within an iteration", read="ibm-model-1")
def changes_within(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The table is renewed after every pair. In an iteration, all pairs are shared out by the same table; it is renewed when all of
    them are counted.
    """

    class Em(_Em):
        def iterate(self, table: Tensor) -> Tensor:
            counts = self.empty(table)
            for source, target in self.pairs:
                likely = table[torch.tensor(source)[:, None], torch.tensor(target)]
                self.count(counts, source, target, self.share(likely))
                table = self.divide(counts, table)
            return table

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("any number accepted", read="ibm-model-1")
def any_number_accepted(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A 0 in a sentence is accepted. That is NULL's number, and here it would stand twice in one sentence: a mistake of the caller's,
    such as padding that was left in.
    """

    class Em(_Em):
        def check(self, pairs: Pairs) -> None:
            pass

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("single precision", read="ibm-model-1")
def single_precision(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The table has single precision, PyTorch's default. Many small shares are added up over many iterations: float64 is asked for."""
    return _Em(pairs, source_vocabulary, target_vocabulary, iterations).table.float()


IBM_MODEL_1 = Exercise(
    reference=alignment.ibm_model_1,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(1, corpus, title="The table has a row for every source token, in float64."),
        look.values(
            0.5, no_iteration, name="start", title="Before the first iteration the table is uniform.", easy=True
        ),
        look.values(2, one_iteration, name="one iteration", title="One iteration shares, adds up and divides rightly."),
        look.values(2, corpus, many_iterations, name="more iterations", title="Every iteration goes on from the last."),
        look.refuses(0.5, corpus, null_among_words, title="A token outside its vocabulary, or 0, is a ValueError."),
    ),
    misconceptions=(
        no_null,
        wrong_side,
        counts_kept,
        shared_wrong_way,
        not_shared,
        likeliest_takes_all,
        counted_once,
        one_too_many,
        never_occurs,
        other_direction,
        changes_within,
        any_number_accepted,
        single_precision,
    ),
)


def table(draw: Draw) -> Case:
    """A table of random probabilities, and a pair of sentences."""
    s, t = (int(n) for n in draw.sizes(2, low=4))
    probabilities = torch.softmax(2 * draw.normal(9, 8, dtype=torch.float64), 1)
    source = (draw.permutation(8)[:s] + 1).tolist()
    return Case({"table": probabilities, "source": source, "target": draw.integers(1, 8, t).tolist()})


def null_is_likely(draw: Draw) -> Case:
    """A table in which NULL is the likeliest maker of the first word, and of no other; the last word occurs twice."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    target = case.arguments["target"]
    last = target[0] % 7 + 1
    target = [*target[:-2], last, last]
    probabilities[0, target[0]] = 0.9
    probabilities[0, [word for word in target if word != target[0]]] = 0.0
    return case.with_arguments(table=probabilities, target=target)


def equals(draw: Draw) -> Case:
    """A table in which all words, NULL among them, are equally probable; a source word occurs twice."""
    (t,) = draw.sizes(1, low=3)
    uniform = torch.full((6, 5), 0.2, dtype=torch.float64)
    return Case({"table": uniform, "source": [2, 1, 4, 1], "target": draw.integers(1, 5, t).tolist()})


def twice_the_same(draw: Draw) -> Case:
    """A source whose likeliest word occurs twice, and makes every target word."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    probabilities[5] = 0.95
    return case.with_arguments(table=probabilities, source=[3, 5, 1, 5])


Places = list[int | None]


def _best(probabilities: Tensor, source: Sequence[int], word: int) -> tuple[float, int]:
    found = [float(probabilities[made_by, word]) for made_by in source]
    best = max(found)
    return best, found.index(best)


@misconception("never NULL", read="ibm-model-1")
def never_null(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """NULL is never chosen. It stands in every source sentence, for words that nothing in the sentence corresponds to."""
    return [_best(table, source, word)[1] for word in target]


@misconception("NULL among equals", read="ibm-model-1")
def null_among_equals(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """NULL is chosen where it is only as probable as a word. A real word is preferred; NULL must be more probable than all of them."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [None if null >= best else place for (best, place), null in pairs]


@misconception("places counted from 1", read="ibm-model-1")
def from_one(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """Places are counted from 1, with 0 for NULL, as in the paper. Here they count from 0, as in code, and NULL is None."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [0 if null > best else place + 1 for (best, place), null in pairs]


@misconception("the last of equals", read="ibm-model-1")
def last_equal(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """Among source words that are equally probable the last is taken. The first one is asked for."""
    turned = list(reversed(source))
    pairs = [(_best(table, turned, word), float(table[0, word])) for word in target]
    return [None if null > best else len(source) - 1 - place for (best, place), null in pairs]


@misconception("a target for every source word", read="alignments-cross")
def other_way_round(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """There is one place for every source word, in the target. It is every target word that was made by one source word: as many
    places as there are target words.
    """
    return [_best(table.T, target, made_by)[1] for made_by in source]


@misconception("words in place of places", read="ibm-model-1")
def words_returned(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """What comes back are the source words themselves, by number. Asked for are their places in the sentence: a word may occur twice."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [None if null > best else source[place] for (best, place), null in pairs]


@misconception("each source word used once", read="alignments-cross")
def used_once(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """A source word is taken only once. It may make several target words, or none: each target word chooses for itself."""
    open_, places = list(range(len(source))), Places()
    for word in target:
        best = max((float(table[source[place], word]) for place in open_), default=-math.inf)
        if not open_ or float(table[0, word]) > best:
            places.append(None)
            continue
        taken = next(place for place in open_ if float(table[source[place], word]) == best)
        open_.remove(taken)
        places.append(taken)
    return places


BEST_ALIGNMENT = Exercise(
    reference=alignment.best_alignment,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.values(
            1.5,
            table,
            twice_the_same,
            title="Each target word gets the place of the source word that most probably made it.",
        ),
        look.values(1, null_is_likely, name="NULL", title="A word that NULL most probably made has no place."),
        look.values(0.5, equals, name="ties", title="Among equals the first word is taken, and NULL only if none is."),
    ),
    misconceptions=(
        never_null,
        null_among_equals,
        from_one,
        last_equal,
        other_way_round,
        words_returned,
        used_once,
    ),
)
