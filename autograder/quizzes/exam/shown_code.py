"""Build the code of known mistakes for exams: the exercise's definition with its private helpers, as a student could have written it.

A known mistake is left out if its code is unlike students' code or too long for an exam; see :func:`reason_to_leave_out`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from autograder.checking.exercise import Exercise, Misconception
from autograder.mistakes.mistake_file import Alteration, MistakeFile
from autograder.mistakes.source_edits import EditError, Sources, changed_definitions, run_source
from autograder.quizzes.exam.plain_code import LONGEST_LINE, remove_comments, simplify_code
from autograder.static_analysis.definitions import assigned_names, is_private, returns_none

Key = tuple[str, str]

MOST_LINES = 44
# Expressions around the result that a student could write: a method, an index, a sign, a call with the result, a factor.
_NATURAL_RESULT = re.compile(
    r"-?\{result\}(\.\w+\([^()]*\)|\[[^\[\]]*\]| [*/+-] [\w.\[\]()* +-]+)?|torch\.\w+\(\{result\}[^{}]*\)"
)
# Constructs that edits use for an effect and students would not write.
_UNNATURAL = re.compile(
    r"\bgiven\b|\blambda\b|:=|device=['\"]cpu|\.mul\(2\)\.div\(2\)|\)\[[01]\]$|clone\(\) \+ 0|__|\.data\b|, None\)\[0\]|copy_\("
    r"|^ *(if|while) (True|False):|\bif (True|False)\b|^ *pass$"
)


@dataclass(frozen=True)
class ShownCode:
    """The code of an exercise, right or with a mistake, as an exam shows it."""

    exercise: Exercise
    source: str  # the code, without docstrings and comments
    definitions: Mapping[Key, str]  # the shown definitions by module and name, as they run

    @property
    def lines(self) -> list[str]:
        """The lines of the shown source."""
        return self.source.split("\n")

    def load(self) -> Callable[..., Any]:
        """Run the shown code, and return the exercise's function or class.

        Raises:
            EditError: if the code does not run.
        """
        start, reached = _find_reached(self.exercise)
        text = _project_sources().module_source(start, reached, self.definitions)
        return run_source(text, self.exercise.name, f"<code of {self.exercise.name} in an exam>")


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def right_code(exercise: Exercise) -> ShownCode:
    """Return the shown code of an exercise's reference."""
    return _build_shown_code(exercise, {})


def wrong_code(exercise: Exercise, mistake: Misconception) -> ShownCode:
    """Return the shown code of a known mistake.

    Raises:
        EditError: if the mistake cannot be shown; the message is the reason.
    """
    if reason := reason_to_leave_out(exercise, mistake):
        raise EditError(reason)
    return _build_shown_code(exercise, _change_definitions(exercise, mistake))


def reason_to_leave_out(exercise: Exercise, mistake: Misconception) -> str:
    """Return the reason why a known mistake cannot be shown; empty if it can."""
    alteration = _get_alteration(exercise, mistake)
    if any(edit.first for edit in alteration.edits):
        return "it prepares the arguments in a way that no student writes"
    if any(edit.returns and not _NATURAL_RESULT.fullmatch(edit.returns) for edit in alteration.edits):
        return "it rewrites the result in a way that no student writes"
    changed = _change_definitions(exercise, mistake)
    if not set(changed) <= set(_shown_keys(exercise)):
        return "it changes another exercise, or a check of the inputs that is not shown"
    right, wrong = right_code(exercise), _build_shown_code(exercise, changed)
    blocks = SequenceMatcher(None, right.lines, wrong.lines, autojunk=False).get_opcodes()
    new = [line for tag, _, _, first, last in blocks if tag != "equal" for line in wrong.lines[first:last]]
    if any(_UNNATURAL.search(line) for line in new):
        return "its code is not a student's"
    if len(wrong.lines) > MOST_LINES:
        return f"its code has more than {MOST_LINES} lines"
    if any(len(line) > LONGEST_LINE for line in wrong.lines):
        return f"a line has more than {LONGEST_LINE} characters"
    return "" if wrong.source != right.source else "it changes only what is not shown"


def changed_lines(right: ShownCode, wrong: ShownCode) -> frozenset[int]:
    """Return the indices of the right code's lines that the mistake changes or removes, or before which it inserts lines."""
    blocks = SequenceMatcher(None, right.lines, wrong.lines, autojunk=False).get_opcodes()
    return frozenset(
        n for tag, first, last, _, _ in blocks if tag != "equal" for n in range(first, max(last, first + 1))
    )


def list_used_names(code: ShownCode) -> list[str]:
    """Return the course's names that the code uses without defining them, except input checks."""
    return [name for key, name in _find_external_names(code) if not (is_private(name) and is_check((key, name)))]


def list_used_checks(code: ShownCode) -> list[str]:
    """Return the names of the helpers that the code uses only to check its inputs."""
    return [name for key, name in _find_external_names(code) if is_private(name) and is_check((key, name))]


def _find_external_names(code: ShownCode) -> list[Key]:
    _, reached = _find_reached(code.exercise)
    read = {node.id for node in ast.walk(ast.parse(code.source)) if isinstance(node, ast.Name)}
    return sorted((key for key in reached if key not in code.definitions and key[1] in read), key=lambda key: key[1])


def _get_alteration(exercise: Exercise, mistake: Misconception) -> Alteration:
    assert isinstance(exercise.misconceptions, MistakeFile)
    return exercise.misconceptions.alteration(mistake)


@cache
def _change_definitions(exercise: Exercise, mistake: Misconception) -> Mapping[Key, str]:
    alteration = _get_alteration(exercise, mistake)
    return changed_definitions(exercise.reference, alteration.edits, body=alteration.body)


def _build_shown_code(exercise: Exercise, changed: Mapping[Key, str]) -> ShownCode:
    _, reached = _find_reached(exercise)
    definitions = {key: _cached_simplify(changed.get(key, reached[key].code)) for key in _shown_keys(exercise)}
    constants = _list_constants(exercise, definitions)
    return ShownCode(
        exercise, "\n\n\n".join([*filter(None, ["\n".join(constants)]), *definitions.values()]), definitions
    )


_cached_simplify = cache(simplify_code)


def _shown_keys(exercise: Exercise) -> list[Key]:
    """Return the keys of the exercise and its private helpers, helpers first, without helpers that only check inputs."""
    start, reached = _find_reached(exercise)
    shown, waiting = {start}, [start]
    while waiting:
        new = {key for key in _project_sources().neighbours(*waiting.pop()) if is_private(key[1])} - shown
        new = {key for key in new if not is_check(key)}
        shown |= new
        waiting += new
    return [key for key in reached if key in shown]


def is_check(key: Key) -> bool:
    """Return whether a definition returns None, so that its only effect is to raise errors."""
    node = _project_sources().text(key[0]).definitions[key[1]]
    return isinstance(node, _DEFINITIONS) and returns_none(node)


def _list_constants(exercise: Exercise, definitions: Mapping[Key, str]) -> list[str]:
    """Return the source of the private constants that definitions use."""
    texts: dict[str, str] = {}
    for (module, _), code in definitions.items():
        text = _project_sources().text(module)
        for node in ast.walk(ast.parse(code)):
            statement = text.definitions.get(node.id) if isinstance(node, ast.Name) and is_private(node.id) else None
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                texts.update(dict.fromkeys(assigned_names(statement), remove_comments(text.get_source(statement))))
    return list(dict.fromkeys(texts.values()))


@cache
def _project_sources() -> Sources:
    return Sources()


@cache
def _find_reached(exercise: Exercise) -> tuple[Key, dict[Key, Any]]:
    start = (exercise.reference.__module__, exercise.reference.__name__)
    return start, _project_sources().reachable(start)
