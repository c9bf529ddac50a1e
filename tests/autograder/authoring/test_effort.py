"""How long each exercise takes and how difficult it is, as its prompt says, and what the lessons say of their sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.course.authoring.numbering import list_efforts

ROOT = Path(__file__).parents[3]
CHAPTERS = load_chapters(ROOT)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


@each_chapter
def test_every_exercise_and_question_states_its_effort(chapter: Chapter) -> None:
    names = [item.name for item in (*chapter.exercises(), *chapter.questions())]
    entries = list_efforts(chapter)
    assert [entry.name for entry in entries] == names
    assert [entry.number for entry in entries] == list(range(1, len(names) + 1))


@each_chapter
def test_titles_of_exercises_end_with_their_names(chapter: Chapter) -> None:
    exercises = {exercise.name for exercise in chapter.exercises()}
    for entry in list_efforts(chapter):
        if entry.name in exercises:
            assert entry.title.endswith(f": `{entry.name}`"), entry.title
