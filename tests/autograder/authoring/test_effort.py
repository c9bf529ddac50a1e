"""How long each exercise takes and how difficult it is, as its prompt says, and what the lessons say of their sum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.authoring.chapter import Chapter, chapters
from autograder.authoring.effort import efforts
from autograder.errors import CourseError

ROOT = Path(__file__).parents[3]
CHAPTERS = chapters(ROOT)
HOURS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


@each_chapter
def test_every_exercise_and_question_states_its_effort(chapter: Chapter) -> None:
    names = [item.name for item in (*chapter.exercises(), *chapter.questions())]
    entries = efforts(chapter)
    assert [entry.name for entry in entries] == names
    assert [entry.number for entry in entries] == list(range(1, len(names) + 1))


@each_chapter
def test_titles_of_exercises_end_with_their_names(chapter: Chapter) -> None:
    exercises = {exercise.name for exercise in chapter.exercises()}
    for entry in efforts(chapter):
        if entry.name in exercises:
            assert entry.title.endswith(f": `{entry.name}`"), entry.title


@each_chapter
def test_a_lesson_states_the_hours_of_its_exercises(chapter: Chapter) -> None:
    text = " ".join(chapter.lesson.read_text(encoding="utf-8").split())
    stated = re.search(r"exercises take (?:about|some) (\w+) hours", text)
    if stated is None:
        pytest.skip("this lesson does not say how long its exercises take")
    assert round(sum(entry.minutes for entry in efforts(chapter)) / 60) == HOURS.index(stated[1])


def test_a_prompt_without_effort_is_refused(tmp_path: Path) -> None:
    source = CHAPTERS[2]
    folder = tmp_path / "chapters" / source.name
    folder.mkdir(parents=True)
    text = re.sub(r"^\*Difficulty ★★★, .*\n", "", source.path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
    (folder / "exercises.md").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match="attention_backward does not say what it takes"):
        efforts(Chapter(tmp_path, source.name))
