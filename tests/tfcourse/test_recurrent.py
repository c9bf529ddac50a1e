"""Chapter 01 against PyTorch's recurrent layers with copied weights."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfcourse.recurrent import (
    LstmWeights,
    NeuralProbabilisticLM,
    bidirectional_forward,
    clip_gradient_norm,
    gradient_norm_through_time,
    gru_cell,
    lstm_cell,
    lstm_forward,
    rnn_cell,
    rnn_forward,
    sample_autoregressive,
    sequence_negative_log_likelihood,
    stacked_forward,
)

from .drawing import randn

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
four_sizes = st.lists(st.integers(1, 6), min_size=4, max_size=4, unique=True)
seeds = st.integers(0, 10**6)


def weights_for(gates: int, E: int, D: int, *, seed: int = 3, dtype: torch.dtype = torch.float64) -> LstmWeights:
    """Random weights and biases, none of them zero."""
    shapes = ((gates * D, E), (gates * D, D), (gates * D,), (gates * D,))
    return LstmWeights(*(randn(*shape, seed=seed + i, dtype=dtype) / 2 for i, shape in enumerate(shapes)))


def copied_from(layer: nn.RNNBase, k: int = 0, suffix: str = "") -> LstmWeights:
    """The weights of one layer and direction of PyTorch's."""
    return LstmWeights(*(getattr(layer, f"{name}_l{k}{suffix}").detach() for name in NAMES))


def copied_to(layer: nn.RNNBase, *sets: tuple[Tensor, ...]) -> nn.RNNBase:
    """PyTorch's layer with these weights, layer by layer and, within one, direction by direction."""
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), itertools.chain.from_iterable(sets), strict=True):
            parameter.copy_(value)
    return layer


def lengths_mask(lengths: list[int], T: int) -> Tensor:
    """Padding behind so many tokens."""
    return torch.arange(T) < torch.tensor(lengths)[:, None]


# --------------------------------------------------------------------------------------------------- the fixed window


def test_the_window_model_has_as_many_parameters_as_the_paper_counts():
    V, N, E, D = 100, 4, 6, 10
    model = NeuralProbabilisticLM(V, N, E, D)
    # Bengio et al. 2003, section 2, with a context of n - 1 = N words: |V| (1 + nm + h) + h (1 + (n - 1) m).
    expected = V * (1 + (N + 1) * E + D) + D * (1 + N * E)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


# ------------------------------------------------------------------------------------------------------------ one step


@precise
@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=3, unique=True), seed=seeds)
def test_the_cells_and_their_gradients_equal_pytorch_s_with_the_same_weights(
    dtype, sizes, seed, with_gradients, assert_near
):
    B, E, D = sizes
    x, h, c = (randn(B, n, seed=seed + i, dtype=dtype) for i, n in enumerate((E, D, D)))
    for cell, kind, gates in ((rnn_cell, nn.RNNCell, 1), (gru_cell, nn.GRUCell, 3), (lstm_cell, nn.LSTMCell, 4)):
        states = (h, c) if gates == 4 else (h,)
        weights = weights_for(gates, E, D, seed=seed, dtype=dtype)
        theirs = kind(E, D).double()

        def judge(x, *rest, theirs=theirs, states=states):
            state, values = rest[: len(states)], rest[len(states) :]
            result = torch.func.functional_call(
                theirs, dict(zip(NAMES, values, strict=True)), (x, state if len(state) == 2 else state[0])
            )
            return torch.cat(result, -1) if isinstance(result, tuple) else result

        def ours(*inputs, cell=cell):
            result = cell(*inputs)
            return torch.cat(result, -1) if isinstance(result, tuple) else result

        inputs = (x, *states, *weights)
        actual = with_gradients(ours, *inputs)
        expected = with_gradients(judge, *(y.double() for y in inputs))
        # Gradients of the weights sum over the batch: compared as parts of 10.
        assert_near(tuple(y / 10 for y in actual), tuple(y / 10 for y in expected), kind.__name__)


# ------------------------------------------------------------------------------------------------------------ the runs


@precise
@given(sizes=four_sizes, given_state=st.booleans(), seed=seeds)
def test_the_run_equals_pytorch_s_network_with_weights_copied_from_it(dtype, sizes, given_state, seed, assert_near):
    B, T, E, D = sizes
    torch.manual_seed(seed)
    theirs = nn.RNN(E, D, batch_first=True).double()
    x, h_0 = randn(B, T, E, seed=seed), randn(B, D, seed=seed + 1) if given_state else None
    states, last = theirs(x, None if h_0 is None else h_0[None])
    weights = [w.to(dtype) for w in copied_from(theirs)]
    actual = rnn_forward(x.to(dtype), *weights, None if h_0 is None else h_0.to(dtype))
    assert_near(actual, (states.detach(), last[0].detach()))


@precise
@given(sizes=four_sizes, given_state=st.booleans(), seed=seeds)
def test_the_lstm_s_run_equals_pytorch_s_with_weights_copied_to_it(dtype, sizes, given_state, seed, assert_near):
    B, T, E, D = sizes
    weights = weights_for(4, E, D, seed=seed)
    theirs = copied_to(nn.LSTM(E, D, batch_first=True).double(), weights)
    x = randn(B, T, E, seed=seed)
    state = (randn(B, D, seed=seed + 1), randn(B, D, seed=seed + 2)) if given_state else None
    states, (h, c) = theirs(x, None if state is None else (state[0][None], state[1][None]))
    ours = lstm_forward(x.to(dtype), *(w.to(dtype) for w in weights), state and tuple(part.to(dtype) for part in state))
    assert_near(ours[0], states.detach())
    assert_near(ours[1], (h[0].detach(), c[0].detach()))


def packed(layer: nn.LSTM, x: Tensor, lengths: list[int]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """What PyTorch makes of sequences of different lengths."""
    states, ends = layer(pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0], ends


@given(data=st.data(), sizes=four_sizes, seed=seeds)
def test_padded_runs_equal_pytorch_s_packed_sequences_in_one_direction_in_both_and_in_layers(data, sizes, seed):
    B, T, E, D = sizes
    lengths = data.draw(st.lists(st.integers(1, T), min_size=B, max_size=B))
    x, mask = randn(B, T, E, seed=seed), lengths_mask(lengths, T)
    first, second = weights_for(4, E, D, seed=seed), weights_for(4, E, D, seed=seed + 9)
    above = weights_for(4, D, D, seed=seed + 5)
    with torch.no_grad():
        states, (h, c) = packed(copied_to(nn.LSTM(E, D, batch_first=True).double(), first), x, lengths)
        ours = lstm_forward(x, *first, mask=mask)
        torch.testing.assert_close(ours, (states, (h[0], c[0])))
        both = copied_to(nn.LSTM(E, D, batch_first=True, bidirectional=True).double(), first, second)
        torch.testing.assert_close(bidirectional_forward(x, first, second, mask), packed(both, x, lengths))
        layers = copied_to(nn.LSTM(E, D, 2, batch_first=True).double(), first, above)
        torch.testing.assert_close(stacked_forward(x, [first, above], mask), packed(layers, x, lengths))


# ----------------------------------------------------------------------------------------------------------- gradients


@precise
@given(sizes=four_sizes, strength=st.sampled_from([0.3, 1.0, 2.0]), given_state=st.booleans(), seed=seeds)
def test_norms_through_time_are_those_of_autograd_s_gradients_by_the_states_of_pytorch_s_cell(
    dtype, sizes, strength, given_state, seed, assert_near
):
    B, T, E, D = sizes
    weights = weights_for(1, E, D, seed=seed)
    weights = weights._replace(weight_hh=weights.weight_hh * strength)
    cell = copied_to(nn.RNNCell(E, D).double(), weights)
    x, grad_last = randn(B, T, E, seed=seed), randn(B, D, seed=seed + 1)
    h_0 = randn(B, D, seed=seed + 2) if given_state else None
    h, states = h_0 if given_state else torch.zeros(B, D, dtype=torch.float64), []
    for t in range(T):
        h = cell(x[:, t], h)
        states.append(h)
    gradients = torch.autograd.grad(h, states, grad_last)
    expected = torch.stack([gradient.norm(dim=-1) for gradient in gradients], dim=1)
    inputs = (y if y is None else y.to(dtype) for y in (x, *weights, grad_last, h_0))
    assert_near(gradient_norm_through_time(*inputs) / 10, expected / 10)


@given(
    shapes=st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), min_size=1, max_size=4),
    max_norm=st.floats(0.01, 20.0),
    seed=seeds,
)
def test_clipping_equals_pytorch_s_up_to_the_small_number_that_it_adds(shapes, max_norm, seed):
    gradients = [randn(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    expected = nn.utils.clip_grad_norm_(parameters, max_norm)
    clipped, norm = clip_gradient_norm(gradients, max_norm)
    torch.testing.assert_close(norm, expected)
    for mine, parameter in zip(clipped, parameters, strict=True):
        # PyTorch divides by norm + 1e-6.
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-4, atol=1e-6)


def test_where_even_the_sum_of_squares_overflows_clipping_gives_the_zeros_that_pytorch_gives():
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3e30, -4e30])
    (clipped,), norm = clip_gradient_norm([parameter.grad.clone()], 1.0)
    assert float(norm) == float(nn.utils.clip_grad_norm_([parameter], 1.0)) == math.inf
    assert clipped.tolist() == parameter.grad.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------------------------ language models


@precise
@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=3, unique=True), masked=st.booleans(), seed=seeds)
def test_likelihood_and_its_gradient_equal_pytorch_s_cross_entropy(
    dtype, sizes, masked, seed, with_gradients, assert_near
):
    B, T, V = sizes
    logits = 3 * randn(B, T, V, seed=seed, dtype=dtype)
    targets = torch.randint(0, V, (B, T), generator=torch.Generator().manual_seed(seed))
    mask = randn(B, T, seed=seed) > -0.5 if masked else None

    def cross_entropy(logits):
        ignored = targets if mask is None else targets.masked_fill(~mask, -100)
        return F.cross_entropy(logits.transpose(1, 2), ignored, reduction="none").sum(1)

    actual = with_gradients(lambda logits: sequence_negative_log_likelihood(logits, targets, mask), logits)
    assert_near(tuple(y / 10 for y in actual), tuple(y / 10 for y in with_gradients(cross_entropy, logits.double())))


# --------------------------------------------------------------------------------------------- devices, dtypes, inputs


def test_writing_keeps_no_graph_of_the_model():
    model, kept = NeuralProbabilisticLM(6, 3, 4, 5), []
    sample_autoregressive(lambda tokens: kept.append(model(tokens)) or kept[-1], torch.tensor([[1, 2, 3]]), 2)
    assert [logits.requires_grad for logits in kept] == [False, False]
    assert model(torch.tensor([[1, 2, 3]])).requires_grad, "only while writing"


X, PLAIN, MEMORY, GATED = randn(2, 4, 3), weights_for(1, 3, 5), weights_for(4, 3, 5), weights_for(3, 3, 5)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: lstm_forward(X, *MEMORY, (randn(2, 5), randn(5))), r"\(5,\)"),
        (lambda: rnn_forward(X[0], *PLAIN), r"\(4, 3\)"),
        (lambda: rnn_forward(X[:, :0], *PLAIN), r"\(2, 0, 3\)"),
        (lambda: lstm_forward(X, *MEMORY, mask=torch.ones(2, 3, dtype=torch.bool)), r"\(2, 3\)"),
        (lambda: lstm_forward(X, *MEMORY, mask=torch.ones(2, 4)), "torch.float32"),
        (lambda: bidirectional_forward(X[0], MEMORY, MEMORY), r"\(4, 3\)"),
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *MEMORY), r"\(20, 3\)"),
        (lambda: rnn_cell(X[:, 0], randn(1, 5), *PLAIN), r"\(2, 3\) and \(1, 5\)"),
        (lambda: rnn_cell(X[:, 0], torch.tensor(1.0), *PLAIN), r"\(\)"),
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *PLAIN[:2], randn(2, 5), randn(5)), r"\(2, 5\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(1, 5), *MEMORY), r"\(1, 5\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(3, 1, 5), *MEMORY), r"\(3, 1, 5\)"),
        # Checks ask for the error, not for the order of the shapes that it lists.
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *PLAIN[:3], randn(1)), r"\(5,\), \(1,\)\)$"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(2, 5), *MEMORY[:3], torch.tensor(1.0)), r"\(20,\), \(\)\)"),
        (lambda: gru_cell(X[:, 0], randn(2, 5), *GATED[:3], randn(2, 15)), r"\(2, 15\)\)"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values(call, value):
    with pytest.raises(ValueError, match=value):
        call()
