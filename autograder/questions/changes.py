"""Change one line of a definition, and run the check on the result."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from autograder.checking.example import example
from autograder.checking.request import Observation
from autograder.checking.sheet import Section, Sheet, ask, first_wrong
from autograder.checking.subject import LocalSubject
from autograder.mutation.operators import Mutation, mutations
from autograder.questions.code import Code
from autograder.questions.inputs import Input
from autograder.questions.results import result_text
from autograder.questions.trace import Tracer

# Outcomes that are no row of the check.
NOTHING, ERROR = "nothing", "error"
# How many changes are tried; each runs the check up to the first row that fails.
MOST_CHANGES = 18
# Judges whose examples the check itself shows.
_SHOWN = ("matches", "matches_part", "shapes", "answers")
_STEPS, _SECONDS = 300_000, 10.0
_LONGEST = 110
# They insert functions of the course, and detached gradients are rarely what a line is about.
_LEFT_OUT = (".detach() added", ".to() added")
REMOVED, ALWAYS = "(removed)", "(its block always runs)"


@dataclass(frozen=True)
class Change:
    """A changed line, and what the check says of the code with it.

    Attributes:
        line: the line.
        before: its statement.
        after: the changed statement, or ``REMOVED``, or ``ALWAYS``.
        outcome: ``NOTHING`` if every row passes, ``ERROR`` if the first call raises, otherwise the name of the first row that fails.
        seen: what the check saw, in a sentence.
        results: what the changed code returns for each complete input, by the input's number.
    """

    line: int
    before: str
    after: str
    outcome: str
    seen: str
    results: dict[int, str]


def try_changes(code: Code, sheet: Sheet, inputs: Sequence[Input]) -> list[Change]:
    """Change a definition in some places, one at a time, and return what the check says."""
    tried = []
    for mutation in _some(mutations(code.source, guards=False), code.source):
        shown = _shown(code, mutation)
        if shown is not None:
            change = _try(code, mutation, shown, sheet, inputs)
            tried += [change] if change else []
        if len(tried) == MOST_CHANGES:
            break
    return tried


def _some(candidates: Sequence[Mutation], key: str) -> Iterator[Mutation]:
    """Yield mutations in an order in which every line has its turn; the order depends on the code only."""
    rng = random.Random(key)
    by_line: dict[int, list[Mutation]] = {}
    for mutation in candidates:
        if mutation.operator not in _LEFT_OUT:
            by_line.setdefault(mutation.line, []).append(mutation)
    for group in by_line.values():
        rng.shuffle(group)
    for turn in zip_longest(*by_line.values()):
        yield from (mutation for mutation in turn if mutation is not None)


def _shown(code: Code, mutation: Mutation) -> tuple[int, str, str] | None:
    """Return the line, the statement and the changed statement; None if they cannot be shown on one line."""
    if mutation.before.startswith("if "):
        owner = next((node for node in ast.walk(code.tree) if _is_condition(node, mutation)), None)
        if owner is None or owner.orelse:
            return None
        after = REMOVED if mutation.after == "pass" else ALWAYS
        return (mutation.line, mutation.before, after) if len(mutation.before) <= _LONGEST else None
    old, new = (list(_heads(ast.parse(text))) for text in (code.source, mutation.code))
    differing = [(a, b) for a, b in zip(old, new, strict=False) if a[1] != b[1]]
    if len(old) != len(new) or len(differing) != 1:
        return None
    (line, before), (_, after) = differing[0]
    if max(len(before), len(after)) > _LONGEST or "\n" in before + after or before.startswith(("def ", "class ", "@")):
        return None
    return line, before, REMOVED if after == "pass" else after


def _is_condition(node: ast.AST, mutation: Mutation) -> bool:
    return isinstance(node, ast.If) and node.lineno == mutation.line


def _heads(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line of every statement, and the statement as text without its block."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            text = ast.unparse(node)
            yield node.lineno, text.split("\n")[0] if getattr(node, "body", None) else text


def _try(
    code: Code, mutation: Mutation, shown: tuple[int, str, str], sheet: Sheet, inputs: Sequence[Input]
) -> Change | None:
    with Tracer(code.filename, steps=_STEPS, seconds=_SECONDS) as limits:
        try:
            changed = code.compiled(mutation.code)
        except BaseException:
            return None
        subject = LocalSubject(changed)
        results = {
            number: result_text(subject.observe(item.request)) for number, item in enumerate(inputs) if item.complete
        }
        outcome, seen = _outcome(sheet, subject)
    if limits.failed:
        return None
    return Change(*shown, outcome, seen, {number: text for number, text in results.items() if text})


def _outcome(sheet: Sheet, subject: LocalSubject) -> tuple[str, str]:
    first = sheet.sections[0].probes[0].requests[0]
    plain: Observation = subject.observe(first)
    if plain.error:
        return ERROR, f"the first call of the check raises {plain.error}"
    for section in sheet.sections:
        seen = _seen(section, subject)
        if seen:
            return section.aspect, seen
    return NOTHING, "every row of the check passes"


def _seen(section: Section, subject: LocalSubject) -> str:
    """Return what is wrong in the first failing question of a row, or an empty text."""
    failure = first_wrong(section, (ask(subject, [[probe]])[0][0] for probe in section.probes))
    if failure is None:
        return ""
    number, observations, message = failure
    probe, expected = section.probes[number], section.expected[number]
    try:
        shown = example(probe.judge, probe.requests, observations, expected, probe.options)
    except Exception:  # what a student returns may be made to break a comparison
        shown = ""
    return f"{message}\n{shown}" if shown and probe.judge in _SHOWN else message
