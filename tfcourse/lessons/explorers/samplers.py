"""Put samplers in an order and watch what each makes of a distribution.

`sampler_explorer` makes a figure to play with (see `tfcourse.lessons.explorers.base`). The page computes the samplers itself, as
`tfcourse.sampling` does; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfcourse.lessons.explorers.base import Explorer, folded, readable, table

__all__ = ["SAMPLERS", "SamplerExplorer", "sampler_explorer"]

SHOWN = 12
"""So many tokens have bars; the others are summed up."""

# For each sampler its title, and for each of its settings the smallest and the largest value, the step, and where it begins.
SAMPLERS: dict[str, tuple[str, dict[str, tuple[float, float, float, float]]]] = {
    "temperature": ("Temperature", {"t": (0.1, 3.0, 0.05, 1.0)}),
    "top_k": ("Top-k", {"k": (1, 20, 1, 9)}),
    "top_p": ("Top-p", {"p": (0.05, 1.0, 0.01, 0.9)}),
    "min_p": ("Min-p", {"p": (0.0, 1.0, 0.01, 0.1)}),
    "top_a": ("Top-a", {"a": (0.0, 1.0, 0.01, 0.3)}),
    "top_n_sigma": ("Top-n-sigma", {"n": (0.0, 4.0, 0.05, 1.0)}),
    "tail_free": ("Tail-free", {"z": (0.0, 1.0, 0.01, 0.95)}),
    "epsilon_cutoff": ("Epsilon", {"epsilon": (0.001, 0.5, 0.001, 0.02)}),
    "eta_cutoff": ("Eta", {"epsilon": (0.001, 0.5, 0.001, 0.02)}),
    "locally_typical": ("Typical", {"mass": (0.05, 0.99, 0.01, 0.9)}),
    "quadratic": ("Quadratic", {"factor": (0.01, 2.0, 0.01, 0.3), "curve": (1.0, 3.0, 0.1, 1.0)}),
    "dynamic_temperature": ("Dynamic temperature", {"low": (0.1, 2.0, 0.05, 0.5), "high": (2.0, 4.0, 0.05, 2.0)}),
    "exclude_top_choices": ("Exclude top choices", {"threshold": (0.01, 1.0, 0.01, 0.1), "probability": (0, 1, 1, 1)}),
}


@dataclass(frozen=True, repr=False)
class SamplerExplorer(Explorer):
    """Distributions and a chain of samplers, ready to be shown; made by `sampler_explorer`."""

    element = "sampler-explorer"

    names: tuple[str, ...]
    """What the distributions are called."""
    tokens: tuple[tuple[str, ...], ...]
    """The tokens of each, the most probable first."""
    logits: tuple[tuple[float, ...], ...]
    """Their logits, in the same order."""
    chain: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    """The samplers that are switched on at the beginning, in order, with their settings."""

    def data(self) -> dict[str, Any]:
        """The distributions, the cards, and the chain to begin with."""
        return {
            "names": self.names,
            "tokens": self.tokens,
            "logits": self.logits,
            "shown": SHOWN,
            "samplers": {name: {"title": title, "settings": settings} for name, (title, settings) in SAMPLERS.items()},
            "chain": [[name, dict(values)] for name, values in self.chain],
        }

    def plain(self) -> str:
        """The model's own probabilities, one table for each distribution."""
        tables: list[str] = []
        for name, tokens, logits in zip(self.names, self.tokens, self.logits, strict=True):
            probabilities = torch.softmax(torch.tensor(logits, dtype=torch.float64), dim=-1).tolist()
            rows = [(token, (p,)) for token, p in zip(tokens[:SHOWN], probabilities, strict=False)]
            cells = table(f"{name}: {self.caption}", ("probability",), rows, cell=lambda p: f"<td>{p:.4f}</td>")
            tables.append(folded(f"The model's probabilities: {name}", cells, unfolded=not tables))
        return "".join(tables)

    def summary(self) -> str:
        """How many distributions and samplers there are."""
        chain = ", then ".join(SAMPLERS[name][0] for name, _ in self.chain) or "none"
        return f"{len(self.names)} distributions, {len(SAMPLERS)} samplers, switched on: {chain}"


def sampler_explorer(
    distributions: Mapping[str, tuple[Sequence[str], Tensor]],
    *,
    chain: Sequence[tuple[str, Mapping[str, float]]] = (),
    caption: str,
) -> SamplerExplorer:
    """Show what a chain of samplers makes of a distribution; the reader moves the cards and their settings.

    Leave the result as the last value of a notebook cell. With the course's script there are cards to move; without it there are tables
    of the model's own probabilities.

    Args:
        distributions: By name, the tokens and their logits (V,), finite, at least three of them.
        chain: The samplers that are switched on at the beginning, in order, with values for some of their settings.
        caption: One sentence that describes the figure.

    Returns:
        An object that notebooks display.

    Raises:
        ValueError: If there are no distributions, or one has fewer than three tokens, or logits that are not finite or do not fit the
            tokens. If a sampler or a setting is unknown, a sampler occurs twice, a value is out of its range, or the caption is blank.
    """
    if not distributions:
        raise ValueError("expected at least one distribution")
    tokens, logits = [], []
    for name, (words, scores) in distributions.items():
        if scores.shape != (len(words),) or len(words) < 3 or not bool(scores.isfinite().all()):
            raise ValueError(
                f"expected a finite logit for each of at least 3 tokens of {name!r}, got {tuple(scores.shape)}"
            )
        normal = torch.log_softmax(scores.double(), dim=-1)
        order = normal.argsort(descending=True, stable=True).tolist()
        tokens.append(tuple(readable(words[place]) for place in order))
        logits.append(tuple(round(normal[place].item(), 5) for place in order))
    return SamplerExplorer(caption, tuple(map(readable, distributions)), tuple(tokens), tuple(logits), _checked(chain))


def _checked(chain: Sequence[tuple[str, Mapping[str, float]]]) -> tuple[tuple[str, tuple[tuple[str, float], ...]], ...]:
    """The chain with a value for every setting."""
    if len({name for name, _ in chain}) != len(chain):
        raise ValueError(f"a sampler may stand in the chain once, got {[name for name, _ in chain]}")
    checked = []
    for name, values in chain:
        if name not in SAMPLERS:
            raise ValueError(f"unknown sampler {name!r}: expected one of {', '.join(SAMPLERS)}")
        settings = SAMPLERS[name][1]
        if unknown := values.keys() - settings.keys():
            raise ValueError(f"{name} has the settings {', '.join(settings)}, got {', '.join(sorted(unknown))}")
        for setting, value in values.items():
            least, most, _, _ = settings[setting]
            if not (least <= value <= most and math.isfinite(value)):
                raise ValueError(f"{setting} of {name} lies from {least:g} to {most:g}, got {value}")
        checked.append(
            (name, tuple((setting, float(values.get(setting, spec[3]))) for setting, spec in settings.items()))
        )
    return tuple(checked)
