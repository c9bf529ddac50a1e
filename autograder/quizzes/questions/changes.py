"""Change one line of a definition, and run the check on the result."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from autograder.checking.example import example
from autograder.checking.request import Observation, WrongResultError
from autograder.checking.sheet import Section, Sheet, ask, first_wrong
from autograder.quizzes.mutation.operators import Mutation, mutations
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.inputs import Input, result_text
from autograder.quizzes.questions.question import grouped
from autograder.quizzes.questions.trace import LimitedSubject, TooLongError, Tracer

# Outcomes that are no row of the check.
NOTHING, ERROR = "nothing", "error"
# How many changes are tried: each runs the check up to the first row that fails. After the first few, the cost of their requests decides,
# too: a request of a model, which is built for each of them, costs as much as its weights.
MOST_CHANGES, _FEWEST_CHANGES = 16, 6
_MOST_COST, _WEIGHTS_OF_A_REQUEST = 300, 8
# Judges whose examples the check itself shows.
_SHOWN = ("matches", "matches_part", "shapes", "answers")
_STEPS, _SECONDS = 300_000, 10.0
_LONGEST = 110
# Operators that insert functions of the course, by the names of these functions: the methods that students know take their places.
_METHODS = {"detached": "detach()", "rounded": "to(torch.float32)"}
REMOVED, ALWAYS = "(removed)", "(its block always runs)"


@dataclass(frozen=True)
class Change:
    """A changed line, and the verdict of the check on the code with it."""

    line: int
    before: str  # its statement
    after: str  # the changed statement, or ``REMOVED``, or ``ALWAYS``
    # ``NOTHING`` if every row passes, ``ERROR`` if the first call raises, otherwise the name of the first row that fails
    outcome: str
    seen: str  # what the check saw, in a sentence
    results: dict[int, str]  # what the changed code returns for each complete input, by the input's number


def try_changes(code: Code, sheet: Sheet, inputs: Sequence[Input]) -> list[Change]:
    """Change a definition in some places, one at a time, and return what the check says."""
    tried, asked = [], Cost()
    for mutation, shown in possible_changes(code):
        change = _try(code, mutation, shown, sheet, inputs, asked)
        tried += [change] if change else []
        if len(tried) == MOST_CHANGES or (len(tried) >= _FEWEST_CHANGES and asked.cost > _MOST_COST):
            break
    return tried


def possible_changes(code: Code) -> Iterator[tuple[Mutation, tuple[int, str, str]]]:
    """Yield the changes of one line, each with the line, the statement and the changed statement; only the code decides the order."""
    for mutation in map(_with_methods, _some(mutations(code.source, guards=False), code.source)):
        shown = _shown(code, mutation)
        if shown is not None:
            yield mutation, shown


@dataclass
class Cost:
    """The cost of the requests so far. Unlike time, it is the same in every run, so every run tries the same changes."""

    cost: float = 0.0

    def add(self, section: Section) -> None:
        """Add the requests of a row."""
        for probe in section.probes:
            self.cost += sum(1 + len(request.state or ()) / _WEIGHTS_OF_A_REQUEST for request in probe.requests)


def _some(candidates: Sequence[Mutation], key: str) -> Iterator[Mutation]:
    """Yield mutations in an order in which every line has its turn; only the code decides the order."""
    rng = random.Random(key)
    by_line = grouped(candidates, lambda mutation: mutation.line)
    for group in by_line.values():
        rng.shuffle(group)
    for turn in zip_longest(*by_line.values()):
        yield from (mutation for mutation in turn if mutation is not None)


def _with_methods(mutation: Mutation) -> Mutation:
    """Return a mutation with methods of tensors in the place of the course's functions that do the same."""
    if "__import__" not in mutation.code:
        return mutation
    return replace(mutation, code=ast.unparse(_Methods().visit(ast.parse(mutation.code))))


class _Methods(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        method = _METHODS.get(node.func.attr) if isinstance(node.func, ast.Attribute) else None
        if method is None or "__import__" not in ast.unparse(node.func):
            return self.generic_visit(node)
        return ast.parse(f"({ast.unparse(node.args[0])}).{method}", mode="eval").body


def _shown(code: Code, mutation: Mutation) -> tuple[int, str, str] | None:
    """Return the line, the statement and the changed statement; None if they cannot be shown on one line."""
    if mutation.before.startswith("if "):
        conditions = (node for node in ast.walk(code.tree) if isinstance(node, ast.If))
        owner = next((node for node in conditions if node.lineno == mutation.line), None)
        if owner is None or owner.orelse:
            return None
        after = REMOVED if mutation.after == "pass" else ALWAYS
        before = _as_written(code, mutation.line, mutation.before)
        return (mutation.line, before, after) if len(before) <= _LONGEST else None
    old, new = (list(_heads(ast.parse(text))) for text in (code.source, mutation.code))
    differing = [(a, b) for a, b in zip(old, new, strict=False) if a[1] != b[1]]
    if len(old) != len(new) or len(differing) != 1:
        return None
    (line, before), (_, after) = differing[0]
    if max(len(before), len(after)) > _LONGEST or "\n" in before + after or before.startswith(("def ", "class ", "@")):
        return None
    before, after = (_as_written(code, line, text) for text in (before, after))
    return line, before, REMOVED if after == "pass" else after


def _as_written(code: Code, line: int, text: str) -> str:
    """Return a statement as its line has it: ``elif`` is an ``if`` inside ``else`` to Python's parser."""
    is_elif = code.source.split("\n")[line - 1].lstrip().startswith("elif ")
    return f"el{text}" if is_elif and text.startswith("if ") else text


def _heads(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line of every statement, and the statement as text without its block."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            text = ast.unparse(node)
            yield node.lineno, text.split("\n")[0] if getattr(node, "body", None) else text


def _try(
    code: Code,
    mutation: Mutation,
    shown: tuple[int, str, str],
    sheet: Sheet,
    inputs: Sequence[Input],
    asked: Cost,
) -> Change | None:
    with Tracer(code.filename, steps=_STEPS, seconds=_SECONDS) as limits:
        try:
            subject = LimitedSubject(code.compiled(mutation.code), limits)
            results = {
                number: result_text(subject.observe(item.request))
                for number, item in enumerate(inputs)
                if item.complete
            }
            outcome, seen = _outcome(sheet, subject, asked)
        except (Exception, TooLongError):  # a definition that cannot be run, or runs too long
            return None
    if limits.failed or (outcome == ERROR and _has_no_method(seen)):
        return None
    return Change(*shown, outcome, seen, {number: text for number, text in results.items() if text})


def _has_no_method(seen: str) -> bool:
    """Return whether a change called a method of tensors on something else, which nobody would write."""
    return any(f"has no attribute '{method.partition('(')[0]}'" in seen for method in _METHODS.values())


def _outcome(sheet: Sheet, subject: LimitedSubject, asked: Cost) -> tuple[str, str]:
    first = sheet.sections[0].probes[0].requests[0]
    plain: Observation = subject.observe(first)
    if plain.error:
        return ERROR, f"the first call of the check raises {plain.error}"
    for section in sheet.sections:
        asked.add(section)
        seen = _seen(section, subject)
        if seen:
            return section.aspect, seen
    return NOTHING, "every row of the check passes"


def _seen(section: Section, subject: LimitedSubject) -> str:
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
    # The check's own error types are no types that students know.
    told = (
        shown
        and probe.judge in _SHOWN
        and not any(WrongResultError.__name__ in (one.error or "") for one in observations)
    )
    return f"{message}\n{shown}" if told else message
