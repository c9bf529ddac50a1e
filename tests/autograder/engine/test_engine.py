"""How long a submission took: its own time, and nothing of what the worker prepares for all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from autograder.engine.interface import Submission
from autograder.engine.workers import engine as engine_module


def test_warm_up_is_no_time_of_the_first_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    now, done = [100.0], {"notebook": "{}", "answers": "", "isolation": "sandbox", "layers": [], "signatures": {}}

    def takes(*seconds: float, gives: Any = None) -> Any:
        left, results = iter(seconds), iter(gives or [None] * len(seconds))

        def work(*arguments: object) -> Any:
            now[0] += next(left)
            return next(results)

        return work

    monkeypatch.setattr(engine_module, "monotonic", lambda: now[0])
    monkeypatch.setattr(engine_module.linux, "use_large_pages", takes(1))
    monkeypatch.setattr(engine_module.Engine, "_ask_checker", takes(2, 2, 2, gives=[{"lacks": []}, done, done]))
    engine = engine_module.Engine.__new__(engine_module.Engine)
    engine._settings = engine_module.GradingSettings(device="cpu")
    # Both take long the first time.
    engine._zygote = SimpleNamespace(make_ready=takes(30, 0, gives=[False, False]))  # type: ignore[assignment]
    engine._answer_cache = SimpleNamespace(fill=takes(20))  # type: ignore[assignment]
    engine._checker = None
    assert [engine.grade_one(Submission("ada", "03", "{}")).seconds for _ in range(2)] == [4, 2]
