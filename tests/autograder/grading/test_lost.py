"""What became of an exercise that nothing defines is said with the cell and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from autograder.course.folder import Course
from autograder.submission.manifest import Manifest, released_manifest
from autograder.submission.missing_definitions import KIND, explain_missing

from .conftest import CHAPTER

NAME = "causal_mask"


@pytest.fixture(scope="module")
def manifest(pristine: Path) -> Manifest:
    return released_manifest(Course.open(pristine), CHAPTER)


@pytest.mark.parametrize(
    ("source", "words", "do"),
    [
        ("def causal_maks(T): ...", "cell 3 defines causal_maks", "rename it: causal_mask"),
        ("def Causal_Mask(T): ...", "cell 3 defines Causal_Mask", "rename it"),
        ("causal_mask_v2 = lambda T: 1", "cell 3 defines causal_mask_v2", "rename it"),
        ("class A:\n    def causal_mask(self): ...", "inside the class A of cell 3", "left margin"),
        ("def f():\n    def causal_mask(T): ...", "inside the function f of cell 3", "left margin"),
        ("%%writefile a.py\ndef causal_mask(T): ...", "begins with %%writefile", "Take the line %%writefile away"),
        ("%%bash\ndef causal_mask(T): ...", "begins with %%bash", "Take the line"),
    ],
)
def test_code_that_comes_near_is_named(source: str, words: str, do: str, manifest: Manifest) -> None:
    cells = [(2, new_code_cell("x = 1")), (3, new_code_cell(source))]
    (problem,) = explain_missing({NAME: None}, frozenset({NAME}), cells, manifest)
    assert (problem.kind, problem.where) == (KIND, NAME)
    assert words in problem.what
    assert do in problem.do
    assert not problem.fatal


@pytest.mark.parametrize(("make", "kind"), [(new_markdown_cell, "markdown"), (new_raw_cell, "raw")])
def test_code_in_a_text_is_named(make: object, kind: str, manifest: Manifest) -> None:
    cell = make("Mine:\ndef causal_mask(T): ...")  # type: ignore[operator]
    (problem,) = explain_missing({NAME: None}, frozenset({NAME}), [(5, cell)], manifest)
    assert f"stands in cell 5, which is a {kind} cell" in problem.what


def test_the_cell_of_an_exercise_is_told_what_it_holds_instead(manifest: Manifest) -> None:
    for source, words in (
        ("def triangle(T): ...", "defines triangle"),
        ("", "it is empty"),
        ("x", "does not define it."),
    ):
        own = new_code_cell(source)
        (problem,) = explain_missing({NAME: own}, frozenset({NAME}), [(1, own)], manifest)
        assert words in problem.what


def test_an_empty_stub_is_still_empty_whatever_else_is_there(manifest: Manifest) -> None:
    stub, other = new_code_cell(manifest.by_name[NAME].source), new_code_cell("def causal_mask_2(T): ...")
    (problem,) = explain_missing({NAME: stub}, frozenset(), [(1, stub), (2, other)], manifest)
    assert problem.what == "causal_mask is still empty; cell 2 defines causal_mask_2."


def test_nothing_is_said_of_what_was_not_begun_or_cannot_be_known(manifest: Manifest) -> None:
    stub = new_code_cell(manifest.by_name[NAME].source)
    assert explain_missing({NAME: stub}, frozenset(), [(1, stub)], manifest) == []
    helper = new_code_cell("def _Gpt_causal_mask(T): ...")
    assert explain_missing({NAME: stub}, frozenset(), [(1, stub), (2, helper)], manifest) == []
    opaque = new_code_cell("exec(open('mask.py').read())")
    assert explain_missing({NAME: opaque}, frozenset({NAME}), [(1, opaque)], manifest) == []
    assert explain_missing({NAME: None}, frozenset({NAME}), [(1, new_code_cell("import math"))], manifest) == []
