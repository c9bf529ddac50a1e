"""The check of ``cosine_attention``: attention by angle."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import (
    batch,
    empty_row,
    longer,
    manners,
    masked,
    qkv,
    shared_mask,
    single_size,
    together,
    unbatched,
)
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import attention


def sharper(draw: Draw) -> Case:
    """With a scale that makes cosines matter."""
    return batch(draw).with_arguments(scale=5.0)


def zero_vectors(draw: Draw) -> Case:
    """With a query and a key that are zero, as padding is."""
    case = unbatched(draw)
    q, k = case.arguments["q"].clone(), case.arguments["k"].clone()
    q[1], k[-1] = 0.0, 0.0
    return case.with_arguments(q=q, k=k)


COSINE_ATTENTION = Exercise(
    reference=attention.cosine_attention,
    rows=(
        rows.numbers(
            3.75, batch, gradients=False, title="The weights are a softmax of the cosines, whatever the lengths."
        ),
        rows.numbers(
            1.5,
            sharper,
            name="scale",
            gradients=False,
            title="The scale multiplies the cosines: a larger one makes sharper weights.",
        ),
        rows.numbers(
            1.25,
            masked,
            shared_mask,
            name="mask",
            gradients=False,
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        rows.numbers(
            0.75,
            single_size,
            qkv,
            unbatched,
            name="axes",
            title="Gradients are right, and so is any number of leading dimensions.",
        ),
        together(
            rows.edge(
                0.5,
                empty_row,
                name="zeros",
                title="A query that may attend to nothing gets zeros; a zero vector has cosine 0, no gradient NaN.",
                dtypes=(),
            ),
            # What the gradient by a zero vector is, is a matter of definition: it has to be finite.
            rows.numbers(0, zero_vectors, gradients=False),
            rows.finite_gradients(0, zero_vectors, wrt=("q", "k", "v"), name="", title=""),
        ),
        rows.precision(0.5, batch),
        manners(0.75, (batch, masked), longer, over="examples, heads, queries or keys"),
    ),
    forbidden=ATTENTION,
    rule_case=(batch, masked),
)
