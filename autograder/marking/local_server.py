"""Serve pages to one browser on this machine: a token becomes a cookie; other hosts, origins and programs get 403."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tornado.escape import json_decode
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler

from autograder.errors import CourseError
from autograder.grading.feedback.markup import markdown_html, points_text

HERE = Path(__file__).parent
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


class LocalApplication(Application):
    """An application for one browser on this machine.

    Args:
        chapter: the chapter's full name.
        handlers: its own addresses.
    """

    # Browsers send a cookie to every port of a host, so each server's cookie is named after its kind and port.
    cookie: ClassVar[str]
    templates: ClassVar[Path] = HERE / "templates"

    def __init__(self, chapter: str, handlers: Sequence[Any]) -> None:
        self.chapter = chapter
        self.token = secrets.token_urlsafe(32)
        self.session = secrets.token_urlsafe(32)
        self.hosts: frozenset[str] = frozenset()
        self.cookie_name = self.cookie
        super().__init__(
            [
                *handlers,
                ("/open", OpenHandler),
                (r"/static/(.*)", PageFileHandler, {"path": str(HERE / "static")}),
            ],
            template_path=str(self.templates),
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
        self.cookie_name = f"{self.cookie}_{bound}"
        self.hosts = frozenset({f"127.0.0.1:{bound}", f"localhost:{bound}"})
        return server, f"http://127.0.0.1:{bound}/open?token={self.token}"


class LocalHandler(RequestHandler):
    """A handler that answers only this browser: it requires the right Host, the session's cookie, no other origin."""

    application: LocalApplication
    needs_session = True

    def set_default_headers(self) -> None:
        """Set headers that forbid everything the page does not need."""
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> Awaitable[None] | None:
        """Refuse requests from other sites and from other programs."""
        if self.request.host not in self.application.hosts:
            raise HTTPError(403, reason="Wrong host")
        origin = self.request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") != self.request.host:
            raise HTTPError(403, reason="Wrong origin")
        cookie = self.get_cookie(self.application.cookie_name, "") or ""
        if self.needs_session and not hmac.compare_digest(cookie.encode(), self.application.session.encode()):
            raise HTTPError(403, reason="Open the address that the command has printed")
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send the error message as JSON, without a traceback."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = str(error) if isinstance(error, CourseError) else self._reason
        self.set_header("Content-Type", "application/json")
        self.finish({"error": message})

    def show(self, template: str, **values: Any) -> None:
        """Render a template with the values that all templates use."""
        shared = {"chapter": self.application.chapter, "points_text": points_text, "markdown": markdown_html}
        self.render(template, **shared, **values)

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
    """Answers unknown addresses with an error."""

    def prepare(self) -> None:
        """Refuse the request with status 404."""
        super().prepare()
        raise HTTPError(404)


class OpenHandler(LocalHandler):
    """Turns the token in the printed address into a cookie that no script can read."""

    needs_session = False

    def get(self) -> None:
        """Set the cookie and redirect to the page, which removes the token from the address."""
        token = self.get_query_argument("token", "")
        if not hmac.compare_digest(token.encode(), self.application.token.encode()):
            raise HTTPError(403, reason="Wrong token")
        self.set_cookie(
            self.application.cookie_name, self.application.session, httponly=True, samesite="Strict", path="/"
        )
        self.redirect("/")


class PageFileHandler(LocalHandler, StaticFileHandler):
    """Serves the page's static files: scripts and styles."""

    def set_extra_headers(self, path: str) -> None:
        """Forbid the browser to cache the file."""
        self.set_header("Cache-Control", "no-store")
