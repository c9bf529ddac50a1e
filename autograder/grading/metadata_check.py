"""Speed up nbgrader's check of its metadata by remembering valid metadata."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from nbgrader.nbgraderformat.common import BaseMetadataValidator
from nbgrader.nbgraderformat.v3 import MetadataValidatorV3
from nbgrader.preprocessors import CheckCellMetadata

# A course has some hundreds of cells; a file with metadata of its own must not fill the memory.
REMEMBERED = 4_096


class _Remembering(BaseMetadataValidator):  # type: ignore[misc]
    """A base class for nbgrader's validator that does not validate the same metadata twice.

    nbgrader also validates the schema with every cell, which took a quarter of the time to record a submission.
    """

    def __init__(self) -> None:
        super().__init__()
        self._valid: set[str] = set()

    def validate_cell(self, cell: Any) -> None:
        """Validate a cell's metadata; the result depends on nothing else."""
        key = json.dumps(cell.metadata.get("nbgrader"), sort_keys=True)
        if key in self._valid:
            return
        super().validate_cell(cell)
        if len(self._valid) < REMEMBERED:
            self._valid.add(key)


class RememberingValidator(MetadataValidatorV3, _Remembering):  # type: ignore[misc]
    """nbgrader's validator with a memory."""


@lru_cache(maxsize=1)
def _validator() -> RememberingValidator:
    return RememberingValidator()


class CheckMetadata(CheckCellMetadata):  # type: ignore[misc]
    """nbgrader's CheckCellMetadata with a validator that remembers."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Check that metadata are valid and names unique; nbgrader's own step raises the error."""
        try:
            _validator().validate_nb(nb)
        except Exception:
            checked: tuple[Any, Any] = super().preprocess(nb, resources)
            return checked
        return nb, resources
