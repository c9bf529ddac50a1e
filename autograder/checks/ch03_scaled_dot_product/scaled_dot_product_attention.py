"""The check of ``scaled_dot_product_attention``: each query receives the values, averaged with its weights."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.cases import (
    FUSED,
    batch,
    broadcast_mask,
    empty_row,
    far_below,
    joined,
    key_mask,
    large,
    longer,
    masked,
    qkv,
    unbatched,
)
from tfcourse import attention

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    reference=attention.scaled_dot_product_attention,
    rows=(
        rows.numbers(
            5.75, qkv, batch, unbatched, title="Each query receives the values, averaged with its attention weights."
        ),
        rows.numbers(
            3.25,
            masked,
            broadcast_mask,
            key_mask,
            name="mask",
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        joined(
            rows.edge(
                0.75,
                empty_row,
                name="empty row",
                title="A query that may attend to nothing gets zeros; scores of any size give finite, right numbers.",
                dtypes=(),
            ),
            # Where the softmax is this sharp, its gradients are next to zero and differ by more than rounding.
            rows.numbers(0, large, far_below, gradients=False),
        ),
        rows.precision(0.75, qkv),
        rows.inputs_kept(0.75, qkv, masked),
        rows.device(0.75, qkv, masked),
        rows.no_loop(1, longer, over="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=(qkv, masked),
)
