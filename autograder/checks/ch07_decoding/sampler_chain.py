"""The check of ``sampler_chain``: samplers one after the other, in the order given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker
from autograder.checks.ch07_decoding.filters import also_asking
from tfcourse import sampling

Link = tuple[str, Mapping[str, Any]]
HOT: Link = ("temperature", {"t": 2.0})
COLD: Link = ("temperature", {"t": 0.6})
NUCLEUS: Link = ("top_p", {"p": 0.8})
DRY: Link = ("dry_penalty", {"multiplier": 0.8, "base": 1.75, "allowed": 1, "breakers": [4]})
SAID: Link = ("presence_frequency_penalty", {"presence": 0.6, "frequency": 0.4})


def chain_of(*chain: Link) -> Maker:
    """The running example of the lesson in five rows, shuffled, and a text that repeats itself."""

    def case(draw: Draw) -> Case:
        """The rows, the text and the chain."""
        p = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
        order = torch.stack([draw.permutation(6) for _ in range(5)])
        tokens = torch.tensor([[1, 2, 3, 1, 2], [2, 4, 5, 2, 4], [0, 0, 1, 0, 0], [5, 1, 5, 1, 5], [3, 4, 2, 3, 2]])
        return Case({"logits": p.log()[order] + 1.0, "tokens": tokens, "chain": list(chain)})

    return case


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
    chain_of(HOT, NUCLEUS),
    chain_of(NUCLEUS, HOT, ("min_p", {"p": 0.33})),
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


# One of each sampler, at parameters that cut the lesson's example nowhere near a token.
LINKS: tuple[Link, ...] = (
    HOT,
    COLD,
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


def any_chain(draw: Draw) -> Case:
    """One to four links in any order, of which no cut falls near a token."""
    while True:
        chain = [LINKS[index] for index in draw.integers(0, len(LINKS), int(draw.integers(1, 5))).tolist()]
        case = chain_of(*chain)(draw)
        logits, tokens = case.arguments["logits"], case.arguments["tokens"]
        kept = [sampling.sampler_chain(logits * by, tokens, chain) > -torch.inf for by in (0.999, 1.0, 1.001)]
        if torch.equal(kept[0], kept[1]) and torch.equal(kept[1], kept[2]):
            return case


SAMPLER_CHAIN = Exercise(
    reference=sampling.sampler_chain,
    rows=(
        rows.numbers(
            2.25,
            *ORDERS[:2],
            title="Each sampler works on what the one before it has left, in the order given.",
            gradients=False,
        ),
        rows.numbers(1.25, *TEXTS, name="text", title="Penalties are given the text so far.", gradients=False),
        also_asking(
            rows.many(0.5, any_chain, count=48, title="Many random chains of all samplers are right."),
            rows.numbers(0, *ORDERS[2:], gradients=False),
        ),
        also_asking(
            rows.edge(
                0.5,
                chain_of(("top_k", {"k": 4}), HOT, COLD, ("top_k", {"k": 2})),
                chain_of(),
                drawing,
                name="edges",
                title="A name may come twice, an empty chain copies, the generator draws what is drawn, and gradients are right.",
            ),
            rows.numbers(0, *ORDERS),
        ),
        rows.inputs_kept(0.25, ORDERS[0]),
        rows.errors(0.25, ORDERS[0], UNKNOWN, title="A name that is none is a ValueError."),
    ),
)
