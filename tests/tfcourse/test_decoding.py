"""Searches against Hugging Face's `generate`, against all texts that there are, and against loops from the formula."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from tfcourse.data import EOS, PAD
from tfcourse.decoding import beam_search, contrastive_scores, greedy_search, length_penalty

VOCABULARY = 11
# The lecture's table: what follows on the start, on A at the first place, and so on. Tokens: A, B, C, and the end.
END, A, B, C, START = 0, 1, 2, 3, 4


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """`generate` logs a warning at every call."""
    log = logging.getLogger("transformers")
    level = log.level
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(level)


def random_gpt2(seed: int) -> GPT2LMHeadModel:
    """A small GPT-2 whose weights are large enough that no two continuations tie."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=24,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    model = GPT2LMHeadModel(config).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.6)
    return model.double()


def logits_of(model: GPT2LMHeadModel):
    return lambda tokens: model(input_ids=tokens).logits


class Table(nn.Module):
    """The lecture's model: the next token depends on the two before it."""

    ROWS = {  # noqa: RUF012 - a table
        (START,): {A: 0.5, B: 0.2, C: 0.2, END: 0.1},
        (START, A): {A: 0.1, B: 0.4, C: 0.3, END: 0.2},
        (A, B): {A: 0.2, B: 0.2, C: 0.4, END: 0.2},
        (A, C): {A: 0.1, B: 0.6, C: 0.2, END: 0.1},
        (B, C): {A: 0.2, B: 0.2, C: 0.0, END: 0.6},
        (C, B): {A: 0.1, B: 0.2, C: 0.1, END: 0.6},
    }

    def forward(self, tokens: Tensor) -> Tensor:
        logits = torch.full((*tokens.shape, 5), -math.inf, dtype=torch.float64)
        for row, text in enumerate(tokens.tolist()):
            after = self.ROWS.get(tuple(text[-2:]), {A: 0.25, B: 0.25, C: 0.25, END: 0.25})
            for token, probability in after.items():
                logits[row, -1, token] = math.log(probability) if probability else -math.inf
        return logits


# ---------------------------------------------------------------------------------------------- greedy


@pytest.mark.parametrize("seed", range(6))
def test_greedy_text_is_that_of_generate(seed: int) -> None:
    model = random_gpt2(seed)
    prompt = torch.randint(3, VOCABULARY, (4, 3))
    theirs = model.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=9)
    assert torch.equal(greedy_search(logits_of(model), prompt, max_new_tokens=9), theirs)


def test_an_end_in_the_prompt_ends_nothing_and_of_equals_the_first_is_taken() -> None:
    def equal(tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, 5).index_fill(2, torch.tensor([3, 4]), 1.0)

    prompt = torch.tensor([[EOS, 3]])
    assert greedy_search(equal, prompt, max_new_tokens=2).tolist() == [[EOS, 3, 3, 3]]
    assert torch.equal(greedy_search(equal, prompt, max_new_tokens=0), prompt)


def test_rows_that_are_over_are_filled_and_the_search_stops_when_all_are() -> None:
    def ends_by_row(tokens: Tensor) -> Tensor:
        logits = torch.zeros(*tokens.shape, 6)
        for row, last in enumerate((tokens.shape[1] - 1) >= torch.arange(1, len(tokens) + 1)):
            logits[row, -1, EOS if last else 5] = 1
        return logits

    text = greedy_search(ends_by_row, torch.full((2, 1), 4), max_new_tokens=50, pad=PAD)
    assert text.tolist() == [[4, 5, EOS, PAD], [4, 5, 5, EOS]]


def test_a_negative_number_of_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        greedy_search(Table(), torch.tensor([[START]]), max_new_tokens=-1)


# ---------------------------------------------------------------------------------------------- beams


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("width", [2, 3])
def test_beams_are_those_of_generate(width: int, alpha: float, early_stopping: bool) -> None:
    for seed in range(12):
        model = random_gpt2(seed)
        prompt = torch.randint(3, VOCABULARY, (1, 3))
        theirs = model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            num_beams=width,
            num_return_sequences=width,
            length_penalty=alpha,
            early_stopping=early_stopping,
            max_new_tokens=8,
            output_scores=True,
            return_dict_in_generate=True,
        )
        ours = beam_search(
            logits_of(model),
            prompt,
            beam_width=width,
            max_new_tokens=8,
            alpha=alpha,
            early_stopping=early_stopping,
        )
        texts = [row[3:] for row in theirs.sequences.tolist()]
        assert [tokens for _, tokens in ours] == [_up_to_the_end(row) for row in texts]
        scores = torch.tensor([score for score, _ in ours], dtype=torch.float64)
        torch.testing.assert_close(scores, theirs.sequences_scores.double(), atol=1e-5, rtol=1e-5)


def _up_to_the_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


def test_a_beam_that_holds_everything_finds_the_best_text_of_all() -> None:
    model, prompt = Table(), torch.tensor([[START]])
    best = max(
        (
            (probability(model, text), list(text))
            for n in range(1, 4)
            for text in itertools.product((A, B, C, END), repeat=n)
            if END not in text[:-1] and (text[-1] == END or n == 3)
        ),
    )
    score, tokens = beam_search(model, prompt, beam_width=64, max_new_tokens=3, eos=END)[0]
    assert math.exp(score) == pytest.approx(best[0])
    assert probability(model, tuple(tokens)) == pytest.approx(best[0])


def probability(model: Table, text: tuple[int, ...]) -> float:
    tokens, product = [START], 1.0
    for token in text:
        product *= float(torch.softmax(model(torch.tensor([tokens]))[0, -1], -1)[token])
        tokens.append(token)
    return product


def test_a_wider_beam_finds_a_worse_text_of_the_lectures_table() -> None:
    def best(width: int, alpha: float = 0.0) -> tuple[float, list[int]]:
        score, tokens = beam_search(
            Table(), torch.tensor([[START]]), beam_width=width, max_new_tokens=5, eos=END, alpha=alpha
        )[0]
        return math.exp(score * length_penalty(len(tokens), alpha)), tokens

    assert best(1) == (pytest.approx(0.048), [A, B, C, END])
    assert best(2) == (pytest.approx(0.054), [A, C, B, END])
    assert best(3) == (pytest.approx(0.10), [A, END])
    assert best(4)[0] == pytest.approx(0.10)
    assert best(3, alpha=0.4)[1] == [A, C, B, END]
    greedy = greedy_search(Table(), torch.tensor([[START]]), max_new_tokens=5, eos=END)
    assert greedy.tolist() == [[START, A, B, C, END]]


@pytest.mark.parametrize(
    ("prompt", "options"),
    [((2, 3), {}), ((3,), {}), ((1, 3), {"beam_width": 0}), ((1, 3), {"max_new_tokens": 0})],
)
def test_nonsense_is_refused(prompt: tuple[int, ...], options: dict[str, int]) -> None:
    settings = {"beam_width": 2, "max_new_tokens": 3} | options
    with pytest.raises(ValueError, match="expected"):
        beam_search(Table(), torch.full(prompt, START), **settings)


# ---------------------------------------------------------------------------------------------- penalties and scores


def test_both_penalties_are_one_at_alpha_zero_and_the_formulas_otherwise() -> None:
    assert length_penalty(7, 0.0) == length_penalty(7, 0.0, kind="wu") == 1
    assert length_penalty(4, 0.5) == 2
    assert length_penalty(7, 1.0, kind="wu") == 2
    assert length_penalty(1, 0.9, kind="wu") == 1


def test_a_length_of_zero_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="length 0"):
        length_penalty(0, 1.0)
    with pytest.raises(ValueError, match="'sum'"):
        length_penalty(3, 1.0, kind="sum")  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_contrastive_scores_are_those_of_a_loop(alpha: float) -> None:
    probabilities = torch.rand(2, 3, dtype=torch.float64)
    hidden, context = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 4, 5, dtype=torch.float64)
    scores = contrastive_scores(probabilities, hidden, context, alpha)
    for b, k in itertools.product(range(2), range(3)):
        worst = max(float(F.cosine_similarity(hidden[b, k], state, dim=0)) for state in context[b])
        assert float(scores[b, k]) == pytest.approx((1 - alpha) * float(probabilities[b, k]) - alpha * worst)


def test_an_alpha_outside_of_zero_to_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"-0\.1"):
        contrastive_scores(torch.rand(1, 2), torch.randn(1, 2, 3), torch.randn(1, 4, 3), -0.1)
