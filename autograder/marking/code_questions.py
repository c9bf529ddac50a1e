"""Read a chapter's code answers that lost points, in groups that behave alike, with what the gradebook holds about each answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder.course.folder import Course
from autograder.grading.record.results import GradeResult, read_results
from autograder.intake.notebook.manifest import Manifest, SourceCell, released_manifest
from autograder.marking.behaviour_groups import (
    BehaviourGroup,
    CodeAnswer,
    group_answers,
    read_code_answers,
    representatives,
)
from autograder.marking.questions import (
    Answer,
    GradedNotebooks,
    MarkRows,
    Question,
    folded,
    read_marks,
    read_questions,
    source_text,
)

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)$", re.MULTILINE)
_MARKUP = re.compile(r"[`*]|\{#[^{}]*\}")
_MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)

# Said of a group that no row of the check explains.
WAITING = "These answers changed after a person gave them points, or grading them needs a person. Give the points that hold now."


@dataclass(frozen=True)
class Exercise:
    """An exercise as it was released."""

    name: str  # its name in the code
    title: str  # its heading
    points: float  # what it is worth
    stub: str  # the code that students start from
    reference: str  # the reference solution; empty if the source notebook is not there
    prompt: str = ""  # what the chapter asks, without the heading, Markdown; empty if the source notebook is not there


class GradedCode:
    """The results of grading a chapter, read from the course folder. Files are read once: create a new object to see changes."""

    def __init__(self, course: Course, chapter: str) -> None:
        self._course, self._chapter = course, chapter

    @cached_property
    def results(self) -> list[GradeResult]:
        """The results, by student."""
        return read_results(self._course, self._chapter)

    @cached_property
    def answers(self) -> dict[str, list[CodeAnswer]]:
        """The answers that lost points, by exercise."""
        return read_code_answers(self._course, self._chapter)

    @cached_property
    def _groups(self) -> dict[tuple[str, str], list[BehaviourGroup]]:
        return {}

    def groups(self, exercise: Exercise) -> list[BehaviourGroup]:
        """Return the groups of an exercise's answers, without unchanged stubs."""
        key = exercise.name, exercise.stub
        if key not in self._groups:
            written = [answer for answer in self.answers.get(exercise.name, []) if not is_blank(answer, exercise)]
            self._groups[key] = group_answers(written)
        return self._groups[key]


class ChapterReader:
    """Reads a chapter's questions. Files are read again when they have changed, the gradebook every time."""

    def __init__(self, course: Course, chapter: str) -> None:
        self.course, self.chapter = course, chapter
        self._code = GradedCode(course, chapter)
        self._notebooks = GradedNotebooks(course, chapter)
        self._fingerprint: object = None

    def graded_code(self) -> GradedCode:
        """Return what grading has left in the course folder by now."""
        fingerprint = frozenset(_stats(self.course, self.chapter))
        if fingerprint != self._fingerprint:
            self._code, self._fingerprint = GradedCode(self.course, self.chapter), fingerprint
        return self._code

    def exercises(self) -> list[Exercise]:
        """Return the chapter's exercises in the order of the notebook."""
        manifest = released_manifest(self.course, self.chapter)
        source = self.course.folder("source", ".", self.chapter) / f"{self.chapter}.ipynb"
        in_source = _source_texts(source)
        return [
            Exercise(cell.name, texts.title, points, cell.source, texts.reference, texts.prompt)
            for cell, points in _exercise_cells(manifest)
            for texts in [in_source.get(cell.name, SourceTexts(cell.name))]
        ]

    def questions(self) -> list[Question]:
        """Return the exercises that lost points, and then the questions in words."""
        code = self._code_questions()
        in_words = read_questions(self.course, self.chapter, self._notebooks)
        return [*(question for question in code if question.answers), *in_words]

    def question(self, name: str) -> Question | None:
        """Return a question or an exercise by its name; None if it does not exist."""
        code = self._code_questions(name)
        questions = code or read_questions(self.course, self.chapter, self._notebooks)
        return next((question for question in questions if question.name == name), None)

    def _code_questions(self, name: str = "") -> list[Question]:
        exercises = [exercise for exercise in self.exercises() if name in ("", exercise.name)]
        if not exercises:
            return []
        cells = {cell for exercise in exercises for cell in (exercise.name, f"test_{exercise.name}")}
        code, marks = self.graded_code(), read_marks(self.course, self.chapter, cells)
        return [self._code_question(exercise, code, marks) for exercise in exercises]

    def _code_question(self, exercise: Exercise, code: GradedCode, marks: MarkRows) -> Question:
        cells = f"test_{exercise.name}", exercise.name
        groups = code.groups(exercise)
        listed = {member.student: member for group in groups for member in group.members}
        answers = {student: _answer(student, cells, marks, listed.get(student)) for student in marks.students(*cells)}
        waiting = [answer.student for answer in answers.values() if answer.code is None and answer.state.waiting]
        if waiting:
            groups = [*groups, self._waiting_group(exercise, code, waiting)]
            members = groups[-1].members
            answers |= {member.student: _answer(member.student, cells, marks, member) for member in members}
        blank = sum(is_blank(answer, exercise) for answer in code.answers.get(exercise.name, []))
        return Question(
            name=exercise.name,
            title=exercise.title,
            prompt=exercise.prompt,
            points=exercise.points,
            # A submission may have a result before its grade is recorded; it is shown from then on.
            answers=tuple(answer for answer in answers.values() if answer.code is not None),
            blanks=blank,
            others=tuple(answer for answer in answers.values() if answer.code is None),
            is_code=True,
            groups=tuple(group for group in groups if any(member.student in answers for member in group.members)),
            reference=exercise.reference,
        )

    def _waiting_group(self, exercise: Exercise, code: GradedCode, students: list[str]) -> BehaviourGroup:
        """Return the answers that wait for marking despite full points, because an earlier version was marked."""
        scores = {
            result.student: part.score
            for result in code.results
            for part in result.exercises
            if part.name == exercise.name
        }
        members = []
        for student in students:
            cell = self._notebooks.cells(student).get(exercise.name)
            answer = CodeAnswer(
                student=student,
                exercise=exercise.name,
                score=scores.get(student, 0.0),
                max_score=exercise.points,
                failed_rows=(),
                message=WAITING,
                diagnosis=None,
                source=source_text(cell) if cell else "",
                signature=None,
            )
            members.append(answer)
        return BehaviourGroup("waiting", tuple(members), 0.0, "", representatives(members))


def is_blank(answer: CodeAnswer, exercise: Exercise) -> bool:
    """Whether a student has left the stub as it was."""
    return folded(answer.source) in ("", folded(exercise.stub))


def _answer(student: str, cells: tuple[str, str], marks: MarkRows, code: CodeAnswer | None) -> Answer:
    return marks.answer(student, *cells, text=code.source if code else "", code=code)


def _exercise_cells(manifest: Manifest) -> Iterator[tuple[SourceCell, float]]:
    for cell in manifest.cells:
        test = manifest.by_name.get(f"test_{cell.name}")
        if cell.is_stub and test is not None and test.is_test:
            yield cell, test.points


@dataclass(frozen=True)
class SourceTexts:
    """The texts of an exercise in a chapter's source notebook: heading, solution and prompt."""

    title: str
    reference: str = ""
    prompt: str = ""


def _source_texts(notebook: Path) -> dict[str, SourceTexts]:
    """Return the texts of each solution cell by name; none of a notebook that cannot be read."""
    texts: dict[str, SourceTexts] = {}
    title, prompt = "", ""
    try:
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            mark, source = cell["metadata"].get("nbgrader", {}), source_text(cell)
            name = mark.get("grade_id", "")
            if cell["cell_type"] == "markdown":
                headings = list(_HEADING.finditer(source))
                if headings:
                    title = _MARKUP.sub("", headings[-1][1]).strip()
                    prompt = source[headings[-1].end() :].strip()
                else:
                    prompt = f"{prompt}\n\n{source}".strip()
            elif mark.get("solution"):
                texts[name] = SourceTexts(title or name, _MARKER.sub("", source), prompt)
                prompt = ""
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return texts


def _stats(course: Course, chapter: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of change of every file that code answers are read from."""
    patterns = (
        f"results/{chapter}/*.json",
        f"journal/behaviour/{chapter}/*.json",
        f"autograded/*/{chapter}/{chapter}.ipynb",
    )
    for pattern in patterns:
        for path in course.root.glob(pattern):
            try:
                status = path.stat()
            except OSError:  # replaced at this moment
                continue
            yield str(path), status.st_size, status.st_mtime_ns
