"""What the tests of the engine share: a student's process to ask, and the checker's side of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.engine.checker.zygote_client import ZygoteClient
from autograder.engine.workers.sandbox_settings import engine_settings, student_environment

from .student import Student


@pytest.fixture
def student() -> Iterator[Student]:
    """A student's process without a sandbox, and the conversation with it."""
    made = Student()
    yield made
    made.close()


@pytest.fixture(scope="module")
def zygote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZygoteClient]:
    """A zygote with the ``SETTINGS`` of the test file, ready to fork."""
    settings = request.module.SETTINGS
    made = ZygoteClient(engine_settings(settings), student_environment(settings, tmp_path_factory.mktemp("home")))
    made.make_ready()
    yield made
    made.close()
