"""Headings, hours and counts follow from the exercises themselves."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.course.authoring.numbering import renumber_headings
from autograder.course.authoring.sync import sync


def test_headings_are_numbered_in_order_and_nothing_else_changes() -> None:
    text = "# Exercises\n\n## 1 · One\n\n## 0 · New: `f`\n\n```{code-cell} ipython3\n## 7 · a comment\n```\n\n## 2 · Two\n\n## Notes\n"
    expected = text.replace("## 2 · Two", "## 3 · Two").replace("## 0 · New", "## 2 · New")
    assert renumber_headings(text) == expected
    assert renumber_headings(expected) == expected


@pytest.fixture
def outdated(small: Any) -> Any:
    """A small project whose headings, hours and README are out of date."""
    chapter = small.chapter()
    for number, name in ((5, "causal_mask"), (5, "masked_attention_weights")):
        effort = f"## {number} · The function: `{name}`\n\n*Difficulty ★, about 50 minutes.*"
        small.edit(chapter.path, f"## `{name}`", effort)
    small.edit(
        chapter.path, "## In words: does the order matter?", "## 1 · In words\n\n*Difficulty ★, about 50 minutes.*"
    )
    (small.root / "README.md").write_text("2 chapters, 9 exercises. Each\n\n| 90 · First | masks: 7 exercises |\n")
    small.edit(chapter.lesson, "An idea", "The exercises take about nine hours. An idea")
    return small


def test_sync_reports_and_repairs_numbers(outdated: Any) -> None:
    drifts = sync(outdated.root, check=True, registry=outdated.registry)
    assert {drift.file.name for drift in drifts} == {"exercises.md", "exercises.ipynb", "lesson.md", "README.md"}
    assert all(drift.mendable for drift in drifts)
    sync(outdated.root, registry=outdated.registry)
    text = outdated.chapter().text
    assert [line[:4] for line in text.splitlines() if " · " in line] == ["## 1", "## 2", "## 3"]
    assert "take about two hours" in outdated.chapter().lesson.read_text()
    assert (outdated.root / "README.md").read_text() == (
        "2 chapters, 4 exercises. Each\n\n| 90 · First | masks: 2 exercises |\n"
    )
    assert sync(outdated.root, check=True, registry=outdated.registry) == []


def test_a_prompt_without_minutes_is_reported_as_a_drift_of_its_chapter(outdated: Any) -> None:
    outdated.edit(outdated.chapter().path, "*Difficulty ★, about 50 minutes.*", "")
    drifts = sync(outdated.root, check=True, registry=outdated.registry)
    assert any(not drift.mendable for drift in drifts)
