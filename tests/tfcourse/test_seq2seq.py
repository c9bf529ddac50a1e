"""Chapter 01's translator against PyTorch's cells, run by hand sentence by sentence."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfcourse.seq2seq import Seq2Seq

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def make_model(n_layers: int = 1, *, E: int = 4, D: int = 5, seed: int = 3) -> Seq2Seq:
    """A translator in float64, from 9 source tokens to 7 target tokens, with weights and biases far from zero."""
    generator = torch.Generator().manual_seed(seed)
    model = Seq2Seq(9, 7, E, D, n_layers=n_layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
    return model


def sentences(B: int, S: int, T: int, seed: int = 3) -> tuple[Tensor, Tensor]:
    """Source and target tokens; the targets begin with 1."""
    generator = torch.Generator().manual_seed(seed)
    source, target = torch.randint(2, 9, (B, S), generator=generator), torch.randint(2, 7, (B, T), generator=generator)
    target[:, 0] = 1
    return source, target


def cells_of(lstm: nn.LSTM) -> list[nn.LSTMCell]:
    """PyTorch's cells with the weights of its LSTM."""
    cells = []
    for layer in range(lstm.num_layers):
        cell = nn.LSTMCell(lstm.input_size if layer == 0 else lstm.hidden_size, lstm.hidden_size).double()
        cell.load_state_dict({name: getattr(lstm, f"{name}_l{layer}") for name in NAMES})
        cells.append(cell)
    return cells


def by_hand(model: Seq2Seq, source: list[int], target: list[int]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Logits (T, V) of one sentence without padding, one token and one layer at a time, and the context."""
    states = [(torch.zeros(1, model.encoder.hidden_size, dtype=torch.float64),) * 2 for _ in cells_of(model.encoder)]
    logits, context = [], []
    for lstm, embedding, tokens in (
        (model.encoder, model.source_embedding, source),
        (model.decoder, model.target_embedding, target),
    ):
        cells = cells_of(lstm)
        for token in tokens:
            x = embedding.weight[token][None]
            for layer, cell in enumerate(cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0]
            if lstm is model.decoder:
                logits.append(x[0] @ model.output.weight.T + model.output.bias)
        if lstm is model.encoder:
            context = list(states)
    return torch.stack(logits), context


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_logits_and_context_are_those_of_pytorch_s_cells_whatever_the_padding(n_layers, data, seed):
    B, S, T = data.draw(st.lists(st.integers(1, 6), min_size=3, max_size=3, unique=True))
    model, (source, target) = make_model(n_layers, seed=seed), sentences(B, S, T, seed)
    lengths = data.draw(st.lists(st.integers(1, S), min_size=B, max_size=B))
    mask = torch.arange(S) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        logits, (states, cells) = model(source * mask, target, mask), model.encode(source * mask, mask)
        assert logits.shape == (B, T, 7)
        for b, length in enumerate(lengths):
            expected, context = by_hand(model, source[b, :length].tolist(), target[b].tolist())
            torch.testing.assert_close(logits[b], expected)
            for layer, (h, c) in enumerate(context):
                torch.testing.assert_close((states[layer, b], cells[layer, b]), (h[0], c[0]))
