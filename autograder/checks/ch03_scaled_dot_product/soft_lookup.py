"""The check of ``soft_lookup``: every entry answers, in proportion to how well its key fits the query."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from autograder.checks.ch03_scaled_dot_product.cases import FUSED, loud
from tfcourse import attention


def entries(draw: Draw) -> Case:
    """A query, and entries to look it up in."""
    s, dh, dv = draw.sizes(3, low=3)
    return Case({"query": draw.normal(dh), "keys": draw.normal(s, dh), "values": draw.normal(s, dv)})


def single_size(draw: Draw) -> Case:
    """As many entries as columns: the shapes do not show which axis is which."""
    return Case({"query": draw.normal(4), "keys": draw.normal(4, 4), "values": draw.normal(4, 4)})


def one_entry(draw: Draw) -> Case:
    """A dictionary with a single entry, which answers every query."""
    dh, dv = draw.sizes(2)
    return Case({"query": draw.normal(dh), "keys": draw.normal(1, dh), "values": draw.normal(1, dv)})


def large_entries(draw: Draw) -> Case:
    """Scores in the hundreds, one at the least."""
    s, dv = draw.sizes(2, low=5)
    query, keys = loud(draw, 4), loud(draw, s, 4)
    keys[int(draw.integers(0, s))] = query
    return Case({"query": query, "keys": keys, "values": draw.normal(s, dv)})


def more_entries(draw: Draw, size: int) -> Case:
    """More of everything."""
    s, dh, dv = 2 * size, size + 1, size + 2
    return Case({"query": draw.normal(dh), "keys": draw.normal(s, dh), "values": draw.normal(s, dv)})


SOFT_LOOKUP = Exercise(
    reference=attention.soft_lookup,
    rows=(
        rows.numbers(
            2.75,
            entries,
            gradients=False,
            title="The values are blended, each in proportion to its key's fit.",
        ),
        rows.numbers(
            1,
            entries,
            single_size,
            one_entry,
            name="gradients",
            title="Gradients are right, as many entries as columns do no harm, and a single entry answers alone.",
        ),
        rows.edge(
            0.5,
            large_entries,
            name="large scores",
            title="Scores in the hundreds give finite, right numbers.",
            gradients=False,
            dtypes=(),
        ),
        rows.precision(0.5, entries),
        inputs_and_device(0.75, entries),
        rows.no_loop(0.5, more_entries, over="entries or components"),
    ),
    forbidden=FUSED,
    rule_case=entries,
)
