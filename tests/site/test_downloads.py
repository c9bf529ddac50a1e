"""What goes on the site for students, and what may not."""

import json
from pathlib import Path

import pytest

from autograder.site.downloads import check_downloads, copy_downloads, download_links

CHAPTER = "03_scaled_dot_product"


def _notebook(path: Path, source: str) -> Path:
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": source.splitlines(keepends=True)}]}))
    return path


@pytest.mark.parametrize("marker", ["### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS"])
def test_a_notebook_with_an_instructors_markers_is_refused(tmp_path: Path, marker: str) -> None:
    notebook = _notebook(tmp_path / f"{CHAPTER}.ipynb", f"def f():\n    {marker}\n    return 1\n")
    (fault,) = check_downloads({CHAPTER: [notebook]}, [CHAPTER])
    assert "instructor's notebook" in fault


def test_a_missing_file_a_broken_notebook_and_an_unknown_chapter_are_all_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    faults = check_downloads({CHAPTER: [tmp_path / "gone.whl", broken], "99_nothing": []}, [CHAPTER])
    assert ["gone.whl" in faults[0], "broken.ipynb" in faults[1], "99_nothing" in faults[2]] == [True] * 3


def test_links_put_the_notebook_first_and_stay_below_the_site() -> None:
    downloads = {CHAPTER: ["/a/tfcourse-1+ch03.whl", f"/b/{CHAPTER}.ipynb"]}
    assert download_links(downloads, CHAPTER) == [
        (f"{CHAPTER}.ipynb", f"_downloads/{CHAPTER}/{CHAPTER}.ipynb"),
        ("tfcourse-1+ch03.whl", f"_downloads/{CHAPTER}/tfcourse-1%2Bch03.whl"),
    ]
    assert download_links(downloads, "04_multi_head") == []


def test_copies_lie_where_the_links_point(tmp_path: Path) -> None:
    source = tmp_path / "tfcourse.whl"
    source.write_bytes(b"wheel")
    copy_downloads({CHAPTER: [source]}, tmp_path / "html")
    ((_, address),) = download_links({CHAPTER: [str(source)]}, CHAPTER)
    assert (tmp_path / "html" / address).read_bytes() == b"wheel"
