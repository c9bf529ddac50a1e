"""Decks take their figures and numbers from lessons, and a deck that names what does not exist is not made."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.errors import CourseError
from autograder.site.slides import source
from autograder.site.slides.build import build_decks
from autograder.site.slides.figure import slide_figure
from autograder.site.slides.pdf import printed_page
from autograder.site.slides.source import DeckSources, decks

ROOT = Path(__file__).parents[2]
SVG = '<svg class="tfcourse-figure" role="img" aria-label="All" viewBox="0 0 200 100" style="width:200px"><g/></svg>'
DRAWING = f'<div class="tfcourse-drawing"><style>a</style>{SVG}</div>'
NOTES = "```{notes} 4\n:short:\nSay it.\n```\n"


@pytest.fixture(autouse=True)
def lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 03 without executing it: it shows figure 3.1 and prints one number."""
    shown = nbformat.v4.new_output("display_data", {"text/html": DRAWING})
    cells = [nbformat.v4.new_code_cell("", outputs=[shown]), nbformat.v4.new_markdown_cell("*Figure 3.1. What?*")]
    executed = nbformat.v4.new_notebook(cells=cells)
    monkeypatch.setattr(source, "executed_lessons", lambda chapters: {item.name: executed for item in chapters})
    monkeypatch.setattr(source, "printed_by_expression", lambda text, notebook: {("weights[0]", ".1f"): "-0.5"})


def written(folder: Path, **texts: str) -> dict[str, str]:
    """Write own decks and return the sources that Sphinx reads."""
    own = folder / "own"
    own.mkdir()
    for name, text in texts.items():
        (own / f"{name.strip('_')}.md").write_text(text, encoding="utf-8")
    names = [name.strip("_") for name in texts]
    DeckSources(ROOT, decks(ROOT, own)).write(names, folder / "source")
    return {name: (folder / "source" / f"{name}.md").read_text(encoding="utf-8") for name in names}


def test_a_deck_takes_numbers_and_figures_from_its_lesson(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        _03="# A\n\n## B\n\n{{weights[0]:.1f}} and {{mine:.1f}}\n\n```{lesson-figure} 3.1 What?\n:steps: 50\n```\n",
    )["03"]
    assert "\N{MINUS SIGN}0.5 and {{mine:.1f}}" in text
    assert 'x="100" y="0" width="100" height="100"' in text
    assert "lesson-figure" not in text


def test_a_lecturers_deck_replaces_ours_and_takes_slides_from_it(tmp_path: Path) -> None:
    welcome = f"# W\n\n## One\n\n1\n\n{NOTES}\n## Two\n\n2\n"
    texts = written(tmp_path, _03="# A\n\n```{slides-from} welcome\nTwo\n```\n", welcome=welcome)
    assert "## Two\n\n2" in texts["03"]
    assert "## One" not in texts["03"]


def test_short_slides_are_taken_alone(tmp_path: Path) -> None:
    welcome = f"# W\n\n## One\n\n1\n\n{NOTES}\n## Two\n\n2\n"
    texts = written(tmp_path, mine="# A\n\n```{slides-from} welcome\n:short:\n```\n", welcome=welcome)
    assert "## One" in texts["mine"]
    assert "## Two" not in texts["mine"]


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ("```{lesson-figure} 3.99\n```", "3.99"),
        ("```{lesson-figure} 3.1 What?\n:crop: 0 50\n```", "alt"),
        ("```{lesson-figure} 3.1\n```", "first words"),
        ("```{lesson-figure} 3.1 Another picture\n```", "What"),
        ("```{slides-from} nobody\n```", "nobody"),
        ("```{slides-from} 03\nNo such slide\n```", "No such slide"),
        ("```{exercises} 1-99\n```", "exercise"),
    ],
)
def test_what_does_not_exist_stops_the_build(tmp_path: Path, block: str, named: str) -> None:
    with pytest.raises(CourseError, match=named):
        written(tmp_path, _03=f"# A\n\n## B\n\n{block}\n")


def test_a_part_of_a_figure_is_cut_and_described() -> None:
    html = slide_figure(DRAWING, "lesson.html", {"crop": "50 100", "alt": "The right half"})
    assert html.count('viewBox="100 0 100 100"') == 2
    assert 'aria-label="The right half"' in html
    with pytest.raises(ValueError, match="sideways"):
        slide_figure(DRAWING, "lesson.html", {"sideways": "1"})
    with pytest.raises(ValueError, match="neither"):
        slide_figure("<p>no figure</p>", "lesson.html", {})


def test_a_slide_that_is_too_full_stops_the_build(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    question = "```{question} E\n1. a\n2. b\n3. c\n4. d\n\nWhy.\n```\n"
    slides = [f"## Full\n\n{'word ' * 26}\n\n{NOTES}", "## Silent\n\n1\n", f"## Asked\n\n{question}\n{NOTES}"]
    (own / "mine.md").write_text("# T\n\n" + NOTES + "\n" + "\n".join(slides), encoding="utf-8")
    every = decks(ROOT, own)
    with pytest.raises(CourseError) as stopped:
        build_decks(ROOT, every, ["mine"], lambda line: None, tmp_path / "cache")
    assert all(text in str(stopped.value) for text in ("“Full”", "26 words", "“Silent”", "0 blocks of notes", "'E'"))


def test_a_printed_page_has_a_sheet_per_slide_and_notes_in_the_handout() -> None:
    slide = '<section >\n<h2>A</h2><aside class="sidebar notes"><p>Say it.</p></aside></section>'
    page = f'<body><div class="reveal"><div class="slides" role="main"><section >{slide}</section></div></div></body>'
    page = page.replace("</section></div></div>", "</section>\n    </div></div>")
    assert [printed_page(page, kind).count("Say it.") for kind in ("slides", "handout")] == [1, 2]
    assert printed_page(page, "slides").count('class="sheet"') == 1
