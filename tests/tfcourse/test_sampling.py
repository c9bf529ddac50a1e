"""Sampling against the logits processors of Hugging Face Transformers, and top-p in exact arithmetic."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation import logits_process as hf

from tfcourse import sampling
from tfcourse.sampling import (
    dry_penalty,
    min_p,
    mirostat,
    repetition_penalty,
    sampler_chain,
    tail_free,
    top_k,
    top_p,
)

INF = math.inf
# The running example of the lesson.


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


# ----------------------------------------------------------------------------- loops from the formulas, one row at a time


def exact_top_p(p: list[Fraction], mass: Fraction) -> list[bool]:
    """The rule of top-p in exact arithmetic: the sum of what is strictly more probable is less than the mass."""
    return [sum(q for q in p if q > one) < mass for one in p]


# Every sampler that changes logits, as (its name, parameters, the loop); several parameters for most.
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


@each_at_all
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_shape_and_dtype_stay_and_the_input_too(name, parameters, dtype):
    logits = with_holes(randn(4, 7, dtype=dtype), 1)
    before = logits.clone()
    result = call(name, parameters, logits)
    assert (result.shape, result.dtype) == (logits.shape, logits.dtype)
    assert torch.equal(logits, before)
    assert result.data_ptr() != logits.data_ptr()


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


def test_nothing_is_cut_where_all_tokens_are_alike_or_all_is_asked_for():
    flat = torch.full((3, 7), 1.5)
    for name, parameters in FILTERS:
        assert torch.equal(call(name, parameters, flat), flat), name
    logits = 30 * randn(5, 40, dtype=torch.float32)
    for unchanged in (top_p(logits, 1.0), tail_free(logits, 1.0), top_k(logits, 40), min_p(logits, 0.0)):
        assert torch.equal(unchanged, logits)


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


# --------------------------------------------------------------------------------------------------------- penalties


def test_dry_has_the_numbers_of_the_worked_example():
    a, b, c, y = range(4)
    tokens = torch.tensor([[a, b, c, c, b, c, y, a, b, c]])
    penalty = -dry_penalty(torch.zeros(1, 4), tokens, multiplier=0.8, base=1.75, allowed=2)
    torch.testing.assert_close(penalty, torch.tensor([[0.0, 0.0, 1.4, 0.8]]))
    every = -dry_penalty(torch.zeros(1, 4), tokens, multiplier=1.0, base=2.0, allowed=1)
    torch.testing.assert_close(every, torch.tensor([[0.0, 1.0, 4.0, 2.0]]))
    same = -dry_penalty(torch.zeros(1, 4), torch.tensor([[a, a, a, a]]), multiplier=1.0, base=2.0, allowed=1)
    torch.testing.assert_close(same, torch.tensor([[4.0, 0.0, 0.0, 0.0]]))


# ---------------------------------------------------------------------------------------- what draws: XTC and mirostat


def test_mirostat_brings_the_mean_surprise_of_a_text_to_its_target():
    logits, drawn = randn(1, 200, seed=9, dtype=torch.float32), []
    mu, random = torch.tensor([8.0]), generator(1)
    for _ in range(1500):
        before = mu
        _, mu = mirostat(logits, mu, tau=4.0, eta=0.1, generator=random)
        drawn.append(4.0 - float(mu - before) / 0.1)
    assert sum(drawn[500:]) / 1000 == pytest.approx(4.0, abs=0.1)


# ------------------------------------------------------------------------------------------------------------- chains


def test_an_empty_chain_copies_and_an_unknown_name_is_told_all_names():
    logits, tokens = randn(2, 5), torch.zeros(2, 1, dtype=torch.int64)
    result = sampler_chain(logits, tokens, [])
    assert torch.equal(result, logits)
    assert result.data_ptr() != logits.data_ptr()
    with pytest.raises(ValueError, match="no sampler top_q") as error:
        sampler_chain(logits, tokens, [("top_k", {"k": 2}), ("top_q", {"p": 0.5})])
    for name in set(sampling.__all__) - {"mirostat", "sampler_chain"}:
        assert name in str(error.value)


def test_penalties_take_tokens_of_any_integer_type():
    logits, tokens = randn(3, 5), torch.randint(0, 5, (3, 6), generator=generator(3))
    for name, parameters in PENALTIES:
        penalise = getattr(sampling, name)
        expected = penalise(logits, tokens, **parameters)
        assert torch.equal(penalise(logits, tokens.to(torch.int32), **parameters), expected)
