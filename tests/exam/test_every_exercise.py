"""Every question of every exercise: its printed code gets exactly its diagnosis, and blind strategies earn little.

It takes twenty minutes: ``make test-questions``. A sample of it is in tests/autograder/exam.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from typing import Any

import numpy
import pytest
import torch

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.quizzes.exam.evidence import Evidence, diagnosed_names, gather_evidence
from autograder.quizzes.exam.kinds import KINDS, ExamQuestion, make_family
from tests.exam.blind import earned

pytestmark = [pytest.mark.audit, pytest.mark.usefixtures("one_thread")]
VERSIONS = 4
# Blind strategies may earn this much of all questions.
MOST = 0.35


def items_of(evidence: Evidence) -> list[ExamQuestion]:
    """Return a family of every kind that an exercise gives, with shuffled options."""
    made = []
    for kind in KINDS:
        rng = random.Random(f"{evidence.exercise.name} {kind}")
        for version, item in enumerate(make_family(kind, evidence, rng, "audit", VERSIONS) or ()):
            made.append(item.place_key(version, rng))
    return made


def diagnosed(exercise: Exercise, text: str) -> list[str]:
    """Return the mistakes that the check names in a printed text, which runs with the names of the reference's module."""
    namespace: dict[str, Any] = {"math": math, "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": numpy}
    namespace |= vars(sys.modules[exercise.reference.__module__])
    lines = ["from __future__ import annotations", *text.split("\n")]
    exec(compile("\n".join(lines), f"<printed {exercise.name}>", "exec"), namespace)
    return diagnosed_names(decide(exercise.sheet(hidden=True), LocalSubject(namespace[exercise.name])))


def test_every_printed_text_gets_its_diagnosis_and_guessing_earns_little() -> None:
    everything: list[ExamQuestion] = []
    counts: Counter[tuple[str, str]] = Counter()
    for exercise in exercises().values():
        evidence = gather_evidence(exercise)
        items = items_of(evidence)
        for text, mistake in {item.code: item.mistake for item in items}.items():
            assert diagnosed(exercise, text) == [mistake], f"{exercise.name}: {mistake}\n{text}"
        everything += items
        chapter = exercise.chapter[:2]
        counts[chapter, "mistakes"] += len(exercise.misconceptions)
        counts[chapter, "shown"] += len(evidence.mistakes)
        counts.update((chapter, item.kind) for item in items)
        print(exercise.name, len(evidence.mistakes), Counter(item.kind for item in items), flush=True)
    for chapter in sorted({chapter for chapter, _ in counts}):
        print(chapter, {name: counts[chapter, name] for name in ("mistakes", "shown", *KINDS)})
    for kind in [*KINDS, ""]:
        of_kind = [item for item in everything if kind in ("", item.kind)]
        print(kind or "all", len(of_kind), {name: f"{share:.0%}" for name, share in earned(of_kind).items()})
    assert max(earned(everything).values()) <= MOST
