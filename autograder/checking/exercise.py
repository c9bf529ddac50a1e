"""Declare the check of an exercise."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any, get_type_hints

from autograder.checking.draw import Draw
from autograder.checking.judges import has_other_weights
from autograder.checking.request import Observation, Request
from autograder.checking.rows import Maker, Probe, Row
from autograder.checking.sheet import Answers, Section, Sheet, run_probes
from autograder.checking.subject import LocalSubject, Subject, pytorch_defaults
from autograder.checking.verdict import Diagnosis

# Rounds of hidden questions besides the visible round; every round draws new sizes and numbers.
HIDDEN_ROUNDS = 1


# The least and greatest share of points for a mistake, by class: points follow what breaks for a user of the function.
BANDS: Mapping[str, tuple[float, float]] = {
    "nothing": (0.0, 0.10),
    "wrong": (0.0, 0.40),
    "option": (0.60, 0.75),
    "rare option": (0.75, 0.85),
    "edge": (0.80, 0.95),
    "manner": (0.80, 0.95),
}


@dataclass(frozen=True)
class Misconception:
    """A known mistake of students: its code and its explanation."""

    name: str  # short name, unique within the exercise
    # one or two sentences for the student: what is wrong and why it matters, without code of the answer
    explanation: str
    read: str  # label of the lesson section to read again
    kind: str  # its class, one of ``BANDS``, which decides its band of points
    make: Callable[[], Callable[..., Any]] = field(compare=False)  # creates the wrong implementation
    code: tuple[str, ...] = ()  # the pieces of wrong code, which are as secret as the solution

    @cached_property
    def implementation(self) -> Callable[..., Any]:
        """The mistaken implementation."""
        return self.make()

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis for the student."""
        return Diagnosis(name=self.name, explanation=self.explanation, read=self.read)


@dataclass(frozen=True, eq=False)
class Exercise:
    """The declaration of one exercise's check."""

    # the solution, a public function or class of ``tfcourse``; its name is the exercise's
    reference: Callable[..., Any]
    rows: Sequence[Row]  # the rows, with points
    chapter: str = ""  # the exercise's chapter folder
    misconceptions: Sequence[Misconception] = ()  # the known mistakes
    # names of torch functions, and of packages such as einops, that would do the exercise by themselves
    forbidden: tuple[str, ...] = ()
    # inputs on which the forbidden functions are looked for, one maker or several (a function may take another way when it is given a
    # mask); required where ``forbidden`` is not empty
    rule_case: Maker | tuple[Maker, ...] | None = None
    # the headings of the lesson's sections by their labels, so that a student is told what to look for
    headings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.forbidden and self.rule_case is None:
            raise ValueError(
                f"{self.name} forbids {', '.join(self.forbidden)} but gives no rule_case to look for them on"
            )

    @property
    def name(self) -> str:
        """The exercise's name: the reference's."""
        return self.reference.__name__

    @property
    def points(self) -> float:
        """The exercise's points."""
        return float(sum(aspect.points for aspect in self.rows))

    def sheet(self, *, hidden: bool = False, seed: int = 0, device: str = "cpu") -> Sheet:
        """Return the sheet of test cases for a seed, with the reference's answers, deterministically.

        On the sheet of visible tests the seed affects only the rules.
        """
        return _build_sheet(self, hidden, seed, device)


@lru_cache(maxsize=1024)
def _build_sheet(exercise: Exercise, hidden: bool, seed: int, device: str) -> Sheet:
    if seed and not hidden:
        # The visible tests are the same with every seed, and so are all answers to them.
        with pytorch_defaults():
            changed = [_move_to_device(rule, device) for rule in _rule_probes(exercise, seed)]
        return _build_sheet(exercise, False, 0, device).with_rules(changed)
    plain = _build_sheet(exercise, False, seed, device) if hidden else None
    with pytorch_defaults():
        questions = [_row_probes(exercise.name, aspect, hidden, seed) for aspect in exercise.rows]
        fields = _output_field_names(exercise.reference)
        probes = [
            [_add_fields(_move_to_device(probe, device), fields) for probe in requested] for requested in questions
        ]
        answers = run_probes(LocalSubject(exercise.reference), probes)
        rules = plain.rules if plain else [_move_to_device(rule, device) for rule in _rule_probes(exercise, seed)]
    remaining = iter(
        _reduce_to_compared_fields([observations for of_aspect in answers for observations in of_aspect], counts=False)
    )
    sections = []
    for number, (aspect, requested) in enumerate(zip(exercise.rows, probes, strict=True)):
        expected, visible = [next(remaining) for _ in requested], None
        if plain is not None:
            before = plain.sections[number]
            requested, expected, visible = (
                [*before.probes, *requested],
                [*before.expected, *expected],
                len(before.probes),
            )
        sections.append(Section(aspect.name, aspect.title, aspect.points, requested, expected, visible, aspect.side))

    @cache
    def subject(mistake: int) -> Subject:
        remaining = exercise.misconceptions[mistake]
        try:
            return LocalSubject(remaining.implementation)
        except Exception as error:
            warnings.warn(f"the known mistake {remaining.name!r} of {exercise.name} is left out: {error}", stacklevel=2)
            return _UnusableSubject()

    def ask_mistake(mistake: int, section: int, probe: int) -> Sequence[Observation]:
        observations = run_probes(subject(mistake), [[sections[section].probes[probe]]])[0]
        return _reduce_to_compared_fields(observations, counts=True)[0]

    return Sheet(
        exercise=exercise.name,
        chapter=exercise.chapter,
        rules=rules,
        sections=sections,
        misconceptions=[
            replace(remaining.diagnosis, section=exercise.headings.get(remaining.read, ""))
            for remaining in exercise.misconceptions
        ],
        ask_mistake=ask_mistake,
        plain=plain,
    )


class _UnusableSubject:
    """A subject for a known mistake whose edit no longer fits the reference: its answers equal no other answer."""

    def observe(self, request: Request) -> Observation:
        return Observation(error="UnusableMistake")

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        return [[self.observe(request) for request in group] for group in groups]


def _reduce_to_compared_fields(answers: Answers, *, counts: bool) -> Answers:
    """Keep the fields that the judges compare: results, error types and misfitting weights.

    Args:
        answers: the observations; an observation that several rows share stays one.
        counts: keep the numbers of operations and lines, which are needed to judge a mistake.
    """
    reduced = {id(observation): observation for observations in answers for observation in observations}
    for key, observation in reduced.items():
        reduced[key] = replace(
            observation,
            functions=(),
            operations=observation.operations if counts else None,
            largest=observation.largest if counts else None,
            lines=observation.lines if counts else None,
            error=observation.error
            if has_other_weights(observation)
            else observation.error and observation.error.partition(":")[0],
        )
    return [[reduced[id(observation)] for observation in observations] for observations in answers]


def _row_probes(exercise: str, aspect: Row, hidden: bool, seed: int) -> list[Probe]:
    """Return the visible or the hidden test cases of a row."""
    rounds: list[tuple[object, ...]] = [("visible", 0)]
    if hidden:
        rounds = [("hidden", seed, i) for i in range(HIDDEN_ROUNDS)]
    draws = [Draw(exercise, aspect.name, *this, shared=(exercise, *this), hidden=hidden) for this in rounds]
    return [probe for draw in draws for probe in aspect.probes(draw)]


def _output_field_names(reference: Callable[..., Any]) -> dict[str, str]:
    """Return the field names of a named-tuple result, by the names of its items in an observation."""
    try:
        result = get_type_hints(reference).get("return")
    except (NameError, TypeError):
        return {}
    return {f"output[{index}]": name for index, name in enumerate(getattr(result, "_fields", ()))}


def _add_fields(probe: Probe, fields: Mapping[str, str]) -> Probe:
    return replace(probe, options={**probe.options, "fields": fields}) if fields else probe


def _rule_probes(exercise: Exercise, seed: int) -> list[Probe]:
    """Return the probes for forbidden functions, on the rule cases or, without rule cases, on the first row's test case."""
    draw, case = Draw(exercise.name, "rules", seed), exercise.rule_case
    if case is None:
        groups: list[tuple[Request, ...]] = [exercise.rows[0].probes(draw)[0].requests]
    else:
        groups = [(make(draw).request("functions"),) for make in (case if isinstance(case, tuple) else (case,))]
    return [Probe(requests, "free_of", {"names": list(exercise.forbidden)}) for requests in groups]


def _move_to_device(probe: Probe, device: str) -> Probe:
    requests = tuple(request.map_tensors(lambda tensor: tensor.to(device)) for request in probe.requests)
    return Probe(requests, probe.judge, probe.options)
