"""The check of ``sequence_negative_log_likelihood``: how surprised a model is by whole sequences."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import padding_behind
from tfcourse import recurrent


def sentences(draw: Draw) -> Case:
    """Logits and what came."""
    b, t, v = draw.sizes(3, low=3)
    return Case({"logits": draw.normal(b, t, v, scale=2.0), "targets": draw.integers(0, v, b, t)})


def padded_sentences(draw: Draw) -> Case:
    """Sentences of different lengths."""
    case = sentences(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["targets"].shape))


def sure_sentences(draw: Draw) -> Case:
    """Logits so large that the probability of most tokens is no number of single precision."""
    case = sentences(draw)
    return case.with_arguments(logits=case.arguments["logits"] * 100)


def more_sentences(draw: Draw, size: int) -> Case:
    """More and longer sentences."""
    b, t, v = size, 2 * size, 5
    return Case({"logits": draw.normal(b, t, v), "targets": draw.integers(0, v, b, t)})


def unfit_targets(draw: Draw) -> Case:
    """A target fewer than there are logits."""
    return Case({"logits": draw.normal(2, 4, 5), "targets": draw.integers(0, 5, 2, 3)})


def no_vocabulary(draw: Draw) -> Case:
    """Logits with a dimension too few."""
    return Case({"logits": draw.normal(2, 4), "targets": draw.integers(0, 4, 2, 4)})


def four_dimensions(draw: Draw) -> Case:
    """Logits with a dimension too many."""
    return Case({"logits": draw.normal(2, 4, 5, 1), "targets": draw.integers(0, 1, 2, 4)})


def one_mask_for_all(draw: Draw) -> Case:
    """A mask for one sentence, which broadcasting would spread to all."""
    case = padded_sentences(draw)
    return case.with_arguments(mask=case.arguments["mask"][:1])


def mask_of_numbers(draw: Draw) -> Case:
    """A mask of zeros and ones that are real numbers."""
    case = padded_sentences(draw)
    return case.with_arguments(mask=case.arguments["mask"].float())


SEQUENCE_NEGATIVE_LOG_LIKELIHOOD = Exercise(
    reference=recurrent.sequence_negative_log_likelihood,
    rows=(
        rows.numbers(
            2.75,
            sentences,
            gradients=False,
            title="Each sentence gets minus the sum of its tokens' logarithms.",
        ),
        rows.numbers(1.75, padded_sentences, name="mask", gradients=False, title="Padding adds nothing."),
        rows.edge(
            0.5,
            sentences,
            sure_sentences,
            name="numerics",
            title="Gradients are right, large logits give finite numbers, and float64 stays float64.",
        ),
        rows.device(0.5, sentences),
        rows.no_loop(0.5, more_sentences, over="sentences or positions"),
        rows.errors(
            0.5,
            sentences,
            unfit_targets,
            no_vocabulary,
            four_dimensions,
            one_mask_for_all,
            mask_of_numbers,
            title="Targets or a mask that do not fit the logits are a ValueError.",
        ),
    ),
    forbidden=(
        *("cross_entropy", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "CrossEntropyLoss", "NLLLoss"),
        *(
            "nll_loss_forward",
            "_nll_loss_forward",
            "nll_loss2d",
            "nll_loss2d_forward",
            "linear_cross_entropy",
            "Categorical",
        ),
    ),
    rule_case=(sentences, padded_sentences),
)
