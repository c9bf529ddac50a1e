"""A submission is made whole by what is in its cells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.checks_version import checks_stamp
from autograder.course.folder import Course
from autograder.submission.intake import Intake, take_in
from autograder.submission.manifest import Manifest, released_manifest

from .conftest import CHAPTER, OTHER

Fill = Callable[..., Any]


@pytest.fixture(scope="module")
def manifest(pristine: Path) -> Manifest:
    return released_manifest(Course.open(pristine), CHAPTER)


def intake(notebook: Any, manifest: Manifest) -> Intake:
    return take_in(nbformat.writes(notebook).encode(), manifest)


def names(found: Intake) -> list[str]:
    return [cell.metadata.nbgrader.grade_id for cell in found.notebook.cells if "nbgrader" in cell.metadata]


def kinds(found: Intake) -> list[str]:
    return [problem.kind for problem in found.problems]


def cell_named(notebook: Any, name: str) -> Any:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def without_metadata(notebook: Any) -> Any:
    bare = copy.deepcopy(notebook)
    for cell in bare.cells:
        cell.metadata = {"id": "xyz"}
    return bare


def test_of_a_notebook_in_order_nothing_but_the_hidden_tests_changes(
    filled: Fill, right: dict[str, str], manifest: Manifest
) -> None:
    handed_in = filled(answer="Because.", **right)
    found = intake(handed_in, manifest)
    assert found.problems == ()
    assert names(found) == [cell.name for cell in manifest.cells]
    for cell, before in zip(found.notebook.cells, handed_in.cells, strict=True):
        mine, theirs = cell.metadata.get("nbgrader"), before.metadata.get("nbgrader")
        assert (mine is None) == (theirs is None)
        if mine is not None and mine["grade"] and not mine["solution"]:
            assert cell.source == manifest.by_name[mine["grade_id"]].source
            assert "hidden" in cell.source
            assert "hidden" not in before.source
        else:
            assert cell.source == before.source
        if mine is not None and not mine["locked"]:
            assert mine["checksum"] == theirs["checksum"]


def test_a_stub_need_not_define_its_exercise(filled: Fill, right: dict[str, str], manifest: Manifest) -> None:
    cells = tuple(
        replace(cell, source="# YOUR CODE HERE\nraise NotImplementedError()") if cell.name == "causal_mask" else cell
        for cell in manifest.cells
    )
    found = intake(filled(answer="Because.", **right), replace(manifest, cells=cells))
    assert found.problems == ()
    assert cell_named(found.notebook, "causal_mask").source == right["causal_mask"]


def test_the_courses_texts_and_its_kernel_are_put_back(filled: Fill, right: dict[str, str], manifest: Manifest) -> None:
    handed_in = filled(**right)
    locked = [cell for cell in manifest.cells if cell.locked and cell.cell_type == "markdown"]
    assert locked
    for cell in handed_in.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in {wanted.name for wanted in locked}:
            cell.source += " And 99 points to me."
    handed_in.metadata["kernelspec"] = {"name": "mine", "display_name": "Mine", "language": "python"}
    found = intake(handed_in, manifest)
    sources = {
        cell.metadata.nbgrader.grade_id: cell.source for cell in found.notebook.cells if "nbgrader" in cell.metadata
    }
    assert {wanted.name: sources[wanted.name] for wanted in locked} == {wanted.name: wanted.source for wanted in locked}
    assert found.notebook.metadata.kernelspec == manifest.kernelspec
    assert manifest.kernelspec["name"] == "python3"


def test_an_unanswered_question_stays_unanswered_without_metadata(filled: Fill, manifest: Manifest) -> None:
    found = intake(without_metadata(filled()), manifest)
    answer = cell_named(found.notebook, "question_root")
    assert answer.source == manifest.by_name["question_root"].source


def test_metadata_that_claim_more_than_is_true_are_corrected(filled: Fill, manifest: Manifest) -> None:
    handed_in = filled()
    mark = cell_named(handed_in, "test_causal_mask").metadata.nbgrader
    mark.update(points=100, grade=False, locked=False, solution=True)
    handed_in.cells.append(
        new_code_cell("x = 1", metadata={"nbgrader": {"grade_id": "mine", "grade": True, "points": 9}})
    )
    found = intake(handed_in, manifest)
    assert (
        cell_named(found.notebook, "test_causal_mask").metadata.nbgrader
        == manifest.by_name["test_causal_mask"].metadata()
    )
    assert names(found) == [cell.name for cell in manifest.cells]


def test_a_test_is_put_back_behind_the_last_definition(filled: Fill, right: dict[str, str], manifest: Manifest) -> None:
    handed_in = without_metadata(filled(**right))
    handed_in.cells = [c for c in handed_in.cells if not c.source.startswith("check(")]
    handed_in.cells.append(new_code_cell("def causal_mask(T, device=None):\n    return better(T)"))
    found = intake(handed_in, manifest)
    order = [c.source for c in found.notebook.cells]
    assert order.index(cell_named(found.notebook, "test_causal_mask").source) > order.index(handed_in.cells[-1].source)
    assert cell_named(found.notebook, "causal_mask").source == handed_in.cells[-1].source


def test_a_stub_is_not_put_back_over_a_solution_that_stands_elsewhere(
    right: dict[str, str], manifest: Manifest
) -> None:
    everything = "\n\n\n".join(right[name] for name in ("causal_mask", "merge_query_key", "soft_lookup"))
    handed_in = new_notebook(cells=[new_code_cell("import torch\nfrom torch import Tensor"), new_code_cell(everything)])
    found = intake(handed_in, manifest)
    sources = [cell.source for cell in found.notebook.cells]
    assert sum("NotImplementedError" in source for source in sources) == 0
    written = sources.index(everything)
    assert all(place > written for place, source in enumerate(sources) if source.startswith("check(")), (
        "a test stands before what it tests"
    )


def test_metadata_on_the_wrong_cell_do_not_overwrite_a_solution(
    filled: Fill, right: dict[str, str], manifest: Manifest
) -> None:
    handed_in = filled(**right)
    stub, test = cell_named(handed_in, "causal_mask"), cell_named(handed_in, "test_causal_mask")
    stub.metadata, test.metadata = test.metadata, stub.metadata
    found = intake(handed_in, manifest)
    assert cell_named(found.notebook, "causal_mask").source == right["causal_mask"]
    assert right["causal_mask"] in [cell.source for cell in found.notebook.cells]
    assert names(found).count("test_causal_mask") == 1


def test_what_a_student_added_to_the_setup_is_kept_behind_it(filled: Fill, manifest: Manifest) -> None:
    handed_in = filled()
    setup = cell_named(handed_in, "setup")
    setup.source += "\nimport torch.nn.functional as F"
    found = intake(handed_in, manifest)
    place = next(i for i, cell in enumerate(found.notebook.cells) if cell.metadata.get("nbgrader"))
    assert found.notebook.cells[place].source == manifest.by_name["setup"].source
    assert found.notebook.cells[place + 1].source.endswith("import torch.nn.functional as F")
    assert kinds(found) == ["locked cell edited"]


def test_a_setup_cell_says_nothing_about_the_chapter(manifest: Manifest) -> None:
    alone = replace(manifest, elsewhere={})  # a course in which the notebook's own chapter is not released
    shared = next(cell for cell in manifest.cells if cell.locked and cell.cell_type == "code" and not cell.grade)
    cell = new_code_cell("import torch", metadata={"nbgrader": {"grade_id": shared.name}})
    found = intake(new_notebook(cells=[cell, new_code_cell("def of_another_chapter(): pass")]), alone)
    assert kinds(found) == ["other notebook"]
    assert not found.gradable


def test_a_chapter_that_imports_this_ones_functions_is_still_another_chapter(filled: Fill, manifest: Manifest) -> None:
    handed_in = filled(OTHER)
    handed_in.cells.insert(1, new_code_cell("from tfcourse.attention import causal_mask"))
    assert kinds(intake(handed_in, manifest)) == ["wrong chapter"]


def test_a_submission_cannot_bring_its_own_verdict_on_itself(filled: Fill, manifest: Manifest) -> None:
    handed_in = filled()
    handed_in.metadata["tfcourse"] = {"problems": [{"kind": "x", "what": "x", "where": "", "do": "", "fatal": False}]}
    assert intake(handed_in, manifest).notebook.metadata["tfcourse"] == {"problems": []}


def test_cells_that_lost_their_metadata_are_counted_named_only_if_few_and_no_problem(
    filled: Fill, right: dict[str, str], manifest: Manifest
) -> None:
    handed_in = filled(answer="Because.", **right)
    (all_,) = intake(without_metadata(handed_in), manifest).problems
    assert "test_causal_mask" not in all_.what
    assert all_.remark
    assert not all_.fatal
    cell_named(handed_in, "test_causal_mask").metadata.pop("nbgrader")
    (one,) = intake(handed_in, manifest).problems
    assert all_.kind == one.kind == "metadata restored"
    assert "test_causal_mask" in one.what


def test_a_notebook_of_other_checks_than_it_is_graded_by_gets_a_remark(
    filled: Fill, right: dict[str, str], manifest: Manifest
) -> None:
    handed_in = filled(answer="Because.", **right)
    handed_in.metadata["tfcourse"] = {"checks": checks_stamp()}
    assert kinds(intake(handed_in, manifest)) == []
    handed_in.metadata["tfcourse"]["checks"] = "0.1.0+0a1b2c3d"
    found = intake(handed_in, manifest)
    assert kinds(found) == ["other checks"]
    assert "0.1.0+0a1b2c3d" in found.problems[0].what
    assert checks_stamp() in found.problems[0].what
    assert found.problems[0].remark
    assert found.gradable


@pytest.mark.parametrize("stamp", ["", "<script>", 7, "0.2.0+zzzzzzzz", {"a": 1}])
def test_a_notebook_that_says_nothing_sensible_about_its_checks_is_taken_as_it_is(
    filled: Fill, manifest: Manifest, stamp: Any
) -> None:
    handed_in = filled()
    handed_in.metadata["tfcourse"] = {"checks": stamp} if stamp else 3
    assert "other checks" not in kinds(intake(handed_in, manifest))
