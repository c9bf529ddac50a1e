"""Make one row of several."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking.rows import Row


def joined(name: str, title: str, points: float, *parts: Row) -> Row:
    """Several side rows as one."""
    return Row(name, title, points, lambda draw: [probe for part in parts for probe in part.probes(draw)], side=True)


def also_asking(row: Row, *others: Row) -> Row:
    """The row with the questions of others as well."""
    return replace(row, probes=lambda draw: [probe for part in (row, *others) for probe in part.probes(draw)])
