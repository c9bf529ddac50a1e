"""Decoding: greedy search, beam search, and scoring for contrastive search.

A language model is called as `model(tokens)` with integers (B, T) and returns logits
(B, T, V): position t predicts the token after `tokens[:, t]`. At each step, a search
passes the whole sequence so far to the model.

Shapes: B batch, T length of a prompt, K beam width or number of candidates, V
vocabulary, D width of a hidden state.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from tfcourse.data import EOS, PAD
from tfcourse.dtypes import widest_float

__all__ = ["beam_search", "contrastive_scores", "greedy_search", "length_penalty"]


@torch.no_grad()
def greedy_search(
    model: Callable[[Tensor], Tensor], prompt: Tensor, *, max_new_tokens: int, eos: int = EOS, pad: int = PAD
) -> Tensor:
    """Continue each sequence with the most probable token, step by step.

    A sequence ends with `eos`; after that, its row is filled with `pad`. The search
    stops when all sequences have ended, and after `max_new_tokens` at the latest. Ties
    go to the smallest token id.

    Args:
        model: A language model; its mode (training or evaluation) is not changed.
        prompt: The prompts, integers (B, T), all of one length. An `eos` in a prompt
            does not end the sequence.
        max_new_tokens: Maximum number n of new tokens, 0 or more.
        eos: The token that ends a sequence.
        pad: The token with which shorter sequences are padded.

    Returns:
        Prompts and new tokens, integers (B, T + n') with n' at most n.

    Raises:
        ValueError: If `max_new_tokens` is negative.

    Source:
        Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks,
        section 3.2, with a beam of 1.
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
    """Compute the divisor of log-probabilities that compensates for sequence length.

    Args:
        length: Number of generated tokens, including `eos`, at least 1.
        alpha: Strength; 0 gives a divisor of 1, which compares the probabilities
            themselves.
        kind: `power` is `length`^alpha; `wu` is ((5 + `length`) / 6)^alpha.

    Returns:
        The divisor.

    Raises:
        ValueError: If `length` is less than 1, or `kind` is unknown.

    Source:
        Wu et al. 2016, Google's Neural Machine Translation System, section 7 (`wu`);
        `power` follows Hugging Face.
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
    """Search for probable continuations of a prompt with a beam of width K.

    The search starts with one running sequence, the prompt, not with K copies. Each
    step extends all running sequences by one token and takes the 2 K most probable
    extensions, best first. An extension that ends in `eos` is finished if it is among
    the first K; its log-probability is divided by the length penalty. The first K of
    the other extensions keep running.

    The best K finished sequences are kept. The search stops when there are K of them
    and one of two conditions holds: `early_stopping` is set, or the best running
    sequence is not better than the worst finished one. Its log-probability is divided
    by the penalty of its current length for this comparison. Step `max_new_tokens` is
    the last: there, all of the first K extensions are finished, with or without `eos`.

    Args:
        model: A language model; its mode (training or evaluation) is not changed.
        prompt: One prompt, integers (1, T).
        beam_width: Number K of running sequences.
        max_new_tokens: Maximum number of new tokens, including `eos`, at least 1.
        alpha: Strength of the length penalty `power`.
        eos: The token that ends a sequence.
        early_stopping: Stop as soon as K sequences are finished.

    Returns:
        Score and new tokens, including `eos`, of at most K sequences, best first. A
        score is a log-probability divided by a length penalty. Continuations of
        probability 0 are excluded.

    Raises:
        ValueError: If there is not exactly one prompt, or `beam_width` or
            `max_new_tokens` is less than 1.

    Source:
        Graves 2012, Sequence Transduction with Recurrent Neural Networks, section 2.5;
        the stopping rules follow Hugging Face.
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
    """Return the most probable one-token extensions, best first, with their log-probabilities."""
    scores, texts = zip(*running, strict=True)
    written = prompt.new_tensor(texts).reshape(len(texts), -1)
    logits = model(torch.cat([prompt.expand(len(texts), -1), written], dim=1))[:, -1]  # (K, V)
    wide = widest_float(logits.device)
    so_far = logits.new_tensor(scores, dtype=wide)
    totals = so_far[:, None] + torch.log_softmax(logits.to(wide), dim=-1)  # (K, V)
    best, places = totals.flatten().topk(min(count, totals.numel()))
    vocabulary = totals.shape[1]
    return [
        (score, [*texts[place // vocabulary], place % vocabulary])
        for score, place in zip(best.tolist(), places.tolist(), strict=True)
        if score > float("-inf")
    ]


def contrastive_scores(probabilities: Tensor, hidden: Tensor, context: Tensor, alpha: float) -> Tensor:
    """Score candidates for the next token: reward probability, penalise repetition.

    A candidate's score is (1 - alpha) times its probability, minus alpha times the
    largest cosine similarity of its hidden state to a hidden state of the sequence so
    far. Contrastive search takes the candidate with the largest score.

    Args:
        probabilities: Probabilities of K candidates, (B, K).
        hidden: Hidden state of each candidate when it is appended to the sequence,
            (B, K, D).
        context: Hidden states of the sequence so far, (B, T, D).
        alpha: Weight of the repetition penalty, from 0 to 1.

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
    return (1 - alpha) * probabilities - alpha * cosines.amax(dim=-1)
