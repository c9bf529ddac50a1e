"""Read a chapter's exercises and questions with the students' answers and their gradebook entries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.intake.notebook.manifest import Manifest, SourceCell, released_manifest
from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer, pick_representatives
from autograder.marking.graded_code import GradedCode
from autograder.marking.graded_notebooks import GradedNotebooks, fold_text, source_text
from autograder.marking.questions import Answer, MarkRows, Question, read_marks

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)$", re.MULTILINE)
_MARKUP = re.compile(r"[`*]|\{#[^{}]*\}")
_MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)

# Said of a group that no row of the check explains.
WAITING = "These answers changed after a person gave them points, or grading them needs a person. Give the points that hold now."


class ChapterReader:
    """Reads a chapter's exercises and questions. Changed files are read again, and the gradebook is read every time."""

    def __init__(self, course: Course, chapter: str) -> None:
        self.course, self.chapter = course, chapter
        self._notebooks = GradedNotebooks(course, chapter)
        self._code = GradedCode(course, chapter, self._notebooks)
        self._fingerprint: object = None

    def graded_code(self) -> GradedCode:
        """Return the chapter's current code answers and results, reading them again if their files have changed."""
        fingerprint = frozenset(_file_versions(self.course, self.chapter))
        if fingerprint != self._fingerprint:
            self._code = GradedCode(self.course, self.chapter, self._notebooks)
            self._fingerprint = fingerprint
        return self._code

    def exercises(self) -> list[Question]:
        """Return the chapter's exercises without answers, in the order of the notebook."""
        return self._list_exercises(released_manifest(self.course, self.chapter))

    def questions(self) -> list[Question]:
        """Return the exercises that lost points, followed by the questions that are answered in words."""
        with open_gradebook(self.course) as gradebook:
            return [one for one in self._read_questions(gradebook) if one.answers or not one.is_code]

    def question(self, name: str, gradebook: Gradebook | None = None) -> Question | None:
        """Return a question or an exercise by its name; None if it does not exist.

        Args:
            name: its name.
            gradebook: the course's gradebook, if it is open.
        """
        with open_gradebook(self.course) if gradebook is None else nullcontext(gradebook) as opened:
            return next(iter(self._read_questions(opened, name)), None)

    def _read_questions(self, gradebook: Gradebook, name: str = "") -> list[Question]:
        manifest = released_manifest(self.course, self.chapter, gradebook)
        in_words = [_text_question(manifest, cell) for cell in manifest.cells if cell.is_answer]
        questions = [one for one in (*self._list_exercises(manifest), *in_words) if name in ("", one.name)]
        cells = {cell for one in questions for cell in (one.name, one.graded_cell)}
        marks = read_marks(gradebook, self.course, self.chapter, cells)
        return [
            self._add_code_answers(one, marks) if one.is_code else self._add_text_answers(one, marks)
            for one in questions
        ]

    def _list_exercises(self, manifest: Manifest) -> list[Question]:
        in_source = _read_source_texts(self.course.folder("source", ".", self.chapter) / f"{self.chapter}.ipynb")
        return [
            Question(cell.name, title, prompt, test.points, is_code=True, stub=cell.source, reference=reference)
            for cell in manifest.cells
            if cell.is_stub and (test := manifest.by_name.get(f"test_{cell.name}")) is not None and test.is_test
            for title, prompt, reference in [in_source.get(cell.name, (cell.name, "", ""))]
        ]

    def _add_text_answers(self, question: Question, marks: MarkRows) -> Question:
        cells = {student: self._notebooks.cells(student).get(question.name) for student in marks.students(question)}
        answers = [
            marks.answer(question, student, source_text(cell), cell.get("attachments"))
            for student, cell in cells.items()
            if cell is not None
        ]
        written, blank = (tuple(one for one in answers if _is_blank(one, question) is kind) for kind in (False, True))
        return replace(
            question,
            answers=written,
            blanks=len(blank),
            others=blank,
            unreadable=tuple(student for student, cell in cells.items() if cell is None),
        )

    def _add_code_answers(self, question: Question, marks: MarkRows) -> Question:
        code = self.graded_code()
        groups = code.groups(question.name, question.stub)
        listed = {member.student: member for group in groups for member in group.members}
        students = marks.students(question)
        waiting = [
            student for student in students if student not in listed and marks.grades[question.graded_cell, student][2]
        ]
        if waiting:
            groups = [*groups, self._waiting_group(question, code, waiting)]
            listed |= {member.student: member for member in groups[-1].members}
        answers = [
            marks.answer(question, student, member.source if member else "", code=member)
            for student in students
            for member in [listed.get(student)]
        ]
        return replace(
            question,
            # A submission may have a result before its grade is recorded; it is shown from then on.
            answers=tuple(answer for answer in answers if answer.code is not None),
            blanks=len(code.blank_students(question.name, question.stub)),
            others=tuple(answer for answer in answers if answer.code is None),
            groups=tuple(group for group in groups if any(member.student in students for member in group.members)),
        )

    def _waiting_group(self, question: Question, code: GradedCode, students: list[str]) -> BehaviourGroup:
        """Return the group of answers that wait for marking despite full points: an earlier version was marked."""
        outcomes = code.outcomes(question.name)
        members = []
        for student in students:
            score = outcomes[student].score if student in outcomes else 0.0
            cell = self._notebooks.cells(student).get(question.name)
            source = source_text(cell) if cell else ""
            members.append(CodeAnswer(student, question.name, score, question.points, (), WAITING, None, source, None))
        return BehaviourGroup("waiting", tuple(members), 0.0, "", pick_representatives(members))


def _text_question(manifest: Manifest, cell: SourceCell) -> Question:
    prompt_cell = manifest.by_name.get(f"prompt_{cell.name.removeprefix('question_')}")
    prompt = prompt_cell.source if prompt_cell else ""
    heading = _HEADING.search(prompt)
    title = heading[1].strip() if heading else cell.name
    return Question(cell.name, title, _HEADING.sub("", prompt, count=1).strip(), cell.points, stub=cell.source)


def _is_blank(answer: Answer, question: Question) -> bool:
    # A person who gave points to a blank answer wants to see it again; nbgrader waits for nobody else.
    untouched = answer.state.points is None and not answer.attachments
    return untouched and fold_text(answer.text) in ("", fold_text(question.stub))


def _read_source_texts(notebook: Path) -> dict[str, tuple[str, str, str]]:
    """Return each exercise's title, prompt and solution in a source notebook, by name; empty if it cannot be read."""
    texts: dict[str, tuple[str, str, str]] = {}
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
                texts[name] = title or name, prompt, _MARKER.sub("", source)
                prompt = ""
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return texts


def _file_versions(course: Course, chapter: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path, size and modification time of every file that code answers are read from."""
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
