"""A course may assign some of a chapter's exercises: the others are gone, and what the rest builds on is provided."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import Result
from nbgrader.api import Gradebook

from autograder.course.authoring.chapter import find_chapter, grade_id
from autograder.course.authoring.selection import provided_exercises, select_exercises
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.course_file_edits import set_selection
from autograder.course.folder import Course
from autograder.course.release.assign import assign
from autograder.errors import CourseError

ROOT = Path(__file__).parents[3]
FIRST = "90_first"


def ids(notebook: Any) -> list[str]:
    return [grade_id(cell) for cell in notebook.cells if grade_id(cell)]


def test_sections_of_left_out_exercises_are_gone() -> None:
    chapter = select_exercises(find_chapter(ROOT, "07"), lambda name: name in ("greedy_search", "top_p"))
    notebook = source_notebook(chapter)
    assert ids(notebook) == ["setup", "greedy_search", "test_greedy_search", "top_p", "test_top_p"]
    text = "\n".join(cell.source for cell in notebook.cells if cell.source.startswith("## "))
    assert [line for line in text.split("\n") if line.startswith("## ")] == [
        "## 1 · Greedy search: `greedy_search`",
        "## 6 · Mass: `top_p`",
    ]


def test_what_an_exercise_builds_on_is_provided() -> None:
    chapter = select_exercises(find_chapter(ROOT, "07"), lambda name: name == "beam_search")
    assert [exercise.name for exercise in provided_exercises(chapter)] == ["length_penalty"]
    cells = source_notebook(chapter).cells
    cell = next(cell for cell in cells if grade_id(cell) == "provided")
    assert cells[1].source.startswith("**This assignment has 1 exercise for ")
    assert "`beam_search`" in cells[1].source
    assert cells.index(cell) == 3, "below the first code cell"
    assert "from tfcourse.decoding import length_penalty" in cell.source
    assert cell.metadata.nbgrader.locked


@pytest.fixture
def small_course(small: Any, course: Course, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course whose exercises are those of the small project."""
    monkeypatch.setattr("autograder.checks.exercises", lambda: small.registry)
    return course


def max_scores(course: Course) -> dict[str, float]:
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        return {cell.name: cell.max_score for cell in book.find_notebook(FIRST, FIRST).grade_cells}


def test_release_and_gradebook_follow_the_selection(small: Any, small_course: Course) -> None:
    set_selection(small_course.root, FIRST, only=["masked_attention_weights", "question_order"])
    made = assign(small.root, small_course, [FIRST])[0]
    notebook = nbformat.read(made.notebook, as_version=4)
    assert "causal_mask" not in " ".join(ids(notebook))
    assert set(max_scores(small_course)) == {"test_masked_attention_weights", "question_order"}
    with zipfile.ZipFile(made.wheel) as wheel:
        source = wheel.read("tfcourse/attention.py").decode()
    assert "causal_mask is an exercise of chapter" in source, "what nobody builds on stays a stub"


def test_choice_that_the_chapter_lacks_names_the_file(small: Any, small_course: Course) -> None:
    set_selection(small_course.root, FIRST, only=["masked_attention"])
    with pytest.raises(CourseError, match="Did you mean masked_attention_weights") as caught:
        assign(small.root, small_course, [FIRST])
    assert caught.value.where == str(course_file_path(small_course.root))


@pytest.fixture
def project(small: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the small project, as the current folder and with its own exercises as the course's."""
    monkeypatch.setattr("autograder.checks.exercises", lambda: small.registry)
    (small.root / "_config.yml").write_text("title: A course\n")
    monkeypatch.chdir(small.root)
    root: Path = small.root
    return root


@pytest.mark.usefixtures("project")
def test_command_keeps_the_choice_until_all_is_asked_for(run: Callable[..., Result], tmp_path: Path) -> None:
    folder = tmp_path / "class"
    first = run("assign", FIRST, "--only", "masked_attention_weights", "--course", folder)
    assert first.exit_code == 0, first.output
    assert str(folder) in first.output
    again = run("assign", FIRST, "--course", folder)
    assert "new course" not in again.output
    assert set(max_scores(Course.open(folder))) == {"test_masked_attention_weights"}
    assert run("assign", FIRST, "--all", "--course", folder).exit_code == 0
    assert {"test_causal_mask", "test_masked_attention_weights", "question_order"} <= set(
        max_scores(Course.open(folder))
    )
    assert read_course_file(folder).chapter(FIRST).only is None


@pytest.mark.usefixtures("project")
def test_mistyped_course_is_noticed_when_it_is_made(run: Callable[..., Result], tmp_path: Path) -> None:
    assert "beside it" not in run("assign", FIRST, "--course", tmp_path / "autumn").output
    mistyped = run("assign", FIRST, "--course", tmp_path / "autum")
    assert "There is a course autumn beside it: if you meant that, delete autum." in mistyped.output


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "masked_attention"], "Did you mean masked_attention_weights?"),
        (["--without", "masked_attention_weights,causal_mask,question_order"], "nothing of 90_first is left"),
        (["--only", "causal_mask", "--all"], "--all"),
        (["91_second", "--only", "causal_mask"], "one chapter"),
    ],
)
def test_wrong_choice_changes_nothing(run: Callable[..., Result], tmp_path: Path, words: list[str], says: str) -> None:
    folder = tmp_path / "class"
    assert run("assign", FIRST, "--course", folder).exit_code == 0
    before = course_file_path(folder).read_text()
    result = run("assign", FIRST, *words, "--course", folder)
    assert result.exit_code == 2
    assert says in result.output
    assert course_file_path(folder).read_text() == before
