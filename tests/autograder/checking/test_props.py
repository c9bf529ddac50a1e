"""Functions that take a model are given one that was built on their own side, and what they did to it is told."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.checking.draw import Case, Draw
from autograder.checking.props import KINDS, Perceptron, build_fixtures
from autograder.checking.recorded import _pack, _Store, _unpack
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.engine.checker.remote_subject import pack_request
from autograder.engine.transport.observations import observation_from_dict, observation_to_dict
from autograder.engine.transport.serialization import pack, unpack


def training_case(draw: Draw) -> Case:
    """A model, an optimiser for it, and one batch."""
    model = {
        "kind": "Perceptron",
        "init": {"inputs": 3, "hidden": 4, "outputs": 2},
        "state": draw.weights(Perceptron(3, 4, 2)),
    }
    optimizer = {"kind": "SGD", "of": "model", "init": {"lr": 0.5}}
    return Case({"x": draw.normal(5, 3), "y": draw.normal(5, 2)}, props={"model": model, "optimizer": optimizer})


def train_step(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor) -> float:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def without_step(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor) -> float:
    return nn.functional.mse_loss(model(x), y).item()


def test_a_training_step_tells_its_loss_and_the_weights_that_it_leaves() -> None:
    case = training_case(Draw("t"))
    seen = LocalSubject(train_step).observe(case.request())
    assert set(seen.outputs) == {"output", *(f"model.{name}" for name in Perceptron(3, 4, 2).state_dict())}
    # The same step by hand, from the gradient that autograd gives.
    assert case.props is not None
    model = Perceptron(3, 4, 2)
    model.load_state_dict(case.props["model"]["state"])
    loss = nn.functional.mse_loss(model(case.arguments["x"]), case.arguments["y"])
    loss.backward()
    assert seen.outputs["output"] == loss.item()
    for name, weight in model.named_parameters():
        assert weight.grad is not None
        torch.testing.assert_close(seen.outputs[f"model.{name}"], (weight - 0.5 * weight.grad).detach())
    idle = LocalSubject(without_step).observe(case.request())
    assert idle.outputs["output"] == seen.outputs["output"]
    torch.testing.assert_close(
        idle.outputs["model.first.weight"], case.props["model"]["state"]["first.weight"], rtol=0, atol=0
    )


def everywhere(candidate: Any, case: Case) -> list[Observation]:
    """Ask a candidate here, on the other side of the wire, and what was recorded."""
    request, store = case.request(), _Store()
    here = LocalSubject(candidate).observe(request)
    there = LocalSubject(candidate).observe(Request(**unpack(pack_request(request))))
    recorded = LocalSubject(candidate).observe(Request(**_unpack(_pack(request, store), store)))
    return [here, observation_from_dict(unpack(pack(observation_to_dict(there)))), recorded]


def test_the_same_answers_come_from_the_other_side_of_the_wire_and_from_a_recording() -> None:
    here, *others = everywhere(train_step, training_case(Draw("t")))
    for other in others:
        torch.testing.assert_close(dict(other.outputs), dict(here.outputs), rtol=0, atol=0)
        assert other.attached == ()


class Dropping(nn.Module):
    """A class that behaves otherwise while it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(1.0)

    def forward(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.drop(x)
        return dropped


@pytest.mark.parametrize("training", [False, True])
def test_an_instance_is_in_training_mode_only_where_the_case_says_so_on_either_side_of_the_wire(training: bool) -> None:
    for seen in everywhere(Dropping, Case({"x": torch.ones(3)}, init={}, training=training)):
        assert seen.outputs["output"].tolist() == ([0, 0, 0] if training else [1, 1, 1])


@pytest.mark.parametrize(
    ("kind", "theirs", "options"),
    [("SGD", torch.optim.SGD, {"lr": 0.3}), ("Adam", torch.optim.Adam, {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3})],
)
def test_an_optimiser_takes_the_steps_of_pytorchs_own(kind: str, theirs: Any, options: dict[str, Any]) -> None:
    models = [Perceptron(3, 4, 2).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimisers = [
        KINDS[kind](params=list(models[0].parameters()), **options),
        theirs(models[1].parameters(), **options),
    ]
    draw = Draw("steps")
    for step in range(6):
        x = draw.normal(5, 3, dtype=torch.float64)
        for model, optimiser in zip(models, optimisers, strict=True):
            if step != 3:  # once the gradients of two steps are added up
                optimiser.zero_grad(set_to_none=step != 2)
            if step == 4:
                optimiser.param_groups[0]["lr"] = 0.01
            # The second layer's bias takes no part in every other step.
            (model(x) - (model.second.bias if step % 2 else 0)).square().sum().backward()
            optimiser.step()
        for mine, other in zip(*(model.parameters() for model in models), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


def built(kind: str, **prop: Any) -> dict[str, Any]:
    """A small network and an optimiser of it."""
    return build_fixtures(
        {
            "model": {"kind": "Perceptron", "init": {"inputs": 3, "hidden": 4, "outputs": 2}},
            "optimizer": {"kind": kind, "of": "model", "init": {"lr": 0.5}, **prop},
        }
    )


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_an_optimiser_has_the_face_that_pytorchs_documentation_shows(kind: str) -> None:
    made = built(kind)
    model, optimiser = made["model"], made["optimizer"]
    assert isinstance(optimiser, torch.optim.Optimizer)
    assert optimiser.defaults["lr"] == 0.5
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda done: 1 / (done + 1))

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = model(torch.ones(1, 3)).square().sum()
        loss.backward()
        return loss

    before = model.second.bias.detach().clone()
    assert optimiser.step(closure).item() > 0
    assert not torch.equal(model.second.bias, before)
    scheduler.step()
    assert optimiser.param_groups[0]["lr"] == 0.25
    kept = model.second.bias.grad
    optimiser.zero_grad(set_to_none=False)
    assert model.second.bias.grad is kept, "zeroed where it is, as PyTorch does"
    assert not kept.any()
    saved = optimiser.state_dict()
    optimiser.load_state_dict(saved)
    optimiser.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 0.1})
    assert [group["lr"] for group in optimiser.param_groups] == [0.25, 0.1]


def test_optimisers_do_not_bring_pytorchs_compiler_along() -> None:
    code = (
        "import sys, torch\n"
        "from autograder.checking.props import build_fixtures\n"
        "model = {'kind': 'Perceptron', 'init': {'inputs': 3, 'hidden': 4, 'outputs': 2}}\n"
        "for kind in ('SGD', 'Adam'):\n"
        "    made = build_fixtures({'model': model, 'optimizer': {'kind': kind, 'of': 'model', 'init': {'lr': 0.1}}})\n"
        "    made['model'](torch.ones(1, 3)).sum().backward()\n"
        "    made['optimizer'].step()\n"
        "    made['optimizer'].zero_grad()\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_a_model_may_be_given_as_an_examination_has_left_it_and_drops_only_while_it_is_trained() -> None:
    init = {"inputs": 3, "hidden": 4, "outputs": 2, "dropout": 1.0}
    made = build_fixtures({name: {"kind": "Perceptron", "init": init, "training": name == "a"} for name in ("a", "b")})
    assert [made[name].training for name in ("a", "b")] == [True, False]
    torch.testing.assert_close(made["a"](torch.ones(1, 3))[0], made["a"].second.bias)
    assert not torch.equal(made["b"](torch.ones(1, 3))[0], made["b"].second.bias)


def test_results_that_still_hang_on_a_graph_are_told_on_either_side_of_the_wire() -> None:
    def careless(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss = nn.functional.mse_loss(model(x), y)
        return loss, loss.detach()

    assert {seen.attached for seen in everywhere(careless, training_case(Draw("t")))} == {("output[0]",)}
