"""The pages Find the bug: only of closed chapters, and with nothing of an open one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.commands.practice_pages import add_practice_pages, practice_chapters
from autograder.commands.released_site import ReleasedSite
from autograder.course.course_file_edits import write_template
from autograder.course.release.leaks import OF_CLOSED_CHAPTERS, find_leaks, site_materials
from autograder.course.release.secret_texts import Secrets, project_secrets
from autograder.quizzes.exam.pages import PAGE, QUESTIONS, chapters_with_open_solutions, render_practice_page
from autograder.site.build import SiteCourse
from autograder.site.chapter_page import PAGES, ChapterPage, chapter_bar, header_buttons

pytestmark = pytest.mark.usefixtures("one_thread")
PROJECT = Path(__file__).resolve().parents[3]
CHAPTERS = ["02_alignment", "03_scaled_dot_product", "04_multi_head"]
CHAPTER = CHAPTERS[1]


@pytest.fixture(scope="module")
def page() -> bytes:
    """Return the page of a chapter."""
    return render_practice_page(CHAPTER)


@pytest.fixture(scope="module")
def secrets() -> Secrets:
    """Return the secrets of the course."""
    return project_secrets(PROJECT)


def released(root: Path, due: datetime | None) -> ReleasedSite:
    """Return a course that has released three chapters, with a deadline for the second."""
    write_template(root)
    if due is not None:
        path = root / "course.toml"
        path.write_text(f'time_zone = "UTC"\n[chapters.{CHAPTER}]\ndue = {due:%Y-%m-%dT%H:%M:%S}\n', encoding="utf-8")
    return ReleasedSite(root, dict.fromkeys(CHAPTERS, ()), SiteCourse())


def test_a_chapter_is_open_if_an_offered_package_has_its_solutions() -> None:
    assert chapters_with_open_solutions(CHAPTERS, ["03_scaled_dot_product"]) == ["02_alignment"]
    assert chapters_with_open_solutions(CHAPTERS, CHAPTERS) == CHAPTERS[:2]
    assert chapters_with_open_solutions(CHAPTERS, []) == []


def test_a_site_shows_pages_of_its_own_chapters_alone() -> None:
    assert practice_chapters(PROJECT, [CHAPTER, "04_multi_head"], ["04_multi_head"], None) == [CHAPTER]


def test_the_last_chapter_of_the_course_is_always_closed_on_the_site() -> None:
    found = practice_chapters(PROJECT, [], None, None)
    assert found[0] == "01_recurrent"
    assert "13_grouped_query" not in found
    assert len(found) == 12


@pytest.mark.parametrize(("days", "shown"), [(-1, [*CHAPTERS[:2]]), (1, ["02_alignment"])])
def test_a_course_shows_no_chapter_whose_deadline_is_not_over(tmp_path: Path, days: int, shown: list[str]) -> None:
    course = released(tmp_path, datetime.now(UTC) + timedelta(days=days))
    assert practice_chapters(PROJECT, CHAPTERS, None, course) == shown


def test_a_page_has_ten_exercises_with_folded_answers(page: bytes) -> None:
    text = page.decode()
    assert text.count('<section class="item">') == text.count("<details>") == QUESTIONS
    assert "<details open" not in text
    assert "<script" not in text


def test_a_page_may_show_its_own_closed_chapter(page: bytes, secrets: Secrets, tmp_path: Path) -> None:
    place(tmp_path, CHAPTER, PAGE, page)
    assert find_leaks(site_materials(tmp_path), secrets) == []


@pytest.mark.parametrize(("chapter", "name"), [("02_alignment", PAGE), (CHAPTER, "other.html")])
def test_the_same_page_elsewhere_is_a_leak(
    page: bytes, secrets: Secrets, tmp_path: Path, chapter: str, name: str
) -> None:
    place(tmp_path, chapter, name, page)
    assert {leak.kind for leak in find_leaks(site_materials(tmp_path), secrets)} & {"solution", "known mistake"}


def place(site: Path, chapter: str, name: str, content: bytes) -> None:
    """Write a file among a chapter's downloads."""
    folder = site / "_downloads" / chapter
    folder.mkdir(parents=True)
    (folder / name).write_bytes(content)


def test_the_name_of_the_page_is_the_same_everywhere() -> None:
    assert tuple(PAGES) == OF_CLOSED_CHAPTERS == (PAGE,)


def test_a_chapter_links_its_page_and_does_not_download_it() -> None:
    downloads = [(PAGE, f"_downloads/{CHAPTER}/{PAGE}")]
    bar = chapter_bar(ChapterPage(CHAPTER, "lesson"), [], downloads, link=str, file=lambda name: f"../../{name}")
    assert f'<a href="../../_downloads/{CHAPTER}/{PAGE}">Find the bug</a>' in bar
    (buttons,) = header_buttons(downloads, [], str, [])
    assert PAGE not in str(buttons)


def test_pages_are_added_to_the_files_of_their_chapters() -> None:
    files = {CHAPTER: [Path("a.ipynb")], "04_multi_head": [Path("b.ipynb")]}
    added = add_practice_pages(files, {CHAPTER: Path(PAGE), "02_alignment": Path("x") / PAGE})
    assert added == {
        CHAPTER: [Path("a.ipynb"), Path(PAGE)],
        "04_multi_head": [Path("b.ipynb")],
        "02_alignment": [Path("x") / PAGE],
    }
