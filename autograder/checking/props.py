"""Build fixtures for exercises (small models, optimisers, generators) that a request names, in the subject's process.

Callables do not cross between a check and its subject, so a function that takes a model gets one from its own process. The check compares
results, and the model's weights afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checking.request import Value, list_tensors


class TokenTable(nn.Module):
    """A language model that is a table: the next token depends on the current token and its position.

    Attributes:
        logits: the table, (places, V, V): by place, by token, one logit for every next token. After the last place it stays there.

    Args:
        vocab_size: V, the number of tokens.
        places: how many places have their own table.
    """

    def __init__(self, vocab_size: int, places: int = 1) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(places, vocab_size, vocab_size))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the token that follows each position.

        Args:
            tokens: integers, (B, T).

        Returns:
            Logits, (B, T, V).
        """
        places = torch.arange(tokens.shape[1], device=tokens.device).clamp(max=len(self.logits) - 1)
        return self.logits[places, tokens]


class Perceptron(nn.Module):
    """Two linear layers with a hyperbolic tangent between them.

    Args:
        inputs: width of an input.
        hidden: width in between.
        outputs: width of an output.
        dropout: share of the numbers in between that are dropped in training mode; with 1, all of them, it can be foretold which.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.drop = nn.Dropout(dropout)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor, shift: Tensor | None = None) -> Tensor:
        """Return the outputs, (..., outputs), for inputs (..., inputs); ``shift``, (..., outputs), is added to them."""
        output: Tensor = self.second(self.drop(torch.tanh(self.first(x))))
        return output if shift is None else output + shift


class TextReader(nn.Module):
    """A small encoder: each token sees the mean of the real tokens, and the first token's state is pooled.

    Args:
        vocab_size: number of tokens.
        width: width of a hidden state.
        dropout: share of the embeddings that are dropped in training mode; with 1, all of them, it can be foretold which.
    """

    def __init__(self, vocab_size: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.drop = nn.Dropout(dropout)
        self.pooler = nn.Linear(width, width)

    def forward(
        self, tokens: Tensor, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return hidden states, (B, T, D), and pooled states, (B, D), of tokens (B, T); ``mask`` is True at real tokens."""
        x = self.drop(self.embedding(tokens))
        real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        mean = (x * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)
        hidden = torch.tanh(x + mean[:, None])
        return hidden, torch.tanh(self.pooler(hidden[:, 0]))


class RecallingModel(nn.Module):
    """A language model with a cache: every earlier token contributes to the next one, later tokens more.

    Attributes:
        memory: the logits of the next token that each token contributes, (V, V).
        asked: the number of positions that it has computed, in all calls together.

    Args:
        vocab_size: V, the number of tokens.
    """

    asked: Tensor

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.zeros(vocab_size, vocab_size))
        self.register_buffer("asked", torch.tensor(0))

    def forward(
        self, tokens: Tensor, cache: Sequence[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return logits, (B, T, V), for new tokens (B, T), and a cache of one pair, (B, 1, P + T, V) each."""
        self.asked += tokens.numel()
        rows = self.memory[tokens][:, None]
        if cache is not None:
            rows = torch.cat([cache[0][0], rows], dim=2)
        length, new = rows.shape[2], tokens.shape[1]
        age = torch.arange(length - new, length, device=rows.device)[:, None] - torch.arange(length, device=rows.device)
        weight = torch.where(age < 0, 0.0, 0.7 ** age.clamp(min=0)).to(rows.dtype)
        return weight @ rows[:, 0], [(rows, rows)]


class GradientDescent(torch.optim.Optimizer):
    """Gradient descent with the steps of ``torch.optim.SGD``.

    PyTorch's own makes PyTorch import its compiler, in its constructor and at its first step, which takes longer than most checks. So the
    constructor of the base class is not called: what it would set up is set up here.

    Args:
        params: the parameters to change, or groups of them, each a dictionary with ``params`` and, if it has its own learning rate, ``lr``.
        lr: the learning rate.
    """

    def __init__(
        self, params: Sequence[nn.Parameter] | Sequence[Mapping[str, Any]], lr: float, **defaults: Any
    ) -> None:
        groups = [dict(item) if isinstance(item, Mapping) else {"params": [item]} for item in params]
        if params and not isinstance(params[0], Mapping):
            groups = [{"params": list(params)}]
        self.__setstate__(
            {
                "defaults": {"lr": lr, "maximize": False, **defaults},
                "state": defaultdict(dict),
                "param_groups": [{"lr": lr, "maximize": False, **defaults, **group} for group in groups],
            }
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss and its gradients once more, before the step.

        Returns:
            What the closure returns, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        gradient = -parameter.grad if group["maximize"] else parameter.grad
                        parameter.sub_(self._compute_direction(parameter, gradient, group), alpha=group["lr"])
        return loss

    def _compute_direction(self, parameter: nn.Parameter, gradient: Tensor, group: Mapping[str, Any]) -> Tensor:
        return gradient


class AdaptiveMoments(GradientDescent):
    """Adam with the steps of ``torch.optim.Adam``.

    Args:
        params: the parameters to change, or groups of them.
        lr: the learning rate.
        betas: how much of the running means of gradients and of their squares is kept at a step.
        eps: what is added to the root of the second.
    """

    def __init__(
        self, params: Sequence[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps)

    def _compute_direction(self, parameter: nn.Parameter, gradient: Tensor, group: Mapping[str, Any]) -> Tensor:
        (first, second), state = group["betas"], self.state[parameter]
        if not state:
            zero = torch.zeros_like(gradient)
            state.update(step=0, exp_avg=zero, exp_avg_sq=zero)
        state["step"] += 1
        state["exp_avg"] = first * state["exp_avg"] + (1 - first) * gradient
        state["exp_avg_sq"] = second * state["exp_avg_sq"] + (1 - second) * gradient**2
        root: Tensor = (state["exp_avg_sq"] / (1 - second ** state["step"])).sqrt()
        direction: Tensor = state["exp_avg"] / (1 - first ** state["step"]) / (root + group["eps"])
        return direction


class Rates:
    """A learning-rate schedule: a callable from the number of a step to its rate.

    Args:
        rates: the rates of the steps 1, 2, 3 …; the last one is that of all later steps, too.
    """

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = tuple(rates)

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step.

        Raises:
            ValueError: if there is no such step.
        """
        if step < 1:
            raise ValueError(f"steps are counted from 1, so step {step} has no learning rate")
        return self._rates[min(step, len(self._rates)) - 1]


def build_fixtures(
    props: Mapping[str, Mapping[str, Value]], arguments: Mapping[str, Value] | None = None
) -> dict[str, Any]:
    """Build the fixtures that a request names.

    Args:
        props: by argument, ``kind`` (a key of :data:`KINDS`), ``init`` (its arguments) and, for a model, ``state`` (its weights),
            ``gradients`` (what an earlier step has left in them) and ``training`` (False puts it into evaluation mode). An optimiser's
            ``of`` names the argument that is the model whose parameters it changes, or several; with ``apart`` each parameter is its own
            group. A generator draws on the device of the models beside it, or else on that of the arguments.
        arguments: the other arguments of the call.

    Returns:
        What was built, by argument.
    """
    built: dict[str, Any] = {}
    for name, prop in sorted(props.items(), key=lambda item: "of" in item[1]):
        options = dict(prop.get("init", {}))
        if "of" in prop:
            models = [prop["of"]] if isinstance(prop["of"], str) else prop["of"]
            parameters = [parameter for model in models for parameter in built[model].parameters()]
            options["params"] = [{"params": [one]} for one in parameters] if prop.get("apart") else parameters
        if prop["kind"] == "Generator":
            options["device"] = _find_device(props, arguments or {})
        built[name] = KINDS[prop["kind"]](**options)
        if "state" in prop:
            first = next(iter(prop["state"].values()))
            built[name].to(device=first.device, dtype=first.dtype).load_state_dict(dict(prop["state"]))
        for parameter, gradient in prop.get("gradients", {}).items():
            built[name].get_parameter(parameter).grad = gradient.clone()
        if "training" in prop:
            built[name].train(prop["training"])
            built[name].mode_is_told = True
    return built


def read_model_weights(models_by_name: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of the built models, named ``model.first.weight`` and so on.

    If the request sets a model's mode, ``model.training`` is its mode afterwards.
    """
    models = {name: item for name, item in models_by_name.items() if isinstance(item, nn.Module)}
    weights = {
        f"{name}.{key}": value.detach().clone()
        for name, item in models.items()
        for key, value in item.state_dict().items()
    }
    with_mode = {name: item for name, item in models.items() if getattr(item, "mode_is_told", False)}
    return weights | {f"{name}.training": torch.tensor(item.training) for name, item in with_mode.items()}


def _find_device(props: Mapping[str, Mapping[str, Value]], arguments: Mapping[str, Value]) -> torch.device:
    devices = {weight.device for prop in props.values() for weight in prop.get("state", {}).values()}
    devices = devices or {tensor.device for tensor in list_tensors(arguments)}
    # The meta device draws no random numbers.
    return min(devices - {torch.device("meta")}, key=str, default=torch.device("cpu"))


def _make_generator(seed: int, device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


KINDS: dict[str, Callable[..., Any]] = {
    "TokenTable": TokenTable,
    "Perceptron": Perceptron,
    "TextReader": TextReader,
    "RecallingModel": RecallingModel,
    "Generator": _make_generator,
    "SGD": GradientDescent,
    "Adam": AdaptiveMoments,
    "Rates": Rates,
}
