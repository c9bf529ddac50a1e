"""The searches of chapter 07, solved in other ways than the reference: right, so each must get all the points."""

import heapq
import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


@alternative("greedy_search")
def greedy_row_by_row(
    model: Callable[[Tensor], Tensor], prompt: Tensor, *, max_new_tokens: int, eos: int = 2, pad: int = 0
) -> Tensor:
    """Each text on its own, filled up in the end."""
    if max_new_tokens < 0:
        raise ValueError("a negative number of tokens")
    written = []
    for row in prompt:
        text = row.tolist()
        for _ in range(max_new_tokens):
            with torch.no_grad():
                text.append(int(model(torch.tensor([text], device=prompt.device))[0, -1].argmax()))
            if text[-1] == eos:
                break
        written.append(text)
    longest = max(map(len, written))
    filled = [text + [pad] * (longest - len(text)) for text in written]
    return torch.tensor(filled, dtype=prompt.dtype, device=prompt.device)


@alternative("greedy_search")
@torch.no_grad()
def greedy_with_a_while(
    model: Callable[[Tensor], Tensor], prompt: Tensor, *, max_new_tokens: int, eos: int = 2, pad: int = 0
) -> Tensor:
    """A column at a time, under a decorator."""
    if not max_new_tokens >= 0:
        raise ValueError(max_new_tokens)
    columns: list[Tensor] = []
    alive = torch.ones(prompt.shape[0], dtype=torch.bool, device=prompt.device)
    while len(columns) < max_new_tokens and alive.any():
        text = torch.cat([prompt, *columns], dim=1)
        token = torch.where(alive, model(text)[:, -1, :].max(dim=-1).indices, pad)
        alive = alive & (token != eos)
        columns.append(token.unsqueeze(1))
    return torch.cat([prompt, *columns], dim=1)


@alternative("length_penalty")
def penalty_by_exponential(length: int, alpha: float, *, kind: Literal["power", "wu"] = "power") -> float:
    """A power is the exponential of a logarithm."""
    bases = {"power": float(length), "wu": (length + 5.0) / 6.0}
    if kind not in bases or length <= 0:
        raise ValueError("no such penalty")
    return math.exp(alpha * math.log(bases[kind]))


@alternative("length_penalty")
def penalty_by_cases(length: int, alpha: float, *, kind: Literal["power", "wu"] = "power") -> float:
    """Two formulas."""
    if length < 1:
        raise ValueError("no tokens")
    if kind == "power":
        return pow(length, alpha)
    if kind == "wu":
        return (5 + length) ** alpha / 6**alpha
    raise ValueError(kind)


@alternative("beam_search")
def beam_with_lists(
    model: Callable[[Tensor], Tensor],
    prompt: Tensor,
    *,
    beam_width: int,
    max_new_tokens: int,
    alpha: float = 0.0,
    eos: int = 2,
    early_stopping: bool = False,
) -> list[tuple[float, list[int]]]:
    """Plain lists and a sort over everything, in the precision of the logits."""
    if tuple(prompt.shape[:1]) != (1,) or prompt.ndim != 2 or min(beam_width, max_new_tokens) < 1:
        raise ValueError("one prompt, one beam and one token at least")
    beams, done = [([], 0.0)], []  # type: ignore[var-annotated]
    for step in range(max_new_tokens):
        candidates = []
        for tokens, total in beams:
            text = torch.cat([prompt, torch.tensor([tokens], dtype=prompt.dtype, device=prompt.device)], dim=1)
            with torch.no_grad():
                following = model(text)[0, -1].log_softmax(-1).tolist()
            candidates += [([*tokens, token], total + more) for token, more in enumerate(following) if more > -math.inf]
        candidates.sort(key=lambda candidate: -candidate[1])
        beams = []
        for rank, (tokens, total) in enumerate(candidates[: 2 * beam_width]):
            if tokens[-1] == eos or step == max_new_tokens - 1:
                if rank < beam_width:
                    done.append((total / (step + 1) ** alpha, tokens))
            elif len(beams) < beam_width:
                beams.append((tokens, total))
        done = sorted(done, key=lambda text: text[0], reverse=True)[:beam_width]
        if len(done) == beam_width and (
            early_stopping or not beams or done[-1][0] >= beams[0][1] / (step + 1) ** alpha
        ):
            break
        if not beams:
            break
    return done


@alternative("beam_search")
@torch.inference_mode()
def beam_with_a_heap(
    model: Callable[[Tensor], Tensor],
    prompt: Tensor,
    *,
    beam_width: int,
    max_new_tokens: int,
    alpha: float = 0.0,
    eos: int = 2,
    early_stopping: bool = False,
) -> list[tuple[float, list[int]]]:
    """Tensors for the running texts, a heap for those set aside."""
    if prompt.shape[0] != 1 or beam_width < 1 or max_new_tokens < 1:
        raise ValueError("not to be searched")
    texts = prompt.clone()  # (K, T + n)
    totals = torch.zeros(1, 1, dtype=torch.float64)
    heap: list[tuple[float, int, list[int]]] = []
    for length in range(1, max_new_tokens + 1):
        sums = totals + torch.log_softmax(model(texts)[:, -1], dim=-1, dtype=torch.float64)
        values, order = sums.flatten().sort(descending=True, stable=True)
        values, order = values[: 2 * beam_width], order[: 2 * beam_width]
        parents, tokens = order // sums.shape[1], order % sums.shape[1]
        over = (tokens == eos) | (length == max_new_tokens)
        grown = torch.cat([texts[parents], tokens[:, None]], dim=1)
        for rank in over[:beam_width].nonzero().flatten().tolist():
            score = float(values[rank]) / length**alpha
            heapq.heappush(heap, (score, -len(heap) - 100 * length, grown[rank, prompt.shape[1] :].tolist()))
            if len(heap) > beam_width:
                heapq.heappop(heap)
        kept = (~over).nonzero().flatten()[:beam_width]
        texts, totals = grown[kept], values[kept, None]
        if not len(kept):
            break
        if len(heap) == beam_width and (early_stopping or float(totals[0]) / length**alpha <= heap[0][0]):
            break
    return [(score, text) for score, _, text in sorted(heap, reverse=True) if score > -math.inf]


@alternative("contrastive_scores")
def contrast_by_einsum(probabilities: Tensor, hidden: Tensor, context: Tensor, alpha: float) -> Tensor:
    """Products, divided by the lengths afterwards."""
    if alpha < 0 or alpha > 1:
        raise ValueError("not a share")
    products = torch.einsum("bkd,btd->bkt", hidden, context)
    lengths = hidden.norm(dim=-1)[:, :, None] * context.norm(dim=-1)[:, None, :]
    return torch.lerp(probabilities, -(products / lengths).max(dim=-1).values, alpha)


@alternative("contrastive_scores")
def contrast_by_broadcasting(probabilities: Tensor, hidden: Tensor, context: Tensor, alpha: float) -> Tensor:
    """A table of candidates and places, one number at a time for the last axis."""
    if not (alpha >= 0 and alpha <= 1):
        raise ValueError(alpha)
    one = hidden / hidden.pow(2).sum(-1, keepdim=True).sqrt()
    other = context / context.pow(2).sum(-1, keepdim=True).sqrt()
    likeness = (one[:, :, None] * other[:, None]).sum(-1)
    return probabilities - alpha * (probabilities + likeness.amax(-1))
