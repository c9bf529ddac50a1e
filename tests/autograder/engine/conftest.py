"""What the tests of the engine share: a student's process to ask, and the checker's side of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .student import Student


@pytest.fixture
def student() -> Iterator[Student]:
    """A student's process without a sandbox, and the conversation with it."""
    made = Student()
    yield made
    made.close()
