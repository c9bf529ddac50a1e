"""Searches against Hugging Face's `generate`."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from tfcourse.data import EOS, PAD
from tfcourse.decoding import beam_search, greedy_search

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


def probability(model: Table, text: tuple[int, ...]) -> float:
    tokens, product = [START], 1.0
    for token in text:
        product *= float(torch.softmax(model(torch.tensor([tokens]))[0, -1], -1)[token])
        tokens.append(token)
    return product
