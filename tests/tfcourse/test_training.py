"""Training against torch.nn.functional, torch.optim written out, and loops from the formulas."""

import copy
import math

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
    shift_right,
    training_loop,
    training_step,
)
from tfcourse.transformer import Transformer
from tfcourse.translation import greedy_decode

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# ------------------------------------------------------------------------------------------------------- shift right


@given(
    rows=st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=1)),
    bos=st.integers(0, 9),
)
def test_every_place_is_shown_the_token_before_it_and_the_first_is_shown_bos(rows, bos):
    targets = torch.tensor(rows)
    before = targets.clone()
    shown = shift_right(targets, bos)
    assert shown.tolist() == [[bos, *row[:-1]] for row in rows]
    assert torch.equal(targets, before)
    assert shown.dtype == targets.dtype


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


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_the_loss_is_the_sum_of_the_formula_place_by_place(share):
    logits, targets = randn(2, 3, 5), torch.tensor([[4, 2, 0], [3, 0, 0]])
    losses = []
    for b in range(2):
        for t in range(3):
            if targets[b, t] == 0:
                continue
            total = sum(math.exp(x) for x in logits[b, t].tolist())
            log_p = [x - math.log(total) for x in logits[b, t].tolist()]
            q = [share / 5 + (1 - share) * (v == int(targets[b, t])) for v in range(5)]
            assert math.isclose(sum(q), 1)
            losses.append(-sum(a * b for a, b in zip(q, log_p, strict=True)))
    actual = cross_entropy(logits, targets, label_smoothing=share)
    assert actual.item() == pytest.approx(sum(losses) / 3, rel=1e-12)


def test_a_batch_of_padding_alone_has_loss_zero_and_zero_gradient():
    logits = randn(2, 3, 5).requires_grad_()
    loss = cross_entropy(logits, torch.zeros(2, 3, dtype=torch.int64), label_smoothing=0.1)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == 0
    assert not gradient.any()


def test_with_smoothing_the_best_prediction_is_the_smoothed_distribution_and_its_loss_the_entropy():
    V, share = 6, 0.3
    best = torch.full((V,), share / V, dtype=torch.float64)
    best[2] += 1 - share
    target = torch.tensor([2])
    loss = cross_entropy(best.log()[None], target, label_smoothing=share)
    entropy = -(best * best.log()).sum()
    torch.testing.assert_close(loss, entropy)
    surer = torch.zeros(1, V, dtype=torch.float64)
    surer[0, 2] = 30.0
    assert cross_entropy(surer, target, label_smoothing=share) > loss
    assert cross_entropy(surer, target) < cross_entropy(best.log()[None], target)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_loss_of_half_precision_logits_is_computed_wide(dtype, assert_near):
    logits, targets = (100 * randn(2, 3, 500)).to(dtype), torch.tensor([[4, 2, 0], [3, 9, 1]])
    actual = cross_entropy(logits, targets, label_smoothing=0.1)
    assert actual.dtype == dtype
    expected = cross_entropy(logits.double(), targets, label_smoothing=0.1)
    assert_near(actual, expected)


# ------------------------------------------------------------------------------------------------------ learning rate


@pytest.mark.parametrize(("d_model", "warmup", "factor"), [(512, 4000, 1.0), (64, 100, 2.0), (7, 1, 0.5)])
def test_the_rate_is_that_of_the_formula_at_every_step_and_largest_at_the_end_of_warm_up(d_model, warmup, factor):
    rates = []
    for step in range(1, 3 * warmup + 1):
        rising, falling = step / warmup / math.sqrt(warmup), 1 / math.sqrt(step)
        expected = factor / math.sqrt(d_model) * (rising if step < warmup else falling)
        rates.append(noam_learning_rate(step, d_model, warmup, factor))
        assert rates[-1] == pytest.approx(expected, rel=1e-12)
    assert max(rates) == rates[warmup - 1] == pytest.approx(factor / math.sqrt(d_model * warmup))


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


def test_ten_steps_of_adam_are_those_of_its_formula():
    model, (inputs, targets) = network(), batch()
    other = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    weights = list(other.parameters())
    first, second = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    for step in range(1, 11):
        rate = noam_learning_rate(step, 5, 4)
        loss = F.cross_entropy(other(*inputs).flatten(0, 1), targets.flatten(), ignore_index=0)
        told = training_step(model, optimizer, inputs, targets, learning_rate=rate)
        torch.testing.assert_close(told, loss.detach())
        with torch.no_grad():
            for w, g, m, v in zip(weights, torch.autograd.grad(loss, weights), first, second, strict=True):
                m.mul_(0.9).add_(0.1 * g)
                v.mul_(0.98).add_(0.02 * g * g)
                w -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.98**step)).sqrt() + 1e-9)
    torch.testing.assert_close([w.detach() for w in model.parameters()], [w.detach() for w in weights])


def test_a_step_without_a_rate_leaves_the_optimisers_own_to_every_group():
    model, (inputs, targets) = network(), batch()
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters(), "lr": 0.0}]
    optimizer = torch.optim.SGD(groups)
    before = copy.deepcopy(model.state_dict())
    training_step(model, optimizer, inputs, targets)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert (model.state_dict()["0.weight"] - before["0.weight"]).abs().min() > 0
    torch.testing.assert_close(model.state_dict()["2.weight"], before["2.weight"], rtol=0, atol=0)


def test_logits_that_do_not_fit_leave_the_weights_as_they_were():
    model, (inputs, targets) = network(), batch()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="do not fit"):
        training_step(model, torch.optim.SGD(model.parameters(), lr=1.0), inputs, targets[:, :2])
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


# ------------------------------------------------------------------------------------------------------ training loop


class Seen(nn.Module):
    """Keeps, of every call, the inputs and whether it was in training mode, and passes them on to a network."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.calls: list[tuple[Tensor, bool]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append((x, self.training))
        return self.network(x)


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


def test_every_batch_is_seen_once_in_order_and_in_training_mode_and_the_losses_are_cut_off():
    model, batches = Seen().eval(), some_batches(4)
    before = copy.deepcopy(batches)
    told = training_loop(model, torch.optim.SGD(model.parameters(), lr=0.1), iter(batches))
    assert [x.tolist() for x, _ in model.calls] == [x.tolist() for (x,), _ in batches]
    assert all(training for _, training in model.calls)
    assert model.training
    assert (told.shape, told.dtype, told.requires_grad) == ((4,), torch.float64, False)
    torch.testing.assert_close(batches, before, rtol=0, atol=0)


def test_the_schedule_is_asked_for_the_steps_from_1_and_sets_the_rate_of_every_group():
    model = network()
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.7}]
    optimizer = torch.optim.SGD(groups, lr=0.2)
    asked: list[int] = []
    training_loop(model, optimizer, some_batches(3), learning_rate=lambda step: asked.append(step) or 0.1 / step)
    assert asked == [1, 2, 3]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1 / 3] * 2


@pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
def test_a_small_model_learns_to_turn_sequences_round(pre_norm):
    torch.manual_seed(0)
    model = Transformer(12, 12, d_model=32, n_heads=2, d_ff=64, n_layers=1, dropout=0.0, pre_norm=pre_norm)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    generator = torch.Generator().manual_seed(1)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        source = torch.randint(3, 12, (count, 3), generator=generator)
        return source, torch.cat([source.flip(1), torch.full((count, 1), 2)], dim=1)

    drawn = (draw(48) for _ in range(300))
    batches = (((source, shift_right(target), None), target) for source, target in drawn)
    losses = training_loop(model, optimizer, batches, learning_rate=lambda step: noam_learning_rate(step, 32, 400))
    assert losses[-10:].mean() < 0.2 < 2 < losses[:10].mean()
    source, target = draw(200)
    written = greedy_decode(model.eval(), source, max_length=4)
    assert written.shape == target.shape
    assert (written == target).all(dim=1).double().mean().item() > 0.95


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shift_right(torch.tensor([1, 2])), r"\(B, T\), got \(2,\)"),
        (lambda: cross_entropy(randn(2, 3, 5), torch.ones(2, 4).long()), r"do not fit: \(2, 3, 5\) \(2, 4\)"),
        (lambda: cross_entropy(randn(2, 5), torch.ones(2).long(), label_smoothing=1.0), "got 1.0"),
        (lambda: cross_entropy(randn(2, 5), torch.ones(2).long(), label_smoothing=-0.1), "got -0.1"),
        (lambda: cross_entropy(torch.tensor([[1, 2]]), torch.tensor([1])), "got torch.int64"),
        (lambda: noam_learning_rate(0, 512), "step=0"),
        (lambda: noam_learning_rate(1, 0), "d_model=0"),
        (lambda: noam_learning_rate(1, -2), "d_model=-2"),
        (lambda: training_loop(network(), torch.optim.SGD(network().parameters(), lr=1.0), []), "no batches"),
        (lambda: noam_learning_rate(1, 512, 0), "warmup=0"),
        (lambda: average_checkpoints([]), "no checkpoints"),
        (lambda: average_checkpoints([{"a": randn(2)}, {"b": randn(2)}]), "checkpoint 0 differs"),
        (lambda: average_checkpoints([{"a": randn(2)}, {"a": randn(1)}, {"a": randn(2)}]), "checkpoint 1 differs"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
