"""Serve the marking page to one browser on this machine."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar

from tornado.web import HTTPError

from autograder.course.authoring.rubrics import Rubric
from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.record.marks_journal import Ticks
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.code_text import escape_invisible, shortened_lines
from autograder.marking.local_server import LocalApplication, LocalHandler
from autograder.marking.marks import Marks, StaleMarkError
from autograder.marking.ordering import group_identical
from autograder.marking.page_data import (
    Pseudonyms,
    code_groups,
    mark_text,
    shown_moves,
    student_label,
    text_groups,
)
from autograder.marking.questions import Question, student_names
from autograder.marking.rubric_ticks import moves_version, rubric_moves, rubric_version, tick_items

COOKIE = "tfcourse_mark"
_NUMBER = re.compile(r"[0-9]{1,6}(?:[.,][0-9]{1,6})?|[.,][0-9]{1,6}")
_LONGEST_COMMENT = 20_000


class MarkingApplication(LocalApplication):
    """The marking page's application: its handlers and the objects they share.

    Args:
        course: the course.
        chapter: the chapter's full name.
        marker: the marker's name, for the journal.
        rubrics: reads the chapter's rubrics by question; each page reads them again, because a marker may change them meanwhile.
        names: whether the page shows the author of an answer.
        report: called with a message for each answer that takes too long to render.
    """

    cookie: ClassVar[str] = COOKIE

    def __init__(
        self,
        course: Course,
        chapter: str,
        marker: str,
        rubrics: Callable[[], Mapping[str, Rubric]],
        *,
        names: bool = False,
        report: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.course, self._shows_names = course, names
        self._rubrics = rubrics
        self.marks = Marks(course, chapter, marker)
        self.reader = self.marks.reader
        self.pseudonyms = Pseudonyms(secrets.token_bytes(32))
        self.texts = AnswerTexts(report)
        super().__init__(
            chapter,
            [
                ("/", QuestionsHandler),
                (r"/question/(\w+)", QuestionHandler),
                (r"/question/(\w+)/give", GiveHandler),
                (r"/question/(\w+)/rubric", RubricHandler),
                (r"/question/(\w+)/code/([0-9a-f]{16})", CodeHandler),
                ("/history", HistoryHandler),
                ("/undo", UndoHandler),
            ],
        )

    def names(self) -> Mapping[str, str] | None:
        """Return the students' names by id; None if the page must hide the authors."""
        return student_names(self.course) if self._shows_names else None

    def rules(self) -> Mapping[str, str]:
        """Return the rules of ``course.toml`` for exercises and questions, as text; empty if the file is invalid."""
        try:
            rules = read_course_file(self.course.root).chapter(self.chapter).exercises
        except CourseError:
            return {}
        return {name: str(rule) for name, rule in rules.items()}

    def rubric(self, question: str) -> Rubric | None:
        """Return a question's current rubric; None if it has none."""
        return self._rubrics().get(question)


class MarkingHandler(LocalHandler):
    """A handler of the marking page."""

    application: MarkingApplication

    def question(self, name: str) -> Question:
        """Return a question by its name, or answer with status 404."""
        question = self.application.reader.question(name)
        if question is None:
            raise HTTPError(404, reason="No such question")
        return question


class QuestionsHandler(MarkingHandler):
    """Lists the exercises and questions."""

    def get(self) -> None:
        """Show the progress of each exercise and question."""
        application = self.application
        markers = application.marks.answers_by_marker()
        self.show(
            "questions.html", questions=application.reader.questions(), rules=application.rules(), markers=markers
        )


class QuestionHandler(MarkingHandler):
    """Shows the answers to one question."""

    def get(self, name: str) -> None:
        """Show the answers next to the marking form; written answers with their rubric."""
        question = self.question(name)
        comments = sorted({answer.state.comment for answer in question.answers if answer.state.comment})
        values = {"question": question, "comments": comments, "xsrf": self.xsrf_token.decode()}
        values["rule"] = self.application.rules().get(name, "")
        pseudonyms, names, texts = self.application.pseudonyms, self.application.names(), self.application.texts
        texts.begin_page()
        if question.is_code:
            code = self.application.reader.graded_code()
            groups = code_groups(question, code, pseudonyms, texts, names=names)
            self.show("code.html", groups=groups, rubric=None, visible=escape_invisible, **values)
        else:
            rubric = self.application.rubric(name)
            values |= {"groups": text_groups(question, rubric, pseudonyms, texts, names=names), "names": names}
            values |= {"outdated": len(rubric_moves(question, rubric)), "rubric_version": rubric_version(rubric)}
            self.show("question.html", rubric=rubric, **values)


class CodeHandler(MarkingHandler):
    """Serves one member's code, which the page requests when it is expanded."""

    def get(self, name: str, member: str) -> None:
        """Send the code's lines and its diff from the group's first representative."""
        question = self.question(name)
        student = self.application.pseudonyms.student(name, member)
        answer = next((answer for answer in question.answers if answer.student == student), None)
        if answer is None or answer.code is None:
            raise HTTPError(404, reason="This answer is no longer here. Reload the page.")
        group = next(group for group in question.groups if answer.code in group.members)
        self.application.texts.begin_page()
        difference = self.application.texts.difference(name, group.representatives[0].source, answer.text)
        self.write({"code": shortened_lines(answer.text), "difference": difference})


class GiveHandler(MarkingHandler):
    """Gives a mark."""

    def post(self, name: str) -> None:
        """Give points and a comment to the answers that the page has shown."""
        data = self.body()
        members, comment = data.get("members"), data.get("comment", "")
        if not isinstance(members, dict) or not members or not isinstance(comment, str):
            raise HTTPError(400, reason="Members or comment missing")
        if len(comment) > _LONGEST_COMMENT:
            raise HTTPError(400, reason="The comment is too long")
        points = _sent_points(data.get("points"))
        ticks = self._sent_ticks(name, points)
        students = {member: self.application.pseudonyms.student(name, member) for member in members}
        versions = {student: str(members[member]) for member, student in students.items() if student is not None}
        if len(versions) < len(members):
            raise HTTPError(409, reason="An answer is no longer here. Reload the page.")
        try:
            result = self.application.marks.give(name, versions, points, comment, ticks)
        except CourseError as error:
            raise _error_response(error, 400) from None
        answers = {member: result.answers[student] for member, student in students.items() if student is not None}
        self.write(
            {
                "entry": result.entry.id,
                "points": points,
                "members": {member: answer.version for member, answer in answers.items()},
                "states": {member: mark_text(answer) for member, answer in answers.items()},
                "open": [member for member, answer in answers.items() if answer.is_open],
                "waiting": result.waiting,
            }
        )

    def _sent_ticks(self, question: str, points: float | None) -> Ticks | None:
        """Return the rubric items that the page ticked; None if it sent none; empty if the marker set the points."""
        data = self.body()
        shares = data.get("ticks") or []
        rubric = self.application.rubric(question)
        if not shares or points is None:
            return None
        if data.get("rubric") != rubric_version(rubric) or rubric is None:
            raise HTTPError(409, reason="The rubric has changed. Reload the page, and give the mark.")
        try:
            ticks = tick_items(rubric, shares)
        except (TypeError, ValueError):
            raise HTTPError(400, reason="The ticked items are not the rubric's") from None
        # Points above 0 without any tick come from the marker alone.
        return ticks if points == 0 or any(tick.share for tick in ticks) else ()


class RubricHandler(MarkingHandler):
    """Applies a changed rubric to marked answers."""

    def get(self, name: str) -> None:
        """List the answers whose points would change."""
        question = self.question(name)
        moves = rubric_moves(question, self.application.rubric(name))
        numbers = {
            answer.student: f"Answer {number}"
            for number, group in enumerate(group_identical(question.answers), start=1)
            for answer in group
        }
        shown = shown_moves(moves, numbers, names=self.application.names())
        xsrf = self.xsrf_token.decode()
        self.show("rubric.html", question=question, moves=shown, version=moves_version(moves), xsrf=xsrf)

    def post(self, name: str) -> None:
        """Change the points as the page listed them."""
        rubric, version = self.application.rubric(name), str(self.body().get("version"))
        try:
            entry, moved = self.application.marks.apply_rubric(name, rubric, version)
        except CourseError as error:
            raise _error_response(error, 404) from None
        self.write({"entry": entry.id, "moved": moved})


class HistoryHandler(MarkingHandler):
    """Shows the journal of marks."""

    def get(self) -> None:
        """List the journal's entries, newest first."""
        entries = self.application.marks.history()
        undone = {entry.undoes for entry in entries}
        xsrf = self.xsrf_token.decode()
        self.show("history.html", entries=entries[::-1], undone=undone, local_time=local_time, xsrf=xsrf)


class UndoHandler(MarkingHandler):
    """Undoes a journal entry."""

    def post(self) -> None:
        """Undo an entry, and report the answers that have changed since."""
        try:
            undone = self.application.marks.undo(str(self.body().get("entry", "")))
        except CourseError as error:
            raise _error_response(error, 404) from None
        count = len(undone.entry.changes) if undone.entry else 0
        names = self.application.names()
        labels = [] if names is None else [student_label(student, names) for student in undone.skipped]
        self.write({"undone": count, "skipped": len(undone.skipped), "names": labels})


def local_time(text: str) -> str:
    """Convert a journal's time to this machine's time zone; text that is not a time is returned unchanged."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return text


def _sent_points(sent: object) -> float | None:
    """Return the points that the page sent, as a number or as typed text."""
    if isinstance(sent, str):
        try:
            return parse_points(sent)
        except ValueError as error:
            raise HTTPError(400, reason=str(error)) from None
    if isinstance(sent, bool) or not isinstance(sent, int | float | None):
        raise HTTPError(400, reason="Points are a number")
    return sent


def _error_response(error: CourseError, status: int) -> HTTPError:
    """Build the HTTP error for a refused request: 409 if a mark has changed meanwhile, else the given status."""
    changed = isinstance(error, StaleMarkError)
    return HTTPError(409 if changed else status, reason=f"{error.what.capitalize()}. {error.do}".strip())


def parse_points(text: str) -> float | None:
    """Parse points as typed; None if the field is empty.

    ``0,5`` and ``0.5`` are both one half. No other spelling is guessed: a browser's number field drops a comma that its
    language does not expect, and so makes 5 of it.

    ``0,5`` and ``0.5`` are both one half. Nothing else is guessed: a browser's number field drops a comma that its language does not
    expect, and so makes 5 of it.

    Args:
        text: the field's text.

    Raises:
        ValueError: if the text is not a number; the message is for the marker.
    """
    text = text.strip()
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number of points. Write 2, 0.5 or 0,5.")
    return float(text.replace(",", "."))
