"""Collect the results of running a definition as plain data, which can leave the process that runs student code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.checking.request import list_tensors
from autograder.checking.sheet import Sheet
from autograder.quizzes.questions.changes import Call, Change, Trials, list_refuted_mistakes, visible_calls
from autograder.quizzes.questions.code import Code, docstring_lines
from autograder.quizzes.questions.effects import Effects, find_effects
from autograder.quizzes.questions.inputs import (
    READS,
    TRACED,
    Input,
    result_text,
    short_text,
    value_text,
    visible_inputs,
)
from autograder.quizzes.questions.properties import tabulate_properties
from autograder.quizzes.questions.trace import watched_run

# Matches the reason in a diagnosis; the words before it, if they are few, can be an option.
_REASON = re.compile(
    r" \(or [^)]*\)(?=\W*$|[,.;])|(?<=[\w`)])(?:[.:;]\s|, (?:so|which|because|but|although|with|and)\b).*", re.DOTALL
)
_FEWEST_WORDS, _MOST_WORDS = 4, 13
# The maximum size of a result and the maximum number of calls to compare for every change.
_LARGEST_RESULT, _MOST_CALLS = 3_000, 40
# The number of inputs whose changes are examined.
PERTURBED = 2


@dataclass(frozen=True)
class InputText:
    """An input as students read it."""

    text: str
    complete: bool  # whether the text gives every number
    arguments: Mapping[str, str]  # the arguments of the call


@dataclass(frozen=True)
class SharedFacts:
    """The part of the facts that is the same for all students' code."""

    inputs: tuple[InputText, ...]
    properties: Mapping[str, tuple[int, ...]]  # the numbers of the calls with each property
    mistakes: Mapping[str, str]  # short texts of the known mistakes that can be options
    apart: Mapping[str, tuple[str, ...]]  # for each mistake that a change makes, the mistakes with other answers

    @classmethod
    def from_sheet(cls, sheet: Sheet, calls: list[Call], inputs: list[Input], changes: Iterable[Change]) -> SharedFacts:
        """Collect the shared facts of a sheet of visible tests."""
        short = {one.name: _REASON.sub("", one.explanation).rstrip(".") for one in sheet.misconceptions}
        made = {change.mistake for change in changes} - {""}
        return cls(
            tuple(
                InputText(
                    short_text(one),
                    one.complete,
                    {name: value_text(value) for name, value in one.request.arguments.items()},
                )
                for one in inputs
            ),
            {
                text: tuple(sorted(numbers))
                for text, numbers in tabulate_properties([call.request for call in calls]).items()
            },
            {name: text for name, text in short.items() if _can_be_option(text)},
            {name: tuple(list_refuted_mistakes(sheet, calls, name)) for name in sorted(made)},
        )


def _can_be_option(text: str) -> bool:
    """Return whether a short diagnosis can be an option: it has a suitable length and does not end in "right"."""
    return _FEWEST_WORDS <= len(text.split()) <= _MOST_WORDS and not text.endswith(" right")


@dataclass(frozen=True)
class Facts:
    """The facts from which the questions about one definition are made."""

    exercise: str
    source: str  # the definition
    hidden_lines: tuple[int, ...]  # the line numbers of docstrings, which are not shown
    given: SharedFacts
    runs: Mapping[int, str]  # the result of each input as text, which may be empty, by the input's number
    changes: tuple[Change, ...]  # the effects of changed lines
    effects: tuple[Effects, ...]  # the effects of changed inputs


def select_calls_and_inputs(sheet: Sheet) -> tuple[list[Call], list[Input]]:
    """Return the calls and inputs of a sheet that questions use, without calls that should raise an error."""
    calls = [call for call in visible_calls(sheet) if not call.expected.error and call.request.method != READS]
    return [call for call in calls if _result_size(call) <= _LARGEST_RESULT][:_MOST_CALLS], visible_inputs(sheet)


def _result_size(call: Call) -> int:
    return sum(tensor.numel() for tensor in list_tensors([*call.expected.outputs.values()]))


def gather_facts(code: Code, sheet: Sheet) -> Facts:
    """Run a definition, unchanged and with changed lines, on visible inputs, and return the facts, which depend only on the code."""
    calls, inputs = select_calls_and_inputs(sheet)
    watched = [watched_run(code, item.request) for item in inputs[:TRACED]]
    texts = [result_text(run) if run and item.complete else "" for run, item in zip(watched, inputs, strict=False)]
    runs = {number: texts[number] for number, run in enumerate(watched) if run is not None}
    trials = Trials(code, sheet, calls, inputs if runs else [])
    changes = tuple(trials.find_changes()) if runs else ()
    felt = [find_effects(code, item, number) for number, item in enumerate(inputs[:PERTURBED])] if runs else []
    return Facts(
        exercise=sheet.exercise,
        source=code.source,
        hidden_lines=docstring_lines(code.tree),
        given=SharedFacts.from_sheet(sheet, calls, inputs, changes),
        runs=runs,
        changes=changes,
        effects=tuple(one for one in felt if one is not None),
    )
