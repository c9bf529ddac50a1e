"""The picture of the whole course: all parts, their links, and what each is built of."""

import re
from pathlib import Path

from autograder.checks import exercises
from autograder.checks.headings import headings
from autograder.course.authoring.chapter import load_chapters
from autograder.course.authoring.overview import required_exercises
from autograder.site.course_map import course_map_html

ROOT = Path(__file__).parents[2]


def picture() -> str:
    return course_map_html(list(load_chapters(ROOT)), lambda document: f"../{document}.html")


def test_every_exercise_is_a_part_of_the_road_once() -> None:
    assert sorted(re.findall(r'data-part="(\w+)"', picture())) == sorted(exercises())


def test_a_part_is_built_of_what_its_code_names() -> None:
    registry = exercises()
    assert {"rnn_cell"} <= required_exercises("rnn_forward", registry)
    assert {"EncoderLayer", "DecoderLayer"} <= required_exercises("Transformer", registry)
    assert {"T5Layer"} <= required_exercises("T5", registry)
    assert required_exercises("rnn_cell", registry) == set()


def test_no_part_is_built_of_itself() -> None:
    registry = exercises()
    assert not [name for name in registry if name in required_exercises(name, registry)]


def test_every_link_leads_to_a_lesson_or_to_a_heading_of_its_exercises() -> None:
    for chapter in load_chapters(ROOT):
        found = re.findall(rf'href="\.\./chapters/{chapter.name}/(lesson|exercises)\.html(?:#([^"]+))?"', picture())
        assert len(found) >= 1 + len(chapter.exercises())
        assert all(anchor for page, anchor in found if page == "exercises")
        assert {anchor for page, anchor in found if page == "lesson" and anchor} <= set(headings(chapter.name))
