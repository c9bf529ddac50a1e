"""The check of ``scaled_dot_product_attention``: each query receives the values, averaged with its weights."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from autograder.checks.ch03_scaled_dot_product.cases import (
    FUSED,
    batch,
    far_below,
    heads,
    heads_empty_row,
    heads_key_mask,
    heads_masked,
    heads_one_mask,
    joined,
    large,
    longer,
    one_head,
    single_size,
    unbatched,
)
from tfcourse import attention

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    reference=attention.scaled_dot_product_attention,
    rows=(
        rows.numbers(
            5.5,
            heads,
            gradients=False,
            title="Each query receives the values, averaged with its attention weights; inputs have a batch and heads.",
        ),
        rows.numbers(
            3.25,
            heads_masked,
            heads_one_mask,
            heads_key_mask,
            name="mask",
            gradients=False,
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        rows.numbers(
            1.25,
            batch,
            single_size,
            unbatched,
            name="axes",
            title="A batch without heads and no batch at all work, values may have another width, and gradients are right.",
        ),
        joined(
            rows.edge(
                0.75,
                heads_empty_row,
                name="empty row",
                title="A query that may attend to nothing gets zeros; scores of any size give finite, right numbers.",
                dtypes=(),
            ),
            # Where the softmax is this sharp, its gradients are next to zero and differ by more than rounding.
            rows.numbers(0, one_head(large), one_head(far_below), gradients=False),
        ),
        rows.precision(0.75, heads),
        inputs_and_device(0.75, heads, heads_masked),
        rows.no_loop(0.75, longer, over="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=(heads, heads_masked),
)
