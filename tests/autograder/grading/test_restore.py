"""A submission is made whole by what is in its cells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.utils import determine_grade

from autograder.checks_version import checks_stamp
from autograder.course.folder import Course
from autograder.intake.notebook.cell_reader import CellReader
from autograder.intake.notebook.intake import Intake
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.missing_definitions import explain_missing
from autograder.intake.notebook.stray_answers import added_text, has_words
from tests.autograder.submission.pictures import png
from tests.taken_in import taken_in

from .conftest import CHAPTER, OTHER, Fill


@pytest.fixture(scope="module")
def manifest(pristine: Path) -> Manifest:
    return released_manifest(Course.open(pristine), CHAPTER)


def intake(notebook: Any, manifest: Manifest) -> Intake:
    return taken_in(nbformat.writes(notebook).encode(), manifest)


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


def test_of_two_solutions_the_one_in_its_own_cell_keeps_the_name(
    filled: Fill, right: dict[str, str], manifest: Manifest
) -> None:
    handed_in = filled(answer="Because.", **right)
    handed_in.cells.append(new_code_cell(right["causal_mask"] + "\n# tried again"))
    assert cell_named(intake(handed_in, manifest).notebook, "causal_mask").source == right["causal_mask"]


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


def test_of_two_copies_of_an_answers_cell_the_written_one_counts(filled: Fill, manifest: Manifest) -> None:
    handed_in = filled(answer="Because.")
    untouched = copy.deepcopy(cell_named(handed_in, "question_root"))
    untouched.source = manifest.by_name["question_root"].source
    handed_in.cells.append(untouched)
    assert cell_named(intake(handed_in, manifest).notebook, "question_root").source == "Because."


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


TEXT = "The variance of a sum grows with the number of its terms."
PICTURES = [png(2, 3), png(3, 2)]
OWN = "Because of the variance."


def named(notebook: Any, name: str) -> int:
    """The position of a cell."""
    cells = enumerate(notebook.cells)
    return next(i for i, cell in cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def read(notebook: Any, manifest: Manifest) -> tuple[str, float | None, list[str]]:
    """The answer as the marker reads it, nbgrader's points for it (None: a person decides), and the kinds of problems."""
    intake = taken_in(nbformat.writes(notebook).encode(), manifest)
    cell = intake.notebook.cells[named(intake.notebook, "question_root")]
    return cell.source, determine_grade(cell)[0], [problem.kind for problem in intake.problems]


@pytest.mark.parametrize(
    ("where", "cell"),
    [
        (1, new_markdown_cell(TEXT)),
        (0, new_markdown_cell(TEXT)),
        (1, new_raw_cell(TEXT)),
        (1, new_code_cell(f"# {TEXT}")),
        (1, new_code_cell(f"'''{TEXT}'''")),
        (1, new_code_cell(TEXT)),
    ],
    ids=["below", "above", "raw", "comment", "string", "text in a code cell"],
)
def test_a_cell_beside_the_answers_is_shown_with_it(
    filled: Callable[..., Any], manifest: Manifest, where: int, cell: Any
) -> None:
    notebook = filled()
    notebook.cells.insert(named(notebook, "question_root") + where, copy.deepcopy(cell))
    text, points, kinds = read(notebook, manifest)
    assert TEXT in text
    assert "YOUR ANSWER HERE" not in text
    assert (points, kinds) == (None, ["answer elsewhere"])


def test_parts_are_shown_in_the_order_of_the_notebook(filled: Callable[..., Any], manifest: Manifest) -> None:
    notebook = filled(answer=OWN)
    at = named(notebook, "question_root")
    notebook.cells[at + 1 : at + 1] = [new_markdown_cell("Third."), new_code_cell("print(1)  # some words of code")]
    notebook.cells.insert(at, new_markdown_cell("First."))
    text, _, _ = read(notebook, manifest)
    assert text.index("First.") < text.index(OWN) < text.index("Third.")
    assert "print" not in text, "beside an answer, code is code"


def test_text_anywhere_belongs_to_the_only_question_without_an_answer(
    filled: Callable[..., Any], manifest: Manifest
) -> None:
    notebook = filled()
    notebook.cells.insert(0, new_markdown_cell(TEXT))
    assert TEXT in read(notebook, manifest)[0]
    answered = filled(answer=OWN)
    answered.cells.insert(0, new_markdown_cell(TEXT))
    assert read(answered, manifest) == (OWN, None, [])


def test_pictures_come_along_and_keep_apart(filled: Callable[..., Any], manifest: Manifest) -> None:
    notebook = filled(answer="![mine](attachment:image.png)")
    at = named(notebook, "question_root")
    notebook.cells[at].attachments = {"image.png": {"image/png": PICTURES[0]}}
    other = new_markdown_cell("![other](attachment:image.png)", attachments={"image.png": {"image/png": PICTURES[1]}})
    notebook.cells.insert(at + 1, other)
    intake = taken_in(nbformat.writes(notebook).encode(), manifest)
    cell = intake.notebook.cells[named(intake.notebook, "question_root")]
    names = {name: content["image/png"] for name, content in cell.attachments.items()}
    assert sorted(names.values()) == sorted(PICTURES)
    for name in names:
        assert f"(attachment:{name})" in cell.source


def test_an_untouched_notebook_has_no_answer(filled: Callable[..., Any], manifest: Manifest) -> None:
    text, points, kinds = read(filled(), manifest)
    assert (text, points, kinds) == ("YOUR ANSWER HERE", 0, [])


REWORDED = "## The root\n\nSay why each score is divided before the softmax; two sentences will do."


def upgraded(manifest: Manifest, *, known: bool = True) -> Manifest:
    """The chapter after a release in which the question, the setup and an answer's cell have other texts."""
    texts = {"prompt_root": REWORDED, "question_root": "Write your answer into this cell.", "setup": "import math\n"}
    cells = tuple(replace(cell, source=texts.get(cell.name, cell.source)) for cell in manifest.cells)
    earlier = {name: [manifest.by_name[name].source] for name in texts if name in manifest.by_name}
    return replace(manifest, cells=cells, earlier=earlier if known else {})


def test_text_of_an_earlier_release_is_no_answer(filled: Callable[..., Any], manifest: Manifest) -> None:
    found = taken_in(nbformat.writes(filled()).encode(), upgraded(manifest))
    assert [problem.kind for problem in found.problems] == []
    assert cell_named(found.notebook, "prompt_root").source == REWORDED
    assert cell_named(found.notebook, "question_root").source == "Write your answer into this cell."
    older = filled()
    heading = next(cell for cell in older.cells if cell.source.startswith("# Exercises"))
    heading.source = heading.source.replace("of", "for")
    assert read(older, manifest)[1:] == (0, [])


def test_what_a_student_wrote_into_an_earlier_question_is_shown(filled: Callable[..., Any], manifest: Manifest) -> None:
    notebook = filled()
    notebook.cells[named(notebook, "prompt_root")].source += f"\n\n{TEXT}"
    found = taken_in(nbformat.writes(notebook).encode(), upgraded(manifest))
    text = cell_named(found.notebook, "question_root").source
    assert text.partition(":*\n\n")[2] == TEXT
    unknown = taken_in(nbformat.writes(filled()).encode(), upgraded(manifest, known=False))
    assert [problem.kind for problem in unknown.problems]


def test_without_the_source_notebook_only_names_decide(filled: Callable[..., Any], manifest: Manifest) -> None:
    notebook = filled()
    notebook.cells.append(new_markdown_cell(TEXT))
    unknown = Manifest(CHAPTER, manifest.cells)
    assert read(notebook, unknown) == ("YOUR ANSWER HERE", 0, [])


@pytest.mark.parametrize(
    ("original", "text", "added"),
    [
        ("Why is it so?", "Why is it so? Because it must.", "Because it must."),
        ("Why is it so?", "It follows from the law.", "It follows from the law."),
        ("Why is it so?", "Why is it so", ""),
        ("Why is it so?", "Why is it really so?", ""),
        ("a b c d e f", "a b one two three c d e f", "one two three"),
    ],
)
def test_what_was_added_to_a_text_is_found_by_words(original: str, text: str, added: str) -> None:
    assert added_text(original, text) == added


def test_long_texts_are_not_compared_word_by_word() -> None:
    long = "word " * 30_000
    assert added_text(long, long) == ""
    assert added_text(long, f"{long} and an answer") == f"{long} and an answer"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1  # one", False),
        ("x = 1\n# this is my answer", True),
        ("'this is my answer'", True),
        ("print('this is no statement of text')", False),
        ("this is my answer", True),
        ("Why? Because it's so", True),
        ("for i in range(3):\n    print(i, i, i)", False),
    ],
)
def test_comments_and_strings_are_words_and_code_is_not(source: str, words: bool) -> None:
    assert has_words(new_code_cell(source)) is words


NAME = "causal_mask"


@pytest.mark.parametrize(("make", "kind"), [(new_markdown_cell, "markdown"), (new_raw_cell, "raw")])
def test_code_in_a_text_is_named(make: object, kind: str, manifest: Manifest) -> None:
    cell = make("Mine:\ndef causal_mask(T): ...")  # type: ignore[operator]
    (problem,) = explain_missing({NAME: None}, frozenset({NAME}), [(5, cell)], manifest, CellReader())
    assert f"stands in cell 5, which is a {kind} cell" in problem.what


def test_an_empty_stub_is_still_empty_whatever_else_is_there(manifest: Manifest) -> None:
    stub, other = new_code_cell(manifest.by_name[NAME].source), new_code_cell("def causal_mask_2(T): ...")
    (problem,) = explain_missing({NAME: stub}, frozenset(), [(1, stub), (2, other)], manifest, CellReader())
    assert problem.what == "causal_mask is still empty; cell 2 defines causal_mask_2."


def test_nothing_is_said_of_what_was_not_begun_or_cannot_be_known(manifest: Manifest) -> None:
    stub = new_code_cell(manifest.by_name[NAME].source)
    assert explain_missing({NAME: stub}, frozenset(), [(1, stub)], manifest, CellReader()) == []
    helper = new_code_cell("def _Gpt_causal_mask(T): ...")
    assert explain_missing({NAME: stub}, frozenset(), [(1, stub), (2, helper)], manifest, CellReader()) == []
    opaque = new_code_cell("exec(open('mask.py').read())")
    assert explain_missing({NAME: opaque}, frozenset({NAME}), [(1, opaque)], manifest, CellReader()) == []
    assert (
        explain_missing({NAME: None}, frozenset({NAME}), [(1, new_code_cell("import math"))], manifest, CellReader())
        == []
    )
