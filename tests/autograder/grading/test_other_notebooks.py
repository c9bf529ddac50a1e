"""nbgrader's check of metadata looks at notebooks that are not their chapter's, and at no others."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.nbgraderformat.common import ValidationError

from autograder.grading.plugin import OthersMetadata

from .conftest import mark


def notebook_with_a_name_twice() -> Any:
    test = mark("test_one", grade=True, locked=True, points=2)
    return new_notebook(cells=[new_code_cell("1", metadata=test), new_code_cell("2", metadata=test)])


def test_broken_metadata_of_another_notebook_are_refused() -> None:
    with pytest.raises(ValidationError, match="metadata may be corrupted"):
        OthersMetadata()(notebook_with_a_name_twice(), {"nbgrader": {"notebook": "extra", "assignment": "04"}})


def test_the_chapters_own_notebook_is_not_checked_again() -> None:
    notebook = notebook_with_a_name_twice()
    assert OthersMetadata()(notebook, {"nbgrader": {"notebook": "04", "assignment": "04"}})[0] is notebook
