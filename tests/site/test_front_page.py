"""The front page's parts: what they state is what the course's files and today's checks say."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from autograder.checks import exercises
from autograder.course.authoring.chapter import load_chapters
from autograder.errors import CourseError
from autograder.site.front_page.attempts import attempts_html, check_attempt, read_attempts
from autograder.site.front_page.cards import cards_html, parse_card_texts
from autograder.site.front_page.facts import Facts, course_count, course_fact, facts_html, read_facts
from autograder.site.front_page.hero import Heads, hero_svg, parse_heads
from autograder.site.page_body import image_faults

ROOT = Path(__file__).parents[2]
INTRO = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
COURSE = list(load_chapters(ROOT))


def block(name: str, fence: str = "```") -> str:
    """Return the content of a directive of the front page, without its options."""
    match = re.search(rf"^{fence}\{{{name}\}}[^\n]*\n(?::[^\n]*\n)*(.*?)^{fence}$", INTRO, re.MULTILINE | re.DOTALL)
    assert match
    return match[1]


def link(document: str) -> str:
    return f"../{document}.html"


def test_counts_are_those_of_the_code_and_none_stands_in_the_text() -> None:
    assert course_count(ROOT, "exercises") == str(len(exercises()))
    assert course_count(ROOT, "chapters") == str(len(COURSE))
    assert int(course_count(ROOT, "exercise-hours")) > int(course_count(ROOT, "reading-hours")) > 5
    text = re.sub(r"```.*?```", "", INTRO, flags=re.DOTALL)
    assert not re.search(rf"{len(exercises())}|thirteen", text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: course_count(ROOT, "students"), "exercises"),
        (lambda: course_fact(ROOT, "colour"), "version"),
        (lambda: parse_card_texts("01: A cell.", ["01", "02"]), "02"),
        (lambda: read_attempts(""), "=== Title"),
        (lambda: read_attempts("=== One\ndef f(): ..."), "=== Title"),
        (lambda: read_attempts("def f(): ...\n=== One\nx\n=== Two\ny"), "=== Title"),
    ],
)
def test_what_is_unknown_or_missing_is_refused(ask: Callable[[], object], named: str) -> None:
    with pytest.raises(CourseError, match=named):
        ask()


def test_facts_are_those_of_the_projects_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    facts = read_facts(ROOT)
    assert facts.version == project["version"] == str(citation["version"])
    markup = facts_html(facts)
    for value in (facts.version, facts.author, facts.licence, citation["title"], facts.year):
        assert value in markup


def test_a_source_address_is_linked_and_cloned() -> None:
    facts = Facts("T", "A", "1", "2026-01-02", "MIT", "https://example.org/course")
    assert '<a href="https://example.org/course">' in facts_html(facts)
    assert facts.clone == "git clone https://example.org/course tfcourse && cd tfcourse"
    assert "url = {https://example.org/course}" in facts.bibtex
    assert "<a" not in facts_html(Facts("T", "A", "1", "2026-01-02", "MIT", ""))


def test_every_chapter_has_a_card_with_a_drawing() -> None:
    built = parse_card_texts(block("course-cards"), [chapter.number for chapter in COURSE])
    markup = cards_html(COURSE, built, link)
    assert markup.count('<li class="tfc-card">') == markup.count('role="img"') == len(COURSE)
    assert markup.count("<style>") == 1
    assert image_faults(markup) == []
    for chapter in COURSE:
        assert f"../chapters/{chapter.name}/lesson.html" in markup


def test_every_attempt_is_recognised_as_another_mistake_and_shows_its_points_rows_and_section() -> None:
    attempts = read_attempts(block("attempts", "````"))
    verdicts = [check_attempt(attempt, "scaled_dot_product_attention") for attempt in attempts]
    names = [[diagnosis.name for diagnosis in verdict.diagnoses] for verdict in verdicts]
    assert names == [["mask inverted"], ["mask after softmax"], ["no scale"], ["NaN in an empty row"]]
    for attempt, verdict in zip(attempts, verdicts, strict=True):
        markup = attempts_html([(attempt, verdict)], "Four", link)
        assert verdict.score < verdict.max_score
        assert f"{verdict.score:g} of {verdict.max_score:g} points" in markup
        assert markup.count("<li class=") == len(verdict.findings)
        assert f"../chapters/{verdict.chapter}/lesson.html#{verdict.diagnoses[0].read}" in markup


def explorer(caption: str) -> str:
    data = {"caption": caption, "queries": ["a", "<b>"], "weights": [[[[1.0, 0.0], [0.25, 0.75]]]]}
    return (
        f'<head-explorer class="explorer"><script type="application/json">{json.dumps(data)}</script></head-explorer>'
    )


def test_the_hero_shows_the_weights_of_the_lessons_figure() -> None:
    heads = parse_heads(explorer("Figure 4.5. Who?"), "Figure 4.5")
    assert heads == Heads(["a", "<b>"], [[[1.0, 0.0], [0.25, 0.75]]])
    assert parse_heads(explorer("Figure 4.4. Who?"), "Figure 4.5") is None
    assert parse_heads("<p>Figure 4.5</p>", "Figure 4.5") is None


def test_the_hero_has_a_state_for_each_head_and_word() -> None:
    markup = hero_svg(Heads(["a", "<b>"], [[[1.0, 0.0], [0.25, 0.75]]]), (0, 1))
    assert re.findall(r'data-state="([\d-]+)"', markup) == ["0-0", "0-1"]
    assert markup.count('style="display:none"') == 1
    assert "0.25" in markup
    assert "<b>" not in markup
    assert "Head 1: “&lt;b&gt;” attends 75 % to “&lt;b&gt;” and 25 % to “a”." in markup
