"""What every lesson promises about its form: code that fits the page, and a reading time that is true."""

from __future__ import annotations

import re

import jupytext
import pytest

from autograder.course.authoring.chapter import load_chapters
from autograder.site.page_parts.exercise_notes import exercises_by_heading

from .lesson import ROOT

LESSONS = sorted((ROOT / "chapters").glob("*/lesson.md"))
HIDDEN = {"hide-input", "remove-input"}
WORDS_PER_MINUTE, LINES_PER_MINUTE = 200, 10


def shown_cells(source: str) -> list[str]:
    """Return the code of a lesson's cells that a reader sees without unfolding anything."""
    shown = []
    for cell in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)\n```", source, flags=re.S):
        tags = re.findall(r"[\w-]+", "".join(re.findall(r"^:tags: \[(.*)\]$", cell, flags=re.M)))
        if not HIDDEN & set(tags):
            shown.append(re.sub(r"^:(?:tags|mystnb):.*\n+", "", cell, flags=re.M))
    return shown


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_code_that_is_shown_fits_the_page(path):
    for code in shown_cells(path.read_text("utf-8")):
        assert len(code.splitlines()) <= 20, code
        assert max(map(len, code.splitlines())) <= 80, code


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_reading_time_is_that_of_its_words_and_lines(path):
    source = path.read_text("utf-8")
    words = len(re.sub(r"```.*?\n```", "", source, flags=re.S).split())
    lines = sum(bool(line.strip()) for code in shown_cells(source) for line in code.splitlines())
    stated = re.search(r"\*\*It takes\*\*\s+about (\d+) minutes", source)
    assert stated, "a lesson says how long it takes to read"
    assert abs(words / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE - int(stated[1])) < 5


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_the_header_is_the_one_that_myst_needs(path):
    metadata = jupytext.reads(path.read_text("utf-8"), fmt="md:myst").metadata
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["jupytext"]["text_representation"]["format_name"] == "myst"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_a_lesson_is_a_lecture_long(path):
    without_blocks = re.sub(
        r"\A---.*?\n---\n|```.*?\n```|^\$\$$.*?^\$\$", "", path.read_text("utf-8"), flags=re.S | re.M
    )
    paragraphs = re.sub(r"^(?:\||#|\(|\*Figure).*$", "", without_blocks, flags=re.M)
    assert 3000 <= len(paragraphs.split()) <= 6000


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_a_drawing_the_objectives_the_needs_and_the_time_come_first(path):
    source = path.read_text("utf-8")
    top = source[: re.search(r"^\([\w-]+\)=\n## ", source, flags=re.M).start()]
    assert "figures.show(" in top
    assert 3 <= len(re.findall(r"^- ", top, flags=re.M)) <= 5
    assert "**You need**" in top
    assert "**It takes**" in top


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_readers_guess_twice_or_more_and_what_follows_is_folded(path):
    source = path.read_text("utf-8")
    guesses = re.findall(
        r"^```\{admonition\} Guess(?: first|: [^\n]*[?.])\n:class: (?:guess|dropdown)", source, flags=re.M
    )
    assert len(guesses) >= 2
    for box in re.finditer(r"^```\{admonition\} Guess first\n.*?^```\n\n+", source, flags=re.S | re.M):
        cell = re.match(r"```\{code-cell\} ipython3\n:tags: \[(.*)\]\n", source[box.end() :])
        answer = source.startswith("```{admonition}", box.end())
        assert not cell or "hide-output" in cell[1] or "hide-cell" in cell[1] or answer, box[0]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_each_mistake_leads_to_its_section(path):
    section = path.read_text("utf-8").split("## What goes wrong\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!mistake|:--).*\|$", section, flags=re.M)
    assert 8 <= len(rows) <= 18
    assert [row for row in rows if not (row.endswith("` |") and "{ref}`" in row)] == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_every_fold_says_what_is_in_it(path):
    for cell in re.findall(r"```\{code-cell\} ipython3\n(.*?)\n```", path.read_text("utf-8"), flags=re.S):
        if re.search(r"^:tags: .*hide-", cell, flags=re.M):
            assert re.search(r'^:mystnb: \{code_prompt_show: "Show ', cell, flags=re.M), cell


@pytest.mark.parametrize("chapter", load_chapters(ROOT), ids=lambda chapter: chapter.name)
def test_no_section_links_an_exercise_that_needs_a_later_section(chapter):
    headings = re.findall(r"^#+ (.*)$", (ROOT / "chapters" / chapter.name / "lesson.md").read_text("utf-8"), flags=re.M)
    for heading, efforts in exercises_by_heading(chapter).items():
        for effort in efforts:
            named = [title for title in headings if f"“{title}”" in " ".join(effort.prompt.split())]
            assert named[-1:] in ([heading], []), effort.name


TESTS = {
    name
    for file in ROOT.glob("tests/**/test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", file.read_text("utf-8"), flags=re.M)
}


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/claims/[0-9]*.md")), ids=lambda path: path.stem)
def test_every_test_that_a_claim_names_exists(path):
    assert set(re.findall(r"`(test_\w+)`", path.read_text("utf-8"))) - TESTS == set()
