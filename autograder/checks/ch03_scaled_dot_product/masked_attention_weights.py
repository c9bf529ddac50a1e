"""The check of ``masked_attention_weights``: a softmax over the keys of scaled scores, with a mask."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product import cases
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from autograder.checks.ch03_scaled_dot_product.cases import FUSED, joined, without_values
from tfcourse import attention

plain = without_values(cases.batch)
masked = without_values(cases.masked)


def float16_range(draw: Draw) -> Case:
    """Queries and keys, one of a kind, whose dot products are too large for float16 before they are scaled."""
    t, width = draw.sizes(1)[0], 128
    k = torch.sign(draw.normal(t + 2, width)) * 30
    return Case({"q": k[:t], "k": k})


def numbers_as_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = masked(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


def longer(draw: Draw, size: int) -> Case:
    """Queries and keys whose leading and length axes grow with a size."""
    case = cases.longer(draw, size)
    return Case({"q": case.arguments["q"], "k": case.arguments["k"]})


MASKED_ATTENTION_WEIGHTS = Exercise(
    reference=attention.masked_attention_weights,
    rows=(
        rows.numbers(
            4.25,
            plain,
            gradients=False,
            title="The weights are a softmax over the keys of the scaled scores.",
        ),
        rows.numbers(
            2.5,
            masked,
            without_values(cases.broadcast_mask),
            without_values(cases.key_mask),
            name="mask",
            gradients=False,
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        rows.numbers(
            1,
            without_values(cases.single_size),
            without_values(cases.qkv),
            without_values(cases.unbatched),
            name="axes",
            title="Gradients are right, and so is any number of leading dimensions.",
        ),
        joined(
            rows.edge(
                0.75,
                without_values(cases.empty_row),
                name="empty row",
                title="A query that may attend to nothing has zero weights; scores of any size give finite, right numbers.",
                dtypes=(torch.float64, torch.bfloat16),
            ),
            # Where the softmax is this sharp, its gradients are next to zero and differ by more than rounding.
            rows.numbers(0, without_values(cases.large), without_values(cases.far_below), gradients=False),
        ),
        rows.precision(0.5, plain, float16_range),
        manners(0.5, (plain, masked), longer, over="examples, heads, queries or keys"),
        rows.errors(0.5, masked, numbers_as_mask, title="A mask that is not boolean is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=(plain, masked),
)
