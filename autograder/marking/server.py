"""Serve the marking page to one browser on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import ClassVar

from tornado.web import HTTPError

from autograder.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.code_page import code_groups, mark_text
from autograder.marking.code_text import shortened_lines
from autograder.marking.local_server import LocalApplication, LocalHandler
from autograder.marking.marks import Marks, StaleMarkError
from autograder.marking.page_data import Pseudonyms, rubric_items, shown_groups
from autograder.marking.points_field import read_points
from autograder.marking.questions import Question

COOKIE = "tfcourse_mark"
_LONGEST_COMMENT = 20_000


class MarkingApplication(LocalApplication):
    """The page's handlers and what they share.

    Args:
        course: the course.
        chapter: the chapter's full name.
        marker: who marks, for the journal.
        rubrics: the chapter's rubrics by question.
        names: whether the page shows who wrote an answer.
        tell: called with a message for each answer that takes too long to render.
    """

    cookie: ClassVar[str] = COOKIE

    def __init__(
        self,
        course: Course,
        chapter: str,
        marker: str,
        rubrics: Mapping[str, Rubric],
        *,
        names: bool = False,
        tell: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.course, self.rubrics, self.names = course, rubrics, names
        self.marks = Marks(course, chapter, marker)
        self.reader = self.marks.reader
        self.pseudonyms = Pseudonyms(secrets.token_bytes(32))
        self.texts = AnswerTexts(tell)
        super().__init__(
            chapter,
            [
                ("/", QuestionsHandler),
                (r"/question/(\w+)", QuestionHandler),
                (r"/question/(\w+)/give", GiveHandler),
                (r"/question/(\w+)/code/([0-9a-f]{16})", CodeHandler),
                ("/history", HistoryHandler),
                ("/undo", UndoHandler),
            ],
        )

    def questions(self) -> list[Question]:
        """Return the chapter's questions as they are now."""
        return self.reader.questions()


class MarkingHandler(LocalHandler):
    """A handler of the marking page."""

    application: MarkingApplication

    def question(self, name: str) -> Question:
        """Return a question by its name."""
        question = self.application.reader.question(name)
        if question is None:
            raise HTTPError(404, reason="No such question")
        return question


class QuestionsHandler(MarkingHandler):
    """Lists the questions."""

    def get(self) -> None:
        """Show how much of each question is done."""
        self.show("questions.html", questions=self.application.questions())


class QuestionHandler(MarkingHandler):
    """Shows the answers to one question."""

    def get(self, name: str) -> None:
        """Show the answers beside the form, answers in words with their rubric."""
        question = self.question(name)
        comments = sorted({answer.state.comment for answer in question.answers if answer.state.comment})
        values = {"question": question, "comments": comments, "xsrf": self.xsrf_token.decode()}
        pseudonyms, names, texts = self.application.pseudonyms, self.application.names, self.application.texts
        texts.begin_page()
        if question.is_code:
            code = self.application.reader.graded_code()
            groups = code_groups(question, code, pseudonyms, texts, names=names)
            self.show("code.html", groups=groups, rubric=None, items=[], **values)
        else:
            rubric = self.application.rubrics.get(name)
            answers = shown_groups(question, pseudonyms, texts, names=names)
            self.show("question.html", groups=answers, rubric=rubric, items=rubric_items(rubric), **values)


class CodeHandler(MarkingHandler):
    """Gives one member's code, which the page shows when it is asked for."""

    def get(self, name: str, member: str) -> None:
        """Send the code's lines, and its difference from the code that stands for its group."""
        question = self.question(name)
        student = self.application.pseudonyms.students(question).get(member)
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
        question, data = self.question(name), self.body()
        students = self.application.pseudonyms.students(question)
        members, points, comment = data.get("members"), data.get("points"), data.get("comment", "")
        if not isinstance(members, dict) or not members or not isinstance(comment, str):
            raise HTTPError(400, reason="Members or comment missing")
        if len(comment) > _LONGEST_COMMENT:
            raise HTTPError(400, reason="The comment is too long")
        points = _points(points)
        if not members.keys() <= students.keys():
            raise HTTPError(409, reason="An answer is no longer here. Reload the page.")
        versions = {students[member]: str(version) for member, version in members.items()}
        try:
            entry = self.application.marks.give(name, versions, points, comment)
        except StaleMarkError as error:
            raise HTTPError(409, reason=_one_line(error)) from None
        except CourseError as error:
            raise HTTPError(400, reason=_one_line(error)) from None
        now = self.question(name)
        fresh = {self.application.pseudonyms.of(name, answer.student): answer for answer in (*now.answers, *now.others)}
        remaining = {member: fresh[member] for member in members if member in fresh}
        self.write(
            {
                "entry": entry.id,
                "points": points,
                "members": {member: answer.version for member, answer in remaining.items()},
                "states": {member: mark_text(answer) for member, answer in remaining.items()},
                "open": [member for member, answer in remaining.items() if answer.is_open],
                "waiting": now.waiting,
            }
        )


class HistoryHandler(MarkingHandler):
    """Shows what was given."""

    def get(self) -> None:
        """List the journal, newest first."""
        entries = self.application.marks.history()
        undone = {entry.undoes for entry in entries}
        xsrf = self.xsrf_token.decode()
        self.show("history.html", entries=entries[::-1], undone=undone, xsrf=xsrf)


class UndoHandler(MarkingHandler):
    """Takes a mark back."""

    def post(self) -> None:
        """Take back an entry; say how many of its answers somebody has changed since."""
        try:
            undone = self.application.marks.undo(str(self.body().get("entry", "")))
        except StaleMarkError as error:
            raise HTTPError(409, reason=_one_line(error)) from None
        except CourseError as error:
            raise HTTPError(404, reason=_one_line(error)) from None
        count = len(undone.entry.changes) if undone.entry else 0
        names = list(undone.skipped) if self.application.names else []
        self.write({"undone": count, "skipped": len(undone.skipped), "names": names})


def _points(sent: object) -> float | None:
    """Return the points that the page has sent: a number, or text as it was typed."""
    if isinstance(sent, str):
        try:
            return read_points(sent)
        except ValueError as error:
            raise HTTPError(400, reason=str(error)) from None
    if isinstance(sent, bool) or not isinstance(sent, int | float | None):
        raise HTTPError(400, reason="Points are a number")
    return sent


def _one_line(error: CourseError) -> str:
    return f"{error.what.capitalize()}. {error.do}".strip()
