"""Training against torch.nn.functional and torch.optim."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfcourse.training import (
    average_checkpoints,
    cross_entropy,
    noam_learning_rate,
    training_loop,
    training_step,
)

from .drawing import randn

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


# ----------------------------------------------------------------------------------------------------- cross-entropy


@precise
@given(data=st.data())
def test_cross_entropy_and_its_gradient_equal_pytorchs(dtype, data, with_gradients, assert_near):
    B, T, V = data.draw(st.lists(st.integers(2, 6), min_size=3, max_size=3))
    share = data.draw(st.sampled_from([0.0, 0.1, 0.7]))
    ignore = data.draw(st.sampled_from([0, -100, 1]))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 10**6)))
    targets = torch.randint(0, V, (B, T), generator=generator)
    targets[0, 0] = 1 if ignore != 1 else 0
    targets[-1, -1] = ignore
    logits = 3 * randn(B, T, V, seed=data.draw(st.integers(0, 10**6)), dtype=dtype)
    actual = with_gradients(lambda x: cross_entropy(x, targets, label_smoothing=share, ignore_index=ignore), logits)
    expected = with_gradients(
        lambda x: F.cross_entropy(x.flatten(0, 1), targets.flatten(), label_smoothing=share, ignore_index=ignore),
        logits.double(),
    )
    assert_near(actual, expected)


def test_a_token_that_is_forbidden_costs_nothing_as_long_as_nothing_is_smoothed(with_gradients, assert_near):
    logits, targets = randn(2, 3, 5), torch.tensor([[4, 2, 0], [3, 1, 4]])
    logits[:, :, 0] = -torch.inf
    logits[0, 1, 3] = -torch.inf
    actual = with_gradients(lambda x: cross_entropy(x, targets), logits)
    expected = with_gradients(lambda x: F.cross_entropy(x.flatten(0, 1), targets.flatten(), ignore_index=0), logits)
    assert all(bool(x.isfinite().all()) for x in actual)
    assert_near(actual, expected)


# ------------------------------------------------------------------------------------------------------ learning rate


def test_the_papers_rate_peaks_at_seven_ten_thousandths():
    assert noam_learning_rate(4000, 512) == pytest.approx(6.99e-4, rel=1e-3)


# -------------------------------------------------------------------------------------------------------- checkpoints


@given(count=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_every_entry_is_the_mean_of_the_checkpoints_entries_as_pytorchs_averaged_model_has_it(count, seed):
    states = []
    model = nn.Linear(3, 2)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for number in range(count):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(randn(*parameter.shape, seed=seed + number))
        averaged.update_parameters(model)
        states.append(copy.deepcopy(model.state_dict()))
    before = copy.deepcopy(states)
    found = average_checkpoints(states)
    torch.testing.assert_close(found, dict(averaged.module.state_dict()))
    torch.testing.assert_close(states, before, rtol=0, atol=0)
    found["weight"].zero_()
    torch.testing.assert_close(states, before, rtol=0, atol=0, msg="the mean has tensors of its own")
    model.load_state_dict(average_checkpoints(states))


def test_counts_come_from_the_last_checkpoint_and_half_precision_is_summed_wide():
    states = [
        {"steps": torch.tensor(10 * n), "w": torch.full((3,), 30_000 + 32.0 * n, dtype=torch.float16)}
        for n in range(1, 4)
    ]
    found = average_checkpoints(states)
    assert found["steps"].item() == 30
    assert found["w"].dtype == torch.float16
    assert found["w"].tolist() == [30_064.0] * 3


# ------------------------------------------------------------------------------------------------------ training step


def batch() -> tuple[tuple[Tensor], Tensor]:
    """Inputs and targets with padding."""
    return (randn(4, 3, 5),), torch.tensor([[2, 1, 3], [1, 0, 0], [3, 3, 0], [2, 2, 2]])


def network() -> nn.Sequential:
    """A small model with random weights, and gradients that an earlier step has left."""
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=number) / 2)
            parameter.grad = randn(*parameter.shape, seed=50 + number)
    return model


def test_a_step_of_plain_descent_is_rate_times_the_gradient_of_pytorchs_loss():
    model, (inputs, targets) = network(), batch()
    loss = F.cross_entropy(model(*inputs).flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=0.1)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    expected = [(w - 0.05 * g).detach() for w, g in zip(model.parameters(), gradients, strict=True)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    told = training_step(model, optimizer, inputs, targets, learning_rate=0.05, label_smoothing=0.1)
    torch.testing.assert_close(told, loss.detach())
    assert not told.requires_grad
    torch.testing.assert_close([w.detach() for w in model.parameters()], expected)
    assert [group["lr"] for group in optimizer.param_groups] == [0.05]


# ------------------------------------------------------------------------------------------------------ training loop


def some_batches(count: int) -> list[tuple[tuple[Tensor], Tensor]]:
    """Batches of different sizes, some of their targets padding."""
    generator = torch.Generator().manual_seed(7)
    return [
        ((randn(3 + n % 2, 2, 5, seed=n),), torch.randint(0, 4, (3 + n % 2, 2), generator=generator))
        for n in range(count)
    ]


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
def test_a_loop_makes_the_steps_of_pytorchs_optimiser_batch_by_batch(make, scheduled):
    model, batches = network(), some_batches(5)
    other = copy.deepcopy(model)
    options = {"learning_rate": lambda step: 0.3 / step} if scheduled else {}
    told = training_loop(model, make(model.parameters(), lr=0.1), batches, label_smoothing=0.2, **options)
    # The same with PyTorch alone.
    optimizer = make(other.parameters(), lr=0.1)
    losses = []
    for number, ((x,), targets) in enumerate(batches):
        if scheduled:
            optimizer.param_groups[0]["lr"] = 0.3 / (number + 1)
        optimizer.zero_grad()
        loss = F.cross_entropy(other(x).flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=0.2)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(told, torch.tensor(losses, dtype=torch.float64))
    torch.testing.assert_close(model.state_dict(), other.state_dict())
