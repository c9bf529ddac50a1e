"""Store students' answers in conversations about their own code, one per line, in ``viva/CHAPTER/answers.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.append_only import AppendOnlyFile, read_lines
from autograder.course.folder import Course
from autograder.errors import CourseError

_REMEDY = "Restore the file from a copy, or remove the line."


@dataclass(frozen=True)
class VivaAnswer:
    """A student's answer to one viva question."""

    exercise: str  # the exercise whose code the question is about
    option: int  # the index of the chosen option
    right: bool  # whether the option is the key


@dataclass(frozen=True)
class Conversation:
    """A student's recorded conversation about one chapter."""

    student: str
    # the sheet of questions, as :attr:`autograder.quizzes.viva.interviews.Interview.made_from` names it
    sheet: str = ""
    question_count: int = 0  # the number of questions on the sheet
    answers: Mapping[int, VivaAnswer] = field(default_factory=dict)  # the answers by the number of the question, from 0
    note: str = ""  # the note of the person who asked, or empty
    marker: str = ""  # the name of the person who recorded last
    time: str = ""  # when, ISO 8601 with the offset

    @property
    def right(self) -> int:
        """The number of right answers."""
        return sum(answer.right for answer in self.answers.values())

    @property
    def begun(self) -> bool:
        """Whether at least one question was answered."""
        return bool(self.answers)

    @property
    def finished(self) -> bool:
        """Whether every question was answered."""
        return self.begun and len(self.answers) >= self.question_count

    @property
    def share(self) -> float:
        """The right answers divided by the number of questions; 0 before the first answer."""
        return self.right / self.question_count if self.question_count else 0.0

    @property
    def exercises(self) -> tuple[str, ...]:
        """The exercises of the answered questions, each once."""
        return tuple(dict.fromkeys(answer.exercise for _, answer in sorted(self.answers.items())))

    @property
    def version(self) -> str:
        """A hash of the state: a stale one, from before another person's entry, is refused."""
        answers = {number: answer.option for number, answer in sorted(self.answers.items())}
        state = json.dumps([self.sheet, answers, self.note])
        return hashlib.sha256(state.encode()).hexdigest()[:16]


class VivaJournal:
    """The file with the answers about one chapter; the last line about a question counts.

    Args:
        course: the course.
        chapter: the chapter's full name.
    """

    def __init__(self, course: Course, chapter: str) -> None:
        self.path: Path = course.root / "viva" / chapter / "answers.jsonl"

    def conversations(self) -> dict[str, Conversation]:
        """Return the recorded conversations by student.

        Raises:
            CourseError: if a line is damaged.
        """
        recorded: dict[str, Conversation] = {}
        for number, line in enumerate(read_lines(self.path, do=_REMEDY), start=1):
            try:
                student = str(line["student"])
                recorded[student] = _apply_line(recorded.get(student, Conversation(student)), line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                problem = f"line {number} is not an answer ({type(error).__name__}: {error})"
                raise CourseError(problem, where=self.path, do=_REMEDY) from error
        return recorded

    def conversation(self, student: str) -> Conversation:
        """Return a student's recorded conversation."""
        return self.conversations().get(student, Conversation(student))

    def answer(
        self, student: str, marker: str, sheet: str, question_count: int, number: int, answer: VivaAnswer | None
    ) -> None:
        """Append an answer, which is on disk when this returns.

        Args:
            marker: the name of the person who records it.
            sheet: the sheet of questions. Answers on another sheet no longer count.
            question_count: the number of questions on the sheet.
            number: the number of the question, from 0.
            answer: the answer; None takes an answer back.
        """
        content = None if answer is None else vars(answer)
        fields = {"sheet": sheet, "question_count": question_count, "number": number}
        self._append_line({"student": student, "marker": marker, **fields, "answer": content})

    def note(self, student: str, marker: str, text: str) -> None:
        """Append a note, which replaces the student's earlier note."""
        self._append_line({"student": student, "marker": marker, "note": text})

    def _append_line(self, line: Mapping[str, Any]) -> None:
        time = datetime.now().astimezone().isoformat(timespec="seconds")
        file = AppendOnlyFile(self.path)
        try:
            file.append({"time": time, **line}, durable=True)
        finally:
            file.close()


def _apply_line(before: Conversation, line: Mapping[str, Any]) -> Conversation:
    """Apply one line of the journal to a conversation."""
    after = replace(before, marker=str(line["marker"]), time=str(line["time"]))
    if "note" in line:
        return replace(after, note=str(line["note"]))
    sheet, number = str(line["sheet"]), int(line["number"])
    answers = dict(before.answers) if sheet == before.sheet else {}
    answers.pop(number, None)
    if (content := line["answer"]) is not None:
        answers[number] = VivaAnswer(str(content["exercise"]), int(content["option"]), bool(content["right"]))
    return replace(after, sheet=sheet, question_count=int(line["question_count"]), answers=answers)
