"""What is not a chapter's submissions is refused before anything of it is brought in."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads import download
from autograder.intake.downloads.download import read_download, read_downloads
from autograder.intake.roster import Student, write_roster

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"


# What lies in the folder (its content, or the chapter that it is of), what is named, and a word of the refusal.
REFUSED: dict[str, tuple[dict[str, str], str, str]] = {
    "one of the chapter is enough": ({"ada.ipynb": OTHER, "bo.ipynb": CHAPTER}, "", ""),
    "half of a notebook has its verdict later": ({"ada.ipynb": "half"}, "", ""),
    "contents count and not names": ({f"ada_{CHAPTER}.ipynb": OTHER}, "", OTHER),
    "an archive": ({f"s.zip/{name}_90{n}_5_w.ipynb": OTHER for n, name in enumerate("abc")}, "s.zip", "none of the 3"),
    "an archive that breaks off": ({"s.zip/ada.ipynb": "half", "cut": ""}, "s.zip", "breaks off"),
    "a notebook": ({"ada.ipynb": CHAPTER}, "ada.ipynb", "zip"),
    "nobody's": ({f"{CHAPTER}/{CHAPTER}.ipynb": CHAPTER}, "", "whose"),
    "an empty file": ({"s.zip": ""}, "s.zip", "empty"),
    "no notebook": ({"essay.pdf": "x", "picture.png": "x"}, "", "2 files"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_the_chapters_work_is_refused_before_it_is_brought_in(
    course: Course, tmp_path: Path, filled: Callable[..., Any], what: str
) -> None:
    files, named, word = REFUSED[what]
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name, content in files.items():
        data = nbformat.writes(filled(content)) if content in (CHAPTER, OTHER) else content
        if name.startswith("s.zip/"):
            with zipfile.ZipFile(folder / "s.zip", "a") as archive:
                archive.writestr(name.partition("/")[2], data)
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(data, encoding="utf-8")
    if "cut" in files:
        (folder / "s.zip").write_bytes((folder / "s.zip").read_bytes()[:-30])
    with pytest.raises(CourseError, match=word) if word else nullcontext() as caught:
        read_download(course, CHAPTER, folder / named).refuse_other_work(course)
    if what == "an archive":
        assert f"tfcourse autograde {OTHER} --course {course.root}" in caught.value.do


def test_a_download_of_two_chapters_is_listed_once(
    course: Course, tmp_path: Path, filled: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    list_entries = download.list_entries
    monkeypatch.setattr(download, "list_entries", lambda source: calls.append(source) or list_entries(source))
    for chapter in (CHAPTER, OTHER):
        (tmp_path / "downloads").mkdir(exist_ok=True)
        nbformat.write(filled(chapter), tmp_path / "downloads" / f"ada_{chapter}.ipynb")
    downloads = read_downloads(course, [CHAPTER, OTHER], tmp_path / "downloads")
    assert calls == [tmp_path / "downloads"]
    assert [[upload.owner for upload in one.uploads] for one in downloads] == [["ada"], ["ada"]]
    for one in downloads:
        one.refuse_other_work(course)


@pytest.mark.parametrize(("listed", "refused"), [(("ada", "bo"), True), (("ada", "hw-cy-2026"), False), ((), False)])
def test_a_layout_without_any_name_of_the_class_list_is_unknown(
    course: Course, tmp_path: Path, filled: Callable[..., Any], listed: tuple[str, ...], refused: bool
) -> None:
    folder = tmp_path / "downloads"
    write_roster(course, {name: Student(name, enrolled=True) for name in listed})
    for student in ("ada", "bo", "cy"):
        (folder / f"hw-{student}-2026").mkdir(parents=True)
        nbformat.write(filled(CHAPTER), folder / f"hw-{student}-2026" / "work.ipynb")
    with pytest.raises(CourseError) if refused else nullcontext() as caught:
        read_download(course, CHAPTER, folder).refuse_other_work(course)
    if refused:
        assert "layout" in caught.value.what
