"""Chapter 02 against loops written from the formulas, PyTorch's own networks, and an EM with dictionaries."""

import math
from collections import defaultdict
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfcourse.alignment import (
    SCORES,
    AttentionDecoder,
    AttentionSeq2Seq,
    BidirectionalEncoder,
    additive_score,
    attend,
    best_alignment,
    content_score,
    dot_score,
    general_score,
    hard_attend,
    ibm_model_1,
    location_score,
    masked_softmax,
    scaled_dot_score,
)

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
seeds = st.integers(0, 10**6)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def distinct(count: int) -> st.SearchStrategy[list[int]]:
    """Sizes that are pairwise distinct."""
    return st.lists(st.integers(1, 7), min_size=count, max_size=count, unique=True)


def pair_by_pair(score, queries: Tensor, keys: Tensor) -> Tensor:
    """The scores of every query with every key of its example, one number at a time."""
    rows = [
        [[score(q, k) for k in keys_of_one] for q in queries_of_one]
        for queries_of_one, keys_of_one in zip(queries, keys, strict=True)
    ]
    return torch.stack([torch.stack([torch.stack(row) for row in example]) for example in rows])


# ------------------------------------------------------------------------------------------------------------- scores


@precise
@pytest.mark.parametrize(
    ("function", "score"),
    [
        (dot_score, lambda q, k: sum(a * b for a, b in zip(q, k, strict=True))),
        (scaled_dot_score, lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)) / len(q) ** 0.5),
        (content_score, lambda q, k: F.cosine_similarity(q, k, dim=0)),
    ],
    ids=["dot", "scaled_dot", "content"],
)
@given(sizes=distinct(4), seed=seeds)
def test_scores_without_weights_and_their_gradients_equal_the_formula_pair_by_pair(
    dtype, function, score, sizes, seed, with_gradients, assert_near
):
    B, T, S, D = sizes
    inputs = randn(B, T, D, seed=seed, dtype=dtype), randn(B, S, D, seed=seed + 1, dtype=dtype)
    expected = with_gradients(lambda q, k: pair_by_pair(score, q, k), *(x.double() for x in inputs))
    actual = with_gradients(function, *inputs)
    assert actual[0].shape == (B, T, S)
    # Gradients of a cosine are divided by a length, which may be small: compared as parts of the largest.
    for x, y in zip(actual, expected, strict=True):
        scale = max(1.0, float(y.abs().max()))
        assert_near(x / scale, y / scale)


def test_the_cosine_is_that_of_pytorch_and_zero_for_a_zero_vector_also_in_its_gradients():
    queries, keys = randn(2, 3, 4).requires_grad_(), randn(2, 5, 4, seed=8).requires_grad_()
    expected = F.cosine_similarity(queries[:, :, None], keys[:, None], dim=-1)
    torch.testing.assert_close(content_score(queries, keys), expected)
    with torch.no_grad():
        queries[0, 1], keys[1, 2] = 0.0, 0.0
    scores = content_score(queries, keys)
    assert not scores[0, 1].any()
    assert not scores[1, :, 2].any()
    gradients = torch.autograd.grad(scores.sum(), (queries, keys))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][0, 1].any()


@precise
@given(sizes=distinct(6), seed=seeds)
def test_the_additive_score_and_its_gradients_equal_the_formula_pair_by_pair(
    dtype, sizes, seed, with_gradients, assert_near
):
    B, T, S, Dq, Dk, Da = sizes
    shapes = ((B, T, Dq), (B, S, Dk), (Dq, Da), (Dk, Da), (Da,))
    inputs = [randn(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]

    def formula(queries, keys, w_q, w_k, v):
        both = torch.cat([w_q, w_k])  # v · tanh([s; h] W), as Bahdanau's table has it
        return pair_by_pair(lambda q, k: v.dot(torch.tanh(torch.cat([q, k]) @ both)), queries, keys)

    expected = with_gradients(formula, *(x.double() for x in inputs))
    actual = with_gradients(additive_score, *inputs)
    # Gradients of the weights sum over up to 100 pairs: compared as parts of 100.
    assert_near(tuple(x / 100 for x in actual), tuple(x / 100 for x in expected))


@precise
@given(sizes=distinct(5), seed=seeds)
def test_the_general_score_and_its_gradients_equal_the_formula_pair_by_pair(
    dtype, sizes, seed, with_gradients, assert_near
):
    B, T, S, Dq, Dk = sizes
    shapes = ((B, T, Dq), (B, S, Dk), (Dq, Dk))
    inputs = [randn(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]
    bilinear = lambda queries, keys, w: F.bilinear(  # noqa: E731
        queries[:, :, None].expand(-1, -1, S, -1).contiguous(),
        keys[:, None].expand(-1, T, -1, -1).contiguous(),
        w[None],
    )[..., 0]
    expected = with_gradients(bilinear, *(x.double() for x in inputs))
    actual = with_gradients(general_score, *inputs)
    assert_near(tuple(x / 100 for x in actual), tuple(x / 100 for x in expected))


def test_the_general_score_with_the_identity_is_the_dot_score():
    queries, keys = randn(2, 3, 4), randn(2, 5, 4, seed=8)
    torch.testing.assert_close(general_score(queries, keys, torch.eye(4).double()), dot_score(queries, keys))


@given(sizes=distinct(4), spare=st.integers(0, 3), seed=seeds)
def test_the_location_score_of_a_place_is_the_query_times_its_column(sizes, spare, seed):
    B, T, S, D = sizes
    queries, w = randn(B, T, D, seed=seed), randn(D, S + spare, seed=seed + 1)
    scores = location_score(queries, w, S)
    assert scores.shape == (B, T, S)
    for j in range(S):
        torch.testing.assert_close(scores[:, :, j], (queries * w[:, j]).sum(-1))


# ------------------------------------------------------------------------------------------- weights, soft and hard


def softmax_row(row: list[float], allowed: list[bool]) -> list[float]:
    """The weights of one row, by plain numbers."""
    permitted = [score for score, may in zip(row, allowed, strict=True) if may]
    if not permitted:
        return [0.0] * len(row)
    top = max(permitted)
    grown = [math.exp(score - top) if may else 0.0 for score, may in zip(row, allowed, strict=True)]
    return [g / sum(grown) for g in grown]


@precise
@given(sizes=distinct(3), scale=st.sampled_from([1.0, 300.0]), seed=seeds)
def test_masked_weights_equal_a_softmax_of_the_permitted_numbers_alone(dtype, sizes, scale, seed, assert_near):
    scores = scale * randn(*sizes, seed=seed, dtype=dtype)
    mask = randn(*sizes, seed=seed + 1) > 0.5
    pairs = zip(scores.double().flatten(0, 1).tolist(), mask.flatten(0, 1).tolist(), strict=True)
    expected = torch.tensor([softmax_row(row, allowed) for row, allowed in pairs], dtype=torch.float64)
    assert_near(masked_softmax(scores, mask), expected.view(*sizes))
    everything = [softmax_row(row, [True] * sizes[2]) for row in scores.double().flatten(0, 1).tolist()]
    assert_near(masked_softmax(scores), torch.tensor(everything, dtype=torch.float64).view(*sizes))


def test_a_row_in_which_nothing_is_permitted_has_zero_weights_and_zero_gradients_whatever_its_scores():
    scores = randn(2, 3, 4)
    scores[0, 1] = torch.tensor([math.inf, -math.inf, 1e300, -1e300])
    scores.requires_grad_()
    mask = randn(2, 3, 4, seed=5) > -1
    mask[:, 1] = False
    weights = masked_softmax(scores, mask)
    (gradient,) = torch.autograd.grad((weights * randn(2, 3, 4, seed=6)).sum(), scores)
    assert not weights[:, 1].any()
    assert gradient.isfinite().all()
    assert not gradient[:, 1].any()
    assert gradient[:, 0].any(), "where something is permitted, something flows"


def test_a_permitted_score_of_minus_infinity_gets_no_weight_beside_a_finite_one():
    scores = torch.tensor([[-math.inf, 2.0, -1e300, 5.0]], dtype=torch.float64)
    for mask in (None, torch.tensor([True, True, True, False])):
        weights = masked_softmax(scores[:, :3] if mask is None else scores, mask)
        torch.testing.assert_close(weights[0, :3], torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))


def test_what_stands_at_a_forbidden_place_changes_no_weight():
    mask = torch.tensor([[True, True, False, True, False]])
    scores, other = randn(3, 5), randn(3, 5)
    other[:, [2, 4]] = 1e4
    torch.testing.assert_close(masked_softmax(scores, mask), masked_softmax(other, mask), rtol=0, atol=0)


@precise
@pytest.mark.parametrize("per_query", [False, True])
@given(sizes=distinct(4), seed=seeds)
def test_attention_and_its_gradients_equal_a_sum_over_the_values_one_by_one(
    dtype, per_query, sizes, seed, with_gradients, assert_near
):
    B, T, S, D = sizes
    scores, values = randn(B, T, S, seed=seed, dtype=dtype), randn(B, S, D, seed=seed + 1, dtype=dtype)
    mask = randn(*((B, T, S) if per_query else (B, S)), seed=seed + 2) > -0.4

    def one_by_one(scores, values):
        everywhere = mask if per_query else mask[:, None].expand(B, T, S)
        rows = []
        for b in range(B):
            for t in range(T):
                places = everywhere[b, t].nonzero()[:, 0]
                weights = torch.softmax(scores[b, t, places], 0)
                rows.append((weights[:, None] * values[b, places]).sum(0) + 0 * values.sum() + 0 * scores.sum())
        return torch.stack(rows).view(B, T, D)

    expected = with_gradients(one_by_one, scores.double(), values.double())
    assert_near(with_gradients(lambda s, v: attend(s, v, mask)[1], scores, values), expected)
    torch.testing.assert_close(attend(scores, values, mask)[0] @ values, attend(scores, values, mask)[1])


@given(sizes=distinct(4), seed=seeds)
def test_hard_attention_takes_the_first_of_the_highest_permitted_scores(sizes, seed):
    B, T, S, D = sizes
    scores = torch.randint(-2, 1, (B, T, S), generator=torch.Generator().manual_seed(seed)).double()
    values, mask = randn(B, S, D, seed=seed), randn(B, S, seed=seed + 1) > 0
    weights, context = hard_attend(scores, values, mask)
    for b in range(B):
        for t in range(T):
            places = [s for s in range(S) if mask[b, s]]
            best = max(places, key=lambda s: float(scores[b, t, s]), default=None)  # max takes the first of equals
            assert weights[b, t].nonzero()[:, 0].tolist() == ([] if best is None else [best])
            assert torch.equal(context[b, t], torch.zeros(D).double() if best is None else values[b, best])
    assert weights.dtype == scores.dtype


def test_hard_attention_passes_gradients_to_the_values_that_were_taken_and_none_to_the_scores():
    scores, values = randn(2, 3, 5).requires_grad_(), randn(2, 5, 4, seed=9).requires_grad_()
    weights, context = hard_attend(scores, values)
    by_scores, by_values = torch.autograd.grad(
        context.sum(), (scores, values), materialize_grads=True, allow_unused=True
    )
    assert not by_scores.any()
    torch.testing.assert_close(by_values, weights.sum(1)[..., None].expand_as(values))


def test_sharpened_soft_attention_becomes_hard_attention():
    scores, values = randn(2, 3, 5), randn(2, 5, 4, seed=9)
    for soft, hard in zip(attend(1e6 * scores, values), hard_attend(scores, values), strict=True):
        torch.testing.assert_close(soft, hard)


# ------------------------------------------------------------------------------------------------------------ encoder


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module in double precision with weights that are all different, biases too."""
    module.double()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=seed + number) / 2)
    return module


def prefix_mask(lengths: list[int], S: int) -> Tensor:
    """True at the first so many places."""
    return torch.arange(S) < torch.tensor(lengths)[:, None]


def packed_oracle(encoder: BidirectionalEncoder, source: Tensor, lengths: list[int]) -> Tensor:
    """PyTorch's own bidirectional GRU, on packed sequences, with the weights of the encoder."""
    one_way = encoder.forward_gru
    gru = nn.GRU(one_way.input_size, one_way.hidden_size, batch_first=True, bidirectional=True).double()
    for suffix, half in (("", encoder.forward_gru), ("_reverse", encoder.backward_gru)):
        for name, value in half.named_parameters():
            with torch.no_grad():
                getattr(gru, name + suffix).copy_(value)
    packed = pack_padded_sequence(
        encoder.embedding(source), torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    return pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=source.shape[1])[0]


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), spare=st.integers(0, 2), seed=seeds)
def test_annotations_equal_pytorchs_bidirectional_gru_on_packed_sequences(lengths, spare, seed):
    S = max(lengths) + spare
    encoder = randomised(BidirectionalEncoder(9, 3, 4), seed)
    source = torch.randint(0, 9, (len(lengths), S), generator=torch.Generator().manual_seed(seed))
    annotations = encoder(source, prefix_mask(lengths, S))
    expected = packed_oracle(encoder, source, lengths)
    torch.testing.assert_close(annotations, expected)
    weighting = randn(*annotations.shape, seed=seed)
    actual_gradients = torch.autograd.grad((annotations * weighting).sum(), list(encoder.parameters()))
    embedding_gradient = torch.autograd.grad((expected * weighting).sum(), encoder.embedding.weight)[0]
    torch.testing.assert_close(actual_gradients[0], embedding_gradient)
    assert all(gradient.isfinite().all() for gradient in actual_gradients)


def test_a_source_without_a_token_has_annotations_of_zeros_and_takes_nothing_from_the_others():
    encoder, source = randomised(BidirectionalEncoder(9, 3, 4)), torch.tensor([[3, 5, 8], [1, 2, 4]])
    annotations = encoder(source, prefix_mask([0, 2], 3))
    assert not annotations[0].any()
    torch.testing.assert_close(annotations[1:], encoder(source[1:], prefix_mask([2], 3)))


def test_without_a_mask_every_token_is_real():
    encoder, source = randomised(BidirectionalEncoder(9, 3, 4)), torch.tensor([[3, 0, 8, 0], [1, 2, 3, 4]])
    torch.testing.assert_close(encoder(source), encoder(source, torch.ones(2, 4, dtype=torch.bool)), rtol=0, atol=0)
    torch.testing.assert_close(encoder(source), packed_oracle(encoder, source, [4, 4]))


def test_the_forward_half_knows_what_stands_before_a_place_and_the_backward_half_what_stands_behind():
    encoder, source = randomised(BidirectionalEncoder(9, 3, 4)), torch.tensor([[1, 2, 3, 4, 5]])
    other = torch.tensor([[1, 2, 7, 4, 5]])
    moved = (encoder(source) - encoder(other)).abs()[0] > 1e-12  # (S, D)
    assert moved[:, :2].any(-1).tolist() == [False, False, True, True, True]
    assert moved[:, 2:].any(-1).tolist() == [True, True, True, False, False]


# -------------------------------------------------------------------------------------------------------- the decoder


def score_by_formula(decoder: AttentionDecoder, s: Tensor, h: Tensor, place: int) -> Tensor:
    """The decks' table, for one state and one annotation."""
    if decoder.score == "content":
        return s.dot(h) / (s.norm() * h.norm())
    if decoder.score == "additive":
        return decoder.v.dot(torch.tanh(torch.cat([s, h]) @ torch.cat([decoder.w_q, decoder.w_k])))
    if decoder.score == "location":
        return s.dot(decoder.w[:, place])
    if decoder.score == "general":
        return s @ decoder.w @ h
    return s.dot(h) if decoder.score == "dot" else s.dot(h) / math.sqrt(len(s))


def gru_step(cell: nn.GRUCell, x: Tensor, h: Tensor) -> Tensor:
    """One step of a gated unit, from its equations: reset r, update z, new n."""
    (ri, zi, ni), (rh, zh, nh) = (
        (weight @ v + bias).chunk(3)
        for weight, bias, v in ((cell.weight_ih, cell.bias_ih, x), (cell.weight_hh, cell.bias_hh, h))
    )
    r, z = torch.sigmoid(ri + rh), torch.sigmoid(zi + zh)
    return (1 - z) * torch.tanh(ni + r * nh) + z * h


def loop_decoder(
    decoder: AttentionDecoder, target: list[int], annotations: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """One example without padding, equation by equation."""
    D = annotations.shape[1]
    s = torch.tanh(decoder.bridge.weight @ annotations[0, D // 2 :] + decoder.bridge.bias)
    logits, alignment = [], []
    for token in target:
        y = decoder.embedding.weight[token]
        weights = torch.softmax(torch.stack([score_by_formula(decoder, s, h, j) for j, h in enumerate(annotations)]), 0)
        c = sum(weight * h for weight, h in zip(weights, annotations, strict=True))
        s = gru_step(decoder.cell, torch.cat([y, c]), s)
        logits.append(decoder.output.weight @ torch.cat([s, c, y]) + decoder.output.bias)
        alignment.append(weights)
    return logits, alignment


@pytest.mark.parametrize("score", SCORES)
def test_the_decoder_equals_its_equations_one_example_at_a_time_for_each_of_the_six_scores(score):
    B, T, S = 3, 4, 5
    decoder = randomised(AttentionDecoder(7, 3, 6, score=score, max_source=8))
    target = torch.randint(0, 7, (B, T), generator=torch.Generator().manual_seed(1))
    annotations, lengths = randn(B, S, 6), [5, 1, 3]
    logits, weights = decoder(target, annotations, prefix_mask(lengths, S))
    assert (logits.shape, weights.shape) == ((B, T, 7), (B, T, S))
    for b, length in enumerate(lengths):
        expected_logits, expected_weights = loop_decoder(decoder, target[b].tolist(), annotations[b, :length])
        torch.testing.assert_close(logits[b], torch.stack(expected_logits))
        torch.testing.assert_close(weights[b, :, :length], torch.stack(expected_weights))
        assert not weights[b, :, length:].any(), "padding gets no weight"


def test_a_whole_target_is_its_steps_one_after_another():
    decoder, annotations = randomised(AttentionDecoder(7, 3, 6)), randn(2, 5, 6)
    target, mask = torch.tensor([[1, 4, 2], [1, 5, 6]]), prefix_mask([5, 2], 5)
    logits, weights = decoder(target, annotations, mask)
    state = decoder.initial_state(annotations)
    for t in range(3):
        step_logits, state, step_weights = decoder.step(target[:, t], state, annotations, mask)
        torch.testing.assert_close(logits[:, t], step_logits)
        torch.testing.assert_close(weights[:, t], step_weights)


def test_a_later_token_of_the_target_changes_no_earlier_logits_or_weights():
    decoder, annotations = randomised(AttentionDecoder(7, 3, 6)), randn(1, 5, 6)
    first, second = (decoder(torch.tensor([target]), annotations) for target in ([1, 4, 2, 3], [1, 4, 5, 3]))
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one[:, :2], other[:, :2], rtol=0, atol=0)
    assert (first[0][:, 2] - second[0][:, 2]).abs().min() > 1e-6
    torch.testing.assert_close(first[1][:, 2], second[1][:, 2], rtol=0, atol=0, msg="the state *before* asks")


@pytest.mark.parametrize(
    ("score", "own"),
    [
        ("additive", ["w_q", "w_k", "v"]),
        ("general", ["w"]),
        ("location", ["w"]),
        ("content", []),
        ("dot", []),
        ("scaled_dot", []),
    ],
)
def test_a_score_has_the_weights_that_it_needs_and_no_others(score, own):
    decoder = AttentionDecoder(7, 3, 6, score=score, max_source=9)
    layers = {"embedding", "bridge", "cell", "output"}
    assert [name for name, _ in decoder.named_parameters() if name.split(".")[0] not in layers] == own
    shapes = {"w_q": (6, 6), "w_k": (6, 6), "v": (6,), "w": (6, 9) if score == "location" else (6, 6)}
    for name in own:
        weight = getattr(decoder, name)
        assert tuple(weight.shape) == shapes[name]
        assert weight.abs().max() <= 6**-0.5


# ----------------------------------------------------------------------------------------------------- the translator


@pytest.mark.parametrize("score", SCORES)
def test_a_sentence_is_translated_alone_as_in_a_padded_batch(score):
    model = randomised(AttentionSeq2Seq(9, 7, 3, 4, score=score, max_source=6))
    source = torch.tensor([[3, 4, 5, 6, 7, 8], [5, 2, 3, 8, 8, 8], [6, 6, 6, 6, 6, 6]])
    target, lengths = torch.tensor([[1, 4, 2], [1, 5, 6], [1, 1, 3]]), [6, 3, 1]
    mask = prefix_mask(lengths, 6)
    logits, weights = model(source, target, mask), model.align(source, target, mask)
    for b, length in enumerate(lengths):
        alone, asked = source[b : b + 1, :length], target[b : b + 1]
        torch.testing.assert_close(logits[b : b + 1], model(alone, asked))
        torch.testing.assert_close(weights[b : b + 1, :, :length], model.align(alone, asked))
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 3).double())
    assert not weights.masked_select(~mask[:, None]).any()


def test_options_of_decoder_and_translator_are_given_by_name():
    for make in (lambda: AttentionDecoder(7, 3, 4, "dot"), lambda: AttentionSeq2Seq(9, 7, 3, 4, "dot")):
        with pytest.raises(TypeError, match="positional"):
            make()


def test_a_translator_that_learns_to_reverse_its_source_looks_from_its_end_to_its_beginning():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = AttentionSeq2Seq(10, 10, 16, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        source = torch.randint(4, 10, (32, 5), generator=generator)
        target = torch.cat([torch.ones(32, 1, dtype=torch.long), source.flip(1)], 1)
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    source = torch.randint(4, 10, (200, 5), generator=generator)
    target = torch.cat([torch.ones(200, 1, dtype=torch.long), source.flip(1)], 1)
    with torch.no_grad():
        logits, weights = model(source, target[:, :-1]), model.align(source, target[:, :-1])
    assert (logits.argmax(-1) == target[:, 1:]).double().mean() > 0.95
    assert weights.mean(0).argmax(-1).tolist() == [4, 3, 2, 1, 0], "nobody told it where to look"


# -------------------------------------------------------------------------------------------------------------- Model 1


def dictionary_em(pairs, target_vocab_size: int, iterations: int) -> dict[tuple[int, int], float]:
    """EM as in the textbooks, with dictionaries and one word at a time."""
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1 / target_vocab_size)
    for _ in range(iterations):
        count: dict[tuple[int, int], float] = defaultdict(float)
        total: dict[int, float] = defaultdict(float)
        for source, target in pairs:
            with_null = [0, *source]
            for f in target:
                norm = sum(t[e, f] for e in with_null)
                for e in with_null:
                    count[e, f] += t[e, f] / norm
                    total[e] += t[e, f] / norm
        t = defaultdict(float, {(e, f): c / total[e] for (e, f), c in count.items()})
    return t


sentences = st.lists(st.integers(1, 5), min_size=1, max_size=5)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6)


@given(pairs=corpora, iterations=st.integers(0, 6))
def test_model_1_equals_an_em_with_dictionaries(pairs, iterations):
    table = ibm_model_1(pairs, 7, 8, iterations)
    expected = dictionary_em(pairs, 8, iterations)
    occurring = {0, *(e for source, _ in pairs for e in source)}
    assert table.dtype == torch.float64
    for e in range(7):
        for f in range(8):
            wanted = expected[e, f] if e in occurring else 1 / 8
            assert table[e, f].item() == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    torch.testing.assert_close(table.sum(1), torch.ones(7).double())


@given(pairs=corpora)
def test_no_iteration_of_em_makes_the_pairs_less_likely(pairs):
    def log_likelihood(table: Tensor) -> float:
        return sum(
            math.log(sum(table[e, f].item() for e in (0, *source)) / (len(source) + 1))
            for source, target in pairs
            for f in target
        )

    course = [log_likelihood(ibm_model_1(pairs, 6, 6, n)) for n in range(5)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(course)), course


def test_the_lesson_s_two_pairs_by_hand():
    pairs = [([1], [1]), ([2, 1], [1, 2])]  # five: fünf; thirty five: fünf dreißig
    once, twice = (ibm_model_1(pairs, 3, 3, iterations) for iterations in (1, 2))
    torch.testing.assert_close(once[1], torch.tensor([0, 5 / 7, 2 / 7]).double())
    torch.testing.assert_close(once[2], torch.tensor([0, 1 / 2, 1 / 2]).double())
    torch.testing.assert_close(once[0], once[1], msg="NULL stands beside five in every pair")
    assert twice[2, 2].item() == pytest.approx(9 / 14)


def test_the_best_alignment_crosses_where_the_order_of_words_does():
    pairs = [([1], [1]), ([2, 1], [1, 2]), ([2], [2]), ([1, 2], [2, 1])]
    table = ibm_model_1(pairs, 3, 3, 20)
    assert best_alignment(table, [2, 1], [1, 2]) == [1, 0]
    assert best_alignment(table, [1, 2], [1, 2]) == [0, 1]


@given(source=sentences, target=sentences, seed=seeds)
def test_each_target_word_is_made_by_the_first_of_the_most_probable_words_and_by_null_only_if_it_is_more_so(
    source, target, seed
):
    # Probabilities of which many are equal.
    table = torch.randint(0, 3, (6, 6), generator=torch.Generator().manual_seed(seed)).double() / 2
    for word, place in zip(target, best_alignment(table, source, target), strict=True):
        best = max(table[e, word].item() for e in source)
        if place is None:
            assert table[0, word].item() > best
        else:
            assert table[source[place], word].item() == best >= table[0, word].item()
            assert all(table[e, word].item() < best for e in source[:place])


def test_a_target_without_words_has_no_places_and_a_source_without_words_leaves_null():
    table = torch.full((3, 3), 1 / 3).double()
    assert best_alignment(table, [1, 2], []) == []
    assert best_alignment(table, [], [1, 2]) == [None, None]


# ------------------------------------------------------------------------------------ what the exercises promise to show

QUERY = torch.tensor([[[3.0, 4.0]]])
KEYS = torch.tensor([[[3.0, 4.0], [8.0, 6.0], [0.0, 0.0]]])
PLACES = torch.tensor([[1.0, 0.0, 0.0, 9.0], [0.0, 0.0, 1.0, 9.0]])
SWAP = torch.tensor([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("scores", "promised"),
    [
        (content_score(QUERY, KEYS), [1.0, 0.96, 0.0]),
        (additive_score(QUERY, KEYS, torch.eye(2), -torch.eye(2), -torch.ones(2)), [0.0, 1.964, -1.994]),
        (location_score(QUERY, PLACES, 3), [3.0, 0.0, 4.0]),
        (general_score(QUERY, KEYS, SWAP), [24.0, 50.0, 0.0]),
        (dot_score(QUERY, KEYS), [25.0, 48.0, 0.0]),
        (scaled_dot_score(QUERY, KEYS), [17.678, 33.941, 0.0]),
    ],
    ids=["content", "additive", "location", "general", "dot", "scaled_dot"],
)
def test_the_scores_that_the_exercises_show_to_try_are_right_to_their_last_digit(scores, promised):
    torch.testing.assert_close(scores, torch.tensor([[promised]]), rtol=0, atol=5e-4)


def test_the_weights_and_contexts_that_the_exercises_show_to_try_are_right():
    scores = torch.tensor([[[0.0, math.log(8), 0.0]]])
    values = torch.tensor([[[10.0, 0.0], [0.0, 10.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, False, True]])
    for function, permitted, weights, context in (
        (attend, None, [0.1, 0.8, 0.1], [1.0, 8.0]),
        (attend, mask, [0.5, 0.0, 0.5], [5.0, 0.0]),
        (hard_attend, None, [0.0, 1.0, 0.0], [0.0, 10.0]),
        (hard_attend, mask, [1.0, 0.0, 0.0], [10.0, 0.0]),
    ):
        expected = torch.tensor([[weights]]), torch.tensor([[context]])
        for mine, promised in zip(function(scores, values, permitted), expected, strict=True):
            torch.testing.assert_close(mine, promised)
    padded = torch.tensor([0.0, math.log(8), 0.0, 0.0, 0.0])
    real = torch.tensor([True, True, True, False, False])
    torch.testing.assert_close(masked_softmax(padded, real), torch.tensor([0.1, 0.8, 0.1, 0.0, 0.0]))
    assert not masked_softmax(padded, torch.zeros(5, dtype=torch.bool)).any()


# -------------------------------------------------------------------------------------------- devices, dtypes, inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dot_score(randn(2, 3, 4), randn(2, 5, 6)), r"same width.*\(2, 3, 4\).*\(2, 5, 6\)"),
        (lambda: scaled_dot_score(randn(2, 3, 4), randn(3, 5, 4)), r"one batch.*\(2, 3, 4\).*\(3, 5, 4\)"),
        (lambda: content_score(randn(2, 4), randn(2, 5, 4)), r"\(B, T, D\).*\(2, 4\)"),
        (
            lambda: additive_score(randn(2, 3, 4), randn(2, 5, 6), randn(4, 7), randn(4, 7), randn(7)),
            r"do not fit: \(2, 3, 4\), \(2, 5, 6\), \(4, 7\), \(4, 7\), \(7,\)",
        ),
        (
            lambda: additive_score(randn(2, 3, 4), randn(2, 5, 6), randn(4, 7), randn(6, 7), randn(8)),
            r"do not fit.*\(8,\)",
        ),
        (lambda: general_score(randn(2, 3, 4), randn(2, 5, 6), randn(6, 4)), r"do not fit.*\(6, 4\)"),
        (lambda: location_score(randn(2, 3, 4), randn(4, 6), 7), r"\(4, 6\) has scores for 6 places, the source has 7"),
        (lambda: location_score(randn(2, 3, 4), randn(6, 4), 3), r"do not fit: \(2, 3, 4\), \(6, 4\)"),
        (lambda: location_score(randn(2, 3, 4), randn(4, 6), -1), "the source has -1"),
        (
            lambda: additive_score(randn(2, 3, 4), randn(2, 5, 6), randn(4, 7), randn(6, 7), torch.tensor(1.0)),
            r"do not fit.*\(6, 7\), \(\)",
        ),
        (lambda: masked_softmax(torch.ones(3, 4, dtype=torch.int64)), "floating-point numbers, got torch.int64"),
        (lambda: masked_softmax(randn(3, 4), randn(3, 4)), r"boolean.*torch.float64 \(3, 4\)"),
        (lambda: masked_softmax(randn(3, 4), randn(4, 3) > 0), r"\(4, 3\) for scores \(3, 4\)"),
        (lambda: masked_softmax(randn(4), randn(3, 4) > 0), r"\(3, 4\) for scores \(4,\)"),
        (lambda: attend(randn(2, 3, 4), randn(2, 5, 6)), r"got \(2, 3, 4\) and \(2, 5, 6\)"),
        (lambda: attend(randn(2, 3, 4), randn(2, 4, 6), randn(3, 4) > 0), r"\(3, 4\) for scores \(2, 3, 4\)"),
        (lambda: hard_attend(randn(2, 3, 4), randn(2, 4, 6), randn(2, 4)), r"boolean.*torch.float64 \(2, 4\)"),
        (lambda: BidirectionalEncoder(9, 3, 5), "d_model=5"),
        (
            lambda: BidirectionalEncoder(9, 3, 4)(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 5)),
            r"boolean mask \(2, 5\), got torch.float32",
        ),
        (
            lambda: BidirectionalEncoder(9, 3, 4)(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 4).bool()),
            r"boolean mask \(2, 5\), got torch.bool \(2, 4\)",
        ),
        (
            lambda: BidirectionalEncoder(9, 3, 4)(torch.ones(2, 4).long(), torch.arange(4) >= torch.tensor([[0], [2]])),
            r"behind the tokens, got mask\[1\] = \[False, False, True, True\]",
        ),
        (lambda: AttentionDecoder(7, 3, 5), "even d_model and a max_source of at least 1, got 5 and 64"),
        (lambda: AttentionDecoder(7, 3, 4, score="location", max_source=0), "got 4 and 0"),
        (lambda: AttentionDecoder(7, 3, 4, score="bilinear"), "content, additive, location, .* got 'bilinear'"),
        (
            lambda: AttentionSeq2Seq(9, 7, 3, 4, score="location", max_source=3)(
                torch.ones(1, 4).long(), torch.ones(1, 2).long()
            ),
            "3 places, the source has 4",
        ),
        (lambda: ibm_model_1([([1, 0], [1])], 3, 3, 1), r"source must be in 1 … 2, got \[0\]"),
        (lambda: ibm_model_1([([1], [1, 3])], 3, 3, 1), r"target must be in 1 … 2, got \[3\]"),
        (lambda: ibm_model_1([([1], [1])], 3, 3, -4), "0 iterations or more, got -4"),
        (lambda: best_alignment(randn(3, 4), [-1, 2], [1]), r"source must be in 1 … 2, got \[-1\]"),
        (lambda: best_alignment(randn(3, 4), [0, 2], [1]), r"source must be in 1 … 2, got \[0\]"),
        (lambda: best_alignment(randn(3, 4), [1, 2], [-1, 4]), r"target must be in 1 … 3, got \[-1, 4\]"),
        (lambda: best_alignment(randn(4), [1], [1]), r"two dimensions, got \(4,\)"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
