"""The check of ``contrastive_scores``: probability minus similarity to earlier tokens."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import share
from autograder.checks.combined_rows import joined
from tfcourse import decoding


def candidates(draw: Draw) -> Case:
    """Hidden states of different lengths, and more places than candidates."""
    b, k, d = draw.sizes(3)
    t = 7
    hidden = draw.normal(b, k, d) * (1 + draw.integers(0, 5, b, k, 1))
    context = draw.normal(b, t, d) * (1 + draw.integers(0, 5, b, t, 1))
    probabilities = draw.normal(b, k).abs().softmax(dim=-1) * 0.9
    return Case({"probabilities": probabilities, "hidden": hidden, "context": context, "alpha": 0.6})


def one_place(draw: Draw) -> Case:
    """A text of one token, and more candidates than dimensions."""
    return Case(
        {
            "probabilities": draw.normal(2, 5).softmax(dim=-1),
            "hidden": draw.normal(2, 5, 3, scale=2.0),
            "context": draw.normal(2, 1, 3),
            "alpha": 0.25,
        }
    )


def likelihood_alone(draw: Draw) -> Case:
    """Alpha 0: the probabilities decide."""
    return candidates(draw).with_arguments(alpha=0.0)


def novelty_alone(draw: Draw) -> Case:
    """Alpha 1: the cosines decide."""
    return candidates(draw).with_arguments(alpha=1.0)


def more(draw: Draw, size: int) -> Case:
    """More texts, candidates and places."""
    return Case(
        {
            "probabilities": draw.normal(size, size).softmax(dim=-1),
            "hidden": draw.normal(size, size, 3),
            "context": draw.normal(size, 2 * size, 3),
            "alpha": 0.5,
        }
    )


def beyond_one(draw: Draw) -> Case:
    """An alpha that is no share."""
    return candidates(draw).with_arguments(alpha=1.5)


def below_zero(draw: Draw) -> Case:
    """An alpha below 0 would praise repetition."""
    return candidates(draw).with_arguments(alpha=-0.5)


def any_candidates(draw: Draw) -> Case:
    """Sizes that are all equal, or all different, or 1, and any alpha: 0 and 1 among them."""
    b, k, t, d = (2, 2, 2, 2) if int(draw.integers(0, 4)) == 0 else draw.integers(1, 5, 4).tolist()
    alpha = (0.0, share(draw), share(draw), 1.0)[int(draw.integers(0, 4))]
    arguments = {"hidden": draw.normal(b, k, d, scale=2.0), "context": draw.normal(b, t, d, scale=0.7), "alpha": alpha}
    return Case({"probabilities": draw.normal(b, k).abs().softmax(dim=-1) * 0.9, **arguments})


CONTRASTIVE_SCORES = Exercise(
    reference=decoding.contrastive_scores,
    rows=(
        rows.numbers(
            2,
            candidates,
            candidates,
            title="Probability less the largest cosine with the text, weighed by alpha.",
            gradients=False,
        ),
        rows.many(1, any_candidates, title="Many random sizes and values of alpha are right, including 0 and 1."),
        rows.numbers(
            0.25,
            one_place,
            likelihood_alone,
            novelty_alone,
            name="gradients",
            title="A text of one token works, and gradients are right, also with an alpha of 0 and 1.",
        ),
        rows.inputs_kept(0.25, candidates),
        joined(
            "manner",
            "It runs on the device of its inputs, and there is no Python loop over texts, candidates or positions.",
            0.25,
            rows.device(1, candidates),
            rows.no_loop(1, more, over="texts, candidates or positions"),
        ),
        rows.errors(0.25, candidates, beyond_one, below_zero, title="An alpha outside of 0 to 1 is a ValueError."),
    ),
    forbidden=("cosine_similarity", "CosineSimilarity"),
    rule_case=candidates,
)
