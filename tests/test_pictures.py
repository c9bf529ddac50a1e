"""The README's pictures show what there is today: the text behind each was noted when it was taken."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from autograder.course.authoring.chapter import load_chapters

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = json.loads((IMAGES / "shown.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def take() -> ModuleType:
    """The command that takes the pictures."""
    spec = importlib.util.spec_from_file_location("take", IMAGES / "take.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SHOWN)
def test_a_picture_shows_what_there_is_today(take: ModuleType, name: str) -> None:
    assert take.texts()[name] == SHOWN[name], "run: make demo && python docs/images/take.py"


def test_the_readme_shows_every_picture_and_no_other() -> None:
    names = re.findall(r"docs/images/(\w+)\.png", README)
    assert sorted(names) == sorted(SHOWN) == sorted(path.stem for path in IMAGES.glob("*.png"))


def test_every_picture_is_light_enough_for_a_page() -> None:
    assert {path.name: path.stat().st_size for path in IMAGES.glob("*.png") if path.stat().st_size > 300_000} == {}


def test_the_readme_counts_chapters_and_exercises_right() -> None:
    course = load_chapters(ROOT)
    total = sum(len(chapter.exercises()) for chapter in course)
    assert f"{len(course)} chapters" in README
    assert f"{total} exercises" in " ".join(README.split())
    rows = re.findall(r"^\| (\d\d) · .*: (\d+) exercises \|$", README, re.MULTILINE)
    assert rows == [(chapter.name[:2], str(len(chapter.exercises()))) for chapter in course]
