"""The check of ``scaled_dot_score``: the dot product of query and key, divided by the square root of their width."""

from __future__ import annotations

from autograder.checking import rows
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
from tfcourse import alignment

SCALED_DOT_SCORE = Exercise(
    reference=alignment.scaled_dot_score,
    rows=(
        *scores((2, 0.5), pair, as_many, one_example, single_size),
        rows.precision(0.5, pair),
        rows.device(0.5, pair),
        rows.no_loop(0.5, more_pairs, over=OVER),
    ),
    forbidden=FORBIDDEN,
    rule_case=pair,
)
