"""Training a translation model: shifted inputs, loss, learning rate, checkpoint averaging and the training loop.

Shapes: B batch, T target length, V vocabulary; `...` stands for any number of leading
dimensions. Tokens are integers: 0 is padding (PAD), 1 begins a sentence (BOS), 2 ends
it (EOS).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from tfcourse.data import BOS, PAD

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "shift_right",
    "cross_entropy",
    "noam_learning_rate",
    "average_checkpoints",
    "training_step",
    "training_loop",
]


def shift_right(targets: Tensor, bos: int = BOS) -> Tensor:
    """Return the decoder's training inputs: the targets shifted right, after BOS.

    At position t the decoder predicts token t from the tokens before t. The last token
    is never an input.

    Args:
        targets: Target tokens, integers (B, T): the sentence, EOS, then padding.
        bos: The token that begins every sentence.

    Returns:
        Decoder inputs, integers (B, T), in the dtype of `targets`.

    Raises:
        ValueError: If `targets` does not have two dimensions.

    Source:
        Vaswani et al. 2017, figure 1 ("outputs (shifted right)").
    """
    if targets.ndim != 2:
        raise ValueError(f"expected targets of shape (B, T), got {tuple(targets.shape)}")
    first = torch.full_like(targets[:, :1], bos)  # (B, 1), or (B, 0) if there is no token to drop
    return torch.cat([first, targets[:, :-1]], dim=1)


def cross_entropy(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = PAD) -> Tensor:
    """Compute the mean cross-entropy in nats, with label smoothing and without padding.

    With label smoothing the target is a distribution q: every token of the vocabulary
    gets ε / V, and the correct token gets 1 - ε more. The loss of a position is -Σ_v
    q(v) log p(v). The mean is taken over all positions whose target is not
    `ignore_index`; without such positions the loss is 0. It is computed in float32 or
    wider.

    Args:
        logits: One logit per token of the vocabulary, (..., V).
        targets: The correct tokens, integers (...).
        label_smoothing: The probability ε that is spread uniformly, at least 0 and
            below 1.
        ignore_index: The target of ignored positions: PAD.

    Returns:
        The mean loss, a scalar tensor in the dtype of `logits`.

    Raises:
        ValueError: If the shapes do not fit, the logits are not floating point, or
            `label_smoothing` is out of range.

    Source:
        Szegedy et al. 2016, Rethinking the Inception Architecture, section 7; Vaswani
        et al. 2017, section 5.4.
    """
    if logits.shape[:-1] != targets.shape:
        raise ValueError(f"logits (..., V) and targets (...) do not fit: {tuple(logits.shape)} {tuple(targets.shape)}")
    if not logits.is_floating_point():
        raise ValueError(f"logits are floating-point numbers, got {logits.dtype}")
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is a share from 0 up to but not including 1, got {label_smoothing}")
    log_p = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)  # (..., V)
    counts = targets != ignore_index  # (...)
    # ignore_index may lie outside the vocabulary, so it must not be looked up.
    right = log_p.gather(-1, targets.where(counts, 0).unsqueeze(-1)).squeeze(-1)  # (...)
    loss = -right
    if label_smoothing:  # a forbidden token has the logit minus infinity, and zero times that is NaN
        loss = (1 - label_smoothing) * loss - label_smoothing * log_p.mean(dim=-1)  # (...)
    total = loss.masked_fill(~counts, 0.0).sum()
    return (total / counts.sum().clamp(min=1)).to(logits.dtype)


def noam_learning_rate(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """Compute a learning rate: linear warm-up, then inverse-square-root decay.

    The rate is factor · D^-0.5 · min(step^-0.5, step · warmup^-1.5), which is largest
    at `step` = `warmup`.

    Args:
        step: Number of the step, counted from 1.
        d_model: Width D of the model.
        warmup: Number of warm-up steps.
        factor: Factor of all rates; 1 in the original.

    Returns:
        The learning rate.

    Raises:
        ValueError: If `step`, `d_model` or `warmup` is less than 1.

    Source:
        Vaswani et al. 2017, section 5.3, equation 3.
    """
    if step < 1 or warmup < 1:
        raise ValueError(f"steps are counted from 1 and warm-up takes at least one, got step={step}, warmup={warmup}")
    if d_model < 1:
        raise ValueError(f"a model is at least 1 wide, got d_model={d_model}")
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def average_checkpoints(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Average the state dicts of several checkpoints of one model, weight by weight.

    Means are computed in float32 or wider and returned in the dtype of the weight.
    Entries that are not floating point, such as step counts, are taken from the last
    checkpoint.

    Args:
        checkpoints: State dicts of the same model, oldest first; they are not changed.

    Returns:
        A state dict with new tensors.

    Raises:
        ValueError: If there are no checkpoints, or two of them differ in the names or
            the shapes of their weights.

    Source:
        Vaswani et al. 2017, section 6.1 (the last 5 checkpoints of the base model, 20
        of the big one).
    """
    if not checkpoints:
        raise ValueError("there are no checkpoints to average")
    last = checkpoints[-1]
    for number, state in enumerate(checkpoints):
        if {name: x.shape for name, x in state.items()} != {name: x.shape for name, x in last.items()}:
            raise ValueError(f"checkpoint {number} differs from the last one in the names or shapes of its weights")
    averaged = {}
    for name, newest in last.items():
        if newest.is_floating_point():
            wide = torch.promote_types(newest.dtype, torch.float32)
            stacked = torch.stack([state[name].to(wide) for state in checkpoints])  # (checkpoints, ...)
            averaged[name] = stacked.mean(dim=0).to(newest.dtype)
        else:
            averaged[name] = newest.clone()
    return averaged


def training_step(
    model: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    inputs: Sequence[Tensor],
    targets: Tensor,
    *,
    learning_rate: float | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Run one training step: forward pass, loss, backward pass, weight update.

    Earlier gradients are cleared first. Padded targets (0) are ignored in the loss.

    Args:
        model: Maps the inputs to logits (..., V). The inputs of a translation model are
            the source, the target shifted right, and the source mask.
        optimizer: Holds the parameters of `model`.
        inputs: Arguments of the model.
        targets: The correct tokens, integers (...).
        learning_rate: The rate of this step, for all parameter groups of the optimiser;
            None keeps the current rate.
        label_smoothing: As in `cross_entropy`.

    Returns:
        The loss before the step, a scalar tensor without gradient.

    Raises:
        ValueError: As in `cross_entropy`, if the logits and the targets do not fit or
            `label_smoothing` is out of range; the weights are then unchanged.

    Source:
        Vaswani et al. 2017, sections 5.3 and 5.4.
    """
    if learning_rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
    loss = cross_entropy(model(*inputs), targets, label_smoothing=label_smoothing)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach()


def training_loop(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[tuple[Sequence[Tensor], Tensor]],
    *,
    learning_rate: Callable[[int], float] | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Train a model with one step per batch, in the given order.

    The model is put into training mode and stays in it.

    Args:
        model: As in `training_step`.
        optimizer: Holds the parameters of `model` and its own state.
        batches: Pairs of inputs and targets, as in `training_step`; at least one.
        learning_rate: Maps the number of a step, counted from 1, to its rate; None
            keeps the optimiser's rate.
        label_smoothing: As in `cross_entropy`.

    Returns:
        The loss of every batch before its step, (steps,), without gradients.

    Raises:
        ValueError: If there are no batches, or as in `training_step`.

    Source:
        Vaswani et al. 2017, section 5.
    """
    model.train()
    losses = []
    for step, (inputs, targets) in enumerate(batches, start=1):
        rate = None if learning_rate is None else learning_rate(step)
        loss = training_step(model, optimizer, inputs, targets, learning_rate=rate, label_smoothing=label_smoothing)
        losses.append(loss)
    if not losses:
        raise ValueError("there are no batches to train on")
    return torch.stack(losses)  # (steps,)
