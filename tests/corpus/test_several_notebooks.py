"""Downloads in which a student has handed in several notebooks, or none: the right one counts, or it is left open, and nobody is absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.collecting.collect import collect
from autograder.course.folder import Course

from .material import CHAPTER, Work

NOTEBOOK = f"{CHAPTER}.ipynb"
BLANK = ("old_{}", "{}_backup", "scratch", "AAA", "zzz")


@pytest.fixture
def solved(released: dict[str, dict[str, Any]]) -> bytes:
    """A notebook in which everything is solved."""
    return Work.done(released[CHAPTER]).json()


@pytest.fixture
def otherwise(released: dict[str, dict[str, Any]]) -> bytes:
    """A notebook in which everything is solved in other words."""
    return Work.done(released[CHAPTER]).json().replace(b"return ", b"return +")


@pytest.fixture
def blank(pristine: Path) -> bytes:
    """The notebook as it was given out."""
    return (pristine / "release" / CHAPTER / NOTEBOOK).read_bytes()


def put(folder: Path, name: str, data: bytes) -> None:
    """Write a file and the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def lying(course: Course, student: str) -> dict[str, bytes]:
    """Return the notebooks in a student's folder."""
    return {path.name: path.read_bytes() for path in course.folder("submitted", student, CHAPTER).glob("*.ipynb")}


def download(folder: Path, platform: str, files: dict[str, bytes]) -> tuple[Path, str]:
    """Write what a platform hands out for Bo, and one notebook of Ann's; return it, and Bo's id."""
    places = {
        "canvas": "lindbo_7_{number}_{name}",
        "moodle": "Bo Lind_7_assignsubmission_file_/{name}",
        "plain": "bo-lind/{name}",
    }
    for number, (name, data) in enumerate({**files, "": files[next(iter(files))]}.items(), start=90):
        place = places[platform].format(number=number, name=name or NOTEBOOK)
        if not name:
            place = (
                place.replace("lindbo_7", "bergann_8").replace("Bo Lind_7", "Ann Berg_8").replace("bo-lind", "ann-berg")
            )
        put(folder, place, data)
    return folder, "lindbo-7" if platform == "canvas" else "bo-lind"


@pytest.mark.parametrize("own", [NOTEBOOK, "solution.ipynb"])
@pytest.mark.parametrize("name", BLANK)
@pytest.mark.parametrize("platform", ["canvas", "moodle", "plain"])
def test_a_blank_notebook_beside_the_solved_one_never_counts(
    course: Course, tmp_path: Path, solved: bytes, blank: bytes, name: str, own: str, platform: str
) -> None:
    files = {own: solved, f"{name.format(CHAPTER)}.ipynb": blank}
    source, student = download(tmp_path / "downloads", platform, files)
    collect(course, CHAPTER, source)
    assert lying(course, student) == {NOTEBOOK: solved}


@pytest.mark.parametrize("platform", ["canvas", "moodle", "plain"])
def test_of_two_solved_notebooks_the_one_of_the_chapters_name_counts(
    course: Course, tmp_path: Path, solved: bytes, otherwise: bytes, platform: str
) -> None:
    source, student = download(tmp_path / "downloads", platform, {NOTEBOOK: solved, "zzz.ipynb": otherwise})
    collect(course, CHAPTER, source)
    assert lying(course, student) == {NOTEBOOK: solved}


@pytest.mark.parametrize("platform", ["canvas", "moodle", "plain"])
def test_where_nothing_tells_which_counts_both_are_kept_and_neither_is_taken(
    course: Course, tmp_path: Path, solved: bytes, otherwise: bytes, platform: str
) -> None:
    files = {"final.ipynb": solved, "really_final.ipynb": otherwise}
    source, student = download(tmp_path / "downloads", platform, files)
    collect(course, CHAPTER, source)
    assert lying(course, student) == files
    assert collect(course, CHAPTER, source).unchanged == sorted(
        ["bergann-8" if platform == "canvas" else "ann-berg", student]
    )
    collect(course, CHAPTER)
    assert lying(course, student) == files


def test_in_place_a_blank_notebook_never_counts_and_an_open_choice_stays_open(
    course: Course, solved: bytes, otherwise: bytes, blank: bytes
) -> None:
    for student, files in {
        "bo": {"a.ipynb": solved, "b.ipynb": blank},
        "di": {"a.ipynb": solved, "b.ipynb": otherwise},
    }.items():
        for name, data in files.items():
            put(course.root, f"submitted/{student}/{CHAPTER}/{name}", data)
    collect(course, CHAPTER)
    assert lying(course, "bo")[NOTEBOOK] == solved
    assert sorted(lying(course, "di")) == ["a.ipynb", "b.ipynb"]


def test_a_later_upload_that_tells_takes_the_place_of_an_open_one_which_is_kept(
    course: Course, tmp_path: Path, solved: bytes, otherwise: bytes
) -> None:
    first, student = download(tmp_path / "first", "plain", {"a.ipynb": solved, "b.ipynb": otherwise})
    second, _ = download(tmp_path / "second", "plain", {NOTEBOOK: otherwise})
    collect(course, CHAPTER, first)
    assert student in collect(course, CHAPTER, second).replaced
    assert lying(course, student) == {NOTEBOOK: otherwise}
    kept = course.root.glob(f"replaced/{CHAPTER}/{student}/*/*.ipynb")
    assert {path.name: path.read_bytes() for path in kept} == {"a.ipynb": solved, "b.ipynb": otherwise}


@pytest.mark.parametrize(("name", "data"), [("work.py", b"print()"), ("work.pdf", b"%PDF-1.4"), ("notes.txt", b"mine")])
@pytest.mark.parametrize(
    ("place", "student"),
    [
        ("rossleo_9_95_{}", "rossleo-9"),
        ("Leo Ross_9_assignsubmission_file_/{}", "leo-ross"),
        ("class/leo/{}", "leo"),
        (f"leo/{CHAPTER}/{{}}", "leo"),
    ],
)
def test_who_hands_in_no_notebook_is_not_absent(
    course: Course, tmp_path: Path, solved: bytes, name: str, data: bytes, place: str, student: str
) -> None:
    source = tmp_path / "downloads"
    ann = place.replace("rossleo_9_95", "bergann_8_94").replace("Leo Ross_9", "Ann Berg_8").replace("leo", "ann")
    put(source, ann.format(NOTEBOOK), solved)
    put(source, place.format(name), data)
    found = collect(course, CHAPTER, source)
    folder = course.folder("submitted", student, CHAPTER)
    assert [path.read_bytes() for path in folder.iterdir()] == [data]
    assert [problem.kind for problem in found.problems] == ["no notebook"]
