"""Diagnose the known mistakes behind a candidate's failed rows.

There are three attempts, and the first that names something counts:

1. One mistake that gives the candidate's answer to every question.
2. One or two mistakes that each give the candidate's numbers in a whole failed row, and together fail the rows that failed.
3. One or two mistakes that explain the candidate's numbers question by question. A second fault hides these numbers in whole rows: the
   candidate raises an exception for some inputs, returns another dtype, or returns lists for tensors.

The third attempt compares numbers alone, in single precision at most, and needs a question for which the mistake has wrong numbers and
the candidate has the same ones. A question whose numbers speak against a mistake excludes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import torch
from torch import Tensor

from autograder.checking.difference import LARGEST, explain_unreadable, tensors_agree
from autograder.checking.hidden_messages import WRONG
from autograder.checking.judges import has_other_weights
from autograder.checking.request import Observation, Value
from autograder.checking.sheet import Answers, Sheet
from autograder.checking.tolerance import choose_tolerance
from autograder.checking.verdict import NOT_WRITTEN, Diagnosis


@dataclass(frozen=True)
class Problem:
    """A failure of one section."""

    message: str  # what was seen, in a sentence
    example: str = ""  # a question that was missed, where students may know it
    case: str = ""  # which of a row's cases it is, where students may know it and there are several
    about_numbers: bool = False  # whether it is that a result is wrong, and not a manner


def diagnose(sheet: Sheet, answers: Sequence[Answers], problems: Sequence[Problem | None]) -> list[Diagnosis | None]:
    """Return the known mistake behind each failed row, consistently with the answers.

    Answers to hidden tests never choose a mistake: the choice would reveal a hidden test. A row in which only hidden tests are missed gets
    a mistake that the visible answers have in other rows, if that mistake fails it.
    """
    if sheet.plain is None:
        return _diagnose(sheet, answers, problems)
    visible = [observations[: section.visible] for section, observations in zip(sheet.sections, answers, strict=True)]
    hidden = [j for j, problem in enumerate(problems) if problem is not None and problem.message == WRONG]
    diagnoses = _diagnose(
        sheet.plain, visible, [None if j in hidden else problem for j, problem in enumerate(problems)]
    )
    mistakes = [number for number, mistake in enumerate(sheet.misconceptions) if mistake in diagnoses]
    for j in hidden:
        diagnoses[j] = next(
            (sheet.misconceptions[number] for number in mistakes if sheet.mistake_fails(number, j)), None
        )
    return diagnoses


def _diagnose(sheet: Sheet, answers: Sequence[Answers], problems: Sequence[Problem | None]) -> list[Diagnosis | None]:
    """Return the known mistake behind each failed row, as determined by this sheet's test cases.

    A mistake that answers every question as the subject does is named alone, unless all that they have in common is that they crash, which
    may have any cause. Otherwise one or two mistakes are named. Each of them gives the subject's exact numbers in a failed row (in a side
    row: exactly what its judge compares) and fails no row that the subject passed. Together they fail all failed rows. If no such mistakes
    are known, side rows may fail for another reason: a student who has also forgotten the errors still gets the diagnosis of the numbers.
    """
    nothing: list[Diagnosis | None] = [None] * len(problems)
    failed = [j for j, problem in enumerate(problems) if problem is not None]
    if not failed or all(problem is not None and problem.message == NOT_WRITTEN for problem in problems):
        return nothing
    # Asking a mistake takes time, so stop at its first different answer.
    answered_by = {j: sheet.find_mistakes_giving(j, answers[j]) for j in failed}
    candidates = []
    for i in sorted(set().union(*answered_by.values())):
        if any(j not in answered_by and sheet.mistake_fails(i, j) for j in range(len(problems))):
            continue  # it fails what the subject passed
        fails = {j for j in failed if sheet.mistake_fails(i, j)}
        same = all(
            i in answered_by[j] if j in answered_by else sheet.mistake_explains(i, j, observations)
            for j, observations in enumerate(answers)
        )
        if same and fails == set(failed) and _has_content(sheet, answers):
            return [sheet.misconceptions[i] if j in fails else None for j in range(len(problems))]
        explained = {
            j
            for j in fails
            if i in answered_by[j] and _has_numbers(answers[j]) and not _is_unjudged(sheet, problems, j)
        }
        if explained:
            candidates.append((i, fails, explained))
    return _diagnose_groups(sheet, failed, candidates) or _diagnose_by_case(sheet, answers, failed) or nothing


def _diagnose_groups(
    sheet: Sheet, failed: Sequence[int], candidates: Sequence[tuple[int, set[int], set[int]]]
) -> list[Diagnosis | None]:
    """Return the diagnoses of one or two candidates that fail all failed rows, or all but side rows; else empty."""
    singles = [(one,) for one in candidates]
    every: list[tuple[tuple[int, set[int], set[int]], ...]] = [*singles, *combinations(candidates, 2)]
    groups = [group for group in every if set().union(*(fails for _, fails, _ in group)) == set(failed)]
    if not groups:
        numbers = {j for j in failed if not sheet.sections[j].side}
        groups = [
            group
            for group in every
            if numbers
            and all(numbers & explained for _, _, explained in group)
            and numbers <= set().union(*(fails for _, fails, _ in group))
        ]
    if not groups:
        return []
    # Prefer one mistake to two, then those with the subject's numbers in most rows.
    best = min(groups, key=lambda group: (len(group), -len(set().union(*(explained for _, _, explained in group)))))
    named: list[Diagnosis | None] = [None] * len(sheet.sections)
    for j in failed:
        explaining = [i for i, _, explained in best if j in explained]
        failing = [i for i, fails, _ in best if j in fails]
        if explaining or failing:
            named[j] = sheet.misconceptions[(explaining or failing)[0]]
    return named


def _has_content(sheet: Sheet, answers: Sequence[Answers]) -> bool:
    """Return whether any answer has outputs, or misfitting weights that its text describes."""
    return any(
        has_other_weights(observation) or (observation.outputs and request.action != "attributes")
        for section, of_section in zip(sheet.sections, answers, strict=True)
        for probe, observations in zip(section.probes, of_section, strict=True)
        for request, observation in zip(probe.requests, observations, strict=True)
    )


def _has_numbers(answers: Answers) -> bool:
    """Return whether the answers have outputs rather than only errors or counts."""
    return any(observation.outputs for observations in answers for observation in observations)


def _is_unjudged(sheet: Sheet, problems: Sequence[Problem | None], section: int) -> bool:
    """Return whether a side row failed only because of wrong results, which all mistakes have in common."""
    problem = problems[section]
    return problem is not None and sheet.sections[section].side and problem.about_numbers


@dataclass
class _Comparison:
    """A comparison of a known mistake with a candidate, by test case."""

    mistake: int  # its index
    # the questions (row, number) for which both have the same wrong numbers
    explained: set[tuple[int, int]] = field(default_factory=set)
    wrong: set[tuple[int, int]] = field(default_factory=set)  # the questions for which the mistake's numbers are wrong
    # the questions for which the candidate has other numbers
    against: set[tuple[int, int]] = field(default_factory=set)


def _diagnose_by_case(sheet: Sheet, answers: Sequence[Answers], failed: Sequence[int]) -> list[Diagnosis | None]:
    """Return the diagnoses of one or two mistakes that explain the candidate's numbers by test case; else empty."""
    questions = list(_cases_with_numbers(sheet, answers, failed))
    passed = [j for j, section in enumerate(sheet.sections) if j not in failed and not section.side]
    compared = (_compare(sheet, answers, questions, mistake) for mistake in range(len(sheet.misconceptions)))
    possible = [
        comparison
        for comparison in compared
        if comparison.explained and not any(sheet.mistake_fails(comparison.mistake, j) for j in passed)
    ]
    group: tuple[_Comparison, ...] = ()
    if singles := [comparison for comparison in possible if not comparison.against]:
        group = (max(singles, key=lambda comparison: len(comparison.explained)),)
    elif pairs := [pair for pair in combinations(possible, 2) if _explain_together(*pair)]:
        group = max(pairs, key=lambda pair: len(pair[0].explained | pair[1].explained))
    if not group:
        return []
    named: list[Diagnosis | None] = [None] * len(sheet.sections)
    for j in failed:
        counts = [sum(row == j for row, _ in comparison.explained) for comparison in group]
        if max(counts):
            named[j] = sheet.misconceptions[group[counts.index(max(counts))].mistake]
    return named


def _cases_with_numbers(sheet: Sheet, answers: Sequence[Answers], failed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the test cases of failed number rows that the candidate answers with a result."""
    for j in failed:
        section = sheet.sections[j]
        for number, (probe, observations, expected) in enumerate(
            zip(section.probes, answers[j], section.expected, strict=True)
        ):
            # The judge of shapes has the same request as that of the numbers.
            of_numbers = not section.side and probe.judge != "shapes"
            if of_numbers and all(a.outputs and not b.error for a, b in zip(observations, expected, strict=True)):
                yield j, number


def _compare(
    sheet: Sheet, answers: Sequence[Answers], questions: Sequence[tuple[int, int]], mistake: int
) -> _Comparison:
    comparison = _Comparison(mistake)
    for question in questions:
        j, number = question
        probe = sheet.sections[j].probes[number]
        names = probe.options.get("outputs") if probe.judge == "matches_part" else None
        of_mistake = sheet.answer(mistake, j, number)
        same = all(_have_same_numbers(a, b, names) for a, b in zip(answers[j][number], of_mistake, strict=True))
        key = mistake, j, number
        if key not in sheet.wrong_numbers:
            expected = sheet.sections[j].expected[number]
            sheet.wrong_numbers[key] = not all(
                _have_same_numbers(a, b, names) for a, b in zip(of_mistake, expected, strict=True)
            )
        wrong = sheet.wrong_numbers[key]
        if wrong:
            comparison.wrong.add(question)
        if not same:
            comparison.against.add(question)
            if not comparison.explained and len(comparison.against) > _MOST_AGAINST:
                break
        elif wrong:
            comparison.explained.add(question)
    return comparison


# A mistake that explains nothing after so many questions speak against it is not compared further.
_MOST_AGAINST = 8


def _explain_together(first: _Comparison, second: _Comparison) -> bool:
    """Return whether two mistakes explain all numbers: each case by one of them, unless both change the numbers."""
    if not (first.explained - second.wrong and second.explained - first.wrong):
        return False
    return (first.against & second.against) <= (first.wrong & second.wrong)


def _have_same_numbers(first: Observation, second: Observation, names: Sequence[str] | None) -> bool:
    """Return whether two answers have the same numbers, ignoring dtypes and containers."""
    if first.error or second.error:
        return False
    if first is second:
        return True
    try:
        if set(first.outputs) == set(second.outputs):
            return all(_have_same_value(first.outputs[name], second.outputs[name]) for name in names or first.outputs)
        if names or _count_numbers(first) != _count_numbers(second):
            return False
        flat = _flatten_numbers(first)
        return flat is not None and _have_same_value(flat, _flatten_numbers(second))
    except Exception:  # what a student returns may be made to break a comparison
        return False


def _have_same_value(first: Value, second: Value) -> bool:
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        if isinstance(first, float) and isinstance(second, int | float):
            return first == second or math.isclose(first, second, rel_tol=1e-4, abs_tol=1e-5)
        return type(first) is type(second) and bool(first == second)
    if explain_unreadable("", first) or explain_unreadable("", second) or first.shape != second.shape:
        return False
    dtype = _common_dtype(first, second)
    return tensors_agree(first.to(dtype), second.to(dtype), equal_nan=True)


def _common_dtype(first: Tensor, second: Tensor) -> torch.dtype:
    """Return the dtype for comparing two tensors: the coarser of theirs, at most single precision."""
    dtypes = [tensor.dtype for tensor in (first, second) if tensor.is_floating_point()]
    if not dtypes:
        return first.dtype if first.dtype == second.dtype else torch.int64
    return max((torch.float32, *dtypes), key=lambda dtype: choose_tolerance(dtype).absolute)


def _count_numbers(observation: Observation) -> int:
    return sum(value.numel() if isinstance(value, Tensor) else 1 for value in observation.outputs.values())


def _flatten_numbers(observation: Observation) -> Tensor | None:
    """Return all numbers of an answer as one flat tensor; None if it contains anything else."""
    values = list(observation.outputs.values())
    if _count_numbers(observation) > LARGEST:
        return None
    if not values or not all(isinstance(value, Tensor | int | float) for value in values):
        return None
    if any(explain_unreadable("", value) for value in values):
        return None
    if not any(isinstance(value, Tensor) for value in values):
        return torch.tensor(values, dtype=torch.float64)
    return torch.cat([torch.as_tensor(value).detach().cpu().flatten().double() for value in values])
