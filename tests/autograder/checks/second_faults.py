"""Combine known mistakes with a second fault: change the answers of a mistake as the fault would change them.

``python -m tests.autograder.checks.second_faults`` prints how many diagnoses each fault silences.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from autograder.checking.decision import CollectedAnswers, judge_answers
from autograder.checking.exercise import Exercise
from autograder.checking.judges import judge
from autograder.checking.request import Observation, Request, Value, flatten_outputs, map_value
from autograder.checking.rows import Probe
from autograder.checking.sheet import Answers, Section, Sheet
from autograder.checks import exercises

# Changes the answers to a sheet; None if the fault cannot occur there.
Fault: TypeAlias = Callable[[Sheet, Sequence[Answers]], Sequence[Answers] | None]


def _in_numbers(
    sheet: Sheet, answers: Sequence[Answers], change: Callable[[Observation], Observation]
) -> list[Answers]:
    """Change the answers to all questions that compute something, in every row."""

    def changed(request: Request, observation: Observation) -> Observation:
        return change(observation) if request.action in ("call", "gradients") and not observation.error else observation

    return [
        [
            [changed(request, observation) for request, observation in zip(probe.requests, observations, strict=True)]
            for probe, observations in zip(section.probes, row, strict=True)
        ]
        for section, row in zip(sheet.sections, answers, strict=True)
    ]


def everything_in_float32(sheet: Sheet, answers: Sequence[Answers]) -> Sequence[Answers] | None:
    """It computes in single precision and returns that, whatever comes in."""

    def single(value: Value) -> Value:
        return map_value(value, lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    changed = _in_numbers(sheet, answers, lambda each: replace(each, outputs=single(dict(each.outputs))))
    return changed if _fails_more(sheet, answers, changed) else None


def lists_for_tensors(sheet: Sheet, answers: Sequence[Answers]) -> Sequence[Answers] | None:
    """It returns a list where a tensor is expected, so that there is no gradient either."""

    def listed(observation: Observation) -> Observation:
        if any(name.startswith("gradient") for name in observation.outputs):
            return Observation(error="WrongResultError: the result is a list")
        outputs: dict[str, Value] = {}
        for name, value in observation.outputs.items():
            outputs |= flatten_outputs(value.tolist(), name) if isinstance(value, Tensor) else {name: value}
        return replace(observation, outputs=outputs)

    if not any(isinstance(value, Tensor) for value in sheet.sections[0].expected[0][0].outputs.values()):
        return None
    return _in_numbers(sheet, answers, listed)


def an_exception_beside(sheet: Sheet, answers: Sequence[Answers]) -> Sequence[Answers] | None:
    """It raises an exception for one of the inputs of a failed row of numbers."""
    for j, (section, row) in enumerate(zip(sheet.sections, answers, strict=True)):
        if section.side:
            continue
        wrong = list(_wrong_numbers(section, row))
        inputs = {_input(section.probes[number].requests[0]) for number in wrong}
        if len(inputs) < 2:
            continue
        crashes = _input(section.probes[wrong[-1]].requests[0])
        error = Observation(error="RuntimeError: the size of tensor a must match the size of tensor b")
        changed = list(answers)
        changed[j] = [
            [
                error if _input(request) == crashes else each
                for request, each in zip(probe.requests, of_probe, strict=True)
            ]
            for probe, of_probe in zip(section.probes, row, strict=True)
        ]
        return changed
    return None


def no_errors_raised(sheet: Sheet, answers: Sequence[Answers]) -> Sequence[Answers] | None:
    """It accepts input that must be refused."""
    changed = [
        [
            [
                replace(each, error=None, outputs={"output": 0.0}) if reference.error else each
                for each, reference in zip(of_probe, expected, strict=True)
            ]
            for of_probe, expected in zip(row, section.expected, strict=True)
        ]
        for section, row in zip(sheet.sections, answers, strict=True)
    ]
    return changed if _fails_more(sheet, answers, changed) else None


def not_on_the_device(sheet: Sheet, answers: Sequence[Answers]) -> Sequence[Answers] | None:
    """It makes a tensor on the CPU, whichever device the inputs are on."""
    error = Observation(error="RuntimeError: Expected all tensors to be on the same device")
    changed = [
        [
            [
                error if request.action == "meta" else each
                for request, each in zip(probe.requests, of_probe, strict=True)
            ]
            for probe, of_probe in zip(section.probes, row, strict=True)
        ]
        for section, row in zip(sheet.sections, answers, strict=True)
    ]
    return changed if _fails_more(sheet, answers, changed) else None


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (everything_in_float32, lists_for_tensors, an_exception_beside, no_errors_raised, not_on_the_device)
}


ANOTHER = "another_known_mistake"


def _both(sheet: Sheet, first: Sequence[Answers], second: Sequence[Answers]) -> Sequence[Answers] | None:
    """Combine two mistakes: each decides the questions that it alone answers wrongly, and where both do, the numbers are new ones.

    None if one of them is alone nowhere.
    """
    alone: set[bool] = set()

    def combined(
        probe: Probe, a: Sequence[Observation], b: Sequence[Observation], expected: Sequence[Observation]
    ) -> Sequence[Observation]:
        wrong = _fails(probe, a, expected), _fails(probe, b, expected)
        if all(wrong):
            return [replace(each, outputs=map_value(dict(each.outputs), _other_numbers)) for each in a]
        if any(wrong):
            alone.add(wrong[0])
        return a if wrong[0] else b if wrong[1] else expected

    answers = [
        [combined(*of_probe) for of_probe in zip(section.probes, a, b, section.expected, strict=True)]
        for section, a, b in zip(sheet.sections, first, second, strict=True)
    ]
    return answers if len(alone) == 2 else None


def _other_numbers(tensor: Tensor) -> Tensor:
    return 1.37 * tensor + 0.1 if tensor.is_floating_point() else tensor


def _input(request: Request) -> int:
    return id(request.arguments)


def _wrong_numbers(section: Section, row: Answers) -> Iterator[int]:
    for number, (probe, answers, expected) in enumerate(zip(section.probes, row, section.expected, strict=True)):
        if answers[0].outputs and judge(probe.judge, answers, expected, probe.options):
            yield number


def _fails(probe: Probe, answers: Sequence[Observation], expected: Sequence[Observation]) -> bool:
    return judge(probe.judge, answers, expected, probe.options) is not None


def _fails_more(sheet: Sheet, before: Sequence[Answers], after: Sequence[Answers]) -> bool:
    """Return whether some answer is wrong only after the change."""
    return any(
        not _fails(probe, old, expected) and _fails(probe, new, expected)
        for section, of_section, changed in zip(sheet.sections, before, after, strict=True)
        for probe, old, new, expected in zip(section.probes, of_section, changed, section.expected, strict=True)
    )


@dataclass(frozen=True)
class Survival:
    """What became of one diagnosis.

    Attributes:
        exercise: the exercise.
        mistake: the known mistake.
        fault: the second fault.
        named: the mistakes that the verdict names, with the second fault.
        other: the second mistake, if the second fault is a known mistake.
    """

    exercise: str
    mistake: str
    fault: str
    named: frozenset[str]
    other: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the mistake is still named, or the second one if that is a known mistake too."""
        return self.mistake in self.named or self.other in self.named


def survivals(exercise: Exercise) -> Iterator[Survival]:
    """Yield what becomes of each diagnosis of an exercise under each second fault that can occur."""
    sheet, draw = exercise.sheet(), random.Random(exercise.name)
    for number, mistake in enumerate(exercise.misconceptions):
        if mistake.kind == "manner":
            continue
        answers = [sheet.list_mistake_answers(number, section) for section in range(len(sheet.sections))]
        if mistake.name not in named_mistakes(sheet, answers):
            continue
        for name, fault in FAULTS.items():
            if (changed := fault(sheet, answers)) is not None:
                yield Survival(exercise.name, mistake.name, name, named_mistakes(sheet, changed))
        other = draw.randrange(len(exercise.misconceptions))
        others = [sheet.list_mistake_answers(other, section) for section in range(len(sheet.sections))]
        if exercise.misconceptions[other].kind != "manner" and (both := _both(sheet, answers, others)) is not None:
            yield Survival(
                exercise.name, mistake.name, ANOTHER, named_mistakes(sheet, both), exercise.misconceptions[other].name
            )


def named_mistakes(sheet: Sheet, answers: Sequence[Answers]) -> frozenset[str]:
    """Return the known mistakes that the verdict on these answers names."""
    verdict = judge_answers(sheet, CollectedAnswers(answers=answers))
    return frozenset(finding.diagnosis.name for finding in verdict.findings if finding.diagnosis)


def main() -> None:
    """Print how many diagnoses each second fault silences or replaces."""
    torch.set_num_threads(1)
    found = [survival for exercise in exercises().values() for survival in survivals(exercise)]
    for name in (*FAULTS, ANOTHER):
        of_fault = [survival for survival in found if survival.fault == name]
        silent = [survival for survival in of_fault if not survival.named]
        other = [survival for survival in of_fault if survival.named and not survival.is_kept]
        print(f"{name}: {len(of_fault)} diagnoses, {len(silent)} silenced, {len(other)} replaced")
        for survival in [*silent, *other][:40]:
            print(f"  {survival.exercise}: {survival.mistake} → {', '.join(sorted(survival.named)) or 'nothing'}")


if __name__ == "__main__":
    main()
