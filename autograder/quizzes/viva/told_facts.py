"""Read untrusted data of submissions in a limited process: their definitions, and the facts that a run printed.

Protects against:

- facts about other code, inputs or mistakes: inputs, properties of calls and diagnoses come from the student package, and changes must be
  possible edits of the code
- results and effects of a changed input that differ from the reference's: they are left out
- facts that :func:`autograder.quizzes.questions.facts.gather_facts` cannot have made: too many, too long, or not text
- code and facts that take too much time or memory: only this student loses the questions

Does not protect against:

- code that prints false effects of changed lines, because the code controls its own process
"""

from __future__ import annotations

import ast
import json
import random
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from autograder.checking.recorded import read_sheet
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.quizzes.questions.changes import MOST_CHANGES, MOST_TRIED
from autograder.quizzes.questions.code import Code, docstring_lines, remove_course_decorators
from autograder.quizzes.questions.edits import Edit, possible_edits
from autograder.quizzes.questions.effects import Effects, find_effects
from autograder.quizzes.questions.facts import PERTURBED, Facts, SharedFacts, select_calls_and_inputs
from autograder.quizzes.questions.inputs import LONGEST_RESULT, Input, result_text
from autograder.quizzes.questions.kinds import make_questions
from autograder.quizzes.questions.question import Question
from autograder.static_analysis.cell_ast import UnreadableCellError, parse_cell

# The maximum number of exercises whose code is run for a student, each only if the earlier ones have too few questions.
_MOST_EXERCISES = 3
# Definitions with fewer syntax nodes come last.
_FEW_NODES = 60


@dataclass(frozen=True)
class DefinitionQuestions:
    """The questions about one definition."""

    exercise: str
    source: str  # the student's definition
    hidden_lines: tuple[int, ...]  # the line numbers of its docstrings
    questions: tuple[Question, ...]


def choose_definitions(cells: Sequence[str], names: Collection[str], seed: str) -> dict[str, str]:
    """Choose definitions of exercises from a student's cells, in a random order, short ones last; later definitions replace earlier ones.

    Args:
        cells: the source of a student's cells.
        names: the exercises to look for.
        seed: the seed of the choice.
    """
    found: dict[str, str] = {}
    for cell in cells:
        # Skip cells and definitions that cannot be parsed.
        with suppress(UnreadableCellError, SyntaxError, ValueError, RecursionError, AssertionError):
            tree = parse_cell(cell)
            lines = cell.split("\n")
            for node in tree.body if tree is not None else ():
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
                    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                    found[node.name] = remove_course_decorators("\n".join(lines[first - 1 : node.end_lineno]))
    chosen = random.Random(seed).sample(sorted(found), len(found))
    ordered = sorted(chosen, key=lambda name: len(list(ast.walk(ast.parse(found[name])))) < _FEW_NODES)
    return {name: found[name] for name in ordered[:_MOST_EXERCISES]}


def make_questions_by_definition(
    output: str, mark: str, sources: Mapping[str, str], package: str, seed: str, count: int
) -> list[dict[str, Any]]:
    """Make the questions by definition, as plain data, from a run's output; skip lines without valid facts.

    Args:
        output: the text that the run printed.
        mark: the beginning of a line with facts.
        sources: the definitions by exercise.
        package: the path of the student package that ran.
        seed: the seed of the question choice.
        count: the number of questions to reach.
    """
    parts: list[DefinitionQuestions] = []
    lines = (line.removeprefix(mark) for line in output.split("\n") if line.startswith(mark))
    for line, (exercise, source) in zip(lines, sources.items(), strict=False):
        lacking = count - sum(len(part.questions) for part in parts)
        with suppress(Exception):  # student code can print anything
            facts = check_facts(json.loads(line), exercise, source, _read_sheet(package, exercise))
            chosen = make_questions(facts, seed, lacking) if lacking > 0 else []
            parts += [DefinitionQuestions(exercise, source, facts.hidden_lines, tuple(chosen))] if chosen else []
    return [asdict(part) for part in parts]


@cache
def _read_sheet(package: str, exercise: str) -> Sheet:
    """Read an exercise's recorded sheet from a student package."""
    with zipfile.ZipFile(package) as wheel, TemporaryDirectory() as folder:
        return read_sheet(Path(wheel.extract(f"autograder/checking/recordings/{exercise}.safetensors", folder)))


def check_facts(data: Mapping[str, Any], exercise: str, source: str, sheet: Sheet) -> Facts:
    """Check printed facts, and return them with the submitted code and without results that differ from the reference's.

    Args:
        data: the facts as plain data.
        exercise: the exercise's name.
        source: the submitted definition.
        sheet: the visible tests of the facts.

    Raises:
        ValueError: if the data cannot be facts about this code.
    """
    json.dumps(
        data, ensure_ascii=False
    ).encode()  # raises an error for lone surrogates, which cannot be written to a page
    facts = msgspec.convert(data, Facts, str_keys=True)
    code = Code(exercise, source, {})
    calls, inputs = select_calls_and_inputs(sheet)
    if (
        facts.source != source
        or len(facts.changes) > MOST_CHANGES
        or not set(facts.runs) <= set(range(len(inputs)))
        or any(len(text) > LONGEST_RESULT or not text.isprintable() for text in _shown_texts(facts))
        or not {n for change in facts.changes for n in change.calls} <= set(range(len(calls)))
        or not {n for change in facts.changes for n in (*change.inputs, *change.results)} <= set(range(len(inputs)))
        or not {change.mistake for change in facts.changes} <= {"", *(one.name for one in sheet.misconceptions)}
        or not _are_possible(source, [change.edit for change in facts.changes])
    ):
        raise ValueError("these facts do not fit this code")
    results, felt = _run_reference(exercise, inputs, [one.number for one in facts.effects])
    return replace(
        facts,
        exercise=exercise,
        hidden_lines=docstring_lines(code.tree),
        given=SharedFacts.from_sheet(sheet, calls, inputs, facts.changes),
        # A result or effect that differs from the reference's may be forged, so no question asks for it.
        runs={number: text if text == results[number] else "" for number, text in facts.runs.items()},
        effects=tuple(one for one in facts.effects if one in felt),
    )


def _shown_texts(facts: Facts) -> Iterator[str]:
    """Yield the texts that come from the student's process."""
    yield from facts.runs.values()
    yield from (text for change in facts.changes for text in change.results.values())


def _are_possible(source: str, told: Sequence[Edit]) -> bool:
    """Return whether these edits are possible edits of the code, in the same order."""
    possible = islice(possible_edits(source), MOST_TRIED)
    return all(any(edit == one for one, _, _ in possible) for edit in told)


def _run_reference(
    exercise: str, inputs: Sequence[Input], changed: Sequence[int]
) -> tuple[list[str], list[Effects | None]]:
    """Run the reference; return its result for each complete input, as text, and the effects of changes of some inputs."""
    if exercise not in exercises():
        return [""] * len(inputs), []
    reference = exercises()[exercise].reference
    results = [result_text(LocalSubject(reference).observe(one.request)) if one.complete else "" for one in inputs]
    return results, [
        find_effects(Code.from_candidate(reference), inputs[number], number) for number in changed[:PERTURBED]
    ]
