"""The check of ``cross_entropy``: the mean surprisal of the right tokens, smoothed, without padding."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from autograder.checks.ch05_transformer.training_targets import READY_LOSSES, padded_targets
from autograder.checks.variants import changed
from tfcourse import training


def whole_sentences(draw: Draw) -> Case:
    """Logits and targets of which every one counts."""
    b, t, v = draw.sizes(3, low=4)
    return Case({"logits": 2 * draw.normal(b, t, v), "targets": draw.integers(1, v, b, t)})


def predictions(draw: Draw) -> Case:
    """Logits and targets, some of which are padding."""
    b, t, v = draw.sizes(3, low=4)
    targets = padded_targets(draw, b, t, v)
    targets[1, -1] = 0
    return Case({"logits": 2 * draw.normal(b, t, v), "targets": targets})


def smoothed(draw: Draw) -> Case:
    """Label smoothing, without padding."""
    return whole_sentences(draw).with_arguments(label_smoothing=0.2)


def flat(draw: Draw) -> Case:
    """One axis of places."""
    n, v = draw.sizes(2, low=5)
    return Case({"logits": draw.normal(n, v), "targets": draw.integers(1, v, n), "label_smoothing": 0.1})


def smoothed_padding(draw: Draw) -> Case:
    """Padding and label smoothing at once."""
    return predictions(draw).with_arguments(label_smoothing=0.2)


def other_padding(draw: Draw) -> Case:
    """Padding has another number, which is no token at all; token 0 is one like the others."""
    case = predictions(draw)
    targets = case.arguments["targets"]
    targets = torch.where(targets == 0, -100, targets)
    targets[0, 0] = 0
    return case.with_arguments(targets=targets, ignore_index=-100)


def padding_among_tokens(draw: Draw) -> Case:
    """The id of the padding is between the ids of the tokens."""
    case = predictions(draw)
    targets = draw.integers(0, 5, *case.arguments["targets"].shape)
    targets[0, :3] = torch.tensor([1, 2, 3])
    return case.with_arguments(targets=targets, ignore_index=2, logits=2 * draw.normal(*targets.shape, 5))


def one_counts(draw: Draw) -> Case:
    """A single target among padding."""
    case = nothing_counts(draw)
    targets = case.arguments["targets"].clone()
    targets[0, 1] = 2
    return case.with_arguments(targets=targets)


def one_token(draw: Draw) -> Case:
    """A vocabulary of one token, and padding that is no token."""
    return Case({"logits": draw.normal(2, 3, 1), "targets": -100 * draw.mask(2, 3).long(), "ignore_index": -100})


def many_losses(draw: Draw) -> Case:
    """So many large losses that float16 does not hold their sum."""
    return Case({"logits": 300 * draw.normal(16, 20, 4), "targets": draw.integers(1, 4, 16, 20)})


def nothing_counts(draw: Draw) -> Case:
    """Padding everywhere."""
    case = predictions(draw)
    return case.with_arguments(targets=torch.zeros_like(case.arguments["targets"]))


def loud_logits(draw: Draw) -> Case:
    """Logits whose exponentials overflow."""
    case = whole_sentences(draw)
    return case.with_arguments(logits=100 * case.arguments["logits"])


def gentle_predictions(draw: Draw) -> Case:
    """Small logits, for half precision."""
    case = whole_sentences(draw)
    return case.with_arguments(logits=case.arguments["logits"] / 2)


def more_predictions(draw: Draw, size: int) -> Case:
    """More of everything."""
    logits, targets = draw.normal(size, 2 * size, 3 * size), draw.integers(1, 3 * size, size, 2 * size)
    return Case({"logits": logits, "targets": targets})


def one_target_less(draw: Draw) -> Case:
    """A place without a target."""
    case = whole_sentences(draw)
    return case.with_arguments(targets=case.arguments["targets"][:, :-1])


def everything_smoothed(draw: Draw) -> Case:
    """An invalid share."""
    return whole_sentences(draw).with_arguments(label_smoothing=1.5)


def integer_logits(draw: Draw) -> Case:
    """Logits that are integers."""
    case = whole_sentences(draw)
    return case.with_arguments(logits=case.arguments["logits"].long())


CROSS_ENTROPY = Exercise(
    reference=training.cross_entropy,
    rows=(
        rows.numbers(3.25, whole_sentences, gradients=False, title="The mean surprisal of the right tokens."),
        rows.numbers(
            1.25,
            smoothed,
            name="smoothing",
            gradients=False,
            title="Label smoothing spreads its share over all tokens, the right one among them.",
        ),
        rows.numbers(
            1.5,
            predictions,
            other_padding,
            padding_among_tokens,
            one_counts,
            name="padding",
            gradients=False,
            title="Padding does not count, whichever number it has.",
        ),
        rows.edge(
            0.75,
            flat,
            smoothed_padding,
            nothing_counts,
            loud_logits,
            gentle_predictions,
            one_token,
            many_losses,
            name="numerics",
            dtypes=(torch.float64, torch.bfloat16, torch.float16),
            title="Gradients and every precision are right: one axis, smoothed padding, large logits, and nothing at all, where it is 0.",
        ),
        manners(0.75, (predictions,), more_predictions, over="examples, positions or tokens"),
        rows.errors(
            0.5,
            whole_sentences,
            one_target_less,
            everything_smoothed,
            changed(whole_sentences, label_smoothing=1.0),
            changed(whole_sentences, label_smoothing=-0.1),
            integer_logits,
            title="Shapes that do not fit, logits that are integers, and shares out of range, are a ValueError.",
        ),
    ),
    forbidden=READY_LOSSES,
    rule_case=(predictions, smoothed),
)
