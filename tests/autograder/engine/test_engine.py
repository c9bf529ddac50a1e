"""How long a submission took: its own time, and nothing of what the worker prepares for all."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.engine.interface import Submission
from autograder.engine.workers import engine as engine_module


class Clock:
    """A clock that stands still unless it is set forward."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def test_warm_up_is_no_time_of_the_first_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(engine_module, "monotonic", clock)
    monkeypatch.setattr(engine_module.linux, "use_large_pages", lambda: clock.pass_by(1))
    results: list[dict[str, Any]] = [
        {"lacks": []},
        {"notebook": "{}", "answers": "", "isolation": "sandbox", "layers": [], "signatures": {}},
        {"notebook": "{}", "answers": "", "isolation": "sandbox", "layers": [], "signatures": {}},
    ]

    class Parts:
        """The zygote and the stock of answers: both take long the first time."""

        warmed = False

        def make_ready(self) -> bool:
            clock.pass_by(0 if self.warmed else 30)
            self.warmed = True
            return False

        def fill(self, lacks: object) -> None:
            clock.pass_by(20)

    def checked(engine: object, submission: Submission) -> dict[str, Any]:
        clock.pass_by(2)
        return results.pop(0)

    engine = engine_module.Engine.__new__(engine_module.Engine)
    engine._settings = engine_module.GradingSettings(device="cpu")
    engine._zygote = engine._answer_cache = Parts()  # type: ignore[assignment]
    engine._checker = None
    monkeypatch.setattr(engine_module.Engine, "_checked", checked)
    work = Submission("ada", "03", "{}")
    assert [engine.grade_one(work).seconds for _ in range(2)] == [4, 2]
