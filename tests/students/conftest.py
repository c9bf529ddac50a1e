"""What the tests of lessons on students' machines share."""

import pytest

from autograder.authoring.chapter import chapters
from autograder.release.lesson_notebook import lesson_notebooks

from .own_code import ROOT


@pytest.fixture(scope="session")
def lessons() -> dict[str, bytes]:
    """The lesson notebooks of all chapters."""
    return lesson_notebooks(chapters(ROOT))
