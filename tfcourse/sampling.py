"""Samplers, which transform next-token logits: temperatures, filters, penalties, and chains of them.

Shapes: B batch, T length of the sequence so far, V vocabulary; `...` stands for any
number of leading dimensions. These rules hold for every function here, unless its
docstring states an exception:

- Logits (..., V) become new logits of the same shape and dtype, computed in float32 or
  wider. The input is not changed.
- An excluded token has the logit -inf. Excluded tokens stay excluded, and at least one
  token per row is not excluded.
- The most probable token is never excluded.
- Tokens with equal logits are treated equally: cut-offs are values, not positions in a
  sorted list.
- Rows are independent, and gradients flow through the logits that are kept.
- `tokens` (B, T) are the sequences so far; the logits are then (B, V).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfcourse.dtypes import widest_float

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_a",
    "top_n_sigma",
    "tail_free",
    "epsilon_cutoff",
    "eta_cutoff",
    "locally_typical",
    "quadratic",
    "dynamic_temperature",
    "presence_frequency_penalty",
    "repetition_penalty",
    "dry_penalty",
    "exclude_top_choices",
    "mirostat",
    "sampler_chain",
]


def temperature(logits: Tensor, t: float) -> Tensor:
    """Sharpen or flatten a distribution: divide all logits by a temperature.

    The probabilities become p^(1/t), normalised. A temperature below 1 sharpens the
    distribution, a temperature above 1 flattens it.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        t: The temperature, above 0.

    Returns:
        New logits, (..., V), in the dtype of `logits`; excluded tokens (-inf) stay
        excluded.

    Raises:
        ValueError: If `t` is out of range.

    Source:
        Ackley, Hinton and Sejnowski 1985, A Learning Algorithm for Boltzmann Machines,
        section 2.
    """
    if t <= 0:
        raise ValueError(f"a temperature is above 0, got {t}")
    return (_wide(logits) / t).to(logits.dtype)


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k most probable tokens and exclude all others.

    All tokens whose logit equals the k-th largest are kept, so more than k may remain.
    If k is V or more, all tokens are kept.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        k: Number of tokens to keep, at least 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `k` is less than 1.

    Source:
        Fan, Lewis and Dauphin 2018, Hierarchical Neural Story Generation, section 5.
    """
    if k < 1:
        raise ValueError(f"at least one token is kept, got k={k}")
    largest = logits.topk(min(k, logits.shape[-1]), dim=-1).values  # (..., k)
    return _keep(logits, logits >= largest[..., -1:])


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the smallest set of top tokens with total probability p (nucleus sampling).

    Let s be the sum of the probabilities of all tokens that are more probable than a
    token. The token is kept if s < p. So the token with which the sum reaches p is
    kept, the most probable token is always kept, and p = 1 keeps all tokens.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        p: The total probability to reach, above 0 and at most 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `p` is out of range.

    Source:
        Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is a probability above 0 and at most 1, got {p}")
    if p == 1:  # a running sum in floating point may reach 1 before the last token
        return logits.clone()
    ordered = logits.to(widest_float(logits.device)).sort(dim=-1, descending=True).values  # (..., V)
    probability = torch.softmax(ordered, dim=-1)
    before = probability.cumsum(dim=-1) - probability  # 0 for the first token
    below = before < p * (1 - 1e-6)  # 0.5 + 0.3 may be a little less than 0.8
    # Among equals the first has the smallest sum before it, and a cut by value keeps the others with it.
    least = ordered.where(below, torch.inf).amin(dim=-1, keepdim=True)
    return _keep(logits, logits >= least)


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep every token that is at least p times as probable as the most probable one.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        p: Threshold relative to the largest probability, from 0 (keeps all tokens) to 1
            (keeps the most probable token and ties).

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `p` is out of range.

    Source:
        Nguyen et al. 2024, Turning Up the Heat: Min-p Sampling, section 3.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p is a share from 0 to 1, got {p}")
    wide = _wide(logits)
    share = (wide - wide.amax(dim=-1, keepdim=True)).exp()  # probability over the largest probability
    return _keep(logits, share >= p)


def top_a(logits: Tensor, a: float) -> Tensor:
    """Keep the tokens of probability at least a times the squared largest probability.

    The threshold is high for a confident model; for an uncertain model the square makes
    it very low.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        a: Factor of the square, from 0 (keeps all tokens) to 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `a` is out of range.

    Source:
        BlinkDL 2021, RWKV-LM, "The top-a sampling method".
    """
    if not 0 <= a <= 1:
        raise ValueError(f"a is a factor from 0 to 1, got {a}")
    probability = torch.softmax(_wide(logits), dim=-1)
    largest = probability.amax(dim=-1, keepdim=True)
    return _keep(logits, probability >= a * largest.square())


def top_n_sigma(logits: Tensor, n: float) -> Tensor:
    """Keep the tokens at most n standard deviations below the largest logit.

    It is the population standard deviation (divided by the number of logits) of the
    logits that are not -inf. A temperature scales logits and deviation equally, so the
    same tokens are kept at every temperature.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        n: Number of standard deviations, at least 0 (keeps the most probable token and
            ties).

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `n` is out of range.

    Source:
        Tang et al. 2024, Top-nσ: Not All Logits Are You Need, section 3.
    """
    if n < 0:
        raise ValueError(f"n is at least 0, got {n}")
    wide = _wide(logits)
    counts = wide > -torch.inf
    number = counts.sum(dim=-1, keepdim=True)
    mean = wide.where(counts, 0).sum(dim=-1, keepdim=True) / number
    variance = (wide - mean).where(counts, 0).square().sum(dim=-1, keepdim=True) / number
    return _keep(logits, wide >= wide.amax(dim=-1, keepdim=True) - n * variance.sqrt())


def tail_free(logits: Tensor, z: float) -> Tensor:
    """Exclude the tail where the curve of the sorted probabilities flattens.

    Sort the probabilities in descending order. Their absolute second differences
    measure the curvature at each index. Divide them by their sum, and let i be the
    first index (counted from 0) at which their cumulative sum exceeds z. The i + 1 most
    probable tokens are kept, including ties with the last of them. Nothing changes if
    no cumulative sum exceeds z, if all second differences are 0, or if V is at most 2.
    Excluded tokens have probability 0.

    Implementations differ by one token: llama.cpp kept i tokens, web interfaces keep i
    + 1.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        z: Fraction of the curvature to keep, from 0 to 1 (keeps all tokens).

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `z` is out of range.

    Source:
        Bricken 2019, Tail Free Sampling, trentonbricken.com/Tail-Free-Sampling.
    """
    if not 0 <= z <= 1:
        raise ValueError(f"z is a share from 0 to 1, got {z}")
    ordered = _wide(logits).sort(dim=-1, descending=True).values  # (..., V)
    bend = torch.softmax(ordered, dim=-1).diff(n=2, dim=-1).abs()  # (..., V - 2)
    running = bend.cumsum(dim=-1)
    # z times the sum, in place of a division by it: the sum is 0 where all probabilities are equal.
    within = running <= z * running[..., -1:]
    last = within.sum(dim=-1, keepdim=True)  # i, or V - 2 if no running sum exceeds z
    least = ordered.gather(-1, last).where(~within.all(dim=-1, keepdim=True), -torch.inf)
    return _keep(logits, _wide(logits) >= least)


def epsilon_cutoff(logits: Tensor, epsilon: float) -> Tensor:
    """Keep every token of probability at least epsilon, and the most probable token.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        epsilon: The smallest probability to keep, strictly between 0 and 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `epsilon` is out of range.

    Source:
        Hewitt, Manning and Liang 2022, Truncation Sampling as Language Model
        Desmoothing, section 3.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is a probability strictly between 0 and 1, got {epsilon}")
    wide = _wide(logits)
    best = wide == wide.amax(dim=-1, keepdim=True)
    return _keep(logits, best | (torch.softmax(wide, dim=-1) >= epsilon))


def eta_cutoff(logits: Tensor, epsilon: float) -> Tensor:
    """Keep every token with a probability of at least min(ε, √ε · e^-H).

    H is the entropy of the row, in nats: the higher the entropy, the lower the
    threshold. The most probable token is always kept, because its probability is at
    least e^-H.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        epsilon: The parameter ε, strictly between 0 and 1; an upper bound of the
            threshold.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `epsilon` is out of range.

    Source:
        Hewitt, Manning and Liang 2022, Truncation Sampling as Language Model
        Desmoothing, section 4.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is a probability strictly between 0 and 1, got {epsilon}")
    wide = _wide(logits)
    threshold = (epsilon**0.5 * (-_entropy(wide)).exp()).clamp(max=epsilon)  # (..., 1)
    return _keep(logits, torch.softmax(wide, dim=-1) >= threshold)


def locally_typical(logits: Tensor, mass: float) -> Tensor:
    """Keep the tokens with surprisal closest to the entropy, up to a total `mass`.

    The surprisal of a token is -log p, and the entropy H is its expected value; let d =
    abs(-log p - H). A token is kept if the tokens with a strictly smaller d have a
    total probability below `mass`. This is the only filter that may exclude the most
    probable token.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        mass: The total probability to reach, strictly between 0 and 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `mass` is out of range.

    Source:
        Meister et al. 2023, Locally Typical Sampling, section 4.
    """
    if not 0 < mass < 1:
        raise ValueError(f"mass is a probability strictly between 0 and 1, got {mass}")
    wide = _wide(logits)
    distance = (-torch.log_softmax(wide, dim=-1) - _entropy(wide)).abs()  # (..., V), inf where p is 0
    nearest, order = distance.sort(dim=-1)
    probability = torch.softmax(wide, dim=-1).gather(-1, order)
    before = probability.cumsum(dim=-1) - probability  # 0 for the first token
    farthest = nearest.where(before < mass, -torch.inf).amax(dim=-1, keepdim=True)
    return _keep(logits, distance <= farthest)


def quadratic(logits: Tensor, factor: float, curve: float = 1.0) -> Tensor:
    """Replace the distance to the largest logit by a quadratic function (smoothing).

    With d = logit - largest logit, the new logit is largest - k · d² + s · d³. The
    coefficients are k = factor · (3 - curve) / 2 and s = factor · (curve - 1) / 2.
    Differences between the top tokens shrink; tokens far below become much less
    probable.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        factor: Steepness of the parabola, above 0.
        curve: Weight of the cubic term, from 1 (only quadratic) to 3 (only cubic).

    Returns:
        New logits, (..., V), in the dtype of `logits`; excluded tokens (-inf) stay
        excluded.

    Raises:
        ValueError: If `factor` or `curve` is out of range.

    Source:
        Kalomaze 2024, text-generation-webui, "quadratic sampling" (smoothing_factor,
        smoothing_curve).
    """
    if factor <= 0:
        raise ValueError(f"factor is above 0, got {factor}")
    if not 1 <= curve <= 3:
        raise ValueError(f"curve is a number from 1 to 3, got {curve}")
    wide = _wide(logits)
    excluded = wide == -torch.inf
    largest = wide.amax(dim=-1, keepdim=True)
    below = (wide - largest).masked_fill(excluded, 0)  # 0 times infinity is NaN
    square, cube = factor * (3 - curve) / 2, factor * (curve - 1) / 2
    bent = largest - square * below**2 + cube * below**3
    return bent.masked_fill(excluded, -torch.inf).to(logits.dtype)


def dynamic_temperature(logits: Tensor, low: float, high: float, exponent: float = 1.0) -> Tensor:
    """Divide each row by its own temperature, which increases with the entropy.

    T = low + (high - low) · (H / log n)^exponent, where H is the entropy of the row.
    The largest possible entropy is log n, with n the number of tokens that are not
    excluded. With n = 1, T is `low`. Gradients also flow through T.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        low: The temperature at entropy 0, above 0.
        high: The temperature of a uniform row, at least `low`.
        exponent: Exponent of the entropy ratio, above 0; 1 is linear.

    Returns:
        New logits, (..., V), in the dtype of `logits`; excluded tokens (-inf) stay
        excluded.

    Raises:
        ValueError: If a parameter is out of range.

    Source:
        Kalomaze 2023, koboldcpp, "dynamic temperature" (entropy sampling).
    """
    if not 0 < low <= high:
        raise ValueError(f"temperatures are above 0, low at most high, got low={low}, high={high}")
    if exponent <= 0:
        raise ValueError(f"exponent is above 0, got {exponent}")
    wide = _wide(logits)
    excluded = wide == -torch.inf
    number = (~excluded).sum(dim=-1, keepdim=True)  # (..., 1)
    # The entropy of one token is 0, and so is the logarithm of 1.
    share = _entropy(wide) / number.clamp(min=2).to(wide.dtype).log()
    t = low + (high - low) * share**exponent
    # Infinity over T would make the gradient of T NaN.
    return (wide.masked_fill(excluded, 0) / t).masked_fill(excluded, -torch.inf).to(logits.dtype)


def presence_frequency_penalty(
    logits: Tensor, tokens: Tensor, *, presence: float = 0.0, frequency: float = 0.0
) -> Tensor:
    """Penalise tokens in the sequence: `presence` once, `frequency` per occurrence.

    `presence` · [c > 0] + `frequency` · c is subtracted from the logit of a token that
    occurs c times in its row of `tokens`. Negative values make repetition more likely.

    Args:
        logits: One logit per token of the vocabulary, (B, V).
        tokens: The sequences so far, integers (B, T).
        presence: Penalty for occurring at all.
        frequency: Penalty per occurrence.

    Returns:
        New logits, (B, V), in the dtype of `logits`.

    Raises:
        ValueError: If the shapes do not fit.

    Source:
        OpenAI 2020, API reference, "frequency and presence penalties".
    """
    _require_text(logits, tokens)
    wide = _wide(logits)
    counts = torch.zeros_like(wide).scatter_add(1, tokens.long(), wide.new_ones(tokens.shape))  # (B, V)
    return (wide - presence * (counts > 0).to(wide.dtype) - frequency * counts).to(logits.dtype)


def repetition_penalty(logits: Tensor, tokens: Tensor, penalty: float) -> Tensor:
    """Penalise tokens in the sequence: divide positive logits, multiply negative ones.

    A token is penalised once, however often it occurs. Penalties below 1 make
    repetition more likely.

    Args:
        logits: One logit per token of the vocabulary, (B, V).
        tokens: The sequences so far, integers (B, T).
        penalty: The factor, above 0; 1 changes nothing.

    Returns:
        New logits, (B, V), in the dtype of `logits`.

    Raises:
        ValueError: If `penalty` is out of range, or the shapes do not fit.

    Source:
        Keskar et al. 2019, CTRL, section 4.1, with the common correction for negative
        logits.
    """
    if penalty <= 0:
        raise ValueError(f"a penalty is above 0, got {penalty}")
    _require_text(logits, tokens)
    wide = _wide(logits)
    said = torch.zeros_like(wide, dtype=torch.bool).scatter(1, tokens.long(), True)  # (B, V)
    penalised = torch.where(wide < 0, wide * penalty, wide / penalty)
    return torch.where(said, penalised, wide).to(logits.dtype)


def dry_penalty(
    logits: Tensor, tokens: Tensor, *, multiplier: float, base: float, allowed: int, breakers: Sequence[int] = ()
) -> Tensor:
    """Penalise tokens that would extend a repetition ("don't repeat yourself").

    The penalty grows with the length of the repetition. For every position i before the
    last, let m be the length of the longest run of tokens that ends at i and equals the
    end of the sequence. A breaker is not part of a run. The token at position i + 1
    followed that run, so it would extend the repetition. If a token has several m, the
    largest is used. If m is at least `allowed` and the token is not a breaker,
    multiplier · base^(m - allowed) is subtracted from its logit. The two runs may
    overlap.

    Args:
        logits: One logit per token of the vocabulary, (B, V).
        tokens: The sequences so far, integers (B, T).
        multiplier: The penalty of a repetition of length `allowed`, at least 0.
        base: Factor of the penalty for each further token, at least 1.
        allowed: The shortest repetition whose continuation is penalised, at least 1.
        breakers: Tokens that end a repetition, for example line ends, quotation marks
            and names.

    Returns:
        New logits, (B, V), in the dtype of `logits`.

    Raises:
        ValueError: If a parameter is out of range, or the shapes do not fit.

    Source:
        p-e-w 2024, text-generation-webui, "DRY: a modern repetition penalty".
    """
    if multiplier < 0 or base < 1 or allowed < 1:
        raise ValueError(f"penalties must grow, got multiplier={multiplier}, base={base}, allowed={allowed}")
    _require_text(logits, tokens)
    wide, tokens = _wide(logits), tokens.long()
    T = tokens.shape[1]
    stops = torch.tensor(list(breakers), dtype=torch.long, device=tokens.device)
    # Step back k places from place i, and from the last place.
    places = torch.arange(T, device=tokens.device)
    back = places[:-1, None] - places  # (T - 1, T): i - k
    last = tokens.flip(1).unsqueeze(1)  # (B, 1, T): k places before the end
    same = (tokens[:, back.clamp(min=0)] == last) & (back >= 0) & ~torch.isin(last, stops)  # (B, T - 1, T)
    length = same.cumprod(dim=-1).sum(dim=-1)  # (B, T - 1): m of each place
    longest = torch.zeros_like(wide, dtype=torch.long).scatter_reduce(1, tokens[:, 1:], length, "amax")  # (B, V)
    vocabulary = torch.arange(logits.shape[1], device=tokens.device)
    penalised = (longest >= allowed) & ~torch.isin(vocabulary, stops)
    penalty = multiplier * base ** (longest - allowed).to(wide.dtype)  # (B, V)
    return torch.where(penalised, wide - penalty, wide).to(logits.dtype)


def exclude_top_choices(
    logits: Tensor, threshold: float, probability: float, generator: torch.Generator | None = None
) -> Tensor:
    """Randomly exclude all tokens above a threshold except the least probable (XTC).

    A single call of `torch.rand` with shape (...), in float32, draws one number per
    row. A row changes if its number is below `probability` and at least two of its
    tokens have a probability of `threshold` or more. These tokens are excluded, except
    the least probable of them and ties with it.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        threshold: Probability from which a token counts as a top choice, above 0 and at
            most 1.
        probability: Probability of excluding tokens in a row, from 0 to 1.
        generator: Source of randomness; None means PyTorch's own.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for excluded tokens,
        unchanged otherwise.

    Raises:
        ValueError: If `threshold` or `probability` is out of range.

    Source:
        p-e-w 2024, text-generation-webui, "exclude top choices (XTC)".
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is a probability above 0 and at most 1, got {threshold}")
    if not 0 <= probability <= 1:
        raise ValueError(f"probability is a number from 0 to 1, got {probability}")
    coin = torch.rand(logits.shape[:-1], generator=generator, device=logits.device, dtype=torch.float32)
    wide = _wide(logits)
    obvious = torch.softmax(wide, dim=-1) >= threshold
    least = wide.where(obvious, torch.inf).amin(dim=-1, keepdim=True)
    # Where there is one obvious choice alone, or none, nothing is above the least of them.
    return _keep(logits, ~(obvious & (wide > least) & (coin < probability).unsqueeze(-1)))


def mirostat(
    logits: Tensor, mu: Tensor, *, tau: float, eta: float, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw a token, and steer the surprisal of a sequence to a target (Mirostat 2).

    Surprisal is measured in bits, -log2 p. Tokens with a surprisal above the row's `mu`
    are excluded, but never the most probable token. The remaining probabilities are
    normalised, and a single call of `torch.multinomial` draws one token per row. With
    the drawn token's surprisal s under the normalised probabilities, the new mu is mu -
    eta · (s - tau). The initial mu of a sequence is 2 · tau.

    Args:
        logits: One logit per token of the vocabulary, (B, V).
        mu: The largest surprisal allowed in each row, in bits, (B,).
        tau: The target surprisal, in bits, above 0.
        eta: Learning rate of mu, at least 0.
        generator: Source of randomness; None means PyTorch's own.

    Returns:
        The drawn tokens, integers (B,), and the new mu, (B,), in the dtype of `mu`.

    Raises:
        ValueError: If `tau` or `eta` is out of range, or the shapes do not fit.

    Source:
        Basu et al. 2021, Mirostat, section 4; version 2 follows the authors' code.
    """
    if not tau > 0 or not eta >= 0:
        raise ValueError(f"tau is above 0 and eta at least 0, got tau={tau}, eta={eta}")
    if mu.shape != logits.shape[:-1]:
        raise ValueError(f"expected logits (B, V) and mu (B,), got {tuple(logits.shape)} and {tuple(mu.shape)}")
    wide = _wide(logits)
    best = wide == wide.amax(dim=-1, keepdim=True)
    surprise = -torch.log_softmax(wide, dim=-1) / math.log(2)  # (B, V), in bits
    kept = _keep(wide, best | (surprise <= mu.unsqueeze(-1)))
    token = torch.multinomial(torch.softmax(kept, dim=-1), 1, generator=generator)  # (B, 1)
    drawn = -torch.log_softmax(kept, dim=-1).gather(-1, token).squeeze(-1) / math.log(2)  # (B,)
    return token.squeeze(-1), (mu - eta * (drawn - tau)).to(mu.dtype)


def sampler_chain(
    logits: Tensor,
    tokens: Tensor,
    chain: Sequence[tuple[str, Mapping[str, Any]]],
    generator: torch.Generator | None = None,
) -> Tensor:
    """Apply several samplers in order, each to the output of the previous one.

    The names are the functions of this module from `temperature` to
    `exclude_top_choices`: temperature, top_k, top_p, min_p, top_a, top_n_sigma,
    tail_free, epsilon_cutoff, eta_cutoff, locally_typical, quadratic,
    dynamic_temperature, presence_frequency_penalty, repetition_penalty, dry_penalty,
    exclude_top_choices. Penalties also get `tokens`, and exclude_top_choices gets
    `generator`.

    Args:
        logits: One logit per token of the vocabulary, (B, V).
        tokens: The sequences so far, integers (B, T).
        chain: Names of samplers, each with its keyword arguments; a name may occur more
            than once.
        generator: Source of randomness; None means PyTorch's own.

    Returns:
        New logits, (B, V), in the dtype of `logits`; a copy if the chain is empty.

    Raises:
        ValueError: If a sampler is unknown; the message lists all names.

    Source:
        Hugging Face Transformers, `LogitsProcessorList`; llama.cpp,
        `llama_sampler_chain`.
    """
    filters: dict[str, Callable[..., Tensor]] = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "top_a": top_a,
        "top_n_sigma": top_n_sigma,
        "tail_free": tail_free,
        "epsilon_cutoff": epsilon_cutoff,
        "eta_cutoff": eta_cutoff,
        "locally_typical": locally_typical,
        "quadratic": quadratic,
        "dynamic_temperature": dynamic_temperature,
    }
    penalties: dict[str, Callable[..., Tensor]] = {
        "presence_frequency_penalty": presence_frequency_penalty,
        "repetition_penalty": repetition_penalty,
        "dry_penalty": dry_penalty,
    }
    names = [*filters, *penalties, "exclude_top_choices"]
    unknown = [name for name, _ in chain if name not in names]
    if unknown:
        raise ValueError(f"there is no sampler {', '.join(unknown)}; there are {', '.join(names)}")
    result = logits.clone()
    for name, parameters in chain:
        if name in filters:
            result = filters[name](result, **parameters)
        elif name in penalties:
            result = penalties[name](result, tokens, **parameters)
        else:
            result = exclude_top_choices(result, **parameters, generator=generator)
    return result


def _wide(logits: Tensor) -> Tensor:
    """Return the logits in float32 or wider."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _keep(logits: Tensor, kept: Tensor) -> Tensor:
    """Exclude all tokens that are not kept."""
    return logits.masked_fill(~kept, -torch.inf)


def _entropy(logits: Tensor) -> Tensor:
    """Return the entropy of each row, in nats, (..., 1); excluded tokens have value and gradient 0."""
    log_p = torch.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(dim=-1, keepdim=True)


def _require_text(logits: Tensor, tokens: Tensor) -> None:
    """Raise a ValueError unless `tokens` has one row per row of logits."""
    if logits.ndim != 2 or tokens.ndim != 2 or len(logits) != len(tokens):
        raise ValueError(f"expected logits (B, V) and tokens (B, T), got {tuple(logits.shape)} {tuple(tokens.shape)}")
