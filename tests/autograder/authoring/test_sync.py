"""Stubs and solutions stay in step with the reference, and every step out of line is seen."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.authoring.exercise_source import solution_source, stub_source
from autograder.course.authoring.sync import sync
from autograder.errors import CourseError

ROOT = Path(__file__).parents[3]


def state(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_empty_cells_are_filled_from_the_reference_and_points_from_the_check(unsynced: Any) -> None:
    sync(unsynced.root, registry=unsynced.registry)
    cells = {cell.id: cell for cell in unsynced.chapter("91_second").notebook().cells}
    for name in ("split_heads", "MultiHeadAttention"):
        exercise = unsynced.registry[name]
        assert cells[name].source == stub_source(exercise)
        assert cells[f"test_{name}"].source == f"check({name})"
        assert cells[f"test_{name}"].metadata.nbgrader.points == exercise.points


def test_everything_but_stubs_tests_and_points_is_left_as_it_is_to_the_byte(unsynced: Any) -> None:
    def rest(text: str) -> str:
        text = re.sub(r"^  points: .*$", "  points: n", text, flags=re.MULTILINE)
        return re.sub(r"(  task: false\n---\n).*?^(```)$", r"\1\2", text, flags=re.DOTALL | re.MULTILINE)

    setup = unsynced.chapter().notebook().cells[1].source
    before = unsynced.chapter().text
    sync(unsynced.root, registry=unsynced.registry)
    after = unsynced.chapter().text
    assert rest(after) == rest(before)
    assert "at the end of this line:  \n" in rest(after)
    assert unsynced.chapter().notebook().cells[1].source == setup


def test_a_second_run_changes_nothing(small: Any) -> None:
    before = state(small.root)
    assert sync(small.root, registry=small.registry) == []
    assert state(small.root) == before
    assert sync(small.root, check=True, registry=small.registry) == []


def test_the_solution_notebook_says_what_it_is_and_holds_solutions_and_rubrics(small: Any) -> None:
    path = small.root / "solutions" / "90_first" / "exercises.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert notebook.metadata.tfcourse.generated == "tfcourse sync"
    cells = {cell.id: cell for cell in notebook.cells}
    assert cells["causal_mask"].source == solution_source(small.registry["causal_mask"])
    assert "Shuffled pairs" in cells["question_order"].source
    assert "- 2 points: the sum" in cells["question_order"].source
    assert all(cell.get("outputs") in (None, []) for cell in notebook.cells)


def test_checking_writes_nothing_and_names_every_cell(unsynced: Any) -> None:
    before = state(unsynced.root)
    drifts = sync(unsynced.root, check=True, registry=unsynced.registry)
    assert state(unsynced.root) == before
    cells = {drift.cell for drift in drifts if drift.file == unsynced.chapter().path}
    assert cells == {"causal_mask", "test_causal_mask", "masked_attention_weights", "test_masked_attention_weights"}
    assert all("tfcourse sync" in drift.do for drift in drifts)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("and to earlier positions", "and to later positions", "docstring"),
        ("def causal_mask(T: int,", "def causal_mask(T: float,", "signature"),
        ("    # YOUR CODE HERE\n    raise", "    return 1\n    raise", "body"),
        ("    # YOUR CODE HERE\n", "    # Your code here\n", "otherwise"),
        ("points: 2\n", "points: 5\n", "5 points"),
        ("check(causal_mask)", "check(causal_mask)\nassert True", "reference"),
    ],
)
def test_each_hand_edit_of_a_stub_or_test_is_reported_and_mended(small: Any, old: str, new: str, what: str) -> None:
    right = state(small.root)
    small.edit(small.chapter().path, old, new)
    drifts = sync(small.root, check=True, registry=small.registry)
    assert any(what in drift.what and drift.mendable for drift in drifts), "\n".join(map(str, drifts))
    sync(small.root, registry=small.registry)
    assert state(small.root) == right


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("dtype=torch.bool, device=device).tril()", "dtype=torch.bool, device=device).triu()", "its body"),
        ("Shuffled pairs", "Stirred pairs", "its text"),
        ('"id": "causal_mask"', '"id": "casual_mask"', "missing"),
        ('"locked": false', '"locked": true', "its metadata"),
        ('"name": "python3"', '"name": "python4"', "changed"),
        ("{", "[", "no notebook"),
    ],
)
def test_a_solution_notebook_edited_by_hand_is_reported_and_written_anew(
    small: Any, old: str, new: str, what: str
) -> None:
    path = small.chapter().solution_path
    right = path.read_bytes()
    small.edit(path, old, new)
    drifts = sync(small.root, check=True, registry=small.registry)
    assert any(what in drift.what and drift.file == path for drift in drifts), "\n".join(map(str, drifts))
    sync(small.root, registry=small.registry)
    assert path.read_bytes() == right


def test_what_only_a_person_can_mend_stops_the_command_before_it_writes(small: Any) -> None:
    small.edit(small.chapter().path, "and to earlier positions", "and to later positions")
    small.edit(small.chapter("91_second").path, "grade_id: test_split_heads", "grade_id: test_nothing")
    before = state(small.root)
    with pytest.raises(CourseError, match="split_heads"):
        sync(small.root, registry=small.registry)
    assert state(small.root) == before


def test_a_name_that_no_cell_above_defines_is_reported(small: Any) -> None:
    small.edit(small.chapter().path, "import math\n", "")
    drifts = sync(small.root, check=True, registry=small.registry)
    assert any("math" in drift.what for drift in drifts)


def test_exercises_without_a_notebook_and_solutions_without_a_chapter_are_reported(small: Any) -> None:
    shutil.rmtree(small.root / "chapters" / "90_first")
    drifts = sync(small.root, check=True, registry=small.registry)
    found = {drift.file.relative_to(small.root).as_posix() for drift in drifts}
    assert {"chapters/90_first/exercises.md", "solutions/90_first/exercises.ipynb"} <= found


def test_a_file_that_is_no_notebook_is_a_drift_of_its_chapter_only(small: Any) -> None:
    small.chapter().path.write_text("nothing")
    with pytest.raises(CourseError, match="kernelspec"):
        sync(small.root, registry=small.registry)
    assert sync(small.root, check=True, only=["91_second"], registry=small.registry) == []


def test_another_projects_package_is_not_taken_for_this_ones(small: Any) -> None:
    (small.root / "tfcourse").mkdir()
    with pytest.raises(CourseError, match="tfcourse"):
        sync(small.root, check=True, registry=small.registry)


def test_the_course_itself_is_in_step() -> None:
    assert [str(drift) for drift in sync(ROOT, check=True)] == []
