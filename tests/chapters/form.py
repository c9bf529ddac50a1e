"""What holds for every lesson once it is executed. Each lesson's test file has a subclass of this class."""

from __future__ import annotations

from typing import Any

import pytest

from .lesson import described


class LessonForm:
    """The form of the executed lesson that the test file names ``LESSON``."""

    def test_nothing_is_written_to_stderr(self, cells: list[Any]) -> None:
        assert not [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]

    def test_every_figure_has_a_description_and_a_caption(
        self, request: pytest.FixtureRequest, pages: list[str]
    ) -> None:
        figures = described(pages)
        explorers = sum("-explorer" in page.partition(">")[0] for page in pages)
        assert all(figures)
        assert request.module.LESSON.captions() == list(range(1, len(figures) + explorers + 1))

    def test_prose_has_no_number_that_is_not_checked(self, request: pytest.FixtureRequest) -> None:
        assert request.module.LESSON.unchecked() == []
