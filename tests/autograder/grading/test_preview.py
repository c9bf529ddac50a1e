"""What is not a chapter's submissions is refused before anything of it is brought in."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.collecting.preflight import refuse_other_work
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import Student, write_roster

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for submissions."""
    path = tmp_path / "downloads"
    path.mkdir()
    return path


def test_one_notebook_of_the_chapter_among_others_is_enough(
    course: Course, folder: Path, filled: Callable[..., Any]
) -> None:
    nbformat.write(filled(OTHER), folder / "ada.ipynb")
    nbformat.write(filled(CHAPTER), folder / "bo.ipynb")
    refuse_other_work(course, CHAPTER, folder)
    refuse_other_work(course, OTHER, folder)


def test_a_file_that_does_not_say_what_it_is_gets_its_verdict_later(course: Course, folder: Path) -> None:
    (folder / "ada.ipynb").write_text("half of a notebook", encoding="utf-8")
    refuse_other_work(course, CHAPTER, folder)


def test_contents_count_and_not_the_name_of_the_file(course: Course, folder: Path, filled: Callable[..., Any]) -> None:
    nbformat.write(filled(OTHER), folder / f"ada_{CHAPTER}.ipynb")
    with pytest.raises(CourseError, match=f"the one notebook in it is not of {CHAPTER} but of {OTHER}"):
        refuse_other_work(course, CHAPTER, folder)


def test_an_archive_is_looked_into(course: Course, folder: Path, filled: Callable[..., Any]) -> None:
    with zipfile.ZipFile(folder / "submissions.zip", "w") as archive:
        for student in ("ada", "bo", "cy"):
            archive.writestr(f"{student}_90{len(student)}_5_work.ipynb", nbformat.writes(filled(OTHER)))
    with pytest.raises(CourseError, match="all 3 notebooks") as caught:
        refuse_other_work(course, CHAPTER, folder / "submissions.zip")
    assert f"tfcourse autograde {OTHER} --course {course.root}" in caught.value.do


def test_an_archive_that_breaks_off_is_told_as_such(course: Course, folder: Path) -> None:
    with zipfile.ZipFile(folder / "submissions.zip", "w") as archive:
        archive.writestr("ada.ipynb", "half of a notebook")
    whole = (folder / "submissions.zip").read_bytes()
    (folder / "submissions.zip").write_bytes(whole[:-30])
    with pytest.raises(CourseError, match="it breaks off before the list of its files"):
        refuse_other_work(course, CHAPTER, folder / "submissions.zip")


@pytest.mark.parametrize(
    ("name", "words"),
    [("ada.ipynb", "neither a folder nor a zip archive"), (f"{CHAPTER}/{CHAPTER}.ipynb", "whose notebook this is")],
)
def test_what_has_no_owner_is_refused(
    course: Course, folder: Path, filled: Callable[..., Any], name: str, words: str
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    nbformat.write(filled(CHAPTER), folder / name)
    with pytest.raises(CourseError, match=words):
        refuse_other_work(course, CHAPTER, folder / name if words.startswith("neither") else folder)


def test_an_empty_file_is_said_to_be_empty(course: Course, folder: Path) -> None:
    (folder / "submissions.zip").touch()
    with pytest.raises(CourseError, match="nor a zip archive: it is empty"):
        refuse_other_work(course, CHAPTER, folder / "submissions.zip")


def test_a_folder_without_notebooks_says_how_many_files_it_has(course: Course, folder: Path) -> None:
    for name in ("essay.pdf", "picture.png"):
        (folder / name).write_bytes(b"x")
    with pytest.raises(CourseError, match=r"no notebook \(.ipynb\) among its 2 files"):
        refuse_other_work(course, CHAPTER, folder)


@pytest.mark.parametrize(("listed", "refused"), [(("ada", "bo"), True), (("ada", "hw-cy-2026"), False), ((), False)])
def test_a_layout_without_any_name_of_the_class_list_is_unknown(
    course: Course, folder: Path, filled: Callable[..., Any], listed: tuple[str, ...], refused: bool
) -> None:
    write_roster(course, {name: Student(name, enrolled=True) for name in listed})
    for student in ("ada", "bo", "cy"):
        (folder / f"hw-{student}-2026").mkdir()
        nbformat.write(filled(CHAPTER), folder / f"hw-{student}-2026" / "work.ipynb")
    with pytest.raises(CourseError) if refused else nullcontext() as caught:
        refuse_other_work(course, CHAPTER, folder)
    if refused:
        assert "this layout is not known: none of the 3 names in it is on the class list" in caught.value.what
        assert "Blackboard, Brightspace and Gradescope" in caught.value.do
