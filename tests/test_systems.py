"""Every system of the lecture decks has its exercise and its oracle, or is shown in a lesson."""

from autograder.course.authoring.chapter import load_chapters
from tools.systems import PAGE, ROOT, faults, page, systems


def test_what_the_table_names_is_there() -> None:
    assert faults() == []


def test_every_chapter_has_its_systems_and_none_stands_twice() -> None:
    rows = systems()
    assert {item.chapter for item in rows} == {chapter.name for chapter in load_chapters(ROOT)}
    assert len({(item.chapter, item.name) for item in rows}) == len(rows)


def test_the_page_is_what_the_table_and_the_course_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.systems"
