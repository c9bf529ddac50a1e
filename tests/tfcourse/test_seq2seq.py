"""Chapter 01's translator against PyTorch's cells, run by hand sentence by sentence, and what must hold anyway."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfcourse.recurrent import LstmWeights, sequence_negative_log_likelihood, stacked_forward
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


def test_the_context_is_what_the_course_s_own_stack_of_layers_ends_in():
    model, (source, _) = make_model(2), sentences(3, 6, 4)
    mask = torch.arange(6) < torch.tensor([[6], [2], [5]])
    layers = [LstmWeights(*(getattr(model.encoder, f"{name}_l{k}") for name in NAMES)) for k in range(2)]
    _, expected = stacked_forward(model.source_embedding(source), layers, mask)
    torch.testing.assert_close(model.encode(source, mask), expected)


def test_gradients_with_padding_are_those_of_the_sentences_alone():
    model, (source, target) = make_model(2), sentences(2, 5, 4)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    together = torch.autograd.grad(model(source, target, mask).square().sum(), list(model.parameters()))
    alone = [by_hand(model, source[b, mask[b]].tolist(), target[b].tolist())[0].square().sum() for b in range(2)]
    # The oracle's cells are copies: only embeddings and output layer are the model's own parameters there.
    for name in ("source_embedding.weight", "target_embedding.weight", "output.weight", "output.bias"):
        shared = dict(model.named_parameters())[name]
        if name == "source_embedding.weight":
            assert not together[0][~torch.isin(torch.arange(9), source[mask])].any(), "padding has no gradient"
        (expected,) = torch.autograd.grad(sum(alone), shared, retain_graph=True)
        place = [n for n, _ in model.named_parameters()].index(name)
        torch.testing.assert_close(together[place], expected)


def test_a_target_written_piece_by_piece_gives_the_logits_of_the_whole():
    model, (source, target) = make_model(2), sentences(3, 5, 6)
    whole, pieces, state = model(source, target), [], model.encode(source)
    for token in target.split(1, dim=1):
        logits, state = model.decode(token, state)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
    torch.testing.assert_close(model.decode(target, model.encode(source))[1], state)


def test_later_target_tokens_change_no_earlier_logits_and_every_source_token_changes_all():
    model, (source, target) = make_model(), sentences(1, 5, 6)
    changed = target.clone()
    changed[:, 3:] = 8 - changed[:, 3:]
    torch.testing.assert_close(model(source, changed)[:, :3], model(source, target)[:, :3], rtol=0, atol=0)
    for s in range(5):
        other = source.clone()
        other[:, s] = 2 + (other[:, s] - 1) % 7
        assert (model(other, target) != model(source, target)).all(), "the context reaches every step"


def test_the_context_has_one_size_however_long_the_source_is():
    model = make_model(2)
    for S in (1, 4, 30):
        states, cells = model.encode(sentences(3, S, 2)[0])
        assert states.shape == cells.shape == (2, 3, 5)


def test_layers_have_their_names_and_sizes_and_nothing_else():
    model = Seq2Seq(9, 7, 4, 5)
    lstms = [f"{part}.{name}_l0" for part in ("encoder", "decoder") for name in NAMES]
    embeddings = ["source_embedding.weight", "target_embedding.weight"]
    assert list(model.state_dict()) == [*embeddings, *lstms, "output.weight", "output.bias"]
    assert model.encoder.batch_first
    assert model.decoder.batch_first
    assert Seq2Seq(9, 7, 4, 5, n_layers=3).decoder.num_layers == 3
    with pytest.raises(TypeError, match="positional"):
        Seq2Seq(9, 7, 4, 5, 3)
    expected = 9 * 4 + 7 * 4 + 2 * (20 * (4 + 5) + 2 * 20) + 7 * 5 + 7
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_it_learns_to_write_short_sequences_backwards():
    torch.manual_seed(1)
    model = Seq2Seq(6, 6, 8, 32)
    source = torch.cartesian_prod(*[torch.arange(2, 6)] * 3)  # all 64 sequences of three letters
    target = torch.cat([torch.ones(64, 1, dtype=torch.int64), source.flip(1)], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = sequence_negative_log_likelihood(model(source, target[:, :-1]), target[:, 1:]).mean()
        loss.backward()
        optimizer.step()
    assert (model(source, target[:, :-1]).argmax(-1) == target[:, 1:]).double().mean() > 0.95


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 4, dtype=torch.bool), r"mask \(2, 5\), got torch.bool \(2, 4\)"),
        (torch.ones(2, 5), "boolean mask.*torch.float32"),
        (torch.arange(5) > torch.tensor([[-1], [1]]), r"behind the tokens, got mask\[1\] = \[False, False, True"),
        (torch.arange(5) != torch.tensor([[2], [9]]), r"behind the tokens, got mask\[0\] = \[True, True, False, True"),
        (torch.arange(5) < torch.tensor([[5], [0]]), r"a token in every source, .* lengths \[5, 0\]"),
    ],
)
def test_masks_that_do_not_fit_are_refused_with_what_they_hold(mask, message):
    source, target = sentences(2, 5, 3)
    with pytest.raises(ValueError, match=message):
        make_model()(source, target, mask)


def test_sources_without_a_place_are_refused_as_sources_without_a_token():
    source, target = sentences(2, 5, 3)
    with pytest.raises(ValueError, match=r"lengths \[0, 0\]"):
        make_model()(source[:, :0], target, torch.ones(2, 0, dtype=torch.bool))
