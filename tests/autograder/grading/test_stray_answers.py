"""What a student writes to a question reaches the marker, wherever it stands, and the course's own text never does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.utils import determine_grade

from autograder.course.folder import Course
from autograder.submission.intake import take_in
from autograder.submission.manifest import Manifest, released_manifest
from autograder.submission.stray_answers import added_text, has_words
from tests.autograder.submission.pictures import png

from .conftest import CHAPTER

TEXT = "The variance of a sum grows with the number of its terms."
PICTURES = [png(2, 3), png(3, 2)]
OWN = "Because of the variance."


@pytest.fixture(scope="module")
def manifest(pristine: Path) -> Manifest:
    return released_manifest(Course.open(pristine), CHAPTER)


def named(notebook: Any, name: str) -> int:
    """The position of a cell."""
    cells = enumerate(notebook.cells)
    return next(i for i, cell in cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def read(notebook: Any, manifest: Manifest) -> tuple[str, float | None, list[str]]:
    """The answer as the marker reads it, nbgrader's points for it (None: a person decides), and the kinds of problems."""
    intake = take_in(nbformat.writes(notebook).encode(), manifest)
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


def test_an_answer_in_the_question_is_shown_without_the_question(
    filled: Callable[..., Any], manifest: Manifest
) -> None:
    notebook = filled()
    prompt = notebook.cells[named(notebook, "prompt_root")]
    prompt.source += f" Answer: {TEXT}"
    text, points, kinds = read(notebook, manifest)
    assert text.endswith(f"Answer: {TEXT}")
    assert "Explain in two sentences" not in text
    assert (points, kinds) == (None, ["answer elsewhere"])


def test_a_split_answer_is_whole(filled: Callable[..., Any], manifest: Manifest) -> None:
    notebook = filled(answer=OWN)
    at = named(notebook, "question_root")
    second = copy.deepcopy(notebook.cells[at])
    second.source, second.id = TEXT, "other"
    notebook.cells.insert(at + 1, second)
    text, _, _ = read(notebook, manifest)
    assert text.index(OWN) < text.index(TEXT)


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
    intake = take_in(nbformat.writes(notebook).encode(), manifest)
    cell = intake.notebook.cells[named(intake.notebook, "question_root")]
    names = {name: content["image/png"] for name, content in cell.attachments.items()}
    assert sorted(names.values()) == sorted(PICTURES)
    for name in names:
        assert f"(attachment:{name})" in cell.source


def test_an_untouched_notebook_has_no_answer(filled: Callable[..., Any], manifest: Manifest) -> None:
    text, points, kinds = read(filled(), manifest)
    assert (text, points, kinds) == ("YOUR ANSWER HERE", 0, [])


def test_text_of_an_older_release_is_no_answer(filled: Callable[..., Any], manifest: Manifest) -> None:
    """The question was worded otherwise when the student downloaded it; nbgrader's checksum proves that it is untouched."""
    notebook = filled()
    newer = [
        {**vars(cell), "source": f"{cell.source} Use at most one formula, please."}
        if cell.name == "prompt_root"
        else vars(cell)
        for cell in manifest.cells
    ]
    shorter = Manifest(
        CHAPTER, tuple(type(manifest.cells[0])(**cell) for cell in newer), plain_texts=manifest.plain_texts
    )
    assert read(notebook, shorter) == ("YOUR ANSWER HERE", 0, [])
    older = filled()
    heading = next(cell for cell in older.cells if cell.source.startswith("# Exercises"))
    heading.source = heading.source.replace("of", "for")
    assert read(older, manifest)[1:] == (0, [])


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
