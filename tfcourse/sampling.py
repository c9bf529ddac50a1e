"""From the logits of the next token to the logits that it is drawn with: temperatures, filters, penalties, and chains.

Shapes: B batch, T length of the text so far, V vocabulary; `...` stands for any number of leading dimensions. What holds
for every function here, unless its docstring says otherwise:

- Logits (..., V) become new logits of the same shape and dtype, computed in float32 at least. The input stays as it is.
- An excluded token has the logit -inf. What was excluded before stays so; one token at least is not.
- The most probable token is never excluded.
- Equal logits share one fate: cut-offs are values, not positions in a sorted list.
- Each row is treated on its own, and gradients flow through what is kept.
- `tokens` (B, T) is the text so far; the logits are then (B, V).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

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

    The probabilities become p^(1/t), scaled to sum to one: below 1 the likely tokens gain, above 1 the unlikely ones do.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        t: The temperature, above 0 and finite.

    Returns:
        New logits, (..., V), in the dtype of `logits`. What was excluded (-inf) stays so.

    Raises:
        ValueError: If `t` is out of range.

    Source:
        Ackley, Hinton and Sejnowski 1985, A Learning Algorithm for Boltzmann Machines, section 2.
    """
    if not 0 < t < math.inf:
        raise ValueError(f"a temperature is above 0 and finite, got {t}")
    return (_wide(logits) / t).to(logits.dtype)


def top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k most probable tokens, and exclude all others.

    Tokens whose logit equals the k-th largest are all kept, so that there may be more than k. If k is V or more, all are.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        k: How many tokens to keep, at least 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

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
    """Keep the most probable tokens that it takes to reach a probability of p (nucleus sampling).

    Let s be the sum of the probabilities of all tokens that are strictly more probable than a token. The token is kept
    if s < p. So the token with which the sum reaches p is kept, the most probable one always is, and p = 1 keeps all.
    If s equals p, the token is excluded. Rounding does not decide this: s is a sum in float64, and it counts as equal to
    p if it is less than p by a millionth of p at most.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        p: The probability to reach, above 0 and at most 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

    Raises:
        ValueError: If `p` is out of range.

    Source:
        Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is a probability above 0 and at most 1, got {p}")
    if p == 1:  # a running sum in floating point may reach 1 before the last token
        return logits.clone()
    ordered = logits.double().sort(dim=-1, descending=True).values  # (..., V)
    probability = torch.softmax(ordered, dim=-1)
    before = probability.cumsum(dim=-1) - probability  # 0 for the first token
    below = before < p * (1 - 1e-6)  # 0.5 + 0.3 may be a little less than 0.8
    # Among equals the first has the smallest sum before it, and a cut by value keeps the others with it.
    least = ordered.where(below, torch.inf).amin(dim=-1, keepdim=True)
    return _keep(logits, logits >= least)


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep every token that is at least p times as probable as the most probable one.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        p: The share of the largest probability that a token needs, from 0 (all are kept) to 1 (the best and its equals).

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

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
    """Keep every token whose probability is at least a times the square of the largest probability.

    Where the model is sure the threshold is high; where it is not, the square makes it very low.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        a: What the square is multiplied by, from 0 (all are kept) to 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

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
    """Keep every token whose logit is at most n standard deviations below the largest logit.

    The deviation is that of a whole population (divide by the number of logits), of the logits that are not -inf. A
    temperature stretches logits and deviation alike, so the same tokens are kept at every temperature.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        n: How many standard deviations, from 0 (the best token and its equals) upwards, finite.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

    Raises:
        ValueError: If `n` is out of range.

    Source:
        Tang et al. 2024, Top-nσ: Not All Logits Are You Need, section 3.
    """
    if not 0 <= n < math.inf:
        raise ValueError(f"n is a finite number of at least 0, got {n}")
    wide = _wide(logits)
    counts = wide > -torch.inf
    number = counts.sum(dim=-1, keepdim=True)
    mean = wide.where(counts, 0).sum(dim=-1, keepdim=True) / number
    variance = (wide - mean).where(counts, 0).square().sum(dim=-1, keepdim=True) / number
    return _keep(logits, wide >= wide.amax(dim=-1, keepdim=True) - n * variance.sqrt())


def tail_free(logits: Tensor, z: float) -> Tensor:
    """Cut the tail off where the curve of the sorted probabilities flattens.

    Sort the probabilities, the largest first. Their absolute second differences say how much the curve bends at each
    index; divide them by their sum, and let i be the first index (counted from 0) at which their running sum exceeds z.
    The i + 1 most probable tokens are kept, and those that equal the last of them. Nothing changes if no running sum
    exceeds z, if all second differences are 0, or if V is at most 2. An excluded token counts with probability 0.

    Implementations differ by one: llama.cpp kept i tokens, web interfaces keep i + 1.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        z: The share of the bending to keep, from 0 to 1 (all are kept).

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

    Raises:
        ValueError: If `z` is out of range.

    Source:
        Phénix and Egan 2019, Tail Free Sampling.
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
    """Keep every token with a probability of at least epsilon, and in any case the most probable one.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        epsilon: The smallest probability to keep, strictly between 0 and 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

    Raises:
        ValueError: If `epsilon` is out of range.

    Source:
        Hewitt, Manning and Liang 2022, Truncation Sampling as Language Model Desmoothing, section 3.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is a probability strictly between 0 and 1, got {epsilon}")
    wide = _wide(logits)
    best = wide == wide.amax(dim=-1, keepdim=True)
    return _keep(logits, best | (torch.softmax(wide, dim=-1) >= epsilon))


def eta_cutoff(logits: Tensor, epsilon: float) -> Tensor:
    """Keep every token with a probability of at least min(ε, √ε · e^-H).

    H is the entropy of the row, in nats: the less sure the model is, the lower the threshold. The most probable token
    always reaches it, because its probability is at least e^-H.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        epsilon: The parameter ε, strictly between 0 and 1; the threshold is never higher.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

    Raises:
        ValueError: If `epsilon` is out of range.

    Source:
        Hewitt, Manning and Liang 2022, Truncation Sampling as Language Model Desmoothing, section 4.
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is a probability strictly between 0 and 1, got {epsilon}")
    wide = _wide(logits)
    threshold = (epsilon**0.5 * (-_entropy(wide)).exp()).clamp(max=epsilon)  # (..., 1)
    return _keep(logits, torch.softmax(wide, dim=-1) >= threshold)


def locally_typical(logits: Tensor, mass: float) -> Tensor:
    """Keep the tokens that are about as surprising as the model expects, until they have a probability of `mass` together.

    A token's surprise is -log p, the entropy H is the surprise to be expected, and d = abs(-log p - H) says how untypical a
    token is. A token is kept if the tokens with a strictly smaller d have a probability below `mass` together. This is
    the one filter that may exclude the most probable token.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        mass: The probability to reach, strictly between 0 and 1.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

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
    """Bend the logits along a parabola below the largest one (smoothing).

    With d = logit - largest logit, the new logit is largest - k · d² + s · d³, where k = factor · (3 - curve) / 2 and
    s = factor · (curve - 1) / 2. Tokens near the top come closer together, those far below fall off.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        factor: How steep the parabola is, above 0.
        curve: How much of the square becomes a cube, from 1 (nothing) to 3 (all).

    Returns:
        New logits, (..., V), in the dtype of `logits`. What was excluded (-inf) stays so.

    Raises:
        ValueError: If `factor` or `curve` is out of range.

    Source:
        Kalomaze 2024, text-generation-webui, "quadratic sampling" (smoothing_factor, smoothing_curve).
    """
    if not 0 < factor < math.inf:
        raise ValueError(f"factor is above 0 and finite, got {factor}")
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
    """Divide the logits of each row by a temperature of its own: low where the model is sure, high where it is not.

    T = low + (high - low) · (H / log n)^exponent, where H is the entropy of the row and n the number of tokens that are
    not excluded, so that log n is the largest entropy possible. With n = 1, T is `low`. Gradients flow through T, too.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        low: The temperature of a row that is sure, above 0.
        high: The temperature of a row in which all tokens are equally probable, at least `low`, finite.
        exponent: How the temperature grows in between, above 0; 1 is a straight line.

    Returns:
        New logits, (..., V), in the dtype of `logits`. What was excluded (-inf) stays so.

    Raises:
        ValueError: If a parameter is out of range.

    Source:
        Kalomaze 2023, koboldcpp, "dynamic temperature" (entropy sampling).
    """
    if not 0 < low <= high < math.inf:
        raise ValueError(f"temperatures are above 0 and finite, low at most high, got low={low}, high={high}")
    if not 0 < exponent < math.inf:
        raise ValueError(f"exponent is above 0 and finite, got {exponent}")
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
    """Subtract from the logits of tokens that the text holds: once for being there, and once for each occurrence.

    The logit of a token that occurs c times in its row of the text loses `presence` · [c > 0] + `frequency` · c. Negative
    values make tokens of the text likelier.

    Args:
        logits: One number for each token of the vocabulary, (B, V).
        tokens: The text so far, integers (B, T).
        presence: What a token loses for occurring at all.
        frequency: What it loses for each occurrence.

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
    """Make every token that the text holds less probable: divide its logit, or multiply it if it is negative.

    A token is penalised once, however often it occurs. Penalties below 1 make tokens of the text likelier.

    Args:
        logits: One number for each token of the vocabulary, (B, V).
        tokens: The text so far, integers (B, T).
        penalty: The factor, above 0 and finite; 1 changes nothing.

    Returns:
        New logits, (B, V), in the dtype of `logits`.

    Raises:
        ValueError: If `penalty` is out of range, or the shapes do not fit.

    Source:
        Keskar et al. 2019, CTRL, section 4.1, with the repair for negative logits that is in general use since.
    """
    if not 0 < penalty < math.inf:
        raise ValueError(f"a penalty is above 0 and finite, got {penalty}")
    _require_text(logits, tokens)
    wide = _wide(logits)
    said = torch.zeros_like(wide, dtype=torch.bool).scatter(1, tokens.long(), True)  # (B, V)
    penalised = torch.where(wide < 0, wide * penalty, wide / penalty)
    return torch.where(said, penalised, wide).to(logits.dtype)


def dry_penalty(
    logits: Tensor, tokens: Tensor, *, multiplier: float, base: float, allowed: int, breakers: Sequence[int] = ()
) -> Tensor:
    """Penalise the tokens that would continue a repetition ("don't repeat yourself"), more strongly the longer it is.

    For every position i before the last one, let m be the length of the longest run of tokens that ends at i and equals
    the end of the text; a breaker ends a run, and is no part of it. The token at position i + 1 followed that run, and
    would prolong the repetition now. Of several m for one token the largest counts. If it is at least `allowed`, and the
    token is no breaker, its logit loses multiplier · base^(m - allowed). The two runs may overlap.

    Args:
        logits: One number for each token of the vocabulary, (B, V).
        tokens: The text so far, integers (B, T).
        multiplier: The penalty of a repetition as long as allowed, at least 0.
        base: What the penalty is multiplied by for each further token, at least 1.
        allowed: The shortest repetition whose continuation is penalised, at least 1.
        breakers: Tokens that end a repetition: the end of a line, quotation marks, names.

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
    """Now and then exclude the obvious: all tokens that reach a threshold but the least probable of them (XTC).

    One number is drawn for each row by a single call of `torch.rand` of shape (...), in float32. Where it is below
    `probability`, and at least two tokens have a probability of `threshold` or more, these are excluded but for the
    least probable of them, and what equals it.

    Args:
        logits: One number for each token of the vocabulary, (..., V).
        threshold: The probability from which on a token is an obvious choice, above 0 and at most 1.
        probability: How often to exclude anything, from 0 to 1.
        generator: Draws the numbers; None means PyTorch's own.

    Returns:
        New logits, (..., V), in the dtype of `logits`: -inf for what is excluded, unchanged otherwise.

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
    """Draw a token, and steer the surprise of a text towards a target (mirostat, version 2).

    Surprise is measured in bits, -log2 p. Tokens with a surprise above the row's `mu` are excluded, though never the most
    probable one. What is left is scaled to sum to one, and one token of each row is drawn by a single call of
    `torch.multinomial`. With s the surprise of the drawn token among what was left, the new mu is mu - eta · (s - tau).
    Begin a text with mu = 2 · tau.

    Args:
        logits: One number for each token of the vocabulary, (B, V).
        mu: The largest surprise allowed in each row, in bits, (B,).
        tau: The surprise to reach on average, in bits, above 0.
        eta: How fast mu follows, at least 0.
        generator: Draws the tokens; None means PyTorch's own.

    Returns:
        The drawn tokens, integers (B,), and the new mu, (B,), in the dtype of `mu`.

    Raises:
        ValueError: If `tau` or `eta` is out of range, or the shapes do not fit.

    Source:
        Basu et al. 2021, Mirostat, section 4; version 2 as in the authors' code.
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
    """Apply several samplers one after the other, in the order given: each works on what the one before it has left.

    The names are those of the functions of this module from `temperature` to `exclude_top_choices`: temperature, top_k,
    top_p, min_p, top_a, top_n_sigma, tail_free, epsilon_cutoff, eta_cutoff, locally_typical, quadratic,
    dynamic_temperature, presence_frequency_penalty, repetition_penalty, dry_penalty, exclude_top_choices. Penalties are
    given `tokens`, and exclude_top_choices `generator`.

    Args:
        logits: One number for each token of the vocabulary, (B, V).
        tokens: The text so far, integers (B, T).
        chain: Names of samplers, each with its parameters by name; a name may occur more than once.
        generator: Draws what is drawn; None means PyTorch's own.

    Returns:
        New logits, (B, V), in the dtype of `logits`; with an empty chain a copy.

    Raises:
        ValueError: If there is no sampler of a name; the message lists all names.

    Source:
        Hugging Face Transformers, `LogitsProcessorList`; llama.cpp, `llama_sampler_chain`.
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
    """The logits in float32 at least."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _keep(logits: Tensor, kept: Tensor) -> Tensor:
    """Exclude what is not kept."""
    return logits.masked_fill(~kept, -torch.inf)


def _entropy(logits: Tensor) -> Tensor:
    """The entropy of each row, in nats, (..., 1). What is excluded adds nothing, to the gradient neither."""
    log_p = torch.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0)).sum(dim=-1, keepdim=True)


def _require_text(logits: Tensor, tokens: Tensor) -> None:
    """The text so far has a row for each row of logits."""
    if logits.ndim != 2 or tokens.ndim != 2 or len(logits) != len(tokens):
        raise ValueError(f"expected logits (B, V) and tokens (B, T), got {tuple(logits.shape)} {tuple(tokens.shape)}")
