"""Print what the two measures found: survivors by exercise, a table by chapter, entries for the TOML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from autograder.checks import exercises
from tools.quality.measure import Measures, Survivor
from tools.quality.mutants import own_definitions
from tools.quality.record import stale, unexplained


def survivors(name: str, measures: Measures) -> Iterator[str]:
    """Yield a line for each unexplained survivor of an exercise and for each entry that is stale."""
    exercise = exercises()[name]
    for survivor in unexplained(exercise, measures):
        yield f"{name}  {place_of(name, survivor)}  [{survivor.operator}]  {survivor.line}"
        yield f"    {survivor.before}  →  {survivor.after}"
    for entry in stale(exercise, measures):
        yield f"{name}  stale equivalent, for no such mutant survives: {entry.line}: {entry.before} → {entry.after}"


def place_of(name: str, survivor: Survivor) -> str:
    """Return file and line of a survivor as they are now; the line may have moved since it was measured."""
    for node in own_definitions(exercises()[name]):
        if node.name == survivor.of:
            lines = [line.strip() for line in node.code.split("\n")]
            same = [i for i, line in enumerate(lines) if line == survivor.line]
            nearest = min(same, key=lambda i: abs(i + 1 - survivor.number), default=survivor.number - 1)
            number = node.numbers[min(nearest, len(node.numbers) - 1)]
            return f"{node.module.replace('.', '/')}.py:{number}"
    return survivor.of


def entries(name: str, measures: Measures) -> Iterator[str]:
    """Yield a table for the exercise's TOML for each unexplained survivor; the reason is to be written."""
    for survivor in unexplained(exercises()[name], measures):
        yield "[[equivalent]]"
        if survivor.of != name:
            yield f"of = {_quoted(survivor.of)}"
        for key in ("line", "before", "after"):
            yield f"{key} = {_quoted(getattr(survivor, key))}"
        yield 'reason = ""'
        yield ""


def _quoted(text: str) -> str:
    # What JSON writes is a basic string of TOML, and easier on the eyes without escaped quotes.
    return f"'{text}'" if "'" not in text and '"' in text else json.dumps(text, ensure_ascii=False)


def missed(name: str, measures: Measures) -> Iterator[str]:
    """Yield a line for each branch of an exercise that no question runs."""
    for line in measures.missed:
        yield f"{name}  {line}"


def table(measured: Mapping[str, Measures]) -> Iterator[str]:
    """Yield a table with a line for each chapter."""
    yield f"{'chapter':<24}{'mutants':>9}{'killed':>9}{'equivalent':>12}{'unexplained':>13}{'branches':>10}{'missed':>8}"
    totals = [0] * 6
    chapters = dict.fromkeys(exercises()[name].chapter for name in measured)
    for chapter in chapters:
        row = _counts([name for name in measured if exercises()[name].chapter == chapter], measured)
        totals = [a + b for a, b in zip(totals, row, strict=True)]
        yield _line(chapter, row)
    if len(chapters) > 1:
        yield _line("all", totals)


def _line(title: str, row: Sequence[int]) -> str:
    widths = (9, 9, 12, 13, 10, 8)
    return f"{title:<24}" + "".join(f"{number:>{width}}" for number, width in zip(row, widths, strict=True))


def _counts(names: Sequence[str], measured: Mapping[str, Measures]) -> list[int]:
    """Return mutants, killed, equivalent, unexplained, branches, missed."""
    mutants = sum(measured[name].mutants for name in names)
    alive = sum(len(measured[name].survivors) for name in names)
    open_ = sum(len(unexplained(exercises()[name], measured[name])) for name in names)
    branches = sum(measured[name].branches for name in names)
    unseen = sum(len(measured[name].missed) for name in names)
    return [mutants, mutants - alive, alive - open_, open_, branches, unseen]
