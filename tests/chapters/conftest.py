"""A lesson is executed once for all tests of its file, which names it ``LESSON``."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    """The code cells of the executed lesson, and what its kernel answered."""
    return request.module.LESSON.run(tmp_path_factory.mktemp("lesson"))


@pytest.fixture(scope="module")
def cells(run: tuple[list[Any], dict[str, Any]]) -> list[Any]:
    return run[0]


@pytest.fixture(scope="module")
def values(run: tuple[list[Any], dict[str, Any]]) -> dict[str, Any]:
    return run[1]


@pytest.fixture(scope="module")
def pages(cells: list[Any]) -> list[str]:
    """What the lesson shows as HTML: drawings and explorers."""
    outputs = [output for cell in cells for output in cell.outputs]
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
