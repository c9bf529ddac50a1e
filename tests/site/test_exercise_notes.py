"""What the site adds to exercises and lessons follows from the checks, the references and the prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
from docutils import nodes

from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.course.authoring.numbering import Effort
from autograder.site.page_parts.exercise_notes import (
    Note,
    Prerequisite,
    add_notes,
    add_practice,
    build_notes,
    details_html,
    efforts_by_name,
    exercises_by_heading,
    overview_html,
)

ROOT = Path(__file__).parents[2]
COURSE = load_chapters(ROOT)
PLACES = efforts_by_name(COURSE)
NOTE = Note(
    Effort("top_p", 6, "Mass: `top_p`", 2, 15),
    4.0,
    (("The numbers are right.", 3.0), ("Half precision.", 1.0)),
    (
        Prerequisite("top_k", "5", "#rank-top-k"),
        Prerequisite("masked_softmax", "masked_softmax", "../02/exercises.html#a"),
    ),
)


def link(document: str) -> str:
    return f"../../{document}.html"


def page(*titles: str) -> nodes.document:
    """Return a document with a section for each title, each with the line of effort and a paragraph."""
    document = nodes.document(None, None)  # type: ignore[arg-type]
    main = nodes.section("", nodes.title("", "Exercises"), nodes.paragraph("", "Read this."))
    for title in titles:
        effort = nodes.paragraph("", "", nodes.emphasis("", "Difficulty ★★, about 15 minutes."))
        main += nodes.section("", nodes.title("", title), effort, nodes.paragraph("", "Do it."))
    document += main
    return document


def markup(document: nodes.document) -> list[str]:
    return [raw.astext() for raw in document.findall(nodes.raw)]


@pytest.mark.parametrize("chapter", COURSE, ids=lambda chapter: chapter.name)
def test_every_exercise_pays_what_its_test_cell_says(chapter: Chapter) -> None:
    cells = {
        cell.metadata.nbgrader["grade_id"]: float(cell.metadata.nbgrader.get("points") or 0)
        for cell in chapter.notebook().cells
        if "nbgrader" in cell.metadata
    }
    for note in build_notes(chapter, PLACES, link):
        name = note.effort.name
        assert note.points == cells.get(f"test_{name}", cells[name])


def test_an_exercise_needs_what_its_reference_calls() -> None:
    by_name = {note.effort.name: note for note in build_notes(COURSE[2], PLACES, link)}
    assert [needed.text for needed in by_name["projected_attention"].needed] == ["3", "6"]
    assert by_name["causal_mask"].needed == ()
    llama = {note.effort.name: note for note in build_notes(COURSE[12], PLACES, link)}
    assert "../../chapters/04_multi_head/exercises.html#splitting-the-width-into-heads-split-heads" in [
        needed.address for needed in llama["GroupedQueryAttention"].needed
    ]


def test_the_line_states_difficulty_time_points_and_needs() -> None:
    text = details_html(NOTE)
    for part in ("★★☆", "about 15 minutes", "4 points", "you need exercise <a", "<code><a", "Half precision."):
        assert part in text


def test_the_overview_adds_up_minutes_and_points() -> None:
    text = overview_html([NOTE, NOTE])
    assert "<td>30 min</td><td>8</td>" in text
    assert text.count("6 · Mass: <code>top_p</code>") == 2


def test_notes_replace_the_line_of_effort_under_its_heading() -> None:
    document = page("6 · Mass: top_p", "7 · Something else")
    add_notes(document, [NOTE])
    table, line = markup(document)
    assert table == overview_html([NOTE])
    assert line == details_html(NOTE)
    assert document.astext().count("Difficulty ★★") == 1


def test_a_section_links_the_exercises_that_practise_it() -> None:
    document = page("Filters", "Penalties")
    add_practice(document, {"Filters": [NOTE.effort]}, "exercises.html")
    assert markup(document) == [
        '<p class="tfc-practice">Practise: <a href="exercises.html#mass-top-p">6 · Mass: <code>top_p</code></a></p>'
    ]


@pytest.mark.parametrize("chapter", COURSE, ids=lambda chapter: chapter.name)
def test_every_exercise_is_linked_from_its_lesson(chapter: Chapter) -> None:
    linked = {effort.name for items in exercises_by_heading(chapter).values() for effort in items}
    assert linked >= {exercise.name for exercise in chapter.exercises()}
