"""Change one place of a definition in its own text, run the result on the visible calls of the check, and compare what comes out.

Changes that nobody makes, such as ``.detach()`` at the end of a line, are left out. A change whose answers to every call are those of a
known mistake *is* this mistake, whatever it looks like.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

from autograder.checking.judges import same_answer
from autograder.checking.request import Observation, Request, content
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.quizzes.mutation.operators import changes_of
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.inputs import Input, result_text
from autograder.quizzes.questions.question import grouped
from autograder.quizzes.questions.trace import LimitedSubject, TooLongError, Tracer

# How many changes are tried, and how many of them are kept. After the first few, the cost of their calls decides, too. It is counted in
# operations: unlike time, they are the same in every run, so every run tries the same changes.
MOST_TRIED, MOST_CHANGES, _FEWEST_TRIED = 120, 40, 4
_MOST_COST, _COST_OF_A_CALL, _COST_OF_A_WEIGHT = 60_000, 50, 5
# So many calls show whether a change that exchanges names can be a known mistake.
_FIRST_CALLS = 2
_STEPS, _SPARE_STEPS, _SECONDS = 300_000, 1_000, 10.0
_LONGEST = 88
_COMMENT = re.compile(r"\s+#[^'\"]*$")
_SAME_AXIS = re.compile(r"transpose\((-?\d), \1\)")
_NOBODY_MAKES = {".detach() added", ".to() added", ".detach() dropped", ".contiguous() dropped"}
# Methods whose call can be left out: what they return has the shape of what they are called on.
_KEEP_SHAPE = ("masked_fill", "softmax", "log_softmax", "tanh", "sigmoid", "relu", "exp", "log", "abs", "sqrt", "clamp", "cumsum", "flip")


@dataclass(frozen=True)
class Edit:
    """A changed place of a definition."""

    first: int  # the first line that is changed
    last: int  # the last line that is changed
    after: str  # the line that stands there instead, without its margin; empty if nothing does

    @property
    def lines(self) -> str:
        """The numbers of the lines, as the topic of a question."""
        return " ".join(map(str, range(self.first, self.last + 1)))


@dataclass(frozen=True)
class Change:
    """What an edit changes in the answers."""

    edit: Edit
    mistake: str  # the known mistake whose answers the changed code gives to all calls of the check, or empty
    raises: bool  # whether a call raises an error that the code as it is does not raise
    calls: tuple[int, ...]  # the numbers of the calls that it answers otherwise
    inputs: tuple[int, ...]  # the numbers of the inputs that it answers otherwise
    results: Mapping[int, str]  # what it returns for each input that is told completely, by the input's number


@dataclass(frozen=True)
class Call:
    """A visible call of the check, and where its answer stands on the sheet."""

    request: Request
    expected: Observation  # the right answer
    place: tuple[int, int]  # the section and the probe
    number: int  # which request of the probe it is

    def answer_of(self, sheet: Sheet, mistake: int) -> Observation:
        """Return what a known mistake answers."""
        return sheet.answer(mistake, *self.place)[self.number]


def visible_calls(sheet: Sheet) -> list[Call]:
    """Return the different calls of a sheet with visible questions, in their order."""
    found: dict[object, Call] = {}
    for number, section in enumerate(sheet.sections):
        for index, (probe, answers) in enumerate(zip(section.probes, section.expected, strict=True)):
            for position, (request, answer) in enumerate(zip(probe.requests, answers, strict=True)):
                if request.action == "call":
                    found.setdefault(content(request), Call(request, answer, (number, index), position))
    return list(found.values())


def refuted_beside(sheet: Sheet, calls: Sequence[Call], mistake: str) -> list[str]:
    """Return the known mistakes that answer one of the calls otherwise than a given one does."""
    names = [one.name for one in sheet.misconceptions]
    index = names.index(mistake)
    own = [call.answer_of(sheet, index) for call in calls]
    return [name for i, name in enumerate(names) if i != index and not _all_same(sheet, calls, own, i)]


def _all_same(sheet: Sheet, calls: Sequence[Call], answers: Sequence[Observation], mistake: int) -> bool:
    return all(same_answer(x, call.answer_of(sheet, mistake)) for x, call in zip(answers, calls, strict=False))


def try_changes(code: Code, sheet: Sheet, calls: Sequence[Call], inputs: Sequence[Input]) -> list[Change]:
    """Change a definition in some places, one at a time, and return what it answers then."""
    requests = [call.request for call in calls] + [item.request for item in inputs]
    limits = Tracer(code.filename, steps=_STEPS, seconds=_SECONDS)
    own = _answers(code, code.source, requests, limits)
    if own is None:
        return []
    # What a change makes longer by far is not worth waiting for.
    steps = 2 * limits.counts.total() + _SPARE_STEPS
    costs = [_cost(code, request) for request in requests]
    tried: list[Change] = []
    spent = 0
    for number, (edit, source, swaps) in enumerate(islice(possible_edits(code.source), MOST_TRIED)):
        if len(tried) == MOST_CHANGES or (number >= _FEWEST_TRIED and spent > _MOST_COST):
            break
        limits = Tracer(code.filename, steps=steps, seconds=_SECONDS)
        if swaps:
            spent += sum(costs[:_FIRST_CALLS])
            first = _answers(code, source, requests[: min(_FIRST_CALLS, len(calls))], limits)
            if first is None or any(one.error for one in first) or not _mistakes_with(sheet, calls, first):
                continue
        spent += sum(costs)
        answers = _answers(code, source, requests, limits)
        if answers is None or all(answer.error for answer in answers[: len(calls)]):
            continue
        differs = [not same_answer(x, y) for x, y in zip(own, answers, strict=True)]
        same = _mistakes_with(sheet, calls, answers[: len(calls)]) if any(differs[: len(calls)]) else []
        if swaps and len(same) != 1:
            continue
        tried.append(
            Change(
                edit,
                sheet.misconceptions[same[0]].name if len(same) == 1 else "",
                any(y.error and not x.error for x, y in zip(own, answers, strict=True)),
                tuple(n for n, differ in enumerate(differs[: len(calls)]) if differ),
                tuple(n for n, differ in enumerate(differs[len(calls) :]) if differ),
                {n: text for n, item in enumerate(inputs) if item.complete and (text := result_text(answers[len(calls) + n]))},
            )
        )
    return tried


def _mistakes_with(sheet: Sheet, calls: Sequence[Call], answers: Sequence[Observation]) -> list[int]:
    """Return the known mistakes that give these answers to the first calls."""
    return [i for i in range(len(sheet.misconceptions)) if _all_same(sheet, calls, answers, i)]


def _cost(code: Code, request: Request) -> int:
    answer = LocalSubject(code.compiled()).observe(replace(request, action="operations"))
    return (answer.operations or 0) + _COST_OF_A_CALL + _COST_OF_A_WEIGHT * len(request.state or ())


def _answers(code: Code, source: str, requests: Sequence[Request], limits: Tracer) -> list[Observation] | None:
    """Return the answers of changed code; None if it cannot be run, or runs too long."""
    with limits:
        try:
            subject = LimitedSubject(code.compiled(source), limits)
            answers = [subject.observe(request) for request in requests]
        except (Exception, TooLongError):
            return None
    return None if limits.failed else answers


def possible_edits(source: str) -> Iterator[tuple[Edit, str, bool]]:
    """Yield the edits of a definition, each with the edited text and whether it exchanges one name for another; only the code decides the
    order, in which every line has its turn and exchanged names come last.
    """
    tree = ast.parse(source)
    rng, seen = random.Random(source), set[Edit]()
    for swaps, replacements in ((False, _replacements(source, tree)), (True, _swaps(tree))):
        by_line = grouped(replacements, lambda pair: pair[0].lineno)
        for group in by_line.values():
            rng.shuffle(group)
        for node, new in (pair for turn in zip_longest(*by_line.values()) for pair in turn if pair is not None):
            edited = _edited(source, node, new)
            if edited is not None and edited[0] not in seen:
                seen.add(edited[0])
                yield (*edited, swaps)


def _replacements(source: str, tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Yield nodes of a definition with the texts that take their places."""
    for place, (operator, new, _) in changes_of(tree, guards=False):
        node = place.node
        neutral = operator == "constant" and isinstance(place.owner, ast.BinOp) and ast.unparse(new) in ("0", "1")
        if operator in _NOBODY_MAKES or neutral or not isinstance(node, (ast.stmt, ast.expr)):
            continue
        if isinstance(node, ast.expr):
            yield node, segment(source, new) or ast.unparse(ast.fix_missing_locations(new))
        elif not isinstance(new, list):
            yield node, ast.unparse(ast.fix_missing_locations(new))
        elif all(isinstance(item, ast.Pass) for item in new):
            yield node, ""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "dim" and isinstance(node.value, (ast.UnaryOp, ast.Constant)):
            yield from ((node.value, axis) for axis in ("-2", "0", "1") if axis != segment(source, node.value))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult, ast.Add, ast.Sub)):
            yield node, segment(source, node.left)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_SHAPE:
            inner = node.args[0] if node.args and ast.unparse(node.func.value) in ("torch", "F") else node.func.value
            yield node, segment(source, inner)


def _swaps(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield each use of a variable with every other one."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)} - {"self"}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield from ((node, name) for name in sorted(names - {node.id}))


def segment(source: str, node: ast.AST) -> str:
    """Return the text of a node that stands in the source; empty for a new one."""
    return ast.get_source_segment(source, node) or "" if hasattr(node, "end_lineno") else ""


def _edited(source: str, node: ast.stmt | ast.expr, new: str) -> tuple[Edit, str] | None:
    """Return an edit and the edited source; None if it is more than one line long, or the text cannot stand there."""
    lines = source.split("\n")
    last = node.end_lineno or node.lineno
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    behind = lines[last - 1].encode()[node.end_col_offset :].decode()
    if isinstance(node, ast.stmt) and (before.strip() or _COMMENT.sub("", behind).strip()):
        return None
    for text in (new, f"({new})") if new else ("pass",):
        changed = [*lines[: node.lineno - 1], *f"{before}{text}{behind}".split("\n"), *lines[last:]]
        if _is_only_change(source, "\n".join(changed), node, text):
            head = next((i for i, pair in enumerate(zip(lines, changed, strict=False)) if pair[0] != pair[1]), last)
            if head == last:
                return None
            end, length = last, len(changed) - len(lines) + last
            after = "" if not new else _COMMENT.sub("", changed[head].strip())
            fits = length - head == 1 and len(after) <= _LONGEST and not _SAME_AXIS.search(after) and (not new or lines[head].strip() != after)
            return (Edit(head + 1, end, after), "\n".join(changed)) if fits else None
    return None


def _is_only_change(source: str, changed: str, node: ast.AST, text: str) -> bool:
    """Return whether a changed text is valid, and nothing around the new part is read in another way than before."""
    try:
        old, new, part = ast.parse(source), ast.parse(changed), ast.parse(text.strip())
    except (SyntaxError, ValueError):
        return False
    value = part.body[0].value if isinstance(node, ast.expr) and isinstance(part.body[0], ast.Expr) else part.body[0]
    for parent in ast.walk(old):
        for name, field in ast.iter_fields(parent):
            items = field if isinstance(field, list) else [field]
            for index, item in enumerate(items):
                if _at(item) == _at(node) and type(item) is type(node):
                    if isinstance(field, list):
                        field[index] = value
                    else:
                        setattr(parent, name, value)
                    return ast.dump(old) == ast.dump(new)
    return False


def _at(node: object) -> tuple[object, ...]:
    return tuple(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
