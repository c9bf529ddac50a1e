"""The check of ``content_score``: the cosine of the angle between a query and a key."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.scores import (
    FORBIDDEN,
    OVER,
    as_many,
    more_pairs,
    one_example,
    pair,
    scores,
    single_size,
)
from autograder.checks.combined_rows import also_asking
from tfcourse import alignment


def zero_and_short(draw: Draw) -> Case:
    """A query and a key that are zero vectors, and a query and a key that are short."""
    case = pair(draw)
    queries, keys = case.arguments["queries"].clone(), case.arguments["keys"].clone()
    queries[0, 0], keys[0, 1] = 0.0, 0.0
    queries[-1, -1] *= 1e-9
    keys[-1, 0] *= 1e-9
    return case.with_arguments(queries=queries, keys=keys)


CONTENT_SCORE = Exercise(
    reference=alignment.content_score,
    rows=(
        *scores((1.75, 0.5), pair, as_many, one_example, single_size),
        also_asking(
            rows.edge(
                0.5,
                zero_and_short,
                name="zero vector",
                title="A zero vector has cosine 0 with every vector, and no gradient is NaN; a very short one has a cosine like any other.",
                gradients=False,
                dtypes=(),
            ),
            # What the gradient with respect to a zero vector is, is a matter of definition: it has to be finite.
            rows.finite_gradients(0, zero_and_short, wrt=("queries", "keys"), name="", title=""),
        ),
        rows.precision(0.5, pair),
        rows.inputs_kept(0.25, pair),
        rows.no_loop(0.5, more_pairs, over=OVER),
    ),
    forbidden=("cosine_similarity", "CosineSimilarity", *FORBIDDEN),
    rule_case=pair,
)
