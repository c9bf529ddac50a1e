"""What an exercise is given beside numbers: a small model, an optimiser, a generator. A request names one; whoever answers builds it.

Nothing that can be called crosses between a check and its subject, so a function that takes a model is given one that was built on its
own side. It decides nothing: what a check compares are results, and the weights that the model has afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


class GradientDescent:
    """Gradient descent with the face of ``torch.optim.SGD``, whose first step makes PyTorch import its compiler: three seconds.

    Attributes:
        param_groups: one group, with ``params`` and ``lr``; who changes ``lr`` there changes the next step.

    Args:
        params: the parameters to change.
        lr: the learning rate.
    """

    def __init__(self, params: Sequence[nn.Parameter], lr: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(params), "lr": lr}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or make them zero."""
        for parameter in self._parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = torch.zeros_like(parameter.grad)

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for parameter in self._parameters():
            if parameter.grad is not None:
                parameter.sub_(self._direction(parameter, parameter.grad), alpha=self.param_groups[0]["lr"])

    def _parameters(self) -> list[nn.Parameter]:
        found: list[nn.Parameter] = self.param_groups[0]["params"]
        return found

    def _direction(self, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
        return gradient


class AdaptiveMoments(GradientDescent):
    """Adam with the face of ``torch.optim.Adam``.

    Args:
        params: the parameters to change.
        lr: the learning rate.
        betas: how much of the running means of gradients and of their squares is kept at a step.
        eps: what is added to the root of the second.
    """

    def __init__(
        self, params: Sequence[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr)
        self._betas, self._eps = betas, eps
        self._moments: dict[nn.Parameter, tuple[int, Tensor, Tensor]] = {}

    def _direction(self, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
        first, second = self._betas
        zero = torch.zeros_like(gradient)
        steps, mean, square = self._moments.get(parameter, (0, zero, zero))
        mean, square = first * mean + (1 - first) * gradient, second * square + (1 - second) * gradient**2
        self._moments[parameter] = (steps + 1, mean, square)
        root: Tensor = (square / (1 - second ** (steps + 1))).sqrt()
        return mean / (1 - first ** (steps + 1)) / (root + self._eps)


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
    "SGD": GradientDescent,
    "Adam": AdaptiveMoments,
}
