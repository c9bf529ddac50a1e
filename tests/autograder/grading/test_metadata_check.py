"""The check of nbgrader's metadata that remembers says what nbgrader's own says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.nbgraderformat import MetadataValidator, SchemaTooNewError, SchemaTooOldError
from nbgrader.nbgraderformat.common import BaseMetadataValidator, ValidationError
from nbgrader.preprocessors import CheckCellMetadata

from autograder.grading import metadata_check as module
from autograder.grading.metadata_check import CheckMetadata, RememberingValidator

from .conftest import mark

Change = Callable[[dict[str, Any]], Any]
FAULTS: dict[str, Change] = {
    "a word for points": lambda about: about.update(points="many"),
    "no points": lambda about: about.pop("points"),
    "a number for yes": lambda about: about.update(grade=1),
    "an older form": lambda about: about.update(schema_version=2),
    "a newer form": lambda about: about.update(schema_version=4),
    "no name": lambda about: about.pop("grade_id"),
    "an odd name": lambda about: about.update(grade_id="no spaces"),
    "a task in code": lambda about: about.update(task=True),
}


def notebook() -> Any:
    test = mark("test_one", grade=True, locked=True, points=2)
    answer = mark("answer", grade=True, solution=True, points=4)
    return new_notebook(cells=[new_code_cell("1", metadata=test), new_markdown_cell("2", metadata=answer)])


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found_as_nbgrader_finds_it_also_after_sound_ones(fault: str) -> None:
    CheckMetadata().preprocess(notebook(), {})
    broken = notebook()
    FAULTS[fault](broken.cells[0].metadata["nbgrader"])
    with pytest.raises((ValidationError, SchemaTooOldError, SchemaTooNewError)) as theirs:
        CheckCellMetadata().preprocess(nbformat.from_dict(broken), {})
    for _ in range(2):
        with pytest.raises(theirs.type) as ours:
            CheckMetadata().preprocess(broken, {})
        assert str(ours.value) == str(theirs.value)


def test_a_name_that_is_there_twice_is_found_although_both_are_sound() -> None:
    twice = notebook()
    twice.cells.append(new_code_cell("3", metadata=twice.cells[0].metadata))
    with pytest.raises(ValidationError, match="metadata may be corrupted"):
        CheckMetadata().preprocess(twice, {})


def test_a_cell_that_changed_its_type_is_found_although_its_metadata_are_known() -> None:
    validator = RememberingValidator()
    validator.validate_nb(notebook())
    turned = notebook()
    turned.cells[0] = new_markdown_cell("1", metadata=turned.cells[0].metadata)
    with pytest.raises(ValidationError, match="not marked as a solution"):
        validator.validate_nb(turned)


def test_the_schema_is_asked_once_about_each_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = BaseMetadataValidator.validate_cell

    def counted(self: Any, cell: Any) -> None:
        asked.append(cell.metadata["nbgrader"]["grade_id"])
        ask(self, cell)

    monkeypatch.setattr(BaseMetadataValidator, "validate_cell", counted)
    validator = RememberingValidator()
    for _ in range(3):
        validator.validate_nb(notebook())
    assert asked == ["test_one", "answer"]


def test_metadata_of_strangers_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 1)
    validator = RememberingValidator()
    validator.validate_nb(notebook())
    assert len(validator._valid) == 1


def test_a_notebook_without_metadata_is_sound() -> None:
    plain = new_notebook(cells=[new_code_cell("1")])
    MetadataValidator().validate_nb(plain)
    assert CheckMetadata().preprocess(plain, {})[0] is plain
