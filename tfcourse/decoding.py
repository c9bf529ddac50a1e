"""Searches for a likely text: greedy, with a beam, and the scores of contrastive search.

A language model is called as `model(tokens)` with integers (B, T) and gives logits (B, T, V): those at position t are for the token after
`tokens[:, t]`. A search hands it the whole text so far at each step.

Shapes: B batch, T length of a prompt, K beam width or number of candidates, V vocabulary, D width of a hidden state.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from tfcourse.data import EOS, PAD

__all__ = ["beam_search", "contrastive_scores", "greedy_search", "length_penalty"]


@torch.no_grad()
def greedy_search(
    model: Callable[[Tensor], Tensor], prompt: Tensor, *, max_new_tokens: int, eos: int = EOS, pad: int = PAD
) -> Tensor:
    """Continue a text with the most probable token, step by step.

    A text is over when `eos` has been written; from there on its row is filled with `pad`. The search stops when all texts are over, and
    at `max_new_tokens` at the latest. Of equally probable tokens the one with the smallest number is taken.

    Args:
        model: A language model; it is called in the mode that it is in.
        prompt: The beginnings, integers (B, T), all of one length. An `eos` in a prompt does not end anything.
        max_new_tokens: Largest number n of tokens to write, 0 or more.
        eos: The token that ends a text.
        pad: The token that fills up the shorter texts.

    Returns:
        Prompts and what was written, integers (B, T + n') with n' at most n.

    Raises:
        ValueError: If `max_new_tokens` is negative.

    Source:
        Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, section 3.2, with a beam of 1.
    """
    if max_new_tokens < 0:
        raise ValueError(f"the number of new tokens is 0 or more, got {max_new_tokens}")
    text = prompt
    over = prompt.new_zeros(len(prompt), dtype=torch.bool)  # (B,)
    for _ in range(max_new_tokens):
        if bool(over.all()):
            break
        best = model(text)[:, -1].argmax(dim=-1)  # (B,)
        best = best.masked_fill(over, pad)
        text = torch.cat([text, best[:, None]], dim=1)
        over = over | (best == eos)
    return text


def length_penalty(length: int, alpha: float, *, kind: Literal["power", "wu"] = "power") -> float:
    """By what the log-probability of a text is divided, so that short texts do not win for being short.

    Args:
        length: Number of tokens that were written, `eos` among them, at least 1.
        alpha: Strength: 0 divides by 1, so that probabilities are compared as they are.
        kind: `power` is `length` to the power of alpha; `wu` is (5 + `length`) / 6 to the power of alpha.

    Returns:
        The divisor.

    Raises:
        ValueError: If `length` is less than 1, or `kind` is neither.

    Source:
        Wu et al. 2016, Google's Neural Machine Translation System, section 7 (`wu`); `power` is that of Hugging Face.
    """
    if length < 1:
        raise ValueError(f"a text has at least one token, got length {length}")
    if kind not in ("power", "wu"):
        raise ValueError(f"expected kind 'power' or 'wu', got {kind!r}")
    base = length if kind == "power" else (5 + length) / 6
    return float(base**alpha)


@torch.no_grad()
def beam_search(
    model: Callable[[Tensor], Tensor],
    prompt: Tensor,
    *,
    beam_width: int,
    max_new_tokens: int,
    alpha: float = 0.0,
    eos: int = EOS,
    early_stopping: bool = False,
) -> list[tuple[float, list[int]]]:
    """Search for probable continuations of a prompt, K of them at a time.

    Each step looks at all continuations of the running texts by one token and takes the 2 K most probable, best first. One that ends in
    `eos` is set aside if it is among the first K, with its log-probability divided by the length penalty; of the others the first K run on.
    Of those set aside the best K are kept. The search stops when there are K of them and either `early_stopping` is set or the best
    running text, divided by the penalty of its present length, is no better than the worst of them. The step number `max_new_tokens` is
    the last one: there, whatever is among the first K is set aside, ended or not. It begins with one text, not with K copies of it.

    Args:
        model: A language model; it is called in the mode that it is in.
        prompt: One beginning, integers (1, T).
        beam_width: How many texts run, K.
        max_new_tokens: Largest number of tokens to write, `eos` among them, at least 1.
        alpha: Strength of the length penalty, of the kind `power`.
        eos: The token that ends a text.
        early_stopping: Stop as soon as K texts are set aside.

    Returns:
        Score and new tokens, `eos` among them, of at most K texts, best first. A score is a log-probability over a length penalty. A
        continuation of probability 0 is never one of them.

    Raises:
        ValueError: If there is not one prompt, or `beam_width` or `max_new_tokens` is less than 1.

    Source:
        Graves 2012, Sequence Transduction with Recurrent Neural Networks, section 2.5; the rules for ending are those of Hugging Face.
    """
    if prompt.shape[:-1] != (1,):
        raise ValueError(f"expected one prompt of shape (1, T), got {tuple(prompt.shape)}")
    if beam_width < 1 or max_new_tokens < 1:
        raise ValueError(f"expected at least 1, got beam_width={beam_width} and max_new_tokens={max_new_tokens}")
    running: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    length = 0
    while running:
        length += 1
        penalty = length_penalty(length, alpha)
        going_on = []
        for rank, (score, tokens) in enumerate(_continuations(model, prompt, running, 2 * beam_width)):
            if tokens[-1] != eos and length < max_new_tokens:
                going_on.append((score, tokens))
            elif rank < beam_width:
                ended.append((score / penalty, tokens))
        ended = sorted(ended, key=lambda text: -text[0])[:beam_width]
        running = going_on[:beam_width]
        full = len(ended) == beam_width
        if running and full and (early_stopping or running[0][0] / penalty <= ended[-1][0]):
            break
    return ended


def _continuations(
    model: Callable[[Tensor], Tensor], prompt: Tensor, running: list[tuple[float, list[int]]], count: int
) -> list[tuple[float, list[int]]]:
    """The most probable texts that are longer by a token, best first, with their log-probabilities."""
    scores, texts = zip(*running, strict=True)
    written = prompt.new_tensor(texts).reshape(len(texts), -1)
    logits = model(torch.cat([prompt.expand(len(texts), -1), written], dim=1))[:, -1]  # (K, V)
    so_far = logits.new_tensor(scores, dtype=torch.float64)
    totals = so_far[:, None] + torch.log_softmax(logits.double(), dim=-1)  # (K, V)
    best, places = totals.flatten().topk(min(count, totals.numel()))
    vocabulary = totals.shape[1]
    return [
        (score, [*texts[place // vocabulary], place % vocabulary])
        for score, place in zip(best.tolist(), places.tolist(), strict=True)
        if score > float("-inf")
    ]


def contrastive_scores(probabilities: Tensor, hidden: Tensor, context: Tensor, alpha: float) -> Tensor:
    """Score candidates for the next token: reward probability, penalise repetition.

    A candidate's score is (1 - alpha) times its probability, minus alpha times the largest cosine between its hidden state and one of
    those of the text so far. Contrastive search takes the candidate with the largest score.

    Args:
        probabilities: Of K candidates, (B, K).
        hidden: The hidden state at each candidate, once it is appended to the text, (B, K, D).
        context: The hidden states of the text so far, (B, T, D).
        alpha: How much repetition counts, from 0 to 1.

    Returns:
        Scores, (B, K), in the dtype of `probabilities`.

    Raises:
        ValueError: If `alpha` is not from 0 to 1.

    Source:
        Su et al. 2022, A Contrastive Framework for Neural Text Generation, section 4.2.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha lies from 0 to 1, got {alpha}")
    candidates, said = (states / torch.linalg.vector_norm(states, dim=-1, keepdim=True) for states in (hidden, context))
    cosines = candidates @ said.mT  # (B, K, T)
    scores: Tensor = (1 - alpha) * probabilities - alpha * cosines.amax(dim=-1)
    return scores
