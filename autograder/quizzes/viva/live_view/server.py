"""Serve the conversation page to one browser on this machine: show questions, record answers, reveal keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from tornado.web import HTTPError

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.feedback.markup import sentence_html
from autograder.grading.record.viva_journal import Conversation, VivaAnswer, VivaJournal
from autograder.grading.record.viva_scores import write_viva_scores
from autograder.marking.local_server import LocalApplication, LocalHandler, PageFileHandler
from autograder.quizzes.questions.question import LETTERS, Question, numbered_code
from autograder.quizzes.viva.interviews import Interview

COOKIE = "tfcourse_viva"
HERE = Path(__file__).parent
_LONGEST_NOTE = 5_000
_CHANGED = "Something was recorded about this student meanwhile, perhaps in another tab. Nothing was recorded here: look again."


class VivaApplication(LocalApplication):
    """The conversation page's application: its handlers and the objects they share.

    Args:
        chapter: the chapter's full name.
        interviews: the interviews of all students.
        marker: the name of the person who records the answers, for the journal.
    """

    cookie: ClassVar[str] = COOKIE
    templates: ClassVar[Path] = HERE / "templates"

    def __init__(self, course: Course, chapter: str, interviews: Sequence[Interview], marker: str) -> None:
        self.course, self.marker = course, marker
        self.interviews = {interview.student: interview for interview in interviews}
        self.journal = VivaJournal(course, chapter)
        # The reason if the gradebook could not be written after the last answer; the journal has the answer.
        self.problem = ""
        super().__init__(
            chapter,
            [
                ("/", StudentsHandler),
                (r"/student/([^/]+)", StudentHandler),
                (r"/viva/(.*)", PageFileHandler, {"path": str(HERE / "static")}),
            ],
        )

    def read_conversation(self, interview: Interview) -> Conversation:
        """Return a student's recorded conversation, without answers to other questions than the interview's."""
        recorded = self.journal.conversation(interview.student)
        return drop_other_answers(recorded, interview)

    def write_gradebook(self) -> None:
        """Update the gradebook, and store the reason if that fails."""
        try:
            write_viva_scores(self.course, self.chapter)
            self.problem = ""
        except CourseError as error:
            self.problem = f"The answers are recorded, but not yet in the gradebook: {error.what}."


def drop_other_answers(recorded: Conversation, interview: Interview) -> Conversation:
    """Return a recorded conversation, without its answers if they belong to another sheet of questions."""
    if recorded.sheet in ("", interview.made_from):
        return recorded
    return Conversation(recorded.student, note=recorded.note, marker=recorded.marker, time=recorded.time)


class VivaHandler(LocalHandler):
    """A handler of the conversation page."""

    application: VivaApplication

    def set_default_headers(self) -> None:
        """Set the default headers, with a referrer policy under which browsers send the origin with a form to this site."""
        super().set_default_headers()
        self.set_header("Referrer-Policy", "same-origin")

    def show_page(self, template: str, **values: Any) -> None:
        """Render a template with the values that both pages use."""
        shared = {"problem": self.application.problem, "address_of": page_address, "in_code": sentence_html}
        self.show(template, **shared, **values)


class StudentsHandler(VivaHandler):
    """Lists the students."""

    def get(self) -> None:
        """List the students whose name or id matches the search, optionally only students without answers."""
        find = self.get_query_argument("find", "").strip()
        recorded = self.application.journal.conversations()
        interviews = self.application.interviews.values()
        talks = {
            one.student: drop_other_answers(recorded.get(one.student, Conversation(one.student)), one)
            for one in interviews
        }
        only_open = bool(self.get_query_argument("open", ""))
        shown = [
            one
            for one in interviews
            if find.casefold() in f"{one.name} {one.student}".casefold()
            and not (only_open and (talks[one.student].begun or not one.parts))
        ]
        self.show_page(
            "students.html", interviews=shown, total=len(interviews), talks=talks, find=find, only_open=only_open
        )


class StudentHandler(VivaHandler):
    """Shows one student's code and questions, and records answers."""

    def get(self, student: str) -> None:
        """Show the questions, and the keys of answered questions."""
        interview = self._find_interview(student)
        self._show_student(interview, self.application.read_conversation(interview))

    def post(self, student: str) -> None:
        """Perform the action of the pressed button, and record the note if it has changed."""
        interview = self._find_interview(student)
        conversation = self.application.read_conversation(interview)
        note = self.get_body_argument("note", "", strip=False).replace("\r\n", "\n").strip()
        if len(note) > _LONGEST_NOTE:
            raise HTTPError(400, reason=f"The note has more than {_LONGEST_NOTE} characters")
        if self.get_body_argument("version", "") != conversation.version:
            self.set_status(409)
            self._show_student(interview, conversation, notice=_CHANGED, note=note)
            return
        action, _, value = self.get_body_argument("do", "").partition(":")
        target = self._perform_action(interview, conversation, action, value)
        if note != conversation.note:
            self.application.journal.note(student, self.application.marker, note)
        self.redirect(target, status=303)

    def _perform_action(self, interview: Interview, conversation: Conversation, action: str, value: str) -> str:
        """Perform the action of a button, and return the address of the next page."""
        here = page_address(interview.student)
        if action == "answer":
            number, _, option = value.partition(".")
            return f"{here}#question-{self._record_answer(interview, conversation, _parse_index(number), _parse_index(option)) + 1}"
        if action == "back":
            return f"{here}#question-{self._record_answer(interview, conversation, _parse_index(value), None) + 1}"
        if action == "go":
            return page_address(self._find_interview(value).student)
        if action != "save":
            raise HTTPError(400, reason="Unknown button")
        return f"{here}#note"

    def _record_answer(self, interview: Interview, conversation: Conversation, number: int, option: int | None) -> int:
        """Record an answer, or withdraw it if ``option`` is None; return the question's number."""
        answer = _check_answer(interview, conversation, number, option)
        application = self.application
        sheet = interview.made_from, interview.count
        application.journal.answer(interview.student, application.marker, *sheet, number, answer)
        application.write_gradebook()
        return number

    def _find_interview(self, student: str) -> Interview:
        interview = self.application.interviews.get(student)
        if interview is None:
            raise HTTPError(404, reason="No such student")
        return interview

    def _show_student(
        self, interview: Interview, conversation: Conversation, notice: str = "", note: str | None = None
    ) -> None:
        students = list(self.application.interviews)
        at = students.index(interview.student)
        self.show_page(
            "student.html",
            interview=interview,
            conversation=conversation,
            parts=_number_questions(interview),
            before=students[at - 1] if at else "",
            after=students[at + 1] if at + 1 < len(students) else "",
            notice=notice,
            note=conversation.note if note is None else note,
            letters=LETTERS,
        )


def page_address(student: str) -> str:
    """Return the address of a student's page."""
    return f"/student/{quote(student, safe='')}"


def _number_questions(interview: Interview) -> list[tuple[str, str, dict[int, Question]]]:
    """Return each exercise with its numbered code and its questions by number, from 0."""
    parts, number = [], 0
    for part in interview.parts:
        questions = dict(enumerate(part.questions, start=number))
        parts.append((part.exercise, numbered_code(part.source, part.hidden_lines), questions))
        number += len(questions)
    return parts


def _parse_index(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise HTTPError(400, reason="Not a number")
    return int(text)


def _check_answer(
    interview: Interview, conversation: Conversation, number: int, option: int | None
) -> VivaAnswer | None:
    """Return the answer of a button; None if the button withdraws an answer. Invalid requests raise an HTTP error."""
    if number >= interview.count:
        raise HTTPError(400, reason="No such question")
    if (option is None) == (number not in conversation.answers):
        raise HTTPError(409, reason="This question was answered or taken back meanwhile. Reload the page.")
    exercise, question = interview.questions[number]
    if option is None:
        return None
    if option >= len(question.options):
        raise HTTPError(400, reason="No such option")
    return VivaAnswer(exercise, option, option == question.key)
