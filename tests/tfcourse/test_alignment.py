"""Chapter 02 against PyTorch's own networks and functions, and numbers that are worked out by hand."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfcourse.alignment import (
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
    scaled_dot_score,
)

from .drawing import randn

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
seeds = st.integers(0, 10**6)


def distinct(count: int) -> st.SearchStrategy[list[int]]:
    """Sizes that are pairwise distinct."""
    return st.lists(st.integers(1, 7), min_size=count, max_size=count, unique=True)


# ------------------------------------------------------------------------------------------------------------- scores


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


# -------------------------------------------------------------------------------------------------------------- Model 1


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


# -------------------------------------------------------------------------------------------- devices, dtypes, inputs


@pytest.mark.parametrize(
    "call",
    [
        lambda: dot_score(randn(2, 3, 4), randn(2, 5, 6)),
        lambda: scaled_dot_score(randn(2, 3, 4), randn(3, 5, 4)),
        lambda: content_score(randn(2, 4), randn(2, 5, 4)),
        lambda: attend(randn(2, 3, 4), randn(2, 5, 6)),
        lambda: attend(randn(2, 3, 4), randn(2, 4, 6), randn(3, 4) > 0),
        lambda: hard_attend(randn(2, 3, 4), randn(2, 4, 6), randn(2, 4)),
        lambda: best_alignment(randn(3, 4), [-1, 2], [1]),
        lambda: best_alignment(randn(3, 4), [0, 2], [1]),
        lambda: best_alignment(randn(3, 4), [1, 2], [-1, 4]),
        lambda: best_alignment(randn(4), [1], [1]),
    ],
)
def test_inputs_that_no_check_asks_about_are_refused_with_their_values(call):
    with pytest.raises(ValueError, match=r"\d|'"):
        call()
