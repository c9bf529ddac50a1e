"""Serve the live view: a second, read-only server whose page may be projected, and that follows a running autograde."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tornado.web import HTTPError

from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.graded_code import GradedCode
from autograder.marking.live_view.live_data import live_state
from autograder.marking.local_server import LocalApplication, LocalHandler

COOKIE = "tfcourse_live"
# Reading 800 results takes seconds: the marking page answers in between.
_PAUSE, _PAUSE_PER_READING = 2.0, 4.0


class LiveApplication(LocalApplication):
    """The live view's handlers. None of them writes.

    Args:
        reader: reads the chapter; it may be shared with the marking page.
        clock: returns seconds.
    """

    cookie: ClassVar[str] = COOKIE

    def __init__(self, reader: ChapterReader, clock: Callable[[], float] = time.monotonic) -> None:
        self.exercises = reader.exercises()
        self._reader, self._clock = reader, clock
        self._code: GradedCode | None = None
        self._next = 0.0
        super().__init__(reader.chapter, [("/", LivePageHandler), ("/state", StateHandler)])

    def state(self, shown: Mapping[str, int]) -> dict[str, Any]:
        """Return what the page shows now.

        Args:
            shown: how many groups of each exercise the lecturer has revealed.
        """
        begin = self._clock()
        if self._code is None or begin >= self._next:
            self._code = self._reader.graded_code()
            state = live_state(self.exercises, self._code, shown)
            self._next = self._clock() + _PAUSE + _PAUSE_PER_READING * (self._clock() - begin)
            return state
        return live_state(self.exercises, self._code, shown)


class LiveHandler(LocalHandler):
    """A handler of the live view."""

    application: LiveApplication


class LivePageHandler(LiveHandler):
    """Serves the page, whose script requests the state."""

    def get(self) -> None:
        """Send the page."""
        self.show("live.html")


class StateHandler(LiveHandler):
    """Sends what the page shows."""

    def get(self) -> None:
        """Send bars, rows and the revealed groups."""
        try:
            shown = json.loads(self.get_query_argument("shown", "{}"))
        except ValueError:
            shown = None
        if not isinstance(shown, dict) or not all(type(count) is int and count >= 0 for count in shown.values()):
            raise HTTPError(400, reason="Shown is not an object of counts")
        self.write(self.application.state(shown))
