"""Model a chapter: its files, notebook, exercises and questions, and detect faults in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.checking.exercise import Exercise
from autograder.course.authoring.myst import parse_notebook, read_text
from autograder.course.authoring.rubrics import Rubric, read_rubrics
from autograder.course.chapter_names import resolve_chapter
from autograder.errors import CourseError

ANSWER_TEXT = "YOUR ANSWER HERE"
_TITLE = re.compile(r"^# (?:\d\d · )?(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Drift:
    """A difference between a generated file and its source, or a contradiction in the source."""

    file: Path
    cell: str  # the grade id of the cell; empty for the whole file
    what: str  # the difference
    do: str  # how to fix it
    mendable: bool = False  # whether ``tfcourse sync`` mends it; with any other drift it changes nothing

    def __str__(self) -> str:
        where = f"{self.file}, cell {self.cell}" if self.cell else str(self.file)
        return f"{where}: {self.what}. {self.do}"


def raise_if_drifted(drifts: Sequence[Drift], message: str, *, where: object = None, do: str = "") -> None:
    """Raise a CourseError that lists the drifts, if there are any.

    Raises:
        CourseError: with one line per drift.
    """
    if drifts:
        listed = "\n".join(f"  - {drift}" for drift in drifts)
        raise CourseError(f"{message}:\n{listed}", where=where, do=do)


def _load_exercises() -> Mapping[str, Exercise]:
    from autograder.checks import exercises

    return exercises()


@dataclass(frozen=True)
class Question:
    """A question in words, which a person marks."""

    name: str  # the grade id of its answer cell, ``question_<topic>``
    points: float


@dataclass(frozen=True)
class Chapter:
    """A chapter of the course."""

    root: Path
    name: str  # the folder's name under ``chapters/``, which is also nbgrader's assignment id
    # every exercise of the course by name
    registry: Mapping[str, Exercise] = field(default_factory=_load_exercises, compare=False, repr=False)
    # exercises and questions that this course does not assign (see :mod:`autograder.course.authoring.selection`)
    left_out: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        """The path of the chapter's folder."""
        return self.root / "chapters" / self.name

    @property
    def lesson(self) -> Path:
        """The path of the lesson."""
        return self.folder / "lesson.md"

    @property
    def path(self) -> Path:
        """The path of the text notebook with prompts, stubs and tests."""
        return self.folder / "exercises.md"

    @property
    def rubrics_path(self) -> Path:
        """The path of the rubrics of the questions in words."""
        return self.folder / "rubrics.md"

    @property
    def solution_path(self) -> Path:
        """The path of the generated notebook with the solutions."""
        return self.root / "solutions" / self.name / "exercises.ipynb"

    @property
    def number(self) -> str:
        """The chapter's number as two digits."""
        return self.name.partition("_")[0]

    @property
    def tag(self) -> str:
        """The chapter's number as a short tag, ``ch03``, for versions."""
        return f"ch{self.number}"

    @property
    def title(self) -> str:
        """The lesson's title without its number."""
        match = _TITLE.search(read_text(self.lesson))
        return match[1] if match else self.name

    @cached_property
    def text(self) -> str:
        """The text of ``exercises.md``."""
        return read_text(self.path)

    def notebook(self) -> Any:
        """Parse the exercises as a new notebook.

        Raises:
            CourseError: if the file is missing or is no MyST notebook.
        """
        return parse_notebook(self.text, self.path)

    def rubrics(self) -> dict[str, Rubric]:
        """Return the rubrics by question."""
        return read_rubrics(self.rubrics_path)

    def exercises(self) -> list[Exercise]:
        """Return the chapter's exercises in the order of the notebook."""
        names = [grade_id(cell) for cell in self.notebook().cells if is_stub(cell)]
        return [self.registry[name] for name in dict.fromkeys(names) if name in self.registry]

    def questions(self) -> list[Question]:
        """Return the questions in words in the order of the notebook."""
        cells = (cell for cell in self.notebook().cells if is_answer(cell))
        return [Question(grade_id(cell), float(cell.metadata.nbgrader.get("points") or 0)) for cell in cells]

    def faults(self) -> list[Drift]:
        """Return the faults that prevent a release and that no command can fix."""
        return [*_exercise_faults(self), *_question_faults(self)]


def load_chapters(root: Path, registry: Mapping[str, Exercise] | None = None) -> list[Chapter]:
    """Return the chapters that have exercises, in lecture order.

    Args:
        registry: every exercise of the course by name; by default the exercises in ``autograder.checks``.
    """
    declared = _load_exercises() if registry is None else registry
    return [Chapter(root, path.parent.name, declared) for path in sorted((root / "chapters").glob("*/exercises.md"))]


def find_chapter(root: Path, name: str, registry: Mapping[str, Exercise] | None = None) -> Chapter:
    """Find a chapter by its name, its number, the beginning of its name, or a word of it: ``03``, ``3``, ``gpt``.

    Raises:
        CourseError: if no chapter matches, or more than one.
    """
    every = load_chapters(root, registry)
    by_name = {chapter.name: chapter for chapter in every}
    do = f"Known chapters: {', '.join(by_name) or 'none'}."
    return by_name[resolve_chapter(name, by_name, " with exercises", do=do, where=root / "chapters")]


def grade_id(cell: Any) -> str:
    """Return a cell's nbgrader id; empty without one."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def is_stub(cell: Any) -> bool:
    """Return whether a cell is the stub of an exercise."""
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_test(cell: Any) -> bool:
    """Return whether a cell is an exercise's test."""
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("grade"))


def is_answer(cell: Any) -> bool:
    """Return whether a cell is for the answer to a question in words."""
    return cell.cell_type == "markdown" and bool(cell.metadata.get("nbgrader", {}).get("solution"))


# The nbgrader metadata that each kind of cell must have.
_LOCKED = {"grade": False, "locked": True, "solution": False}
_STUB = {"grade": False, "locked": False, "solution": True}
_TEST = {"grade": True, "locked": True, "solution": False}
_ANSWER = {"grade": True, "locked": False, "solution": True}


def _expected_flags(cell: Any) -> dict[str, Any]:
    name = grade_id(cell)
    if cell.cell_type == "markdown":
        flags = _ANSWER if name.startswith("question_") else _LOCKED
    elif name.startswith("test_"):
        flags = _TEST
    else:
        flags = _STUB if is_stub(cell) else _LOCKED
    return {**flags, "schema_version": 3, "task": False}


def _exercise_faults(chapter: Chapter) -> Iterator[Drift]:
    cells = chapter.notebook().cells
    yield from _metadata_faults(chapter, cells)
    code = [cell for cell in cells if cell.cell_type == "code"]
    if not code or grade_id(code[0]) != "setup":
        yield Drift(chapter.path, "", "its first code cell is not the setup cell", "Give it the grade_id setup.")
    stubs = [grade_id(cell) for cell in cells if is_stub(cell)]
    tests = {grade_id(cell): index for index, cell in enumerate(cells) if is_test(cell)}
    for index, cell in enumerate(cells):
        if is_stub(cell):
            yield from _stub_faults(chapter, grade_id(cell), tests.get(f"test_{grade_id(cell)}"), index)
    for name in tests:
        if name.removeprefix("test_") not in stubs:
            yield Drift(
                chapter.path,
                name,
                "it tests an exercise that has no cell here",
                "Add the exercise's cell, or take the test away.",
            )
    for name in (name for name, item in chapter.registry.items() if item.chapter == chapter.name and name not in stubs):
        yield Drift(
            chapter.path,
            name,
            f"the exercise {name} is declared for this chapter and is not in the notebook",
            f"Add a prompt, a cell with grade_id {name} and one with grade_id test_{name}; docs/adding-an-exercise.md shows them.",
        )


def _metadata_faults(chapter: Chapter, cells: Any) -> Iterator[Drift]:
    names: set[str] = set()
    for cell in cells:
        if "nbgrader" not in cell.metadata:
            continue
        name = grade_id(cell)
        if not name:
            yield Drift(
                chapter.path, "", f"a cell has nbgrader metadata and no grade_id: {cell.source[:40]!r}", "Name it."
            )
        if name in names:
            yield Drift(chapter.path, name, "two cells have this grade_id", "Rename or remove one.")
        names.add(name)
        expected = _expected_flags(cell)
        wrong = [key for key, value in expected.items() if cell.metadata.nbgrader.get(key) != value]
        if wrong:
            settings = ", ".join(f"{key}: {str(expected[key]).lower()}" for key in wrong)
            yield Drift(chapter.path, name, "its nbgrader metadata is not that of its kind", f"Set {settings}.")


def _stub_faults(chapter: Chapter, name: str, test: int | None, index: int) -> Iterator[Drift]:
    exercise = chapter.registry.get(name)
    if exercise is None:
        declared = ", ".join(sorted(n for n, item in chapter.registry.items() if item.chapter == chapter.name))
        yield Drift(
            chapter.path, name, "no check declares such an exercise", f"This chapter's are: {declared or 'none'}."
        )
    elif exercise.chapter != chapter.name:
        yield Drift(chapter.path, name, f"the exercise belongs to {exercise.chapter}", "Move its cells there.")
    if test is None:
        yield Drift(chapter.path, name, "the exercise has no test cell", f"Add one with grade_id test_{name} below it.")
    elif test < index:
        yield Drift(chapter.path, name, "its test cell stands above it", "Move the test below the exercise.")


def _question_faults(chapter: Chapter) -> Iterator[Drift]:
    cells = chapter.notebook().cells
    order = {grade_id(cell): index for index, cell in enumerate(cells)}
    rubrics = chapter.rubrics()
    answers = {grade_id(cell): cell for cell in cells if is_answer(cell)}
    for name, cell in answers.items():
        prompt = name.replace("question_", "prompt_", 1)
        if order.get(prompt, order[name]) >= order[name]:
            yield Drift(
                chapter.path, name, "it has no prompt above it", f"Add a locked text cell with grade_id {prompt}."
            )
        if cell.source.strip() != ANSWER_TEXT:
            yield Drift(
                chapter.path, name, "students would not find the empty answer", f"Its text must be {ANSWER_TEXT}."
            )
        yield from _rubric_faults(chapter, name, cell.metadata.nbgrader.get("points"), rubrics.get(name))
    for name in rubrics:
        if name not in answers:
            yield Drift(
                chapter.rubrics_path, name, "the rubric belongs to no question", "Remove it, or add the question."
            )


def _rubric_faults(chapter: Chapter, name: str, points: object, rubric: Rubric | None) -> Iterator[Drift]:
    if not isinstance(points, (int, float)) or points <= 0:
        yield Drift(chapter.path, name, "the question is worth nothing", "Give its answer cell points.")
    elif rubric is None or not rubric.answer or not rubric.marks:
        yield Drift(
            chapter.rubrics_path,
            name,
            "the question has no rubric",
            f"Add `## {name}` with `### Model answer` and `### Marks`.",
        )
    elif rubric.points != points:
        total = "do not all say their worth" if rubric.points is None else f"add up to {rubric.points:g}"
        yield Drift(
            chapter.rubrics_path,
            name,
            f"the marks {total}, and the question is worth {points:g}",
            "Begin every item of the list with its points, and make them add up.",
        )
