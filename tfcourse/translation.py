"""Greedy decoding and beam search for any model with the translator interface.

A translator is called as `model(source, target, source_mask)` and returns logits
(B, T, V): position t predicts the token after target[:, t]. Shapes: B batch, S source
length, T target length, K beam width, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tfcourse.data import BOS, EOS, PAD

__all__ = ["Translations", "beam_search", "greedy_decode"]

Translator = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class Translations(NamedTuple):
    """The results of a beam search, best first."""

    tokens: Tensor
    """Integers, (B, K, T), without BOS, each ended by EOS (unless `max_length` cut it off) and filled with PAD."""
    scores: Tensor
    """Log-probabilities, (B, K), divided by the length penalty."""


@torch.no_grad()
def greedy_decode(model: Translator, source: Tensor, source_mask: Tensor | None = None, *, max_length: int) -> Tensor:
    """Translate greedily: append the most probable token until all sentences have ended.

    The model's mode is not changed: call `model.eval()` first if it has dropout.

    Args:
        model: A translator.
        source: Source tokens, integers (B, S).
        source_mask: Boolean (B, S), True at real tokens; None means that all are real.
        max_length: Maximum number of tokens of a translation, including EOS.

    Returns:
        Tokens, integers (B, T) with T ≤ `max_length`: each sentence ends with EOS
        (unless it was truncated) and is padded with PAD. The initial BOS is omitted.
        PAD and BOS are not excluded: they are generated if the model finds them most
        probable.

    Raises:
        ValueError: If `max_length` is less than 1.

    Source:
        Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks,
        section 3.2 (a beam of size 1).
    """
    if max_length < 1:
        raise ValueError(f"a translation has at least one token, got max_length={max_length}")
    target = torch.full((len(source), 1), BOS, dtype=torch.int64, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for _ in range(max_length):
        best = model(source, target, source_mask)[:, -1].argmax(dim=-1)  # (B,)
        best = best.masked_fill(ended, PAD)
        target = torch.cat([target, best[:, None]], dim=1)  # (B, 1 + T)
        ended = ended | (best == EOS)
        if bool(ended.all()):
            break
    return target[:, 1:]


@torch.no_grad()
def beam_search(
    model: Translator,
    source: Tensor,
    source_mask: Tensor | None = None,
    *,
    beam_width: int = 4,
    max_length: int,
    length_penalty: float = 0.0,
) -> Translations:
    """Translate with beam search: at every length, keep and extend the K best prefixes.

    A score is the sum of the log-probabilities of the tokens, divided by ((5 + length)
    / 6) ^ `length_penalty`; the length includes EOS. A finished sentence keeps its
    score and stays in the beam until K sentences are better. The search stops when all
    K have ended, or at `max_length`. K = 1 is greedy decoding.

    Args:
        model: A translator.
        source: Source tokens, integers (B, S).
        source_mask: Boolean (B, S), True at real tokens; None means that all are real.
        beam_width: Number K of prefixes to keep.
        max_length: Maximum number of tokens of a translation, including EOS.
        length_penalty: 0 compares probabilities; larger values favour longer
            translations (0.6 in the original Transformer).

    Returns:
        The K translations of every source, best first, and their scores, in the dtype
        of the logits or float32 if that is wider. If fewer than K are possible, the
        others have the score minus infinity and arbitrary tokens.

    Raises:
        ValueError: If `beam_width` or `max_length` is less than 1.

    Source:
        Graves 2012, Sequence Transduction with Recurrent Neural Networks, section 2.5;
        Wu et al. 2016, Google's Neural Machine Translation System, section 7, equation
        14 (length penalty, without coverage).
    """
    if beam_width < 1 or max_length < 1:
        raise ValueError(f"both are at least 1, got beam_width={beam_width}, max_length={max_length}")
    B, K, device = len(source), beam_width, source.device
    sources = source.repeat_interleave(K, dim=0)  # (B·K, S)
    masks = None if source_mask is None else source_mask.repeat_interleave(K, dim=0)
    target = torch.full((B, K, 1), BOS, dtype=torch.int64, device=device)
    # At first the K beginnings are one and the same: only one of them may go on, or the beam holds K copies.
    total = torch.full((B, K), -torch.inf, dtype=torch.float32, device=device)
    total[:, 0] = 0.0
    length = torch.zeros(B, K, dtype=torch.int64, device=device)
    ended = torch.zeros(B, K, dtype=torch.bool, device=device)
    for _ in range(max_length):
        logits = model(sources, target.flatten(0, 1), masks)[:, -1]  # (B·K, V)
        V = logits.shape[-1]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        log_p = torch.log_softmax(wide, dim=-1).reshape(B, K, V)
        # A sentence that has ended goes on in one way only: with padding, which costs nothing.
        padding = torch.full((V,), -torch.inf, dtype=wide.dtype, device=device)
        padding[PAD] = 0.0
        log_p = torch.where(ended[..., None], padding, log_p)
        totals = (total[..., None] + log_p).flatten(1)  # (B, K·V)
        lengths = (length + ~ended)[..., None].expand(B, K, V).flatten(1)
        best = (totals / _penalty(lengths.to(totals), length_penalty)).topk(K, dim=1).indices  # (B, K)
        parent, token = best // V, best % V
        total, length = totals.gather(1, best), lengths.gather(1, best)
        target = target.gather(1, parent[..., None].expand(-1, -1, target.shape[-1]))
        target = torch.cat([target, token[..., None]], dim=-1)  # (B, K, 1 + T)
        ended = ended.gather(1, parent) | (token == EOS)
        if bool(ended.all()):
            break
    return Translations(target[..., 1:], total / _penalty(length.to(total), length_penalty))


def _penalty(length: Tensor, strength: float) -> Tensor:
    return ((5 + length) / 6) ** strength
