"""The lesson of one page that the page for contributors prints: it builds, and passes what every lesson's page has to pass."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from autograder.site.build import SiteReport, build_site

from ..tfcourse.lessons.explorers.examples import CONTRIBUTING, documented_code
from .lesson_layout import SCREEN, WIDTH, Debts, debts
from .page_faults import open_page, page_faults

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LESSON = "chapters/99_example/lesson"
FOLDER = "tfcourse/lessons/figures/scenes/ch99_example.py"


def documented_lesson() -> dict[str, str]:
    """The files of the example, by their place in the course."""
    page = CONTRIBUTING.read_text(encoding="utf-8")
    (drawing,) = (
        code for code in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S) if f"# {FOLDER}" in code
    )
    (lesson,) = re.findall(r"^````markdown\n(---\n.*?)^````", page, flags=re.M | re.S)
    figure = documented_code()
    return {
        FOLDER: drawing,
        f"{LESSON}.md": lesson,
        "tfcourse/lessons/explorers/steps.py": figure["python"],
        "book/_static/step-explorer.js": figure["js"],
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> SiteReport:
    """A course of the welcome page and that lesson, with the real package and configuration, built."""
    root = tmp_path_factory.mktemp("documented") / "course"
    for folder in ("book/_static", "tfcourse"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("_config.yml", "book/references.bib"):
        shutil.copyfile(ROOT / name, root / name)
    for name, text in documented_lesson().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    pages = {"format": "jb-book", "root": "book/intro", "chapters": [{"file": LESSON}, {"file": "book/references"}]}
    (root / "book/_toc.yml").write_text(yaml.safe_dump(pages), encoding="utf-8")
    (root / "book/intro.md").write_text("# Welcome\n", encoding="utf-8")
    (root / "book/references.md").write_text("# References\n\n```{bibliography}\n```\n", encoding="utf-8")
    return build_site(root)


def test_it_owes_nothing_that_a_lesson_has(page: Any, report: SiteReport) -> None:
    page.set_viewport_size({"width": WIDTH, "height": SCREEN})
    open_page(page, report.output, LESSON, formulas=True)
    owed, where = debts(page)
    assert owed == Debts(), where


def test_it_is_accessible_and_fits_a_narrow_screen(page: Any, axe: Any, report: SiteReport) -> None:
    open_page(page, report.output, LESSON, formulas=True)
    assert page_faults(page, axe) == []


def test_its_links_lead_to_its_sections_and_its_figure_can_be_stepped_through(page: Any, report: SiteReport) -> None:
    open_page(page, report.output, LESSON)
    for link in (".tfcourse-drawing a:visible", ".bd-article p a[href='#the-words']"):
        target = page.locator(link).first.evaluate("link => link.getAttribute('href')")
        assert page.locator(target).count() == 1, f"{link} leads to {target}, which is not there"
    page.locator("details", has=page.locator("step-explorer")).locator("summary").first.click()
    explorer = page.locator("step-explorer")
    explorer.get_by_role("button", name=re.compile("next", re.I)).click()
    explorer.get_by_text("“gauge” looks most at").wait_for()


def test_its_page_is_what_the_text_says(report: SiteReport) -> None:
    html = (report.output / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "tensor([7.5000])" in html or "tensor(7.5000)" in html, "by half a metre only"
    assert "tensor([0.2500, 0.2500, 0.2500, 0.2500])" in html, "a quarter each"
    assert list(report.words) == [LESSON]
    assert 80 < report.words[LESSON] < 300, "one page"
