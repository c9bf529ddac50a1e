"""Samplers of chapter 07, written in other ways than the reference: right, so each must get all the points."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

INF = float("inf")
ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("out of range")


# ------------------------------------------------------------------------------------------------------- temperatures


@alternative("temperature")
def by_reciprocal(logits: Tensor, t: float) -> Tensor:
    """Times one over t, in the dtype of the logits."""
    _require(0 < t < INF)
    return logits * (1 / t)


@alternative("temperature")
def in_double(logits: Tensor, t: float) -> Tensor:
    """Everything in double precision."""
    if not 0 < t < INF:
        raise ValueError(t)
    return torch.div(logits.double(), t).type_as(logits)


@alternative("quadratic")
def by_where(logits: Tensor, factor: float, curve: float = 1.0) -> Tensor:
    """Excluded tokens are put at the largest logit for the time being."""
    _require(0 < factor < INF and 1 <= curve <= 3)
    top = logits.max(dim=-1, keepdim=True).values
    gone = torch.isneginf(logits)
    d = torch.where(gone, top, logits) - top
    result = top - factor * (3 - curve) / 2 * d.pow(2) + factor * (curve - 1) / 2 * d.pow(3)
    return torch.where(gone, torch.full_like(logits, -INF), result)


@alternative("quadratic")
def by_horner(logits: Tensor, factor: float, curve: float = 1.0) -> Tensor:
    """One square taken out, on the distance above."""
    _require(0 < factor < INF and 1 <= curve <= 3)
    top = logits.amax(-1, keepdim=True)
    above = (top - logits).clamp(max=1e6)  # excluded tokens fall so far that nothing is left of them
    bent = top - above * above * (factor * (3 - curve) / 2 + factor * (curve - 1) / 2 * above)
    return bent.masked_fill(logits == -INF, -INF)


@alternative("dynamic_temperature")
def by_entr(logits: Tensor, low: float, high: float, exponent: float = 1.0) -> Tensor:
    """PyTorch's elementwise entropy; the temperature as a mixture."""
    _require(0 < low <= high < INF and 0 < exponent < INF)
    H = torch.special.entr(logits.softmax(-1)).sum(-1, keepdim=True)
    n = logits.isfinite().sum(-1, keepdim=True)
    share = torch.where(n > 1, H / n.clamp(min=2).log(), torch.zeros_like(H)) ** exponent
    return (logits / ((1 - share) * low + share * high)).to(logits.dtype)


@alternative("dynamic_temperature")
def by_categorical(logits: Tensor, low: float, high: float, exponent: float = 1.0) -> Tensor:
    """The entropy as log of the sum less the mean logit."""
    _require(0 < low <= high < INF and 0 < exponent < INF)
    p = F.softmax(logits, dim=-1)
    mean = (p * logits.masked_fill(logits == -INF, 0.0)).sum(-1, keepdim=True)
    H = (logits.logsumexp(-1, keepdim=True) - mean).clamp(min=0)
    n = (logits != -INF).sum(-1, keepdim=True).to(logits)
    T = low + (high - low) * (H / n.log().clamp(min=1e-9)).clamp(max=1).pow(exponent)
    return logits / torch.where(n == 1, torch.full_like(T, low), T)


# ------------------------------------------------------------------------------------------------------------ filters


@alternative("top_k")
def by_sort(logits: Tensor, k: int) -> Tensor:
    """The k-th of the sorted logits."""
    _require(k >= 1)
    ordered, _ = torch.sort(logits, dim=-1, descending=True)
    k = min(k, logits.size(-1))
    out = logits.clone()
    out[logits < ordered[..., k - 1].unsqueeze(-1)] = -INF
    return out


@alternative("top_p")
def by_scatter(logits: Tensor, p: float) -> Tensor:
    """Sort, mark, scatter the marks back, and let equals share the fate of the first of them."""
    _require(0 < p <= 1)
    if p == 1:
        return logits.clone()
    ordered, indices = logits.sort(dim=-1, descending=True)
    total = ordered.double().softmax(-1).cumsum(-1)
    reached = total[..., :-1] >= p - 1e-9
    remove = torch.cat([torch.zeros_like(total[..., :1], dtype=torch.bool), reached], dim=-1)
    least = ordered.masked_fill(remove, INF).min(-1, keepdim=True).values
    kept = torch.zeros_like(remove).scatter(-1, indices, ~remove) | (logits == least)
    return logits.masked_fill(~kept, -INF)


@alternative("min_p")
def by_probabilities(logits: Tensor, p: float) -> Tensor:
    """Probabilities against p times the largest."""
    _require(0 <= p <= 1)
    q = torch.softmax(logits, -1)
    return logits.masked_fill(q < p * q.max(-1, keepdim=True)[0], -INF)


@alternative("top_a")
def by_sorted_first(logits: Tensor, a: float) -> Tensor:
    """The largest probability is the first of the sorted ones."""
    _require(0 <= a <= 1)
    q = F.softmax(logits.double(), dim=-1)
    first = q.sort(-1, descending=True).values[..., :1]
    return torch.where(q < a * first**2, -INF, logits)


@alternative("top_n_sigma")
def by_nan(logits: Tensor, n: float) -> Tensor:
    """The mean of squares less the square of the mean, with NaN left out."""
    _require(0 <= n < INF)
    x = logits.double()
    x = x - x.amax(-1, keepdim=True)
    finite = x.masked_fill(x == -INF, torch.nan)
    variance = finite.pow(2).nanmean(-1, keepdim=True) - finite.nanmean(-1, keepdim=True) ** 2
    return logits.masked_fill(x < -n * variance.clamp(min=0).sqrt(), -INF)


@alternative("top_n_sigma")
def by_weights(logits: Tensor, n: float) -> Tensor:
    """Zeros and ones as weights of what counts."""
    if not 0 <= n < INF:
        raise ValueError
    weight = torch.isfinite(logits).to(logits.dtype)
    weight = weight / weight.sum(-1, keepdim=True)
    x = torch.nan_to_num(logits, neginf=0.0)
    mean = torch.einsum("...v,...v->...", weight, x)[..., None]
    sigma = torch.einsum("...v,...v->...", weight, (x - mean) ** 2)[..., None].sqrt()
    return torch.where(logits >= logits.max(-1, keepdim=True).values - n * sigma, logits, torch.full_like(logits, -INF))


@alternative("tail_free")
def by_slices(logits: Tensor, z: float) -> Tensor:
    """Differences as slices, divided by their sum; a mask in sorted order gives the cut."""
    _require(0 <= z <= 1)
    if z == 1 or logits.shape[-1] <= 2:
        return logits.clone()
    x, _ = torch.sort(logits, descending=True)
    p = x.softmax(-1)
    first = p[..., :-1] - p[..., 1:]
    second = (first[..., :-1] - first[..., 1:]).abs()
    total = second.sum(-1, keepdim=True)
    running = (second / total.clamp(min=1e-30)).cumsum(-1)
    over = running > z
    i = over.to(torch.int64).argmax(-1, keepdim=True)
    cut = torch.where(over.any(-1, keepdim=True), x.gather(-1, i), torch.full_like(x[..., :1], -INF))
    return logits.masked_fill(logits < cut, -INF)


@alternative("epsilon_cutoff")
def by_topk(logits: Tensor, epsilon: float) -> Tensor:
    """As Transformers has it."""
    _require(0 < epsilon < 1)
    remove = (logits.softmax(-1) < epsilon) & (logits < logits.topk(1, dim=-1).values)
    return logits.masked_fill(remove, -INF)


@alternative("eta_cutoff")
def by_torch_entropy(logits: Tensor, epsilon: float) -> Tensor:
    """PyTorch's own entropy of a distribution, and the logarithm of the threshold."""
    _require(0 < epsilon < 1)
    log_p = logits.log_softmax(-1)
    H = torch.distributions.Categorical(logits=logits, validate_args=False).entropy().unsqueeze(-1)
    log_eta = torch.minimum(torch.full_like(H, math.log(epsilon)), 0.5 * math.log(epsilon) - H)
    return logits.masked_fill(log_p < log_eta, -INF)


@alternative("locally_typical")
def as_transformers_has_it(logits: Tensor, mass: float) -> Tensor:
    """The number of places with a smaller running sum is the place of the last one."""
    _require(0 < mass < 1)
    log_p = F.log_softmax(logits, dim=-1)
    H = -(log_p * log_p.exp()).nansum(-1, keepdim=True)
    distance = (-log_p - H).abs()
    ordered, indices = distance.sort(dim=-1)
    total = log_p.exp().gather(-1, indices).cumsum(-1)
    last = (total < mass).sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
    return logits.masked_fill(distance > ordered.gather(-1, last), -INF)


def _by_adding(sampler: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def additive(logits: Tensor, *args: float, **kwargs: float) -> Tensor:
        kept = sampler(logits.detach(), *args, **kwargs) > -INF
        return logits + torch.zeros_like(logits).masked_fill(~kept, -INF)

    return additive


# An additive mask, as masks of attention are written: the gradient of an excluded logit is nobody's business.
for _name in (
    "top_k",
    "top_p",
    "min_p",
    "top_a",
    "top_n_sigma",
    "tail_free",
    "epsilon_cutoff",
    "eta_cutoff",
    "locally_typical",
):
    alternative(_name)(_by_adding(ALTERNATIVES[_name][0]))


# ---------------------------------------------------------------------------------------------------------- penalties


def _fits(logits: Tensor, tokens: Tensor) -> None:
    _require(logits.dim() == 2 and tokens.dim() == 2 and logits.size(0) == tokens.size(0))


@alternative("presence_frequency_penalty")
def by_one_hot(logits: Tensor, tokens: Tensor, *, presence: float = 0.0, frequency: float = 0.0) -> Tensor:
    """Counts as a sum of one-hot rows."""
    _fits(logits, tokens)
    counts = (tokens.unsqueeze(-1) == torch.arange(logits.size(1), device=tokens.device)).sum(1)
    counts = counts.to(logits.dtype)
    return logits - presence * counts.clamp(max=1) - frequency * counts


@alternative("presence_frequency_penalty")
def in_place_on_a_copy(logits: Tensor, tokens: Tensor, *, presence: float = 0.0, frequency: float = 0.0) -> Tensor:
    """Subtract where the tokens point; presence by writing ones."""
    _fits(logits, tokens)
    tokens = tokens.long()
    result = logits.clone()
    result.scatter_add_(1, tokens, torch.full(tokens.shape, -frequency, dtype=logits.dtype, device=logits.device))
    there = torch.zeros_like(logits)
    there.scatter_(1, tokens, 1.0)
    return result - presence * there


@alternative("repetition_penalty")
def by_gather(logits: Tensor, tokens: Tensor, penalty: float) -> Tensor:
    """As Transformers has it: gather, penalise, scatter."""
    _require(0 < penalty < INF)
    _fits(logits, tokens)
    tokens = tokens.long()
    score = logits.gather(1, tokens)
    return logits.scatter(1, tokens, torch.where(score < 0, score * penalty, score / penalty))


@alternative("repetition_penalty")
def by_factors(logits: Tensor, tokens: Tensor, penalty: float) -> Tensor:
    """A factor for each token, its exponent by the sign."""
    _require(0 < penalty < INF)
    _fits(logits, tokens)
    seen = F.one_hot(tokens.long(), logits.shape[1]).amax(1).bool()
    factor = torch.where(logits > 0, 1 / penalty, penalty)
    return torch.where(seen, logits * factor, logits).to(logits.dtype)


@alternative("dry_penalty")
def by_loops(
    logits: Tensor, tokens: Tensor, *, multiplier: float, base: float, allowed: int, breakers: Any = ()
) -> Tensor:
    """From the definition, with plain loops over rows and places."""
    _fits(logits, tokens)
    _require(multiplier >= 0 and base >= 1 and allowed >= 1)
    result, stops = logits.clone(), set(breakers)
    for b, text in enumerate(tokens.tolist()):
        longest: dict[int, int] = {}
        for i in range(len(text) - 1):
            m = 0
            while m <= i and text[i - m] == text[len(text) - 1 - m] and text[i - m] not in stops:
                m += 1
            longest[text[i + 1]] = max(longest.get(text[i + 1], 0), m)
        for token, m in longest.items():
            if m >= allowed and token not in stops:
                result[b, token] = result[b, token] - multiplier * base ** (m - allowed)
    return result


@alternative("dry_penalty")
def by_suffixes(
    logits: Tensor, tokens: Tensor, *, multiplier: float, base: float, allowed: int, breakers: Any = ()
) -> Tensor:
    """Look for ever longer ends of the text, and note what came behind them."""
    _fits(logits, tokens)
    if allowed < 1 or base < 1 or multiplier < 0:
        raise ValueError("dry")
    penalty = torch.zeros_like(logits)
    for b in range(len(tokens)):
        text = tokens[b].tolist()
        for m in range(1, len(text)):
            end = text[-m:]
            if any(token in breakers for token in end):
                break
            for i in range(m - 1, len(text) - 1):
                if text[i + 1 - m : i + 1] == end and m >= allowed and text[i + 1] not in breakers:
                    penalty[b, text[i + 1]] = multiplier * base ** (m - allowed)
    return logits - penalty


# ------------------------------------------------------------------------------------------------- what draws, and chains


@alternative("exclude_top_choices")
def by_sorted_places(logits: Tensor, threshold: float, probability: float, generator: Any = None) -> Tensor:
    """The last place in sorted order that reaches the threshold."""
    _require(0 < threshold <= 1 and 0 <= probability <= 1)
    acts = torch.rand(logits.shape[:-1], generator=generator, device=logits.device) < probability
    ordered = logits.sort(-1, descending=True).values
    number = (ordered.softmax(-1) >= threshold).sum(-1, keepdim=True)
    last = ordered.gather(-1, (number - 1).clamp(min=0))
    exclude = (logits > last) & (number >= 2) & acts.unsqueeze(-1)
    return logits.masked_fill(exclude, -INF)


@alternative("exclude_top_choices")
def by_least(logits: Tensor, threshold: float, probability: float, generator: Any = None) -> Tensor:
    """The smallest probability that reaches the threshold."""
    _require(0 < threshold <= 1 and 0 <= probability <= 1)
    coin = torch.rand(*logits.shape[:-1], generator=generator, device=logits.device)[..., None]
    p = torch.softmax(logits, dim=-1)
    least = torch.where(p >= threshold, p, torch.ones_like(p)).min(-1, keepdim=True)[0]
    # Equal logits have equal probabilities but for the last digit.
    return torch.where((coin < probability) & (p > least * (1 + 1e-5)), -INF, logits)


@alternative("mirostat")
def by_probabilities_in_bits(
    logits: Tensor, mu: Tensor, *, tau: float, eta: float, generator: Any = None
) -> tuple[Tensor, Tensor]:
    """Probabilities, log2, and a division by what is left."""
    _require(tau > 0 and eta >= 0 and logits.ndim == 2 and mu.shape == (len(logits),))
    p = logits.softmax(-1)
    kept = (-p.log2() <= mu[:, None]) | (p == p.amax(-1, keepdim=True))
    q = p * kept
    q = q / q.sum(-1, keepdim=True)
    token = torch.multinomial(q, 1, generator=generator)
    surprise = -q.gather(1, token)[:, 0].log2()
    return token[:, 0], (mu - eta * (surprise - tau)).to(mu.dtype)


@alternative("mirostat")
def by_threshold(logits: Tensor, mu: Tensor, *, tau: float, eta: float, generator: Any = None) -> tuple[Tensor, Tensor]:
    """The limit as a probability: 2 to the power of -mu, or the largest one."""
    _require(tau > 0 and eta >= 0 and logits.ndim == 2 and mu.shape == logits.shape[:1])
    p = torch.softmax(logits, dim=1)
    least = torch.minimum(torch.exp2(-mu)[:, None].to(p.dtype), p.amax(1, keepdim=True))
    left = logits.masked_fill(p < least, -INF)
    token = left.softmax(1).multinomial(1, generator=generator).squeeze(1)
    surprise = F.cross_entropy(left, token, reduction="none") / math.log(2)
    return token, (mu - eta * (surprise - tau)).to(mu.dtype)


FILTERS = [
    *("temperature", "top_k", "top_p", "min_p", "top_a", "top_n_sigma", "tail_free"),
    *("epsilon_cutoff", "eta_cutoff", "locally_typical", "quadratic", "dynamic_temperature"),
]
PENALTIES = ["presence_frequency_penalty", "repetition_penalty", "dry_penalty"]


# A chain is made of a student's own samplers: here the first of those above.
OWN = {name: ALTERNATIVES[name][0] for name in [*FILTERS, *PENALTIES, "exclude_top_choices"]}


@alternative("sampler_chain")
def by_look_up(logits: Tensor, tokens: Tensor, chain: Any, generator: Any = None) -> Tensor:
    """Look each name up when its turn comes."""
    result = logits.clone()
    for name, parameters in chain:
        extra: dict[str, Any] = {}
        if name in PENALTIES:
            extra["tokens"] = tokens
        elif name == "exclude_top_choices":
            extra["generator"] = generator
        elif name not in FILTERS:
            raise ValueError(f"{name}: {FILTERS} {PENALTIES} exclude_top_choices")
        result = OWN[name](result, **parameters, **extra)
    return result


@alternative("sampler_chain")
def by_recursion(logits: Tensor, tokens: Tensor, chain: Any, generator: Any = None) -> Tensor:
    """The chain but for its last link, then the last."""
    if not chain:
        return logits + 0
    *before, (name, parameters) = chain
    if name not in [*FILTERS, *PENALTIES, "exclude_top_choices"]:
        raise ValueError("no such sampler")
    left = by_recursion(logits, tokens, before, generator)
    if name in FILTERS:
        return OWN[name](left, **parameters)
    if name in PENALTIES:
        return OWN[name](left, tokens, **parameters)
    return OWN["exclude_top_choices"](left, generator=generator, **parameters)
