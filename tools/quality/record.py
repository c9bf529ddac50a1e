"""Read and write the committed measures of every exercise with their keys, so that unchanged exercises are not measured again.

``docs/grader-quality/mutants.json`` has one exercise per line, so that changes of two exercises merge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from autograder.atomic_files import write_atomically
from autograder.checking.exercise import Exercise
from autograder.checks import exercises
from autograder.course.artifact_cache import cached_artifact
from autograder.errors import CourseError
from autograder.mistakes.mistake_file import Equivalent, MistakeFile
from tools.quality.keys import key_of
from tools.quality.measure import Measures, Survivor, measure

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "grader-quality"
MEASURES = FOLDER / "mutants.json"


def measures_of(exercise: Exercise) -> Measures:
    """Return the measures of an exercise: committed or cached measures if their key is current, otherwise new ones."""
    key = key_of(exercise)
    committed = _lines(MEASURES).get(exercise.name)
    if committed is not None and committed["key"] == key:
        return msgspec.convert(committed, Measures)
    cached = cached_artifact(ROOT, f"measures-{exercise.name}", [key], lambda: msgspec.json.encode(measure(exercise)))
    return msgspec.json.decode(cached, type=Measures)


def committed() -> dict[str, Measures]:
    """Return the measures that are committed, by exercise."""
    return {name: msgspec.convert(item, Measures) for name, item in _lines(MEASURES).items()}


def equivalents_of(exercise: Exercise) -> tuple[Equivalent, ...]:
    """Return what the exercise's TOML says to be no mistakes."""
    table = exercise.misconceptions
    return table.equivalents if isinstance(table, MistakeFile) else ()


def matches(exercise: Exercise, survivor: Survivor, entry: Equivalent) -> bool:
    """Return whether an entry describes a survivor."""
    described = (entry.of or exercise.name, " ".join(entry.line.split()), entry.before, entry.after)
    return described == (survivor.of, " ".join(survivor.line.split()), survivor.before, survivor.after)


def unexplained(exercise: Exercise, measures: Measures) -> list[Survivor]:
    """Return the survivors that are not recorded as equivalent."""
    entries = equivalents_of(exercise)
    return [s for s in measures.survivors if not any(matches(exercise, s, entry) for entry in entries)]


def stale(exercise: Exercise, measures: Measures) -> list[Equivalent]:
    """Return the entries without a survivor: the mutant is killed, or the line has changed."""
    return [e for e in equivalents_of(exercise) if not any(matches(exercise, s, e) for s in measures.survivors)]


def write(measured: Mapping[str, Measures]) -> list[str]:
    """Write measures to the committed file.

    Returns:
        A line per exercise that has survivors without an explanation.
    """
    lines, incomplete = _lines(MEASURES), []
    for name, measures in measured.items():
        exercise = exercises()[name]
        lines[name] = {"key": key_of(exercise), **asdict(measures)}
        if number := len(unexplained(exercise, measures)):
            incomplete.append(f"{name}: {number} unexplained survivors; add cases, or record them as equivalent")
    _write(MEASURES, {name: lines[name] for name in exercises() if name in lines})
    return incomplete


def _write(path: Path, table: Mapping[str, object]) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in table.items())
    write_atomically(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _lines(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CourseError(f"it cannot be read: {error}", where=path, do="Take it from the repository again.") from error
    assert isinstance(table, dict)
    return table
