"""Greedy decoding and beam search: the lecture's table, and an exhaustive search on models small enough for one."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tfcourse.data import BOS, EOS, PAD
from tfcourse.translation import beam_search, greedy_decode

# The lecture's words after the four special tokens of the course.
A, B, C = 4, 5, 6


def by_prefix(
    rows: dict[tuple[int, ...], dict[int, float]], vocab_size: int, other: dict[int, float] | None = None
) -> Callable[..., Tensor]:
    """A translator that knows, for some beginnings of a target, the probabilities of the next token; after others it ends."""

    def model(source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        logits = torch.full((*target.shape, vocab_size), -torch.inf)
        for b, tokens in enumerate(target.tolist()):
            for t in range(len(tokens)):
                for token, probability in rows.get(tuple(tokens[1 : t + 1]), other or {EOS: 1.0}).items():
                    logits[b, t, token] = math.log(probability) if probability else -torch.inf
        return logits

    return model


def lecture() -> Callable[..., Tensor]:
    """The lecture's table: what comes after A B is not what comes after A C. Where it says nothing, all four are alike."""
    return by_prefix(
        {
            (): {A: 0.5, B: 0.2, C: 0.2, EOS: 0.1},
            (A,): {A: 0.1, B: 0.4, C: 0.3, EOS: 0.2},
            (A, B): {A: 0.2, B: 0.2, C: 0.4, EOS: 0.2},
            (A, B, C): {A: 0.0, B: 0.2, C: 0.2, EOS: 0.6},
            (A, C): {A: 0.1, B: 0.6, C: 0.2, EOS: 0.1},
            (A, C, B): {A: 0.1, B: 0.2, C: 0.1, EOS: 0.6},
        },
        vocab_size=7,
        other={A: 0.25, B: 0.25, C: 0.25, EOS: 0.25},
    )


def markov(seed: int, vocab_size: int = 5, sentences: int = 1) -> Callable[..., Tensor]:
    """A translator whose next token depends on the source's first token, the place and the token there, at random."""
    table = torch.randn(sentences, 6, vocab_size, vocab_size, generator=torch.Generator().manual_seed(seed)) * 1.5
    table[..., [PAD, BOS]] = -torch.inf

    def model(source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        places = torch.arange(target.shape[1]).clamp(max=5)
        return table[source[:, :1], places[None], target]

    return model


def exhaustive(
    model: Callable[..., Tensor], source: Tensor, max_length: int, vocab_size: int
) -> list[tuple[float, list[int]]]:
    """Every translation of one source with its log-probability, best first: those that end, and those that are cut off."""
    found = []
    words = [token for token in range(vocab_size) if token not in (PAD, BOS, EOS)]
    for length in range(1, max_length + 1):
        for beginning in itertools.product(words, repeat=length - 1):
            for last in [EOS] + (words if length == max_length else []):
                tokens = [*beginning, last]
                logits = model(source, torch.tensor([[BOS, *tokens[:-1]]]), None)
                log_p = logits.log_softmax(-1)[0]
                found.append((sum(log_p[t, token].item() for t, token in enumerate(tokens)), tokens))
    return sorted(found, reverse=True)


def test_greedy_finds_the_lectures_first_sequence_and_a_beam_of_two_the_better_one():
    model, source = lecture(), torch.zeros(1, 1, dtype=torch.int64)
    assert greedy_decode(model, source, max_length=6).tolist() == [[A, B, C, EOS]]
    found = beam_search(model, source, beam_width=2, max_length=6)
    assert found.tokens.tolist() == [[[A, C, B, EOS], [A, B, C, EOS]]]
    assert found.scores.exp()[0].tolist() == [pytest.approx(0.054), pytest.approx(0.048)]
    assert found.scores.exp().tolist() == [[pytest.approx(0.5 * 0.3 * 0.6 * 0.6), pytest.approx(0.5 * 0.4 * 0.4 * 0.6)]]


def test_the_lectures_better_sequence_is_not_the_best_which_a_wider_beam_shows():
    # Lesson 05 says so: A alone has 0.5 · 0.2, and the empty sentence 0.1.
    found = beam_search(lecture(), torch.zeros(1, 1, dtype=torch.int64), beam_width=4, max_length=6)
    assert found.scores.exp()[0, :2].tolist() == [pytest.approx(0.10), pytest.approx(0.10)]
    shortest = {tuple(token for token in row if token != PAD) for row in found.tokens[0, :2].tolist()}
    assert shortest == {(EOS,), (A, EOS)}


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_as_wide_as_all_beginnings_finds_what_an_exhaustive_search_finds(seed):
    model, source = markov(seed), torch.zeros(1, 1, dtype=torch.int64)
    best = exhaustive(model, source, max_length=4, vocab_size=5)
    found = beam_search(model, source, beam_width=31, max_length=4)
    assert len(best) == 31
    for place, (log_p, tokens) in enumerate(best):
        assert found.scores[0, place].item() == pytest.approx(log_p, abs=1e-4)
        assert [token for token in found.tokens[0, place].tolist() if token != PAD] == tokens


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy_decoding_and_a_wider_one_is_worth_at_least_its_score_here(seed):
    model = markov(seed, vocab_size=9, sentences=3)
    source = torch.tensor([[0], [1], [2]])
    greedy = greedy_decode(model, source, max_length=6)
    one = beam_search(model, source, beam_width=1, max_length=6)
    assert torch.equal(one.tokens[:, 0], greedy)
    target = torch.cat([torch.full((3, 1), BOS), greedy], dim=1)
    log_p = model(source, target[:, :-1]).log_softmax(-1).gather(-1, greedy[..., None])[..., 0]
    torch.testing.assert_close(one.scores[:, 0], log_p.masked_fill(greedy == PAD, 0.0).sum(-1))
    best = beam_search(model, source, beam_width=200, max_length=6).scores[:, 0]
    assert (best >= one.scores[:, 0] - 1e-5).all()


def test_sentences_of_a_batch_are_translated_as_if_each_were_alone():
    model, source = markov(3, vocab_size=9, sentences=4), torch.tensor([[0], [1], [2], [3]])
    together = beam_search(model, source, beam_width=3, max_length=6)
    greedy = greedy_decode(model, source, max_length=6)
    lengths = []
    for b in range(4):
        alone = beam_search(model, source[b : b + 1], beam_width=3, max_length=6)
        length = alone.tokens.shape[-1]
        assert torch.equal(together.tokens[b, :, :length], alone.tokens[0])
        assert (together.tokens[b, :, length:] == PAD).all()
        torch.testing.assert_close(together.scores[b], alone.scores[0])
        one = greedy_decode(model, source[b : b + 1], max_length=6)[0]
        lengths.append(len(one))
        assert torch.equal(greedy[b, : len(one)], one)
        assert (greedy[b, len(one) :] == PAD).all()
    assert len(set(lengths)) > 1, "sentences that end at different places, or this proves nothing"


def test_a_sentence_that_has_ended_is_filled_with_padding_and_keeps_its_score():
    model = by_prefix({(): {EOS: 0.6, A: 0.4}, (A,): {A: 1.0}, (A, A): {EOS: 1.0}}, vocab_size=7)
    found = beam_search(model, torch.zeros(1, 1).long(), beam_width=2, max_length=5)
    assert found.tokens.tolist() == [[[EOS, PAD, PAD], [A, A, EOS]]]
    assert found.scores.exp().tolist() == [[pytest.approx(0.6), pytest.approx(0.4)]]


def test_the_length_penalty_lets_a_longer_translation_win():
    model = by_prefix({(): {EOS: 0.6, A: 0.4}, (A,): {A: 1.0}, (A, A): {EOS: 1.0}}, vocab_size=7)
    source = torch.zeros(1, 1).long()
    found = beam_search(model, source, beam_width=2, max_length=5, length_penalty=5.0)
    assert found.tokens[0, 0].tolist() == [A, A, EOS]
    expected = [math.log(0.4) / ((5 + 3) / 6) ** 5, math.log(0.6) / ((5 + 1) / 6) ** 5]
    assert found.scores[0].tolist() == pytest.approx(expected)


def test_max_length_cuts_a_translation_off_that_never_ends():
    model = by_prefix({(A,) * n: {A: 1.0} for n in range(10)}, vocab_size=7)
    source = torch.zeros(2, 1).long()
    assert greedy_decode(model, source, max_length=3).tolist() == [[A, A, A]] * 2
    assert beam_search(model, source, beam_width=1, max_length=3).tokens.tolist() == [[[A, A, A]]] * 2


def test_source_and_mask_reach_the_model_with_every_beginning_of_their_sentence():
    seen = []

    def model(source: Tensor, target: Tensor, source_mask: Tensor | None) -> Tensor:
        seen.append((source, source_mask))
        return markov(1, vocab_size=9, sentences=2)(source, target)

    source, mask = torch.tensor([[0, 5], [1, 6]]), torch.tensor([[True, False], [True, True]])
    greedy_decode(model, source, mask, max_length=2)
    assert torch.equal(seen[0][0], source)
    assert torch.equal(seen[0][1], mask)
    beam_search(model, source, mask, beam_width=3, max_length=2)
    assert torch.equal(seen[-1][0], source.repeat_interleave(3, dim=0))
    assert torch.equal(seen[-1][1], mask.repeat_interleave(3, dim=0))


@pytest.mark.parametrize("default", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("given", "wanted"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
    ids=str,
)
def test_scores_are_as_exact_as_the_logits_and_never_less_than_float32(given, wanted, default):
    drawn = markov(1)

    def model(source: Tensor, target: Tensor, source_mask: Tensor | None) -> Tensor:
        return drawn(source, target, source_mask).to(given)

    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found = beam_search(model, torch.zeros(1, 1).long(), beam_width=2, max_length=4, length_penalty=0.6)
    finally:
        torch.set_default_dtype(before)
    assert found.scores.dtype == wanted
    # The best sentence's own logits, added up in float64.
    tokens = found.tokens[0, 0][found.tokens[0, 0] != PAD]
    shown = torch.cat([torch.tensor([BOS]), tokens[:-1]])[None]
    log_p = model(torch.zeros(1, 1).long(), shown, None)[0].double().log_softmax(-1)
    score = log_p[torch.arange(len(tokens)), tokens].sum() / ((5 + len(tokens)) / 6) ** 0.6
    tolerance = 1e-12 if wanted == torch.float64 else 1e-5
    assert found.scores[0, 0].item() == pytest.approx(score.item(), rel=tolerance)


def test_decoding_records_no_gradients():
    weight = torch.zeros(9, requires_grad=True)

    def model(source: Tensor, target: Tensor, source_mask: Tensor | None) -> Tensor:
        return markov(1, vocab_size=9)(source, target) + weight

    assert not beam_search(model, torch.zeros(1, 1).long(), beam_width=2, max_length=3).scores.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: greedy_decode(lecture(), torch.zeros(1, 1).long(), max_length=0), "max_length=0"),
        (lambda: beam_search(lecture(), torch.zeros(1, 1).long(), beam_width=0, max_length=3), "beam_width=0"),
        (lambda: beam_search(lecture(), torch.zeros(1, 1).long(), beam_width=2, max_length=0), "max_length=0"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_where_fewer_translations_are_possible_than_asked_for_the_rest_have_the_score_minus_infinity():
    model = by_prefix({(): {EOS: 0.6, A: 0.4}}, vocab_size=7)
    found = beam_search(model, torch.zeros(1, 1).long(), beam_width=4, max_length=3)
    assert found.tokens[0, :2].tolist() == [[EOS, PAD, PAD], [A, EOS, PAD]]
    assert found.scores[0].exp().tolist() == [pytest.approx(0.6), pytest.approx(0.4), 0.0, 0.0]
