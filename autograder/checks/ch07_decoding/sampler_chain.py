"""The check of ``sampler_chain``: samplers one after the other, in the order given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker
from autograder.checks.combined_rows import also_asking
from tfcourse import sampling

Link = tuple[str, Mapping[str, Any]]
HOT: Link = ("temperature", {"t": 2.0})
COLD: Link = ("temperature", {"t": 0.6})
NUCLEUS: Link = ("top_p", {"p": 0.8})
DRY: Link = ("dry_penalty", {"multiplier": 0.8, "base": 1.75, "allowed": 1, "breakers": [4]})
SAID: Link = ("presence_frequency_penalty", {"presence": 0.6, "frequency": 0.4})
# One of each sampler.
LINKS: tuple[Link, ...] = (
    HOT,
    NUCLEUS,
    DRY,
    SAID,
    ("top_k", {"k": 4}),
    ("min_p", {"p": 0.33}),
    ("top_a", {"a": 0.4}),
    ("top_n_sigma", {"n": 1.5}),
    ("tail_free", {"z": 0.9}),
    ("epsilon_cutoff", {"epsilon": 0.09}),
    ("eta_cutoff", {"epsilon": 0.1}),
    ("locally_typical", {"mass": 0.7}),
    ("quadratic", {"factor": 0.3}),
    ("dynamic_temperature", {"low": 0.5, "high": 1.5}),
    ("repetition_penalty", {"penalty": 1.8}),
    ("exclude_top_choices", {"threshold": 0.12, "probability": 1.0}),
)


def chain_of(*chain: Link, ordered: bool = False) -> Maker:
    """Five rows of logits that no link cuts near a token, and a text that repeats itself.

    Args:
        chain: the links.
        ordered: in the opposite order they leave other tokens.
    """

    def case(draw: Draw) -> Case:
        """The rows, the text and the chain."""
        tokens = torch.tensor([[1, 2, 3, 1, 2], [2, 4, 5, 2, 4], [0, 0, 1, 0, 0], [5, 1, 5, 1, 5], [3, 4, 2, 3, 2]])
        while True:
            logits = draw.normal(5, 6) + 0.5
            less, mask, more = (_kept_tokens(logits * by, tokens, chain) for by in (0.998, 1.0, 1.002))
            robust = torch.equal(less, mask) and torch.equal(mask, more)
            if robust and not (ordered and torch.equal(mask, _kept_tokens(logits, tokens, chain[::-1]))):
                return Case({"logits": logits, "tokens": tokens, "chain": list(chain)})

    return case


def _kept_tokens(logits: Tensor, tokens: Tensor, chain: Sequence[Link]) -> Tensor:
    links = [link for link in chain if link[0] != "top_q"]
    generator = torch.Generator().manual_seed(0)
    return sampling.sampler_chain(logits, tokens, links, generator=generator) > -torch.inf


def drawing(draw: Draw) -> Case:
    """A chain in which something is drawn."""
    chain: Sequence[Link] = [
        ("min_p", {"p": 0.13}),
        ("exclude_top_choices", {"threshold": 0.12, "probability": 0.5}),
        HOT,
    ]
    case = chain_of(*chain)(draw)
    return Case(
        case.arguments, props={"generator": {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}}
    )


# In the first two the order matters, in the third nothing is changed by the first, in the fourth a penalty sees where the zero is.
ORDERS = (
    chain_of(HOT, NUCLEUS, ordered=True),
    chain_of(NUCLEUS, HOT, ("min_p", {"p": 0.33}), ordered=True),
    chain_of(
        ("top_k", {"k": 50}), ("tail_free", {"z": 0.9}), ("quadratic", {"factor": 0.3}), ("top_n_sigma", {"n": 1.5})
    ),
    chain_of(
        ("eta_cutoff", {"epsilon": 0.1}),
        ("locally_typical", {"mass": 0.7}),
        COLD,
        ("epsilon_cutoff", {"epsilon": 0.09}),
    ),
)
TEXTS = (
    chain_of(NUCLEUS, ("repetition_penalty", {"penalty": 1.8}), DRY),
    chain_of(DRY, SAID, ("top_a", {"a": 0.4}), ("dynamic_temperature", {"low": 0.5, "high": 1.5})),
)
UNKNOWN = chain_of(NUCLEUS, ("top_q", {"q": 0.5}))


def any_chain(draw: Draw) -> Case:
    """One to four different links in any order."""
    return chain_of(*(LINKS[index] for index in draw.order(len(LINKS))[: 1 + int(draw.integers(0, 4))]))(draw)


SAMPLER_CHAIN = Exercise(
    reference=sampling.sampler_chain,
    rows=(
        rows.numbers(
            2.25,
            *ORDERS[:3],
            title="Each sampler works on what the one before it has left, in the order given.",
            gradients=False,
        ),
        rows.numbers(1.25, *TEXTS, name="text", title="Penalties are given the text so far.", gradients=False),
        also_asking(
            rows.many(0.5, any_chain, count=48, title="Many random chains of all samplers are right."),
            rows.numbers(0, ORDERS[3], gradients=False),
        ),
        also_asking(
            rows.edge(
                0.5,
                chain_of(("top_k", {"k": 4}), HOT, COLD, ("top_k", {"k": 2})),
                chain_of(),
                drawing,
                name="edges",
                title="A name may occur twice, an empty chain returns a copy, the generator is used, and gradients are right.",
            ),
            rows.numbers(0, *ORDERS),
        ),
        rows.inputs_kept(0.25, ORDERS[0]),
        rows.errors(0.25, ORDERS[0], UNKNOWN, title="A name that is none is a ValueError."),
    ),
)
