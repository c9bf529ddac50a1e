"""Compose exams: choose the questions, and make versions with the same kinds, chapters and exercises but other mistakes and numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.checking.exercise import Exercise
from autograder.checks import exercises
from autograder.errors import CourseError
from autograder.quizzes.exam.evidence import Evidence, gather_evidence
from autograder.quizzes.exam.kinds import KINDS, ExamQuestion, Family, make_family
from autograder.quizzes.questions.question import LETTERS, OPTIONS


@dataclass(frozen=True)
class Exam:
    """An exam with one or more versions."""

    chapters: tuple[str, ...]  # the names of its chapters
    seed: str  # the seed of the question choice
    versions: tuple[tuple[ExamQuestion, ...], ...]  # the questions of each version, in order

    @property
    def letters(self) -> str:
        """The letters of the versions, such as ``ABC``."""
        return LETTERS[: len(self.versions)]


@dataclass
class _Supply:
    """Makes question families from the exercises of some chapters, on demand and without repetition."""

    seed: str
    versions: int
    waiting: Mapping[str, list[Exercise]]
    secret: int = 0
    evidence: dict[str, Evidence] = field(default_factory=dict)
    used: set[tuple[str, str]] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def find_family(self, kind: str, chapters: Sequence[str]) -> Family | None:
        """Return a question family of this kind from the first chapter that has an unused exercise for it; None if no chapter has.

        Two questions about one exercise could answer each other, so an exercise is used again only if no unused exercise is left.
        """
        for again in (False, True):
            for exercise in [one for chapter in chapters for one in self.waiting[chapter]]:
                if (exercise.name in self.asked) is again and (kind, exercise.name) not in self.used:
                    self.used.add((kind, exercise.name))
                    if exercise.name not in self.evidence:
                        self.evidence[exercise.name] = gather_evidence(exercise, secret=self.secret)
                    rng = random.Random(f"{self.seed} {kind} {exercise.name}")
                    family = make_family(kind, self.evidence[exercise.name], rng, self.seed, self.versions)
                    if family is not None:
                        self.asked.add(exercise.name)
                        return family
        return None


def compose_exam(
    chapters: Sequence[str],
    questions: int,
    versions: int,
    seed: str,
    *,
    without: Collection[int] = (),
    secret: int = 0,
    selects: Callable[[str, str], bool] = lambda chapter, name: True,
    report: Callable[[str], None] = lambda text: None,
) -> Exam:
    """Compose an exam; the same arguments give the same exam.

    Args:
        chapters: the names of the chapters.
        questions: the number of questions.
        versions: the number of versions, at most four.
        seed: the seed of the question choice.
        without: the numbers of questions to replace; their replacements are drawn after all other questions.
        secret: the course's secret seed, so that no question shows a hidden test.
        selects: returns whether an exercise of a chapter may be used.
        report: called with a progress message after each question.

    Raises:
        CourseError: if the chapters have too few questions.
    """
    wanted = questions + len(without)
    families = _draw_families(chapters, wanted, versions, seed, secret, selects, report)
    if len(families) < wanted:
        raise CourseError(
            f"the known mistakes of {', '.join(chapters)} give {len(families)} questions, and {wanted} are wanted",
            do="Ask for fewer questions, or name more chapters.",
        )
    chosen = _sort_families(families[:questions])
    for number, other in zip(sorted(without), families[questions:], strict=True):
        chosen[number - 1] = other
    return _build_exam(chapters, versions, seed, chosen)


def compose_practice(chapter: str, questions: int, seed: str) -> Exam:
    """Compose at most ``questions`` questions about one chapter, in one version."""
    return _build_exam([chapter], 1, seed, _sort_families(_draw_families([chapter], questions, 1, seed)))


def _draw_families(
    chapters: Sequence[str],
    questions: int,
    versions: int,
    seed: str,
    secret: int = 0,
    selects: Callable[[str, str], bool] = lambda chapter, name: True,
    report: Callable[[str], None] = lambda text: None,
) -> list[Family]:
    """Draw the question families of an exam, fewer than ``questions`` if the chapters have too few."""
    rng = random.Random(f"{seed} {' '.join(chapters)}")
    waiting: dict[str, list[Exercise]] = {}
    for chapter in chapters:
        found = [one for one in exercises().values() if one.chapter == chapter and selects(chapter, one.name)]
        waiting[chapter] = rng.sample(found, len(found))
    supply = _Supply(seed, versions, waiting, secret)
    families: list[Family] = []
    kinds = list(KINDS)
    for number in range(questions):
        # Try the preferred kind and chapter first, then the others in order.
        first = (number + number // (len(kinds) * len(chapters))) % len(chapters)
        kind, order = kinds[number % len(kinds)], [*chapters[first:], *chapters[:first]]
        preferred = [kind, *(other for other in kinds if other != kind)]
        family = next(filter(None, (supply.find_family(other, order) for other in preferred)), None)
        if family is None:
            break
        families.append(family)
        report(f"question {len(families)} of {questions}")
    return families


def _build_exam(chapters: Sequence[str], versions: int, seed: str, families: Sequence[Family]) -> Exam:
    return Exam(tuple(chapters), seed, tuple(_build_version(families, version, seed) for version in range(versions)))


def _sort_families(families: Sequence[Family]) -> list[Family]:
    return sorted(families, key=lambda family: (list(KINDS).index(family[0].kind), family[0].chapter))


def _build_version(families: Sequence[Family], version: int, seed: str) -> tuple[ExamQuestion, ...]:
    """Build the questions of a version; each key's letter is drawn independently, so that known keys do not reveal others."""
    rng = random.Random(f"{seed} version {version}")
    return tuple(family[version].place_key(rng.randrange(OPTIONS), rng) for family in families)
