"""Serve the marking page to one browser on this machine."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

from tornado.escape import json_decode
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler

from autograder.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.feedback.markup import markdown, points_text
from autograder.marking.marks import Marks, StaleMarkError
from autograder.marking.page_data import Pseudonyms, rubric_items, shown_groups
from autograder.marking.questions import Question, read_questions

HERE = Path(__file__).parent
COOKIE = "tfcourse_mark"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_MOST_BYTES = 200_000
_LONGEST_COMMENT = 20_000


class MarkingApplication(Application):
    """The page's handlers and what they share.

    Args:
        course: the course.
        chapter: the chapter's full name.
        marker: who marks, for the journal.
        rubrics: the chapter's rubrics by question.
        names: whether the page shows who wrote an answer.
    """

    def __init__(
        self, course: Course, chapter: str, marker: str, rubrics: Mapping[str, Rubric], *, names: bool = False
    ) -> None:
        self.course, self.chapter, self.rubrics, self.names = course, chapter, rubrics, names
        self.marks = Marks(course, chapter, marker)
        self.token = secrets.token_urlsafe(32)
        self.session = secrets.token_urlsafe(32)
        self.pseudonyms = Pseudonyms(secrets.token_bytes(32))
        self.hosts: frozenset[str] = frozenset()
        super().__init__(
            [
                ("/", QuestionsHandler),
                ("/open", OpenHandler),
                (r"/question/(\w+)", QuestionHandler),
                (r"/question/(\w+)/give", GiveHandler),
                ("/history", HistoryHandler),
                ("/undo", UndoHandler),
                (r"/static/(.*)", PageFileHandler, {"path": str(HERE / "static")}),
            ],
            template_path=str(HERE / "templates"),
            autoescape="xhtml_escape",
            xsrf_cookies=True,
            xsrf_cookie_kwargs={"httponly": True, "samesite": "Strict"},
            default_handler_class=MissingHandler,
            compress_response=False,
        )

    def listen_locally(self, port: int = 0) -> tuple[HTTPServer, str]:
        """Listen on this machine only, and return the server and the address that opens the page.

        Args:
            port: the port; 0 takes a free one.
        """
        sockets = bind_sockets(port, "127.0.0.1")
        server = HTTPServer(self, max_body_size=_MOST_BYTES, max_buffer_size=_MOST_BYTES)
        server.add_sockets(sockets)
        bound = sockets[0].getsockname()[1]
        self.hosts = frozenset({f"127.0.0.1:{bound}", f"localhost:{bound}"})
        return server, f"http://127.0.0.1:{bound}/open?token={self.token}"

    def questions(self) -> list[Question]:
        """Return the chapter's questions as they are now."""
        return read_questions(self.course, self.chapter)


class LocalHandler(RequestHandler):
    """A handler that answers only this browser: the right Host, the session's cookie, no foreign origin."""

    application: MarkingApplication
    needs_session = True

    def set_default_headers(self) -> None:
        """Forbid everything that the page does not need."""
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> Awaitable[None] | None:
        """Refuse requests of other sites and of other programs."""
        if self.request.host not in self.application.hosts:
            raise HTTPError(403, reason="Wrong host")
        origin = self.request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") != self.request.host:
            raise HTTPError(403, reason="Wrong origin")
        cookie = self.get_cookie(COOKIE, "") or ""
        if self.needs_session and not hmac.compare_digest(cookie.encode(), self.application.session.encode()):
            raise HTTPError(403, reason="Open the address that tfcourse mark has printed")
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong, without a traceback."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = str(error) if isinstance(error, CourseError) else self._reason
        self.set_header("Content-Type", "application/json")
        self.finish({"error": message})

    def show(self, template: str, **values: Any) -> None:
        """Render a template with what all of them use."""
        shared = {"chapter": self.application.chapter, "points_text": points_text, "markdown": markdown}
        self.render(template, **shared, **values)

    def question(self, name: str) -> Question:
        """Return a question by its name."""
        for question in self.application.questions():
            if question.name == name:
                return question
        raise HTTPError(404, reason="No such question")

    def body(self) -> dict[str, Any]:
        """Return the request's JSON object."""
        try:
            data = json_decode(self.request.body)
        except ValueError:
            raise HTTPError(400, reason="Not JSON") from None
        if not isinstance(data, dict):
            raise HTTPError(400, reason="Not a JSON object")
        return data


class MissingHandler(LocalHandler):
    """Answers for every other address."""

    def prepare(self) -> None:
        """Refuse."""
        super().prepare()
        raise HTTPError(404)


class OpenHandler(LocalHandler):
    """Turns the token in the printed address into a cookie that no script can read."""

    needs_session = False

    def get(self) -> None:
        """Set the cookie and go to the page; the token disappears from the address."""
        token = self.get_query_argument("token", "")
        if not hmac.compare_digest(token.encode(), self.application.token.encode()):
            raise HTTPError(403, reason="Wrong token")
        self.set_cookie(COOKIE, self.application.session, httponly=True, samesite="Strict", path="/")
        self.redirect("/")


class QuestionsHandler(LocalHandler):
    """Lists the questions."""

    def get(self) -> None:
        """Show how much of each question is done."""
        self.show("questions.html", questions=self.application.questions())


class QuestionHandler(LocalHandler):
    """Shows the answers to one question."""

    def get(self, name: str) -> None:
        """Show the rubric beside the answers."""
        question = self.question(name)
        groups = shown_groups(question, self.application.pseudonyms, names=self.application.names)
        rubric = self.application.rubrics.get(name)
        comments = sorted({group.comment for group in groups if group.comment})
        self.show(
            "question.html",
            question=question,
            groups=groups,
            rubric=rubric,
            items=rubric_items(rubric),
            comments=comments,
            xsrf=self.xsrf_token.decode(),
        )


class GiveHandler(LocalHandler):
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
        if isinstance(points, bool) or not isinstance(points, int | float | None):
            raise HTTPError(400, reason="Points are a number")
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
        fresh = {self.application.pseudonyms.of(name, answer.student): answer.version for answer in now.answers}
        self.write({"entry": entry.id, "members": {m: fresh[m] for m in members}, "waiting": now.waiting})


class HistoryHandler(LocalHandler):
    """Shows what was given."""

    def get(self) -> None:
        """List the journal, newest first."""
        entries = self.application.marks.history()
        undone = {entry.undoes for entry in entries}
        xsrf = self.xsrf_token.decode()
        self.show("history.html", entries=entries[::-1], undone=undone, xsrf=xsrf)


class UndoHandler(LocalHandler):
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


class PageFileHandler(LocalHandler, StaticFileHandler):
    """Serves the page's own script and style."""

    def set_extra_headers(self, path: str) -> None:
        """Keep nothing in the browser's cache."""
        self.set_header("Cache-Control", "no-store")


def _one_line(error: CourseError) -> str:
    return f"{error.what.capitalize()}. {error.do}".strip()
