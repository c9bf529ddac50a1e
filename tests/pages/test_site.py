"""The built site in a reader's hands: opened from a disk, without a network, in light and in dark, wide and narrow."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from autograder.checking.verdict import section_address
from autograder.checks import exercises
from autograder.course.release.leaks import find_leaks, site_materials
from autograder.course.release.secret_texts import project_secrets
from autograder.site.build import build_site, list_site_chapters

from .lesson_layout import SCREEN, WIDTH, Debts, debts
from .page_faults import open_page, page_faults

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
# What lessons still owe; it may only become less.
OWED = {
    "07_decoding": Debts(gaps=2),
    "10_t5": Debts(gaps=1),
    "11_vision": Debts(gaps=1),
}
GUIDE_SCREENS = 8
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "book/_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(entry["file"] for part in toc["parts"] for entry in part["chapters"])]


PAGES = [*_pages(), "search"]
LESSONS = [page for page in PAGES if page.startswith("chapters/") and page.endswith("/lesson")]
CHAPTER_PAGES = [page for page in PAGES if page.startswith("chapters/")]
# One page of each kind is looked at in every run of the tests, all the others in `make test-pages`.
KINDS = ("book/intro", "book/students", "book/notation", "book/api/attention", "search", *CHAPTER_PAGES[:2])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course's site, really built, with students' files; lesson outputs come from a cache that survives the run."""
    students = tmp_path_factory.mktemp("students")
    downloads = {
        chapter: [students / f"{chapter}.ipynb", students / f"tfcourse-1+{chapter[:2]}.whl"]
        for chapter in list_site_chapters(ROOT)
    }
    for notebook, wheel in downloads.values():
        notebook.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
        wheel.write_bytes(b"a student package")
    output = tmp_path_factory.mktemp("site") / "html"
    return build_site(ROOT, output=output, cache=ROOT / ".cache" / "site-tests", downloads=downloads).output


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The address of a web server, on this machine only, that serves the site."""
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the test's own assertions speak."""


@pytest.mark.parametrize(
    "name", [name if name in KINDS else pytest.param(name, marks=pytest.mark.audit) for name in PAGES]
)
def test_page_is_complete_without_a_network_accessible_in_both_themes_and_fits_a_narrow_screen(
    page, axe, site: Path, name: str
) -> None:
    # The fixture `page` asserts, when the test is over, that nothing was asked of a network and no error was logged.
    open_page(page, site, name, formulas=True)
    assert page_faults(page, axe) == []


def test_search_finds_a_lesson_from_the_disk(page, site: Path) -> None:
    open_page(page, site, "book/intro")
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")
    page.locator("#search-results a[href*='chapters/']").first.click()
    page.wait_for_url("**/chapters/**")


def test_theme_button_changes_the_colours_and_the_choice_is_kept(page, site: Path) -> None:
    open_page(page, site, "book/intro", "light")
    background = "getComputedStyle(document.body).backgroundColor"
    colours = {page.evaluate(background)}
    for _ in range(2):
        page.locator(".theme-switch-button").first.click()
        colours.add(page.evaluate(background))
    assert len(colours) == 2
    chosen = page.evaluate("document.documentElement.dataset.mode")
    open_page(page, site, "book/students", "light")
    assert page.evaluate("document.documentElement.dataset.mode") == chosen


@pytest.mark.parametrize("name", CHAPTER_PAGES)
def test_chapter_offers_the_students_files_and_its_other_page_and_not_its_source(page, site: Path, name: str) -> None:
    chapter = name.split("/")[1]
    here, there = ("Lesson", "Exercises") if name.endswith("lesson") else ("Exercises", "Lesson")
    page.set_viewport_size({"width": 1280, "height": 900})
    open_page(page, site, name)
    links = page.locator("a[download]").evaluate_all("links => links.map(link => link.href)")
    files = {Path(unquote(urlsplit(link).path)) for link in links}
    names = {f"{chapter}.ipynb", f"tfcourse-1+{chapter[:2]}.whl"}
    assert files == {site / "_downloads" / chapter / file for file in names}
    assert all(file.is_file() for file in files)
    assert json.loads((site / "_downloads" / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8")) == NOTEBOOK
    assert page.locator("a[href*='_sources']").count() == 0
    if there == "Lesson":
        cut = "blocks => blocks.filter(block => block.scrollWidth > block.clientWidth + 1).map(block => block.textContent)"
        assert page.locator(".bd-article pre").evaluate_all(cut) == []
        assert page.locator(".tfc-effort").count() == page.locator(".tfc-exercises tbody tr").count() > 5
    bar = page.locator(".tfc-chapter-bar")
    assert bar.locator("[aria-current=page]").inner_text() == here
    bar.get_by_role("link", name=there).click()
    assert page.url.endswith(f"/{there.lower()}.html")


def test_served_site_saves_the_notebook_and_shows_excerpts_in_search(chromium, site: Path, served: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda request: None if request.url.startswith((served, "data:")) else complaints.append(request.url)
    )
    name = CHAPTER_PAGES[0]
    chapter = name.split("/")[1]
    page.goto(f"{served}/{name}.html")
    page.locator(".dropdown-download-buttons > button").click()
    with page.expect_download() as download:
        page.locator(".dropdown-download-buttons a", has_text=".ipynb").click()
    assert download.value.suggested_filename == f"{chapter}.ipynb"
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8")) == NOTEBOOK
    page.goto(f"{served}/search.html?q=softmax")
    page.locator("#search-results p.context").first.wait_for()
    context.close()
    assert complaints == []


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_folds_answers_and_long_code_and_shows_a_picture_every_four_screens(
    page, site: Path, name: str
) -> None:
    page.set_viewport_size({"width": WIDTH, "height": SCREEN})
    open_page(page, site, name, formulas=True)
    owed, where = debts(page)
    allowed = OWED.get(name.split("/")[1], Debts())
    more = [field.name for field in fields(Debts) if getattr(owed, field.name) > getattr(allowed, field.name)]
    assert not more, f"{name}: {', '.join(more)}\n{where}"
    assert owed == allowed, f"{name} owes less than OWED says: write it down, so that it stays so: {owed}"


def test_the_guide_for_instructors_takes_eight_screens(page, site: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": SCREEN})
    open_page(page, site, "book/instructors")
    height = page.locator(".bd-article").evaluate("article => article.getBoundingClientRect().height")
    assert SCREEN < height <= GUIDE_SCREENS * SCREEN, (
        f"{height / SCREEN:.1f} screens: move details to a page of book/teaching/"
    )


def test_a_lesson_leads_to_its_exercises_and_the_sidebar_is_short(page, site: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    open_page(page, site, LESSONS[2])
    page.locator(".tfc-practice a").first.click()
    assert page.url.partition("#")[0].endswith("/exercises.html")
    page.locator(f"[id='{page.url.partition('#')[2]}']").wait_for(state="attached")
    lines = [line for line in page.locator(".bd-sidebar-primary .bd-links li").all() if line.is_visible()]
    assert len(lines) <= 26
    linked = page.locator(".bd-sidebar-primary .bd-links a").evaluate_all("links => links.map(link => link.href)")
    assert len({address.partition("#")[0] for address in linked}) == len(PAGES) - 1


def test_every_exercise_leads_to_its_sections_of_the_lesson(page, site: Path) -> None:
    lines = 0
    for name in (name for name in CHAPTER_PAGES if name.endswith("exercises")):
        open_page(page, site, name)
        links = page.locator("p:has(> em:first-child:text-is('In the lesson:'))").evaluate_all(
            "lines => lines.map(line => [...line.querySelectorAll('a')].map(link => link.href))"
        )
        assert all(links), f"{name}: a line without a link"
        lines += len(links)
        assert _missing(site, {address for line in links for address in line}) == set()
    assert lines == len(exercises())


def test_every_section_that_a_verdict_names_is_there(site: Path) -> None:
    read = {
        section_address(f"{site.as_uri()}/", exercise.chapter, known.read)
        for exercise in exercises().values()
        for known in exercise.misconceptions
    }
    assert len(read) > len(CHAPTER_PAGES)
    assert _missing(site, read) == set()


def _missing(site: Path, addresses: set[str]) -> set[str]:
    """Return those of some addresses of sections that lead nowhere."""
    ids: dict[str, set[str]] = {}
    for address in addresses:
        path = unquote(urlsplit(address).path)
        if path not in ids:
            assert Path(path).is_relative_to(site)
            ids[path] = set(re.findall(r'\bid="([^"]+)"', Path(path).read_text(encoding="utf-8")))
    return {address for address in addresses if urlsplit(address).fragment not in ids[unquote(urlsplit(address).path)]}


def test_no_page_names_another_host_for_something_it_loads(site: Path) -> None:
    loading = re.compile(
        r'<(?:script|img|iframe|link(?! rel="canonical")|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"'
    )
    found = {path.name: loading.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert {name: tags for name, tags in found.items() if tags} == {}


def test_no_page_gives_a_solution_away(site: Path) -> None:
    leaks = find_leaks(site_materials(site), project_secrets(ROOT), ROOT)
    assert not leaks, "\n".join(map(str, leaks))
