"""What an exercise is given beside numbers: a small model, an optimiser, a generator. A request names one; whoever answers builds it.

Nothing that can be called crosses between a check and its subject, so a function that takes a model is given one that was built on its
own side. It decides nothing: what a check compares are results, and the weights that the model has afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checking.request import Value


class TokenTable(nn.Module):
    """A language model that is a table: at each place, the next token depends on the token that stands there, and on the place.

    Attributes:
        logits: the table, (places, V, V): by place, by token, one logit for every next token. After the last place it stays there.

    Args:
        vocabulary: V, the number of tokens.
        places: how many places have a table of their own.
    """

    def __init__(self, vocabulary: int, places: int = 1) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(places, vocabulary, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the token after each place.

        Args:
            tokens: integers, (B, T).

        Returns:
            Logits, (B, T, V).
        """
        places = torch.arange(tokens.shape[1], device=tokens.device).clamp(max=len(self.logits) - 1)
        return self.logits[places, tokens]


class Perceptron(nn.Module):
    """Two linear layers with a hyperbolic tangent between them: the smallest model that is worth training.

    Args:
        inputs: width of an input.
        hidden: width in between.
        outputs: width of an output.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, (..., outputs), for inputs (..., inputs)."""
        made: Tensor = self.second(torch.tanh(self.first(x)))
        return made


def build(props: Mapping[str, Mapping[str, Value]]) -> dict[str, Any]:
    """Build what a request names.

    Args:
        props: by argument, ``kind`` (a key of :data:`KINDS`), ``init`` (its arguments) and, for a model, ``state`` (its weights) and
            ``gradients`` (what an earlier step has left in them). An optimiser's ``of`` names the argument that is the model whose
            parameters it changes.

    Returns:
        What was built, by argument.
    """
    made: dict[str, Any] = {}
    for name, prop in sorted(props.items(), key=lambda item: "of" in item[1]):
        options = dict(prop.get("init", {}))
        if "of" in prop:
            options["params"] = list(made[prop["of"]].parameters())
        made[name] = KINDS[prop["kind"]](**options)
        if "state" in prop:
            first = next(iter(prop["state"].values()))
            made[name].to(device=first.device, dtype=first.dtype).load_state_dict(dict(prop["state"]))
        for parameter, gradient in prop.get("gradients", {}).items():
            made[name].get_parameter(parameter).grad = gradient.clone()
    return made


def states(made: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the models among what was built, named ``model.first.weight`` and so on."""
    return {
        f"{name}.{key}": value.detach().clone()
        for name, item in made.items()
        if isinstance(item, nn.Module)
        for key, value in item.state_dict().items()
    }


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


KINDS: dict[str, Callable[..., Any]] = {
    "TokenTable": TokenTable,
    "Perceptron": Perceptron,
    "Generator": _generator,
    "SGD": torch.optim.SGD,
    "Adam": torch.optim.Adam,
}
