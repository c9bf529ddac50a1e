"""Sampling against the logits processors of Hugging Face Transformers, and loops over plain numbers where it has none."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation import logits_process as hf

from tfcourse import sampling
from tfcourse.sampling import (
    dry_penalty,
    dynamic_temperature,
    epsilon_cutoff,
    eta_cutoff,
    exclude_top_choices,
    locally_typical,
    min_p,
    mirostat,
    presence_frequency_penalty,
    quadratic,
    repetition_penalty,
    sampler_chain,
    tail_free,
    temperature,
    top_a,
    top_k,
    top_n_sigma,
    top_p,
)

INF = math.inf
# The running example of the lesson.
EXAMPLE = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04], dtype=torch.float64).log()
seeds = st.integers(0, 10**6)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randn(*shape: int, seed: int = 3, scale: float = 2.0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random logits, drawn in float64 and then rounded, so that every dtype sees the same numbers."""
    return (scale * torch.randn(*shape, generator=generator(seed), dtype=torch.float64)).to(dtype)


def with_holes(logits: Tensor, seed: int) -> Tensor:
    """The logits with some tokens excluded, the last of each row never."""
    holes = torch.rand(logits.shape, generator=generator(seed)) < 0.3
    holes[..., -1] = False
    return logits.masked_fill(holes, -INF)


def probabilities(row: list[float]) -> list[float]:
    weights = [math.exp(x - max(row)) for x in row]
    return [w / sum(weights) for w in weights]


def entropy(p: list[float]) -> float:
    return -sum(q * math.log(q) for q in p if q > 0)


def kept(row: list[float], keep: Callable[[int], bool]) -> list[float]:
    return [x if keep(v) else -INF for v, x in enumerate(row)]


# ----------------------------------------------------------------------------- loops from the formulas, one row at a time


def loop_temperature(row: list[float], t: float) -> list[float]:
    return [x / t for x in row]


def loop_top_k(row: list[float], k: int) -> list[float]:
    return kept(row, lambda v: sum(x > row[v] for x in row) < k)


def loop_top_p(row: list[float], p: float) -> list[float]:
    q = probabilities(row)
    return kept(row, lambda v: sum(q[u] for u in range(len(row)) if row[u] > row[v]) < p)


def exact_top_p(p: list[Fraction], mass: Fraction) -> list[bool]:
    """The rule of top-p in exact arithmetic: the sum of what is strictly more probable is less than the mass."""
    return [sum(q for q in p if q > one) < mass for one in p]


def loop_min_p(row: list[float], p: float) -> list[float]:
    q = probabilities(row)
    return kept(row, lambda v: q[v] >= p * max(q))


def loop_top_a(row: list[float], a: float) -> list[float]:
    q = probabilities(row)
    return kept(row, lambda v: q[v] >= a * max(q) ** 2)


def loop_top_n_sigma(row: list[float], n: float) -> list[float]:
    finite = [x for x in row if x > -INF]
    mean = sum(finite) / len(finite)
    sigma = math.sqrt(sum((x - mean) ** 2 for x in finite) / len(finite))
    return kept(row, lambda v: row[v] >= max(row) - n * sigma)


def loop_tail_free(row: list[float], z: float) -> list[float]:
    if len(row) <= 2:
        return row
    p = sorted(probabilities(row), reverse=True)
    bend = [abs((p[i] - p[i + 1]) - (p[i + 1] - p[i + 2])) for i in range(len(p) - 2)]
    if sum(bend) == 0 or z == 1:
        return row
    running = list(itertools.accumulate(part / sum(bend) for part in bend))
    i = next((i for i, total in enumerate(running) if total > z), None)
    return row if i is None else kept(row, lambda v: row[v] >= sorted(row, reverse=True)[i])


def loop_epsilon_cutoff(row: list[float], epsilon: float) -> list[float]:
    q = probabilities(row)
    return kept(row, lambda v: q[v] >= epsilon or row[v] == max(row))


def loop_eta_cutoff(row: list[float], epsilon: float) -> list[float]:
    q = probabilities(row)
    eta = min(epsilon, math.sqrt(epsilon) * math.exp(-entropy(q)))
    return kept(row, lambda v: q[v] >= eta or row[v] == max(row))


def loop_locally_typical(row: list[float], mass: float) -> list[float]:
    q = probabilities(row)
    d = [abs(-math.log(x) - entropy(q)) if x > 0 else INF for x in q]
    return kept(row, lambda v: sum(q[u] for u in range(len(row)) if d[u] < d[v]) < mass and d[v] < INF)


def loop_quadratic(row: list[float], factor: float, curve: float = 1.0) -> list[float]:
    k, s = factor * (3 - curve) / 2, factor * (curve - 1) / 2
    return [-INF if x == -INF else max(row) - k * (x - max(row)) ** 2 + s * (x - max(row)) ** 3 for x in row]


def loop_dynamic_temperature(row: list[float], low: float, high: float, exponent: float = 1.0) -> list[float]:
    n = sum(x > -INF for x in row)
    share = 0.0 if n == 1 else entropy(probabilities(row)) / math.log(n)
    return [x / (low + (high - low) * share**exponent) for x in row]


def loop_exclude_top_choices(row: list[float], threshold: float, coin: bool) -> list[float]:
    q = probabilities(row)
    obvious = [x for x, p in zip(row, q, strict=True) if p >= threshold]
    if not coin or len(obvious) < 2:
        return row
    return kept(row, lambda v: q[v] < threshold or row[v] == min(obvious))


def loop_presence_frequency(row: list[float], text: list[int], presence: float, frequency: float) -> list[float]:
    return [x - presence * (v in text) - frequency * text.count(v) for v, x in enumerate(row)]


def loop_repetition(row: list[float], text: list[int], penalty: float) -> list[float]:
    return [x if v not in text else x * penalty if x < 0 else x / penalty for v, x in enumerate(row)]


def loop_dry(
    row: list[float], text: list[int], *, multiplier: float, base: float, allowed: int, breakers: tuple[int, ...] = ()
) -> list[float]:
    """From the definition: compare runs of every length."""
    result = list(row)
    for v in range(len(row)):
        lengths = [0]
        for i in range(len(text) - 1):
            if text[i + 1] == v:
                runs = (n for n in range(1, i + 2) if text[i + 1 - n : i + 1] == text[-n:])
                lengths += [n for n in runs if not set(text[-n:]) & set(breakers)]
        m = max(lengths)
        if m >= allowed and v not in breakers:
            result[v] -= multiplier * base ** (m - allowed)
    return result


# Every sampler that changes logits, as (its name, parameters, the loop); several parameters for most.
LOOPS: dict[str, Callable[..., list[float]]] = {
    name.removeprefix("loop_"): loop for name, loop in globals().items() if name.startswith("loop_")
}
FILTERS: list[tuple[str, dict[str, Any]]] = [
    *(("top_k", {"k": k}) for k in (1, 3, 50)),
    *(("top_p", {"p": p}) for p in (1e-3, 0.63, 0.95, 1.0)),
    *(("min_p", {"p": p}) for p in (0.0, 0.13, 1.0)),
    *(("top_a", {"a": a}) for a in (0.0, 0.37, 1.0)),
    *(("top_n_sigma", {"n": n}) for n in (0.0, 0.5, 1.3)),
    *(("tail_free", {"z": z}) for z in (0.0, 0.47, 0.93, 1.0)),
    *(("epsilon_cutoff", {"epsilon": e}) for e in (1e-3, 0.07, 0.9)),
    *(("eta_cutoff", {"epsilon": e}) for e in (1e-3, 0.11, 0.9)),
    *(("locally_typical", {"mass": m}) for m in (1e-3, 0.23, 0.91)),
]
SHAPES: list[tuple[str, dict[str, Any]]] = [
    *(("temperature", {"t": t}) for t in (0.3, 1.0, 2.5)),
    *(("quadratic", {"factor": f, "curve": c}) for f, c in ((0.3, 1.0), (1.1, 2.2), (0.7, 3.0))),
    *(
        ("dynamic_temperature", {"low": low, "high": high, "exponent": exponent})
        for low, high, exponent in ((0.5, 1.5, 1.0), (0.2, 3.0, 2.5), (0.7, 0.7, 0.4))
    ),
]
ALONE = FILTERS + SHAPES
PENALTIES: list[tuple[str, dict[str, Any]]] = [
    ("presence_frequency_penalty", {"presence": 0.7, "frequency": 0.3}),
    ("repetition_penalty", {"penalty": 1.7}),
    ("dry_penalty", {"multiplier": 0.8, "base": 1.75, "allowed": 1}),
]
OBVIOUS: list[tuple[str, dict[str, Any]]] = [("exclude_top_choices", {"threshold": 0.12, "probability": 0.5})]
each = pytest.mark.parametrize(("name", "parameters"), ALONE, ids=str)
each_filter = pytest.mark.parametrize(("name", "parameters"), FILTERS, ids=str)
each_at_all = pytest.mark.parametrize(("name", "parameters"), ALONE + PENALTIES + OBVIOUS, ids=str)


def call(name: str, parameters: dict[str, Any], logits: Tensor) -> Tensor:
    """Call any sampler that returns logits, with a text and a generator where it takes them."""
    extra: list[Any] = []
    if (name, parameters) in PENALTIES:
        extra = [torch.randint(0, logits.shape[-1], (len(logits), 9), generator=generator(5))]
    if (name, parameters) in OBVIOUS:
        parameters = {**parameters, "generator": generator(5)}
    sampler: Callable[..., Tensor] = getattr(sampling, name)
    return sampler(logits, *extra, **parameters)


# -------------------------------------------------------------------------------------------- conventions of all samplers


def test_every_sampler_of_the_module_is_among_those_that_the_conventions_are_tested_on():
    named = {name for name, _ in ALONE + PENALTIES + OBVIOUS}
    assert named == set(sampling.__all__) - {"mirostat", "sampler_chain"}


@each
@settings(max_examples=20)
@given(seed=seeds, holes=st.booleans())
def test_each_row_is_what_the_loop_over_plain_numbers_makes_of_it(name, parameters, seed, holes, assert_near):
    logits = randn(2, 3, 11, seed=seed)
    logits = with_holes(logits, seed) if holes else logits
    expected = [[LOOPS[name](row, **parameters) for row in rows] for rows in logits.tolist()]
    assert_near(call(name, parameters, logits), torch.tensor(expected, dtype=torch.float64))


@each_at_all
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_shape_and_dtype_stay_and_the_input_too(name, parameters, dtype):
    logits = with_holes(randn(4, 7, dtype=dtype), 1)
    before = logits.clone()
    result = call(name, parameters, logits)
    assert (result.shape, result.dtype) == (logits.shape, logits.dtype)
    assert torch.equal(logits, before)
    assert result.data_ptr() != logits.data_ptr()


@each_at_all
@settings(max_examples=15)
@given(seed=seeds)
def test_what_was_excluded_stays_so_and_something_is_left(name, parameters, seed):
    logits = with_holes(randn(4, 9, seed=seed), seed)
    result = call(name, parameters, logits)
    assert bool((result[logits == -INF] == -INF).all())
    assert bool((result > -INF).any(dim=-1).all())
    assert not bool(result.isnan().any())


@each
@settings(max_examples=15)
@given(seed=seeds)
def test_the_most_probable_token_is_never_excluded(name, parameters, seed):
    if name == "locally_typical":
        return  # the one exception, which has a test of its own
    logits = randn(4, 9, seed=seed)
    best = logits.argmax(dim=-1, keepdim=True)
    assert bool((call(name, parameters, logits).gather(-1, best) > -INF).all())


@each
@settings(max_examples=15)
@given(seed=seeds)
def test_equal_logits_share_one_fate_and_permuting_the_vocabulary_permutes_the_result(name, parameters, seed):
    logits = randn(3, 6, seed=seed).repeat(1, 2)[:, torch.randperm(12, generator=generator(seed))]
    result = call(name, parameters, logits)
    for row, after in zip(logits, result, strict=True):
        for value in row.unique():
            assert after[row == value].unique().numel() == 1
    order = torch.randperm(12, generator=generator(seed + 1))
    torch.testing.assert_close(call(name, parameters, logits[:, order]), result[:, order])


@each
def test_each_row_is_treated_on_its_own_whatever_the_leading_axes(name, parameters):
    logits = with_holes(randn(2, 3, 8), 4)
    rows = [call(name, parameters, row) for row in logits.flatten(0, 1)]
    torch.testing.assert_close(call(name, parameters, logits), torch.stack(rows).view(2, 3, 8))


@each_filter
def test_the_gradient_of_what_a_filter_keeps_passes_through_it(name, parameters):
    logits = with_holes(randn(4, 7), 2).requires_grad_()
    result = call(name, parameters, logits)
    weight = randn(4, 7, seed=8)
    (gradient,) = torch.autograd.grad((result.masked_fill(result == -INF, 0) * weight).sum(), logits)
    torch.testing.assert_close(gradient, weight.masked_fill(result == -INF, 0))


@pytest.mark.parametrize(("name", "parameters"), SHAPES + PENALTIES + OBVIOUS, ids=str)
def test_the_gradient_is_that_of_finite_differences_and_is_finite_beside_excluded_tokens(name, parameters):
    assert torch.autograd.gradcheck(
        lambda x: torch.softmax(call(name, parameters, x), -1), randn(3, 5).requires_grad_()
    )
    logits = with_holes(randn(3, 7), 3).requires_grad_()
    (gradient,) = torch.autograd.grad(torch.softmax(call(name, parameters, logits), -1)[:, -1].sum(), logits)
    assert bool(gradient.isfinite().all())


@each_at_all
def test_half_precision_is_computed_wide(name, parameters):
    logits = (8 * randn(4, 300)).to(torch.float16)
    wide = call(name, parameters, logits.float())
    torch.testing.assert_close(call(name, parameters, logits), wide.half())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("temperature", {"t": t}) for t in (0.0, -1.0, INF, math.nan)),
        *(("top_k", {"k": k}) for k in (0, -1)),
        *(("top_p", {"p": p}) for p in (0.0, 1.1, -0.5, math.nan)),
        *(("min_p", {"p": p}) for p in (-0.1, 1.1)),
        *(("top_a", {"a": a}) for a in (-0.1, 1.1)),
        *(("top_n_sigma", {"n": n}) for n in (-0.1, INF)),
        *(("tail_free", {"z": z}) for z in (-0.1, 1.1)),
        *(("epsilon_cutoff", {"epsilon": e}) for e in (0.0, 1.0)),
        *(("eta_cutoff", {"epsilon": e}) for e in (0.0, 1.0)),
        *(("locally_typical", {"mass": m}) for m in (0.0, 1.0)),
        *(("quadratic", {"factor": f, "curve": c}) for f, c in ((0.0, 1.0), (0.3, 0.9), (0.3, 3.1))),
        *(("dynamic_temperature", {"low": a, "high": b}) for a, b in ((0.0, 1.0), (1.5, 0.5), (1.0, INF))),
        ("dynamic_temperature", {"low": 0.5, "high": 1.5, "exponent": 0.0}),
        *(("exclude_top_choices", {"threshold": a, "probability": b}) for a, b in ((0.0, 0.5), (1.1, 0.5), (0.1, 1.1))),
    ],
    ids=str,
)
def test_a_parameter_out_of_range_is_refused_by_its_value(name, wrong):
    with pytest.raises(ValueError, match=r"got .*(\d|inf|nan)"):
        call(name, wrong, randn(2, 5))


@pytest.mark.parametrize(("name", "parameters"), PENALTIES, ids=str)
def test_a_text_that_does_not_fit_the_logits_is_refused_with_both_shapes(name, parameters):
    penalise = getattr(sampling, name)
    for logits, tokens in (((2, 5), (3, 4)), ((5,), (4,)), ((2, 5), (2,)), ((2, 3, 5), (2, 3))):
        with pytest.raises(ValueError, match=str(tuple(tokens)).replace("(", r"\(").replace(")", r"\)")):
            penalise(randn(*logits), torch.zeros(tokens, dtype=torch.int64), **parameters)


def test_penalties_out_of_range_are_refused():
    logits, tokens = randn(2, 5), torch.zeros(2, 3, dtype=torch.int64)
    for penalty in (0.0, -1.0, INF):
        with pytest.raises(ValueError, match="penalty"):
            repetition_penalty(logits, tokens, penalty)
    for multiplier, base, allowed in ((-0.1, 1.75, 2), (0.8, 0.9, 2), (0.8, 1.75, 0)):
        with pytest.raises(ValueError, match="allowed"):
            dry_penalty(logits, tokens, multiplier=multiplier, base=base, allowed=allowed)


# ------------------------------------------------------------------------------------------------------ the running example


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("top_k", {"k": 3}, [0, 1, 2]),
        ("top_p", {"p": 0.7}, [0, 1, 2]),
        ("min_p", {"p": 0.3}, [0, 1, 2]),
        ("epsilon_cutoff", {"epsilon": 0.08}, [0, 1, 2, 3]),
        ("eta_cutoff", {"epsilon": 0.2}, [0, 1, 2, 3]),
        ("top_n_sigma", {"n": 1.0}, [0, 1]),
        ("top_n_sigma", {"n": 0.5}, [0]),
        ("tail_free", {"z": 0.9}, [0, 1, 2, 3]),
        ("tail_free", {"z": 0.5}, [0, 1]),
        ("locally_typical", {"mass": 0.5}, [0, 1, 2]),
        ("locally_typical", {"mass": 0.2}, [1]),
        ("exclude_top_choices", {"threshold": 0.12, "probability": 1.0}, [2, 3, 4, 5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_running_example_keeps_the_tokens_that_the_lesson_says(name, parameters, expected, dtype):
    result = call(name, parameters, EXAMPLE.to(dtype))
    assert (result > -INF).nonzero().flatten().tolist() == expected


def test_the_running_example_has_the_entropy_and_the_smoothed_probabilities_that_the_lesson_says():
    assert entropy(EXAMPLE.exp().tolist()) == pytest.approx(1.5255, abs=5e-5)
    smoothed = torch.softmax(quadratic(EXAMPLE, 0.3), -1)
    assert [round(x, 3) for x in smoothed.tolist()] == [0.264, 0.247, 0.198, 0.148, 0.090, 0.054]


# ------------------------------------------------------------------------------------- the processors of Transformers

ORACLES: list[tuple[str, dict[str, Any], hf.LogitsProcessor]] = [
    *(("temperature", {"t": t}, hf.TemperatureLogitsWarper(t)) for t in (0.3, 2.5)),
    *(("top_k", {"k": k}, hf.TopKLogitsWarper(k)) for k in (1, 3, 50)),
    *(("top_p", {"p": p}, hf.TopPLogitsWarper(p)) for p in (0.3, 0.63, 0.95)),
    *(("min_p", {"p": p}, hf.MinPLogitsWarper(p)) for p in (0.02, 0.3)),
    *(("epsilon_cutoff", {"epsilon": e}, hf.EpsilonLogitsWarper(e)) for e in (0.01, 0.13, 0.9)),
    *(("eta_cutoff", {"epsilon": e}, hf.EtaLogitsWarper(e)) for e in (0.01, 0.13, 0.9)),
    *(("locally_typical", {"mass": m}, hf.TypicalLogitsWarper(m)) for m in (0.2, 0.9)),
]


@pytest.mark.parametrize(("name", "parameters", "oracle"), ORACLES, ids=lambda x: str(x) if not callable(x) else "")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_thousand_rows_are_those_of_transformers(name, parameters, oracle, dtype):
    logits = randn(1000, 13, seed=11, dtype=dtype)
    logits[500:] = with_holes(logits[500:], 6)
    if name in (
        "top_k",
        "epsilon_cutoff",
        "locally_typical",
    ):  # the others cut ties there at an arbitrary place, or cannot
        logits[:200, 5:10] = logits[:200, :5]
    expected = oracle(torch.zeros(1000, 1, dtype=torch.int64), logits.clone())
    torch.testing.assert_close(call(name, parameters, logits), expected, rtol=0, atol=0)


@pytest.mark.parametrize("penalty", [0.6, 1.0, 1.3, 4.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_repetition_penalty_is_that_of_transformers(penalty, dtype):
    logits = with_holes(randn(200, 13, dtype=dtype), 6)
    logits[:, 4] = 0.0
    tokens = torch.randint(0, 13, (200, 9), generator=generator(2))
    expected = hf.RepetitionPenaltyLogitsProcessor(penalty)(tokens, logits.clone())
    torch.testing.assert_close(repetition_penalty(logits, tokens, penalty), expected, rtol=0, atol=0)


def test_a_chain_is_the_list_of_processors_of_transformers_in_every_order_of_three():
    links: list[tuple[str, dict[str, Any], hf.LogitsProcessor]] = [
        *(ORACLES[i] for i in (0, 3, 6, 9, 11, 14, 17)),
        ("repetition_penalty", {"penalty": 1.4}, hf.RepetitionPenaltyLogitsProcessor(1.4)),
    ]
    assert len({name for name, *_ in links}) == 8
    logits, tokens = randn(20, 13), torch.randint(0, 13, (20, 6), generator=generator(4))
    for chosen in itertools.permutations(links, 3):
        expected = hf.LogitsProcessorList([oracle for *_, oracle in chosen])(tokens, logits.clone())
        actual = sampler_chain(logits, tokens, [(name, parameters) for name, parameters, _ in chosen])
        torch.testing.assert_close(actual, expected, msg=lambda seen, c=chosen: f"{[name for name, *_ in c]}\n{seen}")


# --------------------------------------------------------------------------------------------------- filters, one by one


def test_the_same_tokens_pass_top_n_sigma_at_every_temperature():
    logits = randn(50, 20)
    for n in (0.3, 1.0, 2.0):
        expected = top_n_sigma(logits, n) > -INF
        for t in (0.2, 0.9, 4.0):
            assert torch.equal(top_n_sigma(temperature(logits, t), n) > -INF, expected)


def test_ties_at_the_cut_are_kept_together():
    tied = torch.tensor([0.4, 0.2, 0.2, 0.1, 0.1], dtype=torch.float64).log()
    assert (top_k(tied, 2) > -INF).sum() == 3
    assert (top_p(tied, 0.5) > -INF).sum() == 3
    assert (top_p(tied, 0.7) > -INF).sum() == 3
    assert (tail_free(tied, 0.6) > -INF).sum() == 3
    assert (exclude_top_choices(tied, 0.15, 1.0) > -INF).tolist() == [False, True, True, True, True]


def test_nothing_is_cut_where_all_tokens_are_alike_or_all_is_asked_for():
    flat = torch.full((3, 7), 1.5)
    for name, parameters in FILTERS:
        assert torch.equal(call(name, parameters, flat), flat), name
    logits = 30 * randn(5, 40, dtype=torch.float32)
    for unchanged in (top_p(logits, 1.0), tail_free(logits, 1.0), top_k(logits, 40), min_p(logits, 0.0)):
        assert torch.equal(unchanged, logits)


@pytest.mark.parametrize("size", [1, 2])
def test_a_vocabulary_of_one_or_two_tokens_works(size):
    for name, parameters in ALONE:
        logits = randn(3, size)
        assert bool((call(name, parameters, logits) > -INF).any(-1).all())
    assert torch.equal(tail_free(logits, 0.3), logits)


def test_one_token_left_has_the_low_temperature():
    logits = torch.tensor([[-INF, 3.0, -INF], [1.0, 1.0, -INF]], dtype=torch.float64)
    result = dynamic_temperature(logits, 0.5, 2.0)
    torch.testing.assert_close(result, torch.tensor([[-INF, 6.0, -INF], [0.5, 0.5, -INF]], dtype=torch.float64))


def test_at_epsilon_of_nearly_one_only_the_best_is_left():
    logits = randn(20, 9)
    best = logits.argmax(-1)
    for cut in (epsilon_cutoff, eta_cutoff):
        result = cut(logits, 0.999) > -INF
        assert bool(result.gather(-1, best[:, None]).all())
    assert bool((epsilon_cutoff(logits, 0.999) > -INF).sum(-1).eq(1).all())
    assert bool((top_a(logits, 0.0) == logits).all())


def test_top_p_excludes_the_next_token_where_the_sum_equals_p():
    assert (top_p(torch.tensor([0.3, 0.1, 0.1, 0.5]).log(), 0.8) > -INF).tolist() == [True, False, False, True]


@given(
    weights=st.lists(st.integers(1, 20), min_size=2, max_size=9),
    places=st.integers(0, 8),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_top_p_is_the_rule_in_exact_arithmetic_also_where_a_sum_equals_p(weights, places, dtype):
    p = [Fraction(weight, sum(weights)) for weight in weights]
    mass = sum(
        sorted(p, reverse=True)[: 1 + places % len(p)], Fraction()
    )  # p, and often a sum that the rule compares it with
    logits = torch.tensor([math.log(q) for q in p], dtype=dtype)
    assert (top_p(logits, float(mass)) > -INF).tolist() == exact_top_p(p, mass)


def test_typical_sampling_may_exclude_the_most_probable_token_and_top_p_before_it_keeps_few():
    assert locally_typical(EXAMPLE, 0.2)[0] == -INF
    assert (locally_typical(top_p(EXAMPLE, 0.7), 0.9) > -INF).sum() <= 3


# --------------------------------------------------------------------------------------------------------- penalties


@given(seed=seeds, length=st.integers(0, 9), presence=st.floats(-2, 2), frequency=st.floats(-2, 2))
def test_presence_and_frequency_are_those_of_the_loop(seed, length, presence, frequency, assert_near):
    logits, tokens = randn(3, 6, seed=seed), torch.randint(0, 6, (3, length), generator=generator(seed))
    expected = [
        loop_presence_frequency(row, text, presence, frequency)
        for row, text in zip(logits.tolist(), tokens.tolist(), strict=True)
    ]
    actual = presence_frequency_penalty(logits, tokens, presence=presence, frequency=frequency)
    assert_near(actual, torch.tensor(expected, dtype=torch.float64))


def test_the_repetition_penalty_depends_on_where_the_zero_of_the_logits_is():
    logits, tokens = torch.tensor([[2.0, 1.0, -1.0]]), torch.tensor([[0]])
    shares = [float(torch.softmax(repetition_penalty(logits + c, tokens, 1.5), -1)[0, 0]) for c in (0, -3, 3)]
    assert [round(x, 3) for x in shares] == [0.551, 0.592, 0.311]


@given(
    seed=seeds, length=st.integers(0, 14), allowed=st.integers(1, 4), stop=st.sampled_from([(), (1,), (0, 2), (99,)])
)
def test_dry_is_the_loop_from_its_definition(seed, length, allowed, stop, assert_near):
    logits, tokens = randn(4, 5, seed=seed), torch.randint(0, 3, (4, length), generator=generator(seed))
    options: dict[str, Any] = {"multiplier": 0.8, "base": 1.75, "allowed": allowed, "breakers": stop}
    expected = [loop_dry(row, text, **options) for row, text in zip(logits.tolist(), tokens.tolist(), strict=True)]
    assert_near(dry_penalty(logits, tokens, **options), torch.tensor(expected, dtype=torch.float64))


def test_dry_has_the_numbers_of_the_worked_example():
    a, b, c, y = range(4)
    tokens = torch.tensor([[a, b, c, c, b, c, y, a, b, c]])
    penalty = -dry_penalty(torch.zeros(1, 4), tokens, multiplier=0.8, base=1.75, allowed=2)
    torch.testing.assert_close(penalty, torch.tensor([[0.0, 0.0, 1.4, 0.8]]))
    every = -dry_penalty(torch.zeros(1, 4), tokens, multiplier=1.0, base=2.0, allowed=1)
    torch.testing.assert_close(every, torch.tensor([[0.0, 1.0, 4.0, 2.0]]))
    same = -dry_penalty(torch.zeros(1, 4), torch.tensor([[a, a, a, a]]), multiplier=1.0, base=2.0, allowed=1)
    torch.testing.assert_close(same, torch.tensor([[4.0, 0.0, 0.0, 0.0]]))


@given(seed=seeds)
def test_penalties_take_tokens_of_any_integer_type(seed):
    logits, tokens = randn(3, 5, seed=seed), torch.randint(0, 5, (3, 6), generator=generator(seed))
    for name, parameters in PENALTIES:
        penalise = getattr(sampling, name)
        expected = penalise(logits, tokens, **parameters)
        assert torch.equal(penalise(logits, tokens.to(torch.int32), **parameters), expected)


# ---------------------------------------------------------------------------------------- what draws: XTC and mirostat


@given(seed=seeds, threshold=st.sampled_from([0.07, 0.13, 0.4]), probability=st.sampled_from([0.0, 0.5, 1.0]))
def test_top_choices_go_where_the_coin_of_the_row_says_so(seed, threshold, probability, assert_near):
    logits = with_holes(randn(3, 4, 7, seed=seed), seed)
    coins = torch.rand(3, 4, generator=generator(seed)) < probability
    expected = [
        [loop_exclude_top_choices(row, threshold, coin) for row, coin in zip(rows, flips, strict=True)]
        for rows, flips in zip(logits.tolist(), coins.tolist(), strict=True)
    ]
    actual = exclude_top_choices(logits, threshold, probability, generator(seed))
    assert_near(actual, torch.tensor(expected, dtype=torch.float64))


def test_a_single_row_without_a_batch_is_a_row():
    result = exclude_top_choices(EXAMPLE, 0.12, 1.0)
    assert result.shape == EXAMPLE.shape


@given(seed=seeds, tau=st.sampled_from([0.5, 2.0, 5.0]), eta=st.sampled_from([0.0, 0.1, 1.0]))
def test_mirostat_draws_and_steers_as_the_loop_does(seed, tau, eta, assert_near):
    logits = with_holes(randn(3, 7, seed=seed), seed)
    mu = torch.rand(3, generator=generator(seed), dtype=torch.float64) * 4
    left = []
    for row, limit in zip(logits.tolist(), mu.tolist(), strict=True):
        p = probabilities(row)
        keep = [q if q > 0 and (-math.log2(q) <= limit or q == max(p)) else 0.0 for q in p]
        left.append([q / sum(keep) for q in keep])
    token, new = mirostat(logits, mu, tau=tau, eta=eta, generator=generator(seed))
    weights = torch.tensor(left, dtype=torch.float64)
    expected = torch.multinomial(weights, 1, generator=generator(seed)).flatten()
    assert token.tolist() == expected.tolist()
    surprise = [-math.log2(row[v]) for row, v in zip(left, token.tolist(), strict=True)]
    steered = [m - eta * (s - tau) for m, s in zip(mu.tolist(), surprise, strict=True)]
    assert_near(new, torch.tensor(steered, dtype=torch.float64))


def test_mirostat_brings_the_mean_surprise_of_a_text_to_its_target():
    logits, drawn = randn(1, 200, seed=9, dtype=torch.float32), []
    mu, random = torch.tensor([8.0]), generator(1)
    for _ in range(1500):
        before = mu
        _, mu = mirostat(logits, mu, tau=4.0, eta=0.1, generator=random)
        drawn.append(4.0 - float(mu - before) / 0.1)
    assert sum(drawn[500:]) / 1000 == pytest.approx(4.0, abs=0.1)


def test_mirostat_refuses_what_makes_no_sense():
    logits = randn(2, 5)
    for tau, eta in ((0.0, 0.1), (3.0, -0.1)):
        with pytest.raises(ValueError, match="tau"):
            mirostat(logits, torch.tensor([6.0, 6.0]), tau=tau, eta=eta)
    for shape in ((3,), (2, 1), ()):
        with pytest.raises(ValueError, match="mu"):
            mirostat(logits, torch.zeros(shape), tau=3.0, eta=0.1)


# ------------------------------------------------------------------------------------------------------------- chains


@given(seed=seeds, chosen=st.lists(st.sampled_from(ALONE + PENALTIES + OBVIOUS), max_size=5))
def test_a_chain_is_its_samplers_one_after_the_other(seed, chosen):
    logits, tokens = randn(3, 9, seed=seed), torch.randint(0, 9, (3, 8), generator=generator(seed))
    random, expected = generator(seed), logits
    for name, parameters in chosen:
        sampler = getattr(sampling, name)
        extra = (tokens,) if name in dict(PENALTIES) else ()
        drawing = {"generator": random} if name == "exclude_top_choices" else {}
        expected = sampler(expected, *extra, **parameters, **drawing)
    actual = sampler_chain(logits, tokens, chosen, generator(seed))
    assert torch.equal(actual, expected)


@pytest.mark.parametrize(
    ("t", "number"), [(0.5, {"top_p": 2, "min_p": 2}), (1.0, {"top_p": 3, "min_p": 4}), (2.0, {"top_p": 4, "min_p": 6})]
)
def test_the_lesson_says_how_many_are_kept_after_a_temperature(t, number):
    tokens = torch.zeros(1, 1, dtype=torch.int64)
    for name, p in (("top_p", 0.8), ("min_p", 0.2)):
        result = sampler_chain(EXAMPLE[None], tokens, [("temperature", {"t": t}), (name, {"p": p})])
        assert (result > -INF).sum() == number[name]
        other = sampler_chain(EXAMPLE[None], tokens, [(name, {"p": p}), ("temperature", {"t": t})])
        assert (other > -INF).sum() == {"top_p": 3, "min_p": 4}[name]


def test_an_empty_chain_copies_and_an_unknown_name_is_told_all_names():
    logits, tokens = randn(2, 5), torch.zeros(2, 1, dtype=torch.int64)
    result = sampler_chain(logits, tokens, [])
    assert torch.equal(result, logits)
    assert result.data_ptr() != logits.data_ptr()
    with pytest.raises(ValueError, match="no sampler top_q") as error:
        sampler_chain(logits, tokens, [("top_k", {"k": 2}), ("top_q", {"p": 0.5})])
    for name in set(sampling.__all__) - {"mirostat", "sampler_chain"}:
        assert name in str(error.value)
