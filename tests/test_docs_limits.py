"""The limits of grading as the guide for instructors and a new course's configuration tell them, against those that there are."""

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from autograder.course.folder import CONFIG_NAME, Course
from autograder.engine.checker.cell_results import LONGEST_OUTPUTS
from autograder.engine.checker.rpc_client import memory_text
from autograder.engine.settings import _NOT_CONFIGURED, GradingSettings, read_limits
from autograder.intake.notebook.images import MAX_PIXELS
from autograder.intake.notebook.notebook_reader import MAX_PICTURES

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "book" / "teaching" / "isolation.md").read_text(encoding="utf-8")
STUDENTS = (ROOT / "book" / "students.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (.+) \|$", re.MULTILINE)
SETTING = re.compile(r"^(?:# )?c\.GradingLimits\.(\w+) = ([^#\n]+?)\s*(?:#.*)?$", re.MULTILINE)


def configurable() -> dict[str, Any]:
    """What ``c.GradingLimits`` has, with the defaults."""
    return {field.name: field.default for field in fields(GradingSettings) if field.name not in _NOT_CONFIGURED} | {
        "seed": read_limits(Config()).seed
    }


def test_the_guide_has_a_row_for_every_limit_with_its_default() -> None:
    rows = [(name, ast.literal_eval(value)) for name, value, _ in ROW.findall(GUIDE)]
    assert sorted(rows) == sorted(configurable().items())


def test_the_guides_examples_set_limits_that_exist_to_values_that_they_can_have() -> None:
    examples = SETTING.findall(GUIDE)
    assert examples
    for name, value in examples:
        assert getattr(read_limits(Config({"GradingLimits": {name: ast.literal_eval(value)}})), name) is not None


def test_the_limits_that_a_new_courses_configuration_shows_are_the_defaults(tmp_path: Path) -> None:
    text = (Course.open(tmp_path / "course", create=True).root / CONFIG_NAME).read_text(encoding="utf-8")
    shown = {name: ast.literal_eval(value) for name, value in SETTING.findall(text)}
    assert shown
    assert shown == {name: configurable()[name] for name in shown}


def test_the_guide_for_students_tells_the_limits_that_they_meet() -> None:
    default = GradingSettings()
    assert (
        f"{default.cell_seconds} seconds for a cell, {default.submission_seconds // 60} minutes for all of it"
        in STUDENTS
    )
    assert default.exercise_seconds == default.cell_seconds
    assert f"| memory | {default.memory_mb // 1024} GiB |" in STUDENTS
    assert (
        f"{default.kept_output:,} characters per cell, and all output of a notebook up to {LONGEST_OUTPUTS:,}"
        in STUDENTS
    )
    assert f"{MAX_PICTURES // 2**20} MB and {MAX_PIXELS // 1_000_000} million pixels in all" in STUDENTS


@pytest.mark.parametrize("page", ["teaching/isolation", "students"])
def test_what_a_student_reads_about_memory_stands_in_the_guide_word_for_word(page: str) -> None:
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    assert memory_text(GradingSettings().memory_mb) in text
