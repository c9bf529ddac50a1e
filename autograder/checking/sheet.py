"""Define sheets: all test cases of one exercise, with the expected answers and the known mistakes' answers.

The known mistakes' answers are computed when they are needed, and compared by a fingerprint first. For each row a table holds the kind of
every mistake's answer to the first question, and its last number. Only mistakes that this table cannot distinguish from the student's
answer answer the other questions. Reading the answers themselves would cost a forked checker a copy of every memory page that holds one.

A hidden sheet continues the visible one (`Sheet.plain`): its first questions, their right answers and the known mistakes' answers to them
are the visible sheet's own objects, made and judged once. Both have the same rules, drawn from the course's secret while grading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from autograder.checking.judges import fingerprint_answer, is_same_answer, judge, match_fingerprints
from autograder.checking.request import OUT_OF_MEMORY, Observation
from autograder.checking.rows import Probe
from autograder.checking.subject import Subject
from autograder.checking.verdict import Diagnosis

# One list of observations per probe, one observation per request.
Answers: TypeAlias = Sequence[Sequence[Observation]]

# A question to a misconception: the indices of misconception, section and probe on a sheet.
Place: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Section:
    """The test cases of one row."""

    aspect: str  # the aspect's short name
    title: str  # what it asks, as a sentence
    points: float  # what it is worth
    probes: Sequence[Probe]  # the questions
    expected: Answers  # the reference's answers to them
    # how many of the questions, the first ones, students have themselves; None if they have all
    visible: int | None = None
    side: bool = False  # it asks for a manner, and pays in proportion to the rows of numbers that are right


@dataclass(frozen=True)
class Sheet:
    """All test cases of one exercise."""

    exercise: str  # name of the exercise
    chapter: str
    rules: Sequence[Probe]  # probes that must hold for any point to be given (forbidden functions)
    sections: Sequence[Section]  # the aspects
    misconceptions: Sequence[Diagnosis]  # the known mistakes
    # puts a question to a misconception; called only when something is wrong, and once for each question
    ask_mistake: Callable[[int, int, int], Sequence[Observation]]
    # the sheet of the visible tests, if this sheet continues it: its answers are this sheet's first answers
    plain: Sheet | None = None

    def __post_init__(self) -> None:
        if self.plain is not None and self.plain.misconceptions != self.misconceptions:
            raise ValueError(f"{self.exercise}: the sheet of visible tests has other misconceptions; omit it")

    @property
    def forbidden(self) -> list[str]:
        """The names of all functions that the exercise forbids."""
        return list(dict.fromkeys(name for rule in self.rules for name in rule.options.get("names", ())))

    def with_rules(self, rules: Sequence[Probe]) -> Sheet:
        """Return the sheet with other rules; both sheets share the known mistakes' answers."""
        other = replace(self, rules=rules)
        vars(other).update(_answers=self._answers, _failed=self._failed, _fingerprint_cache=self._fingerprint_cache)
        return other

    def answer(self, mistake: int, section: int, probe: int) -> Sequence[Observation]:
        """Return a known mistake's answers to one test case."""
        key = mistake, section, probe
        sheet = self._owning_sheet(key)
        if key in sheet._answers:
            return sheet._answers[key]
        observations = sheet.ask_mistake(*key)
        # Running out of memory is not an answer of the mistake.
        if not any(sign in (observation.error or "") for observation in observations for sign in OUT_OF_MEMORY):
            sheet._answers[key] = observations
        return observations

    def _owning_sheet(self, key: Place) -> Sheet:
        """Return the sheet that stores a test case's answers: the visible one, if it has the case."""
        _, section, probe = key
        return self.plain if self.plain is not None and probe < len(self.plain.sections[section].probes) else self

    def list_mistake_answers(self, mistake: int, section: int) -> Answers:
        """Return a known mistake's answers to one row's test cases."""
        return [self.answer(mistake, section, probe) for probe in range(len(self.sections[section].probes))]

    def find_mistakes_giving(self, section: int, answers: Answers) -> set[int]:
        """Return the known mistakes that give these answers to a row, in the fields that the judges compare."""
        options = compared_fields(self.sections[section].probes[0])
        kinds, lasts = self._mistake_fingerprints(section)
        near = match_fingerprints(answers[0][0], kinds, lasts, **options)
        return {i for i in near.nonzero().flatten().tolist() if self.mistake_explains(i, section, answers)}

    def mistake_explains(self, mistake: int, section: int, answers: Answers) -> bool:
        """Return whether a known mistake gives these answers."""
        return all(
            is_same_answer(x, y, **compared_fields(probe))
            for number, (probe, observations) in enumerate(zip(self.sections[section].probes, answers, strict=True))
            for x, y in zip(observations, self.answer(mistake, section, number), strict=True)
        )

    def mistake_fails(self, mistake: int, section: int) -> bool:
        """Return whether a known mistake fails a row."""
        key = mistake, section
        if key not in self._failed:
            # Ask one question at a time, and stop after the first wrong answer.
            observations = (self.answer(mistake, section, probe) for probe in range(len(self.sections[section].probes)))
            self._failed[key] = find_first_wrong(self.sections[section], observations) is not None
        return self._failed[key]

    def add_answers(self, answers: Mapping[Place, Sequence[Observation]]) -> None:
        """Add known mistakes' answers from another process, and compute the same derived data.

        Args:
            answers: their answers; an empty one is computed again.
        """
        for key, observations in answers.items():
            if observations:
                self._answers.setdefault(key, observations)
            else:
                self.answer(*key)
        for section in {section for _, section, _ in answers}:
            if all(self._is_known((i, section, 0)) for i in range(len(self.misconceptions))):
                self._mistake_fingerprints(section)
        for mistake in {mistake for mistake, _, _ in answers}:
            if all(self._is_known((mistake, j, k)) for j, s in enumerate(self.sections) for k in range(len(s.probes))):
                for section in range(len(self.sections)):
                    self.mistake_fails(mistake, section)

    def _is_known(self, key: Place) -> bool:
        return key in self._owning_sheet(key)._answers

    def _mistake_fingerprints(self, section: int) -> tuple[Tensor, Tensor]:
        """Return the fingerprint of every known mistake's answer to a row's first test case.

        After a fork, reading the fingerprints copies far less memory than reading the answers.
        """
        if self.plain is not None:
            return self.plain._mistake_fingerprints(section)
        if section not in self._fingerprint_cache:
            options = compared_fields(self.sections[section].probes[0])
            glances = [
                fingerprint_answer(self.answer(i, section, 0)[0], **options) for i in range(len(self.misconceptions))
            ]
            kinds, lasts = [kind for kind, _ in glances], [last for _, last in glances]
            self._fingerprint_cache[section] = (
                torch.tensor(kinds, dtype=torch.int64),
                torch.tensor(lasts, dtype=torch.float64),
            )
        return self._fingerprint_cache[section]

    @property
    def computed_answers(self) -> Mapping[Place, Sequence[Observation]]:
        """The known mistakes' answers so far, in the order in which they were computed."""
        return self._answers

    @cached_property
    def _answers(self) -> dict[Place, Sequence[Observation]]:
        return {}

    @cached_property
    def _failed(self) -> dict[tuple[int, int], bool]:
        return {}

    @cached_property
    def wrong_numbers(self) -> dict[Place, bool]:
        """Whether a known mistake's numbers are wrong, for the test cases that diagnoses have needed so far."""
        return {}

    @cached_property
    def _fingerprint_cache(self) -> dict[int, tuple[Tensor, Tensor]]:
        return {}


def run_probes(subject: Subject, aspects: Sequence[Sequence[Probe]], *, forbidden: Sequence[str] = ()) -> list[Answers]:
    """Run each row's probes on a subject and return the answers."""
    # All at once: if the subject is in another process, each request costs a round trip.
    groups = [[request for probe in probes for request in probe.requests] for probes in aspects]
    iterators = map(iter, subject.observe_groups(groups, forbidden=forbidden))
    return [
        [[next(observations) for _ in probe.requests] for probe in probes]
        for probes, observations in zip(aspects, iterators, strict=True)
    ]


def compared_fields(probe: Probe) -> dict[str, bool]:
    """Return the options of :func:`is_same_answer` for the fields that the probe's judge compares."""
    return {
        "damage": probe.judge == "unmutated",
        "hold": probe.judge == "detached",
        "refusal": probe.judge == "answers",
    }


def find_first_wrong(
    section: Section, answers: Iterable[Sequence[Observation]]
) -> tuple[int, Sequence[Observation], str] | None:
    """Return the first test case with a wrong answer: its index, the answers, and the judge's message."""
    for number, (probe, observations, expected) in enumerate(
        zip(section.probes, answers, section.expected, strict=True)
    ):
        if all(answer is reference for answer, reference in zip(observations, expected, strict=True)):
            continue  # the right answers themselves, identified by their bytes
        problem = judge(probe.judge, observations, expected, probe.options)
        if problem is not None:
            return number, observations, problem
    return None
