"""Chapter 01 against PyTorch's recurrent layers with copied weights, loops written from the formulas, and what must hold anyway."""

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
    language_model_blocks,
    lstm_cell,
    lstm_forward,
    rnn_cell,
    rnn_forward,
    sample_autoregressive,
    sequence_negative_log_likelihood,
    stacked_forward,
)

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
four_sizes = st.lists(st.integers(1, 6), min_size=4, max_size=4, unique=True)
seeds = st.integers(0, 10**6)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


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


def sigmoid(a: float) -> float:
    """The logistic function of one number."""
    return 1 / (1 + math.exp(-a))


def row(weights: LstmWeights, r: int, x: Tensor, h: Tensor) -> tuple[float, float]:
    """One row of both products, one number at a time."""
    return tuple(
        sum(float(a) * float(b) for a, b in zip(matrix[r], vector, strict=True)) + float(bias[r])
        for matrix, vector, bias in ((weights[0], x, weights[2]), (weights[1], h, weights[3]))
    )


# --------------------------------------------------------------------------------------------------- the fixed window


@precise
@pytest.mark.parametrize("direct", [True, False])
@given(sizes=st.lists(st.integers(1, 5), min_size=4, max_size=4, unique=True), more=st.integers(0, 4), seed=seeds)
def test_every_window_gets_the_logits_of_the_formula(dtype, direct, sizes, more, seed, assert_near):
    B, N, E, D = sizes
    V = 7
    model = NeuralProbabilisticLM(V, N, E, D, direct=direct).double()
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=seed + i) / 2)
    tokens = torch.randint(0, V, (B, N + more), generator=torch.Generator().manual_seed(seed))
    expected = torch.zeros(B, more + 1, V, dtype=torch.float64)
    for b, i in itertools.product(range(B), range(more + 1)):
        x = torch.cat([model.embedding.weight[token] for token in tokens[b, i : i + N]])
        hidden = torch.tanh(model.hidden.bias + model.hidden.weight @ x)
        expected[b, i] = model.output.bias + model.output.weight @ hidden
        if direct:
            expected[b, i] += model.direct.weight @ x
    assert_near(model.to(dtype)(tokens).detach(), expected.detach(), "oldest token first; tanh; both biases")


def test_the_window_model_has_as_many_parameters_as_the_paper_counts():
    V, N, E, D = 100, 4, 6, 10
    model = NeuralProbabilisticLM(V, N, E, D)
    # Bengio et al. 2003, section 2, with a context of n - 1 = N words: |V| (1 + nm + h) + h (1 + (n - 1) m).
    expected = V * (1 + (N + 1) * E + D) + D * (1 + N * E)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    assert model.window == N
    assert model.direct.bias is None
    assert NeuralProbabilisticLM(V, N, E, D, direct=False).direct is None


def test_what_stands_before_the_window_changes_nothing_and_what_stands_in_it_does():
    model = NeuralProbabilisticLM(9, 3, 4, 5)
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    before, within = tokens.clone(), tokens.clone()
    before[0, 1], within[0, 2] = 8, 8
    torch.testing.assert_close(model(before)[:, -1], model(tokens)[:, -1], rtol=0, atol=0)
    assert (model(within)[:, -1] != model(tokens)[:, -1]).any()


# -------------------------------------------------------------------------------------------- one step, number by number


@given(sizes=st.lists(st.integers(1, 5), min_size=3, max_size=3, unique=True), seed=seeds)
def test_the_cells_are_their_formulas_number_by_number(sizes, seed):
    B, E, D = sizes
    x, h, c = randn(B, E, seed=seed), randn(B, D, seed=seed + 1), randn(B, D, seed=seed + 2)
    plain, memory, gated = (weights_for(gates, E, D, seed=seed + 3 * gates) for gates in (1, 4, 3))
    for b, d in itertools.product(range(B), range(D)):
        expected = math.tanh(sum(row(plain, d, x[b], h[b])))
        assert float(rnn_cell(x, h, *plain)[b, d]) == pytest.approx(expected, abs=1e-12)

        i, f, g, o = (sum(row(memory, gate * D + d, x[b], h[b])) for gate in range(4))
        cell = sigmoid(f) * float(c[b, d]) + sigmoid(i) * math.tanh(g)
        new_h, new_c = lstm_cell(x, h, c, *memory)
        assert float(new_c[b, d]) == pytest.approx(cell, abs=1e-12)
        assert float(new_h[b, d]) == pytest.approx(sigmoid(o) * math.tanh(cell), abs=1e-12)

        (r_i, r_h), (z_i, z_h), (n_i, n_h) = (row(gated, gate * D + d, x[b], h[b]) for gate in range(3))
        r, z = sigmoid(r_i + r_h), sigmoid(z_i + z_h)
        expected = (1 - z) * math.tanh(n_i + r * n_h) + z * float(h[b, d])
        assert float(gru_cell(x, h, *gated)[b, d]) == pytest.approx(expected, abs=1e-12)


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


def test_weights_copied_to_pytorch_s_gru_give_the_states_of_the_cell_run_by_hand():
    weights, x, h = weights_for(3, 4, 5), randn(2, 6, 4), randn(2, 5, seed=8)
    theirs, _ = copied_to(nn.GRU(4, 5, batch_first=True).double(), weights)(x, h[None])
    for t in range(6):
        h = gru_cell(x[:, t], h, *weights)
        torch.testing.assert_close(h, theirs[:, t].detach())
    weights = copied_from(nn.GRU(4, 5, batch_first=True).double())
    torch.testing.assert_close(
        gru_cell(x[:, 0], h, *weights),
        copied_to(nn.GRU(4, 5, batch_first=True).double(), weights)(x[:, :1], h[None])[0][:, 0].detach(),
    )


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


@precise
def test_both_directions_and_layers_equal_pytorch_s_with_weights_copied_from_it(dtype, assert_near):
    x = randn(3, 5, 4)
    both = nn.LSTM(4, 6, batch_first=True, bidirectional=True).double()
    layers = nn.LSTM(4, 6, 3, batch_first=True).double()
    halves = [tuple(w.to(dtype) for w in copied_from(both, suffix=suffix)) for suffix in ("", "_reverse")]
    floors = [LstmWeights(*(w.to(dtype) for w in copied_from(layers, k))) for k in range(3)]
    with torch.no_grad():
        assert_near(bidirectional_forward(x.to(dtype), *halves), both(x))
        assert_near(stacked_forward(x.to(dtype), floors), layers(x))


@given(sizes=four_sizes, seed=seeds)
def test_padding_in_front_or_between_is_skipped_like_padding_behind(sizes, seed):
    B, T, E, D = sizes
    weights, x = weights_for(4, E, D, seed=seed), randn(B, T, E, seed=seed)
    mask = randn(B, T, seed=seed + 1) > 0
    states, (h, c) = lstm_forward(x, *weights, mask=mask)
    for b in range(B):
        kept = x[b : b + 1, mask[b]]
        if not len(kept[0]):
            assert not any(y[b].any() for y in (states, h, c))
            continue
        alone, (h_alone, c_alone) = lstm_forward(kept, *weights)
        torch.testing.assert_close(states[b, mask[b]], alone[0])
        assert not states[b, ~mask[b]].any()
        torch.testing.assert_close((h[b], c[b]), (h_alone[0], c_alone[0]))


def test_what_stands_at_padded_steps_reaches_neither_states_nor_gradients():
    weights, mask = weights_for(4, 3, 5), lengths_mask([4, 2], 4)
    x = randn(2, 4, 3).requires_grad_()
    other = torch.where(mask[..., None], x, 1e6)
    torch.testing.assert_close(lstm_forward(other, *weights, mask=mask), lstm_forward(x, *weights, mask=mask))
    (gradient,) = torch.autograd.grad(lstm_forward(x, *weights, mask=mask)[1][0].sum(), x)
    assert not gradient[1, 2:].any()
    assert gradient[1, :2].any()


def test_a_run_in_two_pieces_with_the_state_handed_on_is_the_run_in_one():
    plain, memory, x = weights_for(1, 3, 4), weights_for(4, 3, 4), randn(2, 6, 3)
    first, h = rnn_forward(x[:, :4], *plain)
    second, last = rnn_forward(x[:, 4:], *plain, h)
    torch.testing.assert_close((torch.cat([first, second], 1), last), rnn_forward(x, *plain))
    first, state = lstm_forward(x[:, :4], *memory)
    second, end = lstm_forward(x[:, 4:], *memory, state)
    torch.testing.assert_close((torch.cat([first, second], 1), end), lstm_forward(x, *memory))


def test_later_inputs_change_no_earlier_state_except_for_who_reads_from_the_right():
    plain, memory, x = weights_for(1, 3, 4), weights_for(4, 3, 4), randn(2, 6, 3)
    changed = x.clone()
    changed[:, 4:] += 1
    for run in (lambda y: rnn_forward(y, *plain)[0], lambda y: lstm_forward(y, *memory)[0]):
        torch.testing.assert_close(run(changed)[:, :4], run(x)[:, :4], rtol=0, atol=0)
        assert (run(changed)[:, 4:] != run(x)[:, 4:]).all()
    before, after = (bidirectional_forward(y, memory, memory)[0][:, :4] for y in (x, changed))
    torch.testing.assert_close(before[..., :4], after[..., :4], rtol=0, atol=0)
    assert (before[..., 4:] != after[..., 4:]).all()


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


def test_a_gradient_vanishes_or_explodes_by_the_same_factor_at_every_step():
    x, zeros = torch.zeros(1, 11, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for factor in (0.5, 1.0, 2.0):
        scaled_rotation = factor * torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
        norms = gradient_norm_through_time(x, scaled_rotation, scaled_rotation, zeros, zeros, randn(1, 2))
        expected = factor ** torch.arange(10, -1, -1, dtype=torch.float64) * randn(1, 2).norm()
        torch.testing.assert_close(norms[0], expected)


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


@given(max_norm=st.floats(0.01, 50.0), seed=seeds)
def test_clipped_gradients_have_the_norm_that_is_allowed_or_their_own_and_their_direction(max_norm, seed):
    gradients = [randn(3, 4, seed=seed), randn(5, seed=seed + 1)]
    clipped, norm = clip_gradient_norm(gradients, max_norm)
    before, after = (torch.cat([gradient.flatten() for gradient in given]) for given in (gradients, clipped))
    assert float(norm) == pytest.approx(float(before.norm()))
    assert float(after.norm()) == pytest.approx(min(float(norm), max_norm))
    assert float(F.cosine_similarity(before, after, dim=0)) == pytest.approx(1.0)


def test_clipping_holds_where_squares_overflow_and_where_there_is_nothing_to_clip():
    (clipped,), norm = clip_gradient_norm([torch.full((4,), 300.0, dtype=torch.float16)], 3.0)
    assert norm.dtype == torch.float32
    assert float(norm) == pytest.approx(600.0)
    torch.testing.assert_close(clipped, torch.full((4,), 1.5, dtype=torch.float16))
    (clipped,), norm = clip_gradient_norm([torch.zeros(3)], 1.0)
    assert float(norm) == 0.0
    assert clipped.tolist() == [0.0, 0.0, 0.0]


def test_where_even_the_sum_of_squares_overflows_clipping_gives_the_zeros_that_pytorch_gives():
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3e30, -4e30])
    (clipped,), norm = clip_gradient_norm([parameter.grad.clone()], 1.0)
    assert float(norm) == float(nn.utils.clip_grad_norm_([parameter], 1.0)) == math.inf
    assert clipped.tolist() == parameter.grad.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------------------------ language models


@given(length=st.integers(1, 7), count=st.integers(2, 40))
def test_blocks_are_runs_of_the_corpus_and_each_target_is_the_token_that_follows(length, count):
    tokens = torch.arange(100, 100 + count)
    if count <= length:
        with pytest.raises(ValueError, match=rf"\({count},\) and block_length={length}"):
            language_model_blocks(tokens, length)
        return
    inputs, targets = language_model_blocks(tokens, length)
    assert inputs.shape == targets.shape == ((count - 1) // length, length)
    assert inputs.flatten().tolist() == list(range(100, 100 + inputs.numel()))
    assert targets.tolist() == [[token + 1 for token in block] for block in inputs.tolist()]
    assert 0 <= count - 1 - inputs.numel() < length, "no further block would have fitted"


@precise
@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=3, unique=True), masked=st.booleans(), seed=seeds)
def test_likelihood_and_its_gradient_equal_cross_entropy_and_a_sum_of_logarithms(
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
    for b in range(B):
        terms = [
            math.log(sum(math.exp(a) for a in logits[b, t].tolist())) - logits[b, t, targets[b, t]].item()
            for t in range(T)
            if mask is None or mask[b, t]
        ]
        assert float(actual[0][b]) == pytest.approx(sum(terms), abs=1e-10 if dtype == torch.float64 else 1e-4)


def test_the_probabilities_of_all_sequences_of_one_length_add_up_to_one():
    first, table = randn(3), randn(3, 3, seed=4)
    every = torch.tensor(list(itertools.product(range(3), repeat=4)))
    logits = torch.cat([first.expand(len(every), 1, 3), table[every[:, :-1]]], dim=1)
    assert float((-sequence_negative_log_likelihood(logits, every)).exp().sum()) == pytest.approx(1.0)


def test_likelihood_of_an_unlikely_token_is_finite_where_its_probability_is_zero_in_single_precision():
    logits = torch.tensor([[[0.0, 200.0]]])
    assert sequence_negative_log_likelihood(logits, torch.tensor([[0]])).tolist() == [200.0]


# ------------------------------------------------------------------------------------------------------------ sampling


class Table:
    """A model whose prediction depends on the last two tokens; it counts how often it was asked, and with how much."""

    def __init__(self, V: int) -> None:
        self.logits = 2 * randn(V, V, V)
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, tokens: Tensor) -> Tensor:
        self.asked.append(tuple(tokens.shape))
        before = torch.cat([tokens[:, :1], tokens[:, :-1]], dim=1)
        return self.logits[before, tokens]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_tokens_are_drawn_one_step_after_the_other_for_the_whole_batch_at_once(temperature):
    model, prompt = Table(5), torch.tensor([[0, 1], [2, 3], [4, 4]])
    written = sample_autoregressive(
        model, prompt, 6, temperature=temperature, generator=torch.Generator().manual_seed(7)
    )
    generator, expected = torch.Generator().manual_seed(7), prompt.tolist()
    for _ in range(6):
        weights = []
        for text in expected:
            scaled = [math.exp(a / temperature) for a in model.logits[text[-2], text[-1]].tolist()]
            weights.append([a / sum(scaled) for a in scaled])
        drawn = torch.multinomial(torch.tensor(weights, dtype=torch.float64), 1, generator=generator)
        expected = [[*text, int(token)] for text, token in zip(expected, drawn, strict=True)]
    assert written.tolist() == expected
    assert model.asked == [(3, length) for length in range(2, 8)]


def test_at_temperature_zero_the_most_probable_token_is_taken_and_chance_has_no_part():
    model, text = Table(5), [1, 3]
    written = sample_autoregressive(model, torch.tensor([text]), 5, temperature=0)
    for _ in range(5):
        row_of_logits = model.logits[text[-2], text[-1]].tolist()
        text.append(row_of_logits.index(max(row_of_logits)))
    assert written.tolist() == [text]
    cold = sample_autoregressive(model, torch.tensor([text[:2]]), 5, temperature=1e-4)
    assert cold.tolist() == [text], "a temperature near zero says the same"


def test_the_share_of_a_token_among_many_draws_is_its_probability():
    logits = torch.tensor([0.0, math.log(2.0), math.log(5.0)])
    written = sample_autoregressive(
        lambda tokens: logits.expand(*tokens.shape, 3),
        torch.zeros(20_000, 1, dtype=torch.int64),
        1,
        generator=torch.Generator().manual_seed(1),
    )
    shares = torch.bincount(written[:, 1], minlength=3) / 20_000
    # The standard deviation of a share is at most 0.0036 here.
    torch.testing.assert_close(shares, torch.tensor([1 / 8, 2 / 8, 5 / 8]), rtol=0, atol=0.015)


def test_the_same_seed_gives_the_same_text_also_where_the_generator_is_pytorch_s_own():
    model, prompt = Table(5), torch.tensor([[0, 1]])
    texts = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        texts.append(sample_autoregressive(model, prompt, 20).tolist())
    assert texts[0] == texts[1] != texts[2]
    assert sample_autoregressive(model, prompt, 0).tolist() == prompt.tolist()
    assert prompt.tolist() == [[0, 1]]


def test_writing_keeps_no_graph_of_the_model():
    model, kept = NeuralProbabilisticLM(6, 3, 4, 5), []
    sample_autoregressive(lambda tokens: kept.append(model(tokens)) or kept[-1], torch.tensor([[1, 2, 3]]), 2)
    assert [logits.requires_grad for logits in kept] == [False, False]
    assert model(torch.tensor([[1, 2, 3]])).requires_grad, "only while writing"


def test_the_window_model_writes_too():
    model = NeuralProbabilisticLM(6, 3, 4, 5)
    written = sample_autoregressive(model, torch.tensor([[1, 2, 3]]), 4, generator=torch.Generator().manual_seed(1))
    assert written.shape == (1, 7)
    assert written[0, :3].tolist() == [1, 2, 3]


# --------------------------------------------------------------------------------------------- devices, dtypes, inputs


X, PLAIN, MEMORY, GATED = randn(2, 4, 3), weights_for(1, 3, 5), weights_for(4, 3, 5), weights_for(3, 3, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NeuralProbabilisticLM(5, 0, 2, 3), "window=0"),
        (lambda: NeuralProbabilisticLM(5, 3, 2, 3)(torch.zeros(2, 2, dtype=torch.int64)), r"at least 3, got \(2, 2\)"),
        (lambda: NeuralProbabilisticLM(5, 3, 2, 3)(torch.zeros(4, dtype=torch.int64)), r"got \(4,\)"),
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *MEMORY), r"expected \(\(5, 3\), \(5, 5\), .* got \(\(20, 3\)"),
        (lambda: rnn_cell(X[:, 0], randn(1, 5), *PLAIN), r"x \(B, E\) and h \(B, D\), got \(2, 3\) and \(1, 5\)"),
        (lambda: rnn_cell(X[:, 0], torch.tensor(1.0), *PLAIN), r"h \(B, D\), got \(2, 3\) and \(\)"),
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *PLAIN[:3], randn(1)), r"\(5,\), \(5,\)\), got .* \(5,\), \(1,\)\)"),
        (lambda: rnn_cell(X[:, 0], randn(2, 5), *PLAIN[:2], randn(2, 5), randn(5)), r"got .* \(2, 5\), \(5,\)\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(2, 5), *GATED), r"\(20, 5\), .* got .*\(15, 5\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(1, 5), *MEMORY), r"shape \(2, 5\) of the state, got \(1, 5\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(3, 1, 5), *MEMORY), r"got \(3, 1, 5\)"),
        (lambda: lstm_cell(X[:, 0], randn(2, 5), randn(2, 5), *MEMORY[:3], torch.tensor(1.0)), r"\(20,\), \(\)\)"),
        (lambda: gru_cell(X[:, 0], randn(2, 5), *MEMORY), r"expected \(\(15, 3\), \(15, 5\), \(15,\), \(15,\)\)"),
        (lambda: gru_cell(X[:, 0], randn(2, 5), *GATED[:3], randn(2, 15)), r"got .*\(2, 15\)\)"),
        (lambda: lstm_forward(X, *MEMORY, (randn(2, 5), randn(5))), r"shape \(2, 5\) of the state, got \(5,\)"),
        (lambda: rnn_forward(X[0], *PLAIN), r"\(B, T, E\).*got \(4, 3\)"),
        (lambda: rnn_forward(X[:, :0], *PLAIN), r"T at least one, got \(2, 0, 3\)"),
        (lambda: lstm_forward(X, *MEMORY, mask=torch.ones(2, 3, dtype=torch.bool)), r"mask \(2, 4\).*\(2, 3\)"),
        (lambda: lstm_forward(X, *MEMORY, mask=torch.ones(2, 4)), "boolean mask.*torch.float32"),
        (lambda: bidirectional_forward(X[0], MEMORY, MEMORY), r"got \(4, 3\)"),
        (lambda: stacked_forward(X, []), "at least one layer"),
        (lambda: stacked_forward(X, [MEMORY, MEMORY]), r"expected \(\(20, 5\), \(20, 5\)"),
        (lambda: gradient_norm_through_time(X, *PLAIN, randn(2, 4)), r"shape \(2, 5\) of a state, got \(2, 4\)"),
        (lambda: clip_gradient_norm([X], 0.0), "got 1 and 0.0"),
        (lambda: clip_gradient_norm([X], math.nan), "got 1 and nan"),
        (lambda: clip_gradient_norm([], 1.0), "got 0 and 1.0"),
        (lambda: language_model_blocks(torch.zeros(2, 9), 3), r"\(2, 9\)"),
        (lambda: language_model_blocks(torch.zeros(9), 0), "block_length=0"),
        (lambda: sequence_negative_log_likelihood(X, torch.zeros(2, 3, dtype=torch.int64)), r"\(2, 4, 3\), \(2, 3\)"),
        (
            lambda: sequence_negative_log_likelihood(X, torch.zeros(2, 4, dtype=torch.int64), torch.ones(2, 4)),
            r"boolean mask \(2, 4\), got torch.float32",
        ),
        (lambda: sample_autoregressive(Table(3), torch.zeros(1, 1, dtype=torch.int64), -1), "-1 and 1.0"),
        (
            lambda: sample_autoregressive(Table(3), torch.zeros(1, 1, dtype=torch.int64), 1, temperature=-0.5),
            "1 and -0.5",
        ),
        (lambda: sample_autoregressive(Table(3), torch.zeros(3, dtype=torch.int64), 1), r"got \(3,\)"),
        (lambda: sample_autoregressive(Table(3), torch.zeros(2, 0, dtype=torch.int64), 1), r"got \(2, 0\)"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
