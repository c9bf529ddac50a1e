"""Run ``python -m tools.quality`` with ``--mutants`` or ``--coverage``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from autograder.checks import exercises
from autograder.errors import CourseError
from autograder.parallel import parallel_map
from tools.quality import record, report
from tools.quality.measure import Measures


def run(names: Sequence[str], *, mutants: bool, coverage: bool, toml: bool = False, write: bool = False) -> int:
    """Measure exercises and print what is open; 0 if nothing is, else 1."""
    # A big exercise should not start last.
    order = sorted(names, key=lambda name: len(_source(name)))
    taken = dict(zip(order, parallel_map(_measured, order), strict=True))
    errors = [f"{name}: {text}" for name, text in taken.items() if isinstance(text, str)]
    measured = {name: measures for name in names if isinstance(measures := taken[name], Measures)}
    lines = list(errors)
    for name, measures in measured.items():
        if mutants:
            lines += report.entries(name, measures) if toml else report.survivors(name, measures)
        if coverage and not toml:
            lines += report.missed(name, measures)
    print("\n".join(lines))
    if not toml:
        print("\n".join(report.table(measured)))
    if write:
        incomplete = record.write(measured)
        print("\n".join(incomplete))
        return 1 if incomplete or errors else 0
    return 1 if lines else 0


def _source(name: str) -> str:
    from tools.quality.mutants import own_definitions

    return "".join(node.code for node in own_definitions(exercises()[name]))


def _measured(name: str) -> Measures | str:
    """Return the measures of an exercise, or the reason for missing ones, so that one failure does not stop the others."""
    try:
        measures = record.measures_of(exercises()[name])
    except CourseError as error:
        return str(error)
    print(f"{name}: {measures.mutants} mutants, {len(measures.survivors)} survive", file=sys.stderr, flush=True)
    return measures
