"""Define question sheets: all questions about one exercise, with the expected answers and those of the known mistakes.

Known mistakes are asked as little as possible, and compared by a fingerprint first. A submission that fails is compared with every known
mistake of the exercise. For each failed aspect a table holds the kind of thing that every mistake answers to the first question, and the
last number of it; only mistakes that this cannot tell from the student's answer are asked the other questions. Looking through the
answers themselves would cost a forked checker a copy of every memory page on which one of them lies.

A hidden sheet continues the visible one (`Sheet.plain`): its first questions, their right answers and the known mistakes' answers to them
are the visible sheet's own objects, made and judged once. Both have the same rules, drawn from the course's secret while grading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import torch
from torch import Tensor

from autograder.checking.example import example, which_case
from autograder.checking.hidden_messages import FORBIDDEN, WRONG
from autograder.checking.judges import (
    JUDGES,
    alike_at_a_glance,
    concerns_numbers,
    glance,
    has_other_weights,
    judge,
    same_answer,
)
from autograder.checking.request import OUT_OF_MEMORY, Observation
from autograder.checking.rows import Probe
from autograder.checking.subject import Subject, UsesReferenceError
from autograder.checking.verdict import FOLD, NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding, Verdict

RIGHT = "as it should be"
# Only the examined code itself interrupts a check, and then its calls so far are lost.
INTERRUPTED = "it raised KeyboardInterrupt while the check recorded which functions it calls"

# One list of observations per probe, one observation per request.
Answers: TypeAlias = Sequence[Sequence[Observation]]

# A question to a misconception: the indices of misconception, section and probe on a sheet.
Place: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Section:
    """One aspect's questions, ready to be asked.

    Attributes:
        aspect: the aspect's short name.
        title: what it asks, as a sentence.
        points: what it is worth.
        probes: the questions.
        expected: the reference's answers to them.
        visible: how many of the questions, the first ones, students have themselves; None if they have all.
        side: it asks for a manner, and pays in proportion to the rows of numbers that are right.
    """

    aspect: str
    title: str
    points: float
    probes: Sequence[Probe]
    expected: Answers
    visible: int | None = None
    side: bool = False


@dataclass(frozen=True)
class Sheet:
    """All the questions about one exercise.

    Attributes:
        exercise: name of the exercise.
        chapter: its chapter.
        rules: probes that must hold for any point to be given (forbidden functions).
        sections: the aspects.
        misconceptions: the known mistakes.
        ask_mistake: puts a question to a misconception; called only when something is wrong, and once for each question.
        plain: the sheet of the visible questions, if this one has others after them: who knows its answers knows them here.
    """

    exercise: str
    chapter: str
    rules: Sequence[Probe]
    sections: Sequence[Section]
    misconceptions: Sequence[Diagnosis]
    ask_mistake: Callable[[int, int, int], Sequence[Observation]]
    plain: Sheet | None = None

    def __post_init__(self) -> None:
        if self.plain is not None and self.plain.misconceptions != self.misconceptions:
            raise ValueError(f"{self.exercise}: the sheet of visible questions has other misconceptions; leave it away")

    @property
    def forbidden(self) -> list[str]:
        """The names of all functions that the exercise forbids."""
        return list(dict.fromkeys(name for rule in _forbidden(self) for name in rule.options["names"]))

    def with_rules(self, rules: Sequence[Probe]) -> Sheet:
        """Return the same questions with other rules; both sheets share the misconceptions' answers."""
        other = replace(self, rules=rules)
        vars(other).update(_answers=self._answers, _failed=self._failed, _glances=self._glances)
        return other

    def answer(self, mistake: int, section: int, probe: int) -> Sequence[Observation]:
        """Return a misconception's answers to one question."""
        key = mistake, section, probe
        sheet = self._asked(key)
        if key in sheet._answers:
            return sheet._answers[key]
        observations = sheet.ask_mistake(*key)
        # Running out of memory is no answer of the mistake.
        if not any(sign in (observation.error or "") for observation in observations for sign in OUT_OF_MEMORY):
            sheet._answers[key] = observations
        return observations

    def _asked(self, place: Place) -> Sheet:
        """Return the sheet that holds a question: the visible one, if it has it."""
        _, section, probe = place
        return self.plain if self.plain is not None and probe < len(self.plain.sections[section].probes) else self

    def answers_of(self, mistake: int, section: int) -> Answers:
        """Return a misconception's answers to one row's questions."""
        return [self.answer(mistake, section, probe) for probe in range(len(self.sections[section].probes))]

    def answered_by(self, section: int, answers: Answers) -> set[int]:
        """Return the misconceptions that give these answers to a row's questions, in the fields that the judges compare."""
        options = _looked_at(self.sections[section].probes[0])
        kinds, lasts = self._table(section)
        near = alike_at_a_glance(answers[0][0], kinds, lasts, **options)
        return {i for i in near.nonzero().flatten().tolist() if self.is_answered_by(i, section, answers)}

    def is_answered_by(self, mistake: int, section: int, answers: Answers) -> bool:
        """Return whether one misconception gives these answers."""
        return all(
            same_answer(x, y, **_looked_at(probe))
            for number, (probe, observations) in enumerate(zip(self.sections[section].probes, answers, strict=True))
            for x, y in zip(observations, self.answer(mistake, section, number), strict=True)
        )

    def is_failed_by(self, mistake: int, section: int) -> bool:
        """Return whether a misconception fails a row."""
        key = mistake, section
        if key not in self._failed:
            # Ask one question at a time, and stop after the first wrong answer.
            observations = (self.answer(mistake, section, probe) for probe in range(len(self.sections[section].probes)))
            self._failed[key] = _first_wrong(self.sections[section], observations) is not None
        return self._failed[key]

    def learn(self, answers: Mapping[Place, Sequence[Observation]]) -> None:
        """Add misconceptions' answers from another process, and compute the same derived data as there.

        Args:
            answers: their answers; an empty one is asked for again.
        """
        for key, observations in answers.items():
            if observations:
                self._answers.setdefault(key, observations)
            else:
                self.answer(*key)
        for section in {section for _, section, _ in answers}:
            if all(self._is_known((i, section, 0)) for i in range(len(self.misconceptions))):
                self._table(section)
        for mistake in {mistake for mistake, _, _ in answers}:
            if all(self._is_known((mistake, j, k)) for j, s in enumerate(self.sections) for k in range(len(s.probes))):
                for section in range(len(self.sections)):
                    self.is_failed_by(mistake, section)

    def _is_known(self, place: Place) -> bool:
        return place in self._asked(place)._answers

    def _table(self, section: int) -> tuple[Tensor, Tensor]:
        """Return the fingerprint of every misconception's answer to a row's first question.

        After a fork, reading the fingerprints copies far less memory than reading the answers.
        """
        if self.plain is not None:
            return self.plain._table(section)
        if section not in self._glances:
            options = _looked_at(self.sections[section].probes[0])
            glances = [glance(self.answer(i, section, 0)[0], **options) for i in range(len(self.misconceptions))]
            kinds, lasts = [kind for kind, _ in glances], [last for _, last in glances]
            self._glances[section] = (
                torch.tensor(kinds, dtype=torch.int64),
                torch.tensor(lasts, dtype=torch.float64),
            )
        return self._glances[section]

    @property
    def answered(self) -> Mapping[Place, Sequence[Observation]]:
        """The misconceptions' answers so far, in the order of the questions."""
        return self._answers

    @cached_property
    def _answers(self) -> dict[Place, Sequence[Observation]]:
        return {}

    @cached_property
    def _failed(self) -> dict[tuple[int, int], bool]:
        return {}

    @cached_property
    def _glances(self) -> dict[int, tuple[Tensor, Tensor]]:
        return {}


def ask(subject: Subject, aspects: Sequence[Sequence[Probe]], *, forbidden: Sequence[str] = ()) -> list[Answers]:
    """Ask a subject each row's probes and return the answers."""
    # All at once: if the subject is in another process, each request costs a round trip.
    groups = [[request for probe in probes for request in probe.requests] for probes in aspects]
    iterators = map(iter, subject.observe_groups(groups, forbidden=forbidden))
    return [
        [[next(observations) for _ in probe.requests] for probe in probes]
        for probes, observations in zip(aspects, iterators, strict=True)
    ]


@dataclass(frozen=True)
class Heard:
    """A subject's answers to a sheet.

    Attributes:
        refusal: why it is refused before anything else is asked, or None.
        answers: its answers, a list for each section; none if it is refused.
    """

    refusal: str | None = None
    answers: Sequence[Answers] = ()


def decide(sheet: Sheet, subject: Subject) -> Verdict:
    """Check a subject against a question sheet and return the verdict."""
    return reach(sheet, hear(sheet, subject))


def first_failure(sheet: Sheet, subject: Subject) -> str | None:
    """Return the first section that a subject fails, or ``"rules"``; None if it gets all the points.

    It stops at the first wrong answer, so it is much faster than a verdict.
    """
    if _broken_rule(sheet, subject):
        return "rules"
    for section in sheet.sections:
        observations: list[Sequence[Observation]] = []
        if _problem(section, _asked_one_by_one(subject, section, observations)) is not None:
            return section.aspect
        if _refused(observations, _forbidden(sheet)):
            return "rules"
    return None


def _asked_one_by_one(
    subject: Subject, section: Section, given: list[Sequence[Observation]]
) -> Iterator[Sequence[Observation]]:
    for probe in section.probes:
        given.append(ask(subject, [[probe]])[0][0])
        yield given[-1]


def hear(sheet: Sheet, subject: Subject) -> Heard:
    """Ask a subject all questions of a sheet and return the answers."""
    if refusal := _broken_rule(sheet, subject):
        return Heard(refusal)
    return Heard(answers=ask(subject, [section.probes for section in sheet.sections], forbidden=sheet.forbidden))


def reach(sheet: Sheet, heard: Heard) -> Verdict:
    """Judge answers and return the verdict, which depends on them only."""
    answers = heard.answers
    refusal = heard.refusal or _refused_later(sheet, answers)
    if refusal:
        return _verdict(sheet, [Problem(refusal)] * len(sheet.sections), [None] * len(sheet.sections))
    problems = [_problem(section, observations) for section, observations in zip(sheet.sections, answers, strict=True)]
    return _verdict(sheet, problems, diagnose(sheet, answers, problems))


def _forbidden(sheet: Sheet) -> list[Probe]:
    return [probe for probe in sheet.rules if probe.options.get("names")]


def _broken_rule(sheet: Sheet, subject: Subject) -> str | None:
    (answers,) = ask(subject, [sheet.rules], forbidden=sheet.forbidden)
    for probe, observations in zip(sheet.rules, answers, strict=True):
        if any(observation.unfinished for observation in observations):
            return NOT_WRITTEN
        if any((observation.error or "").startswith(KeyboardInterrupt.__name__) for observation in observations):
            return INTERRUPTED
        if refusal := _refused([observations], [probe]):
            return refusal
    return None


def _refused(answers: Answers, rules: Sequence[Probe]) -> str | None:
    """Return the rule that a subject broke, even in a failing answer, or None."""
    flat = [observation for observations in answers for observation in observations]
    broken = (JUDGES[rule.judge](flat, flat, rule.options) for rule in rules)
    return _borrowed(answers) or next(filter(None, broken), None)


def _refused_later(sheet: Sheet, answers: Sequence[Answers]) -> str | None:
    """Return the rule that was broken in the rows' questions. Hidden ones are not named, because a subject could choose its calls."""
    rules = _forbidden(sheet)
    visible = [observations[: section.visible] for section, observations in zip(sheet.sections, answers, strict=True)]
    if refusal := next(filter(None, (_refused(observations, rules) for observations in visible)), None):
        return refusal
    return FORBIDDEN if any(_refused(observations, rules) for observations in answers) else None


def _borrowed(answers: Answers) -> str | None:
    """Return where a subject ran the course's own solution."""
    errors = (observation.error or "" for observations in answers for observation in observations)
    return next((error.partition(": ")[2] for error in errors if error.startswith(UsesReferenceError.__name__)), None)


@dataclass(frozen=True)
class Problem:
    """The failure of one section.

    Attributes:
        message: what was seen, in a sentence.
        example: a question that was missed, where students may know it.
        case: which of a row's cases it is, where students may know it and there are several.
        about_numbers: whether it is that a result is wrong, and not a manner.
    """

    message: str
    example: str = ""
    case: str = ""
    about_numbers: bool = False


def _first_wrong(
    section: Section, answers: Iterable[Sequence[Observation]]
) -> tuple[int, Sequence[Observation], str] | None:
    """Return the first question with a wrong answer: its index, the answers, and the judge's message."""
    for number, (probe, observations, expected) in enumerate(
        zip(section.probes, answers, section.expected, strict=True)
    ):
        if all(answer is reference for answer, reference in zip(observations, expected, strict=True)):
            continue  # the right answers themselves, identified by their bytes
        problem = judge(probe.judge, observations, expected, probe.options)
        if problem is not None:
            return number, observations, problem
    return None


def _problem(section: Section, answers: Iterable[Sequence[Observation]]) -> Problem | None:
    failure = _first_wrong(section, answers)
    if failure is None:
        return None
    number, observations, message = failure
    if section.visible is not None and number >= section.visible:
        return Problem(WRONG)
    probe, expected = section.probes[number], section.expected[number]
    about_numbers = concerns_numbers(probe.judge, probe.requests, observations, expected)
    case = which_case([one.requests[0] for one in section.probes[: section.visible]], probe.requests[0])
    return Problem(message, _example(probe, observations, expected), case, about_numbers)


def _example(probe: Probe, given: Sequence[Observation], wanted: Sequence[Observation]) -> str:
    if probe.judge not in ("matches", "matches_part", "shapes", "answers"):
        return ""
    try:
        return example(probe.judge, probe.requests, given, wanted, probe.options)
    except Exception:  # what a student returns may be made to break a comparison
        return ""


def _verdict(sheet: Sheet, problems: Sequence[Problem | None], diagnoses: Sequence[Diagnosis | None]) -> Verdict:
    pairs = list(zip(sheet.sections, problems, strict=True))
    numbers = [(section.points, problem is None) for section, problem in pairs if not section.side]
    all_points, right_points = sum(points for points, _ in numbers), sum(points for points, right in numbers if right)
    share = right_points / all_points if all_points else 1.0
    messages = Counter(problem.message for problem in problems if problem)
    findings = []
    for (section, problem), diagnosis in zip(pairs, diagnoses, strict=True):
        earned = 0.0 if problem else round(section.points * (share if section.side else 1.0), 2)
        message = RIGHT if share == 1 or not section.side else _reduced(right_points, all_points)
        unjudged = problem is not None and section.side and problem.about_numbers and share < 1
        if problem is not None:
            # A message that several rows share is shown once.
            case = problem.case if messages[problem.message] < FOLD else ""
            message = NOT_JUDGED if unjudged else f"{case}{problem.message}"
        findings.append(
            Finding(
                aspect=section.aspect,
                title=section.title,
                points=section.points,
                passed=problem is None,
                message=message,
                diagnosis=diagnosis,
                earned=earned,
                example=problem.example if problem and not unjudged else "",
            )
        )
    return Verdict(exercise=sheet.exercise, chapter=sheet.chapter, findings=tuple(findings))


def _reduced(right: float, points: float) -> str:
    """Return why a passed side row does not earn all its points."""
    return f"correct; pays by the share of right numbers, {right:g} of {points:g} points" if right else NOT_JUDGED


def diagnose(sheet: Sheet, answers: Sequence[Answers], problems: Sequence[Problem | None]) -> list[Diagnosis | None]:
    """Diagnose the known mistakes behind the failed rows, so that the diagnosis agrees with the answers.

    A mistake that answers every question as the subject does, visible and hidden, is named alone, unless all that they have in common is
    that they crash, which may have any cause. Otherwise one or two are named if each gives the subject's very numbers in a failed row (in a
    side row: what is looked at there), fails no row that the subject passed, and together they fail all failed rows. If no such mistakes
    are known, side rows may fail for another reason: a student who has also forgotten the errors still gets the diagnosis of the numbers.
    """
    nothing: list[Diagnosis | None] = [None] * len(problems)
    failed = [j for j, problem in enumerate(problems) if problem is not None]
    if not failed or all(problem is not None and problem.message == NOT_WRITTEN for problem in problems):
        return nothing
    # Asking a mistake takes time, so stop at its first different answer.
    answered_by = {j: sheet.answered_by(j, answers[j]) for j in failed}
    candidates = []
    for i in sorted(set().union(*answered_by.values())):
        if any(j not in answered_by and sheet.is_failed_by(i, j) for j in range(len(problems))):
            continue  # it fails what the subject passed
        fails = {j for j in failed if sheet.is_failed_by(i, j)}
        same = all(
            i in answered_by[j] if j in answered_by else sheet.is_answered_by(i, j, observations)
            for j, observations in enumerate(answers)
        )
        if same and fails == set(failed) and _shows_something(sheet, answers):
            return [sheet.misconceptions[i] if j in fails else None for j in range(len(problems))]
        explained = {
            j for j in fails if i in answered_by[j] and _has_numbers(answers[j]) and not _unjudged(sheet, problems, j)
        }
        if explained:
            candidates.append((i, fails, explained))
    return _together(sheet, failed, candidates) or nothing


def _together(
    sheet: Sheet, failed: Sequence[int], candidates: Sequence[tuple[int, set[int], set[int]]]
) -> list[Diagnosis | None]:
    """Return the diagnoses of the one or two candidates that fail all failed rows, or all but side rows; an empty list if none do."""
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


def _looked_at(probe: Probe) -> dict[str, bool]:
    """Return the options of :func:`same_answer` for the fields that the probe's judge compares."""
    return {
        "damage": probe.judge == "unmutated",
        "hold": probe.judge == "detached",
        "refusal": probe.judge == "answers",
    }


def _shows_something(sheet: Sheet, answers: Sequence[Answers]) -> bool:
    """Return whether any answer has outputs, or misfitting weights that its text describes."""
    return any(
        has_other_weights(observation) or (observation.outputs and request.action != "attributes")
        for section, of_section in zip(sheet.sections, answers, strict=True)
        for probe, observations in zip(section.probes, of_section, strict=True)
        for request, observation in zip(probe.requests, observations, strict=True)
    )


def _has_numbers(answers: Answers) -> bool:
    """Return whether the answers have outputs, and not only errors or counts."""
    return any(observation.outputs for observations in answers for observation in observations)


def _unjudged(sheet: Sheet, problems: Sequence[Problem | None], section: int) -> bool:
    """Return whether a side row failed only because the result is wrong, which all mistakes have in common."""
    problem = problems[section]
    return problem is not None and sheet.sections[section].side and problem.about_numbers
