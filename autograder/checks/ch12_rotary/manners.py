"""Rows that ask several things at once, where there are many rows already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autograder.checking.draw import Draw
from autograder.checking.rows import Maker, Probe, Row


def kept_on_any_device(points: float, *makers: Maker) -> Row:
    """Ask whether the inputs are left as they were, and whether it runs on the device of the first maker's inputs.

    Give makers that a row of numbers uses too, as for ``rows.device``.
    """

    def probes(draw: Draw) -> Sequence[Probe]:
        cases = [draw.case(maker) for maker in makers]
        unchanged = [Probe((case.request(),), "unmutated") for case in cases]
        return [*unchanged, Probe((cases[0].request("meta"),), "matches")]

    return Row("inputs", "It leaves its inputs as they were, and runs on their device.", points, probes, side=True)


def merged(row: Row, *others: Row) -> Row:
    """Ask in one row what several would ask, so that what is merged costs no more than the row."""

    def probes(draw: Draw) -> Sequence[Probe]:
        return [probe for each in (row, *others) for probe in each.probes(draw)]

    return replace(row, probes=probes)
