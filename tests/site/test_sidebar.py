"""The sidebar: one line for a chapter, one fold for the package, and every page reachable."""

from __future__ import annotations

import re

from autograder.site.page_parts.sidebar import shorten_sidebar


def item(title: str, address: str, *, current: bool = False) -> str:
    extra = " current active" if current else ""
    return f'<li class="toctree-l1{extra}"><a class="reference internal" href="{address}">{title}</a></li>'


def listed(*items: str) -> str:
    return f'<p class="caption"><span>Pages</span></p>\n<ul class="nav bd-sidenav">\n{chr(10).join(items)}\n</ul>'


CHAPTERS = [item("01 · Recurrent networks", "a/lesson.html"), item("01 · Exercises", "a/exercises.html")]
PACKAGE = [item("Notation", "n.html"), item("tfcourse.data", "d.html"), item("tfcourse.vit", "v.html")]


def test_a_chapters_two_pages_share_a_line() -> None:
    text = shorten_sidebar(listed(*CHAPTERS))
    assert text.count("<li") == 1
    assert re.findall(r'href="([^"]+)"', text) == ["a/lesson.html", "a/exercises.html"]
    assert 'aria-label="Exercises of chapter 01"' in text


def test_the_page_of_exercises_that_is_open_is_marked() -> None:
    text = shorten_sidebar(listed(CHAPTERS[0], item("01 · Exercises", "#", current=True)))
    assert 'class="tfc-side-exercises tfc-side-here"' in text
    assert "tfc-side-here" not in shorten_sidebar(listed(*CHAPTERS))


def test_modules_of_the_package_are_folded_unless_one_is_open() -> None:
    text = shorten_sidebar(listed(*PACKAGE))
    assert text.count("<details>") == 1
    assert text.index("Notation") < text.index("<details>") < text.index("tfcourse.data")
    opened = shorten_sidebar(listed(*PACKAGE[:2], item("tfcourse.vit", "#", current=True)))
    assert "<details open>" in opened


def test_no_page_is_lost_and_other_lists_stay() -> None:
    guides = listed(item("For students", "s.html"), item("Contributing", "c.html"))
    assert re.findall(r'href="([^"]+)"', shorten_sidebar(guides)) == ["s.html", "c.html"]
    text = shorten_sidebar(listed(*PACKAGE, item("References", "r.html")))
    assert sorted(re.findall(r'href="([^"]+)"', text)) == ["d.html", "n.html", "r.html", "v.html"]


def test_details_for_instructors_are_folded_under_short_titles() -> None:
    pages = [
        item("For instructors", "i.html"),
        item("Teaching · Limits", "l.html"),
        item("Teaching · Commands", "c.html"),
    ]
    text = shorten_sidebar(listed(*pages, item("Contributing", "d.html")))
    assert "<summary>Teaching, in detail</summary>" in text
    assert "Teaching · " not in text
    assert re.findall(r'href="([^"]+)"', text) == ["i.html", "l.html", "c.html", "d.html"]
