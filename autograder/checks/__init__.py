"""Declare the checks of every exercise: cases, points and known mistakes, a folder per chapter.

``ch03_scaled_dot_product/soft_lookup.py`` declares the check of ``soft_lookup``, an exercise of chapter ``03_scaled_dot_product``: its
cases and rows. ``soft_lookup.toml`` beside it has the known mistakes. Every ``Exercise`` at the top level of such a module is found by
itself; its chapter, its known mistakes and the headings of its lesson follow from where it stands.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import CodeType

from autograder.checking.called_exercises import explain_failing_dependency
from autograder.checking.decision import decide, has_right_numbers
from autograder.checking.exercise import Exercise
from autograder.checking.sheet import Sheet
from autograder.checking.similar_names import explain_no_exercise, find_nearest_name
from autograder.checking.subject import LocalSubject, Subject, list_code_objects
from autograder.checking.verdict import Verdict
from autograder.checks.headings import headings
from autograder.errors import CourseError
from autograder.mistakes.mistake_file import MistakeFile
from autograder.site_address import site_address

__all__ = ["check", "declaring_module", "exercise", "exercises", "verdict_on"]


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise of the course by name, in the order of modules and of declarations in them."""
    return {name: item for name, (item, _) in _declared().items()}


def declaring_module(target: Exercise) -> str:
    """Return the name of the module that declares an exercise."""
    return _declared()[target.name][1]


@cache
def _declared() -> dict[str, tuple[Exercise, str]]:
    """Return every exercise by name, with the module that declares it."""
    declared: dict[str, tuple[Exercise, str]] = {}
    for module_name in _modules():
        module = importlib.import_module(module_name)
        for value in vars(module).values():
            if isinstance(value, Exercise):
                if value.name in declared:
                    raise ValueError(f"two exercises are named {value.name!r}; the second is declared in {module_name}")
                declared[value.name] = (_placed(value, Path(str(module.__file__))), module_name)
    return declared


def _modules() -> Iterator[str]:
    for info in sorted(pkgutil.iter_modules(__path__, f"{__name__}."), key=lambda info: info.name):
        yield info.name
        if info.ispkg:
            folder = str(Path(__path__[0]) / info.name.rpartition(".")[2])
            yield from sorted(inner.name for inner in pkgutil.iter_modules([folder], f"{info.name}."))


def _placed(declared: Exercise, path: Path) -> Exercise:
    """Return an exercise with what follows from where it is declared."""
    if declared.chapter:
        return declared
    chapter = path.parent.name.removeprefix("ch")
    return replace(
        declared,
        chapter=chapter,
        misconceptions=MistakeFile(path.with_suffix(".toml"), declared.reference),
        headings=headings(chapter),
    )


def exercise(name: str) -> Exercise:
    """Return an exercise by name.

    Raises:
        LookupError: if the course has none of that name.
    """
    try:
        return exercises()[name]
    except KeyError:
        meant = find_nearest_name(name, exercises())
        hint = f"; did you mean {meant}?" if meant else ""
        raise LookupError(f"there is no exercise named {name!r}{hint}") from None


def check(
    candidate: Callable[..., object], *, hidden: bool = False, seed: int | None = None, device: str | None = None
) -> Verdict:
    """Check an implementation against the live reference.

    Args:
        candidate: a function or class; the exercise is found by its name.
        hidden: run the hidden tests too, as the grader does. The course's own solutions are then refused as a candidate and inside it.
        seed: the seed of the hidden inputs and of the inputs that test the rules; by default the value of ``TFCOURSE_SEED``, else 0.
            The visible inputs are always the same.
        device: where to run it, ``"cpu"`` or ``"cuda"``; by default the value of ``TFCOURSE_DEVICE``, else the CPU.

    Returns:
        The verdict; its text form is its score.

    Raises:
        LookupError: if no exercise has the candidate's name.
    """
    target = exercises().get(getattr(candidate, "__name__", type(candidate).__name__))
    if target is None:
        raise LookupError(explain_no_exercise(candidate, (), exercises()))
    where = device or os.environ.get("TFCOURSE_DEVICE") or "cpu"
    number = int(os.environ.get("TFCOURSE_SEED") or 0) if seed is None else seed
    subject = LocalSubject(candidate, _solutions(target.chapter) if hidden else frozenset(), str(Path(__file__).parent))
    verdict = verdict_on(subject, target.sheet(hidden=hidden, seed=number, device=where))
    note = (
        ""
        if hidden or verdict.passed
        else explain_failing_dependency(candidate, partial(_has_right_numbers, device=where))
    )
    return replace(verdict, note=note)


def verdict_on(subject: Subject, sheet: Sheet) -> Verdict:
    """Return the verdict on a subject's answers to a sheet, with the address of the course's site."""
    return replace(decide(sheet, subject), site=_site())


def _has_right_numbers(candidate: Callable[..., object], *, device: str) -> bool | None:
    target = exercises().get(candidate.__name__)
    return None if target is None else has_right_numbers(target.sheet(device=device), LocalSubject(candidate))


@cache
def _site() -> str:
    """Return the address of the course's site, or an empty string if it is invalid (the build reports that) or cannot be read.

    Checks run with torch, numpy and safetensors alone, and then a section to read again is text.
    """
    with suppress(CourseError, ImportError):
        return site_address()
    return ""


@cache
def _solutions(chapter: str) -> frozenset[CodeType]:
    """The code of the exercises that are still secret while a chapter is graded: its own exercises and the exercises of later chapters.

    Private helpers are not among them: the student build carries them, so a student may use them.
    """
    secret = (item.reference for item in exercises().values() if item.chapter >= chapter)
    return frozenset(code for reference in secret for code in list_code_objects(reference))
