"""Run a definition with one change on the visible calls of the check, and compare the answers.

A change that answers every call like a known mistake *is* this mistake, whatever its code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from autograder.checking.judges import is_same_answer
from autograder.checking.request import Observation, Request, content_key
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.edits import Edit, possible_edits
from autograder.quizzes.questions.inputs import Input, result_text
from autograder.quizzes.questions.trace import LimitedSubject, TooLongError, Tracer

# The maximum numbers of changes to try and to return; after the first few, the cost of their calls is limited, too. The cost is counted in
# operations because, unlike time, they are the same in every run, so that every run tries the same changes.
MOST_TRIED, MOST_CHANGES, _FEWEST_TRIED = 120, 40, 4
_MOST_COST, _COST_OF_A_CALL, _COST_OF_A_WEIGHT = 40_000, 50, 8
# The number of calls that show whether an exchange of names can be a known mistake.
_FIRST_CALLS = 2
_STEPS, _SPARE_STEPS, _SECONDS = 300_000, 1_000, 10.0


@dataclass(frozen=True)
class Change:
    """The effect of an edit on the answers."""

    edit: Edit
    mistake: str  # the known mistake whose answers the changed code gives to all calls of the check, or empty
    raises: bool  # whether a call raises an error that the unchanged code does not raise
    calls: tuple[int, ...]  # the numbers of the calls with another answer
    inputs: tuple[int, ...]  # the numbers of the inputs with another answer
    results: Mapping[int, str]  # the changed code's result for each complete input, by the input's number


@dataclass(frozen=True)
class Call:
    """A visible call of the check, and the position of its answer on the sheet."""

    request: Request
    expected: Observation  # the right answer
    place: tuple[int, int]  # the section and the probe
    number: int  # the index of the request in the probe

    def find_mistake_answer(self, sheet: Sheet, mistake: int) -> Observation:
        """Return a known mistake's answer to this call."""
        return sheet.answer(mistake, *self.place)[self.number]


def visible_calls(sheet: Sheet) -> list[Call]:
    """Return the distinct calls of a sheet of visible tests, in order."""
    found: dict[object, Call] = {}
    for number, section in enumerate(sheet.sections):
        for index, (probe, answers) in enumerate(zip(section.probes, section.expected, strict=True)):
            for position, (request, answer) in enumerate(zip(probe.requests, answers, strict=True)):
                if request.action == "call":
                    found.setdefault(content_key(request), Call(request, answer, (number, index), position))
    return list(found.values())


def list_refuted_mistakes(sheet: Sheet, calls: Sequence[Call], mistake: str) -> list[str]:
    """Return the known mistakes that answer at least one call differently from a given mistake."""
    names = [one.name for one in sheet.misconceptions]
    index = names.index(mistake)
    own = [call.find_mistake_answer(sheet, index) for call in calls]
    return [name for i, name in enumerate(names) if i != index and not _is_explained_by(sheet, calls, own, i)]


def _is_explained_by(sheet: Sheet, calls: Sequence[Call], answers: Sequence[Observation], mistake: int) -> bool:
    return all(
        is_same_answer(x, call.find_mistake_answer(sheet, mistake)) for x, call in zip(answers, calls, strict=False)
    )


class Trials:
    """Runs a definition with one change at a time, at limited cost.

    Args:
        code: the definition.
        sheet: the visible tests.
        calls: the calls of the visible tests.
        inputs: further inputs.
    """

    def __init__(self, code: Code, sheet: Sheet, calls: Sequence[Call], inputs: Sequence[Input]) -> None:
        self._code, self._sheet, self._calls, self._inputs = code, sheet, calls, inputs
        self._requests = [call.request for call in calls] + [item.request for item in inputs]
        limits = Tracer(code.filename, steps=_STEPS, seconds=_SECONDS)
        self._own = _run_changed_code(code, code.source, self._requests, limits) or []
        # A changed definition may run about twice as many lines.
        self._steps = 2 * limits.steps + _SPARE_STEPS
        self._costs = [_estimate_cost(code, request) for request in self._requests] if self._own else []

    def _run(self, source: str, count: int | None = None) -> list[Observation] | None:
        """Run changed code on the first ``count`` requests, by default all; return None if it fails or every call raises an error."""
        limits = Tracer(self._code.filename, steps=self._steps, seconds=_SECONDS)
        answers = _run_changed_code(self._code, source, self._requests[:count], limits)
        return None if answers is None or all(one.error for one in answers[: len(self._calls)]) else answers

    def find_changes(self) -> Iterator[Change]:
        """Try the possible edits, and yield their effects on the answers."""
        spent = made = 0
        for number, (edit, source, swaps) in enumerate(islice(possible_edits(self._code.source), MOST_TRIED)):
            if not self._own or made == MOST_CHANGES or (number >= _FEWEST_TRIED and spent > _MOST_COST):
                return
            if swaps:
                count = min(_FIRST_CALLS, len(self._calls))
                spent += sum(self._costs[:count])
                first = self._run(source, count)
                if first is None or not self._find_mistakes_giving(first):
                    continue
            spent += sum(self._costs)
            answers = self._run(source)
            change = self._compare_answers(edit, answers) if answers else None
            if change is not None and (change.mistake or not swaps):
                made += 1
                yield change

    def _compare_answers(self, edit: Edit, answers: Sequence[Observation]) -> Change:
        count = len(self._calls)
        pairs = list(zip(self._own, answers, strict=True))
        differs = [n for n, pair in enumerate(pairs) if not is_same_answer(*pair)]
        calls = tuple(n for n in differs if n < count)
        # Answers that are only integers may be equal by chance.
        numbers = [value for answer in answers[:count] for value in answer.outputs.values()]
        same = self._find_mistakes_giving(answers[:count]) if calls and not all(type(n) is int for n in numbers) else []
        results = {n: result_text(answers[count + n]) for n, one in enumerate(self._inputs) if one.complete}
        return Change(
            edit,
            self._sheet.misconceptions[same[0]].name if len(same) == 1 else "",
            any(changed.error and not own.error for own, changed in pairs),
            calls,
            tuple(n - count for n in differs if n >= count),
            {n: text for n, text in results.items() if text},
        )

    def _find_mistakes_giving(self, answers: Sequence[Observation]) -> list[int]:
        """Return the known mistakes that give these answers to the first calls."""
        every = range(len(self._sheet.misconceptions))
        return [mistake for mistake in every if _is_explained_by(self._sheet, self._calls, answers, mistake)]


def _estimate_cost(code: Code, request: Request) -> int:
    answer = LocalSubject(code.run_definition()).observe(replace(request, action="operations"))
    return (answer.operations or 0) + _COST_OF_A_CALL + _COST_OF_A_WEIGHT * len(request.state or ())


def _run_changed_code(code: Code, source: str, requests: Sequence[Request], limits: Tracer) -> list[Observation] | None:
    """Return the answers of changed code; None if it cannot be run or takes too long."""
    with limits:
        try:
            subject = LimitedSubject(code.run_definition(source), limits)
            answers = [subject.observe(request) for request in requests]
        except (Exception, TooLongError):
            return None
    return None if limits.failed else answers
