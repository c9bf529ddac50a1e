"""Gather evidence for exam questions: run the code of every known mistake as it is shown, and store its answers and verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from autograder.checking.decision import collect_answers, judge_answers
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.judges import is_same_answer
from autograder.checking.request import Observation
from autograder.checking.sheet import Answers, Sheet
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Verdict
from autograder.mistakes.source_edits import EditError
from autograder.quizzes.exam.inputs import ExamInput, exam_inputs
from autograder.quizzes.exam.shown_code import ShownCode, right_code, wrong_code
from autograder.quizzes.questions.inputs import result_text

#: The reason to leave out a known mistake whose code can be shown but is diagnosed differently.
NOT_CONFIRMED = "the check of the shown code does not name exactly this mistake"


@dataclass(frozen=True, eq=False)
class ShownMistake:
    """A known mistake, with its code for an exam; the check of this code diagnoses exactly this mistake."""

    mistake: Misconception  # the known mistake
    code: ShownCode  # the code with the mistake
    verdict: Verdict  # the verdict of the visible check
    answers: Sequence[Answers]  # the code's answers to the visible check
    candidate: Callable[..., Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The confirmed known mistakes of an exercise, with their code and answers."""

    exercise: Exercise
    right: ShownCode  # the right code
    mistakes: tuple[ShownMistake, ...]  # the confirmed known mistakes
    left_out: Mapping[str, str]  # the other known mistakes by name, with the reason
    secret: int = 0  # the seed of the hidden tests that no question may show
    _inputs: dict[object, Sequence[InputResult]] = field(default_factory=dict)

    def restrict_to(self, mistakes: Sequence[ShownMistake]) -> Evidence:
        """Return the evidence restricted to some of the mistakes."""
        return replace(self, mistakes=tuple(mistakes), _inputs={})

    def run_inputs(self, seed: object, version: int) -> Sequence[InputResult]:
        """Run the right code and each mistake on the inputs of one version, with a cache, and return the answers."""
        key = seed, version
        if key not in self._inputs:
            self._inputs[key] = self._run_inputs(exam_inputs(self.exercise, seed, version, secret=self.secret))
        return self._inputs[key]

    def _run_inputs(self, inputs: Sequence[ExamInput]) -> list[InputResult]:
        right = LocalSubject(self.exercise.reference)
        subjects = [LocalSubject(one.candidate) for one in self.mistakes]
        return [
            InputResult(one, right.observe(one.request), tuple(subject.observe(one.request) for subject in subjects))
            for one in inputs
        ]

    @cached_property
    def sheet(self) -> Sheet:
        """The sheet of the exercise's visible tests."""
        return self.exercise.sheet()

    def find_difference(self, one: ShownMistake, other: Misconception) -> str:
        """Return the title of the first row of the visible check in which two mistakes give different answers.

        An empty title means that the mistakes have equal answers, so that the second one is not refuted.
        """
        index = next(i for i, item in enumerate(self.exercise.misconceptions) if item is other)
        for number, (section, answers) in enumerate(zip(self.sheet.sections, one.answers, strict=True)):
            if not self.sheet.mistake_explains(index, number, answers):
                return section.title
        return ""


@dataclass(frozen=True)
class InputResult:
    """The answers of the right code and of each mistake to one input."""

    input: ExamInput
    right: Observation  # the right answer
    wrong: tuple[Observation, ...]  # the answer of each mistake, in the order of the evidence

    def shows(self, mistake: int) -> bool:
        """Return whether a mistake's answer differs from the right one."""
        return not is_same_answer(self.right, self.wrong[mistake])

    def has_equal_text(self, mistake: int) -> bool:
        """Return whether a mistake's answer differs from the right one but has the same text, for example because of rounding."""
        return self.shows(mistake) and answer_text(self.right) == answer_text(self.wrong[mistake]) != ""


def answer_text(answer: Observation) -> str:
    """Return an answer as a short text: the result, or the type of the error; empty for a long result."""
    if answer.error:
        return f"{answer.error.partition(':')[0]} is raised"
    return result_text(answer)


def gather_evidence(exercise: Exercise, *, secret: int = 0) -> Evidence:
    """Check the code of every known mistake of an exercise, as it is shown, with all visible and hidden tests.

    Args:
        secret: the seed of the hidden tests that no question may show.
    """
    right, found, left_out = right_code(exercise), [], {}
    for mistake in exercise.misconceptions:
        try:
            confirmed = confirm_mistake(exercise, mistake, wrong_code(exercise, mistake))
            reason = NOT_CONFIRMED
        except EditError as error:
            confirmed, reason = None, str(error)
        if confirmed is None:
            left_out[mistake.name] = reason
        else:
            found.append(confirmed)
    return Evidence(exercise, right, tuple(found), left_out, secret)


def confirm_mistake(exercise: Exercise, mistake: Misconception, code: ShownCode) -> ShownMistake | None:
    """Check a mistake's shown code, and return the mistake with its answers; None if the diagnosis is not exactly this mistake.

    Raises:
        EditError: if the shown code does not run.
    """
    candidate = code.load()
    collected = collect_answers(exercise.sheet(hidden=True), LocalSubject(candidate))
    visible = exercise.sheet()
    if collected.refusal is not None or diagnosed_names(judge_answers(exercise.sheet(hidden=True), collected)) != [
        mistake.name
    ]:
        return None
    shown = [
        answers[: len(section.probes)] for answers, section in zip(collected.answers, visible.sections, strict=True)
    ]
    verdict = judge_answers(visible, type(collected)(answers=shown))
    if diagnosed_names(verdict) != [mistake.name]:
        return None
    return ShownMistake(mistake, code, verdict, shown, candidate)


def diagnosed_names(verdict: Verdict) -> list[str]:
    """Return the distinct names of the mistakes that a verdict diagnoses."""
    found = [finding.diagnosis.name for finding in verdict.findings if finding.diagnosis is not None]
    return list(dict.fromkeys(found))
