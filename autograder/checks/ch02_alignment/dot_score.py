"""The check of ``dot_score``: the dot product of query and key."""

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

DOT_SCORE = Exercise(
    reference=alignment.dot_score,
    rows=(
        *scores((1.5, 0.75), pair, as_many, one_example, single_size),
        rows.precision(0.25, pair),
        rows.no_loop(0.5, more_pairs, over=OVER),
    ),
    forbidden=FORBIDDEN,
    rule_case=pair,
)
