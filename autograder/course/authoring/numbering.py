"""Derive the numbers that pages state: of headings in an exercise notebook, of hours in a lesson, of exercises in the README."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.effort import efforts
from autograder.course.authoring.myst import lines_outside_code

_HEADING = re.compile(r"^## \d+ · ")
_HOURS = re.compile(r"(exercises\s+take\s+(?:about|some)\s+)(\w+)(\s+hours)")
_TOTAL = re.compile(r"(chapters,\s+)\d+(\s+exercises)")
_ROW = re.compile(r"^\| (?P<number>\d\d) · (?P<text>.*): \d+ exercises \|$", re.MULTILINE)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def with_numbered_headings(text: str) -> str:
    """Return an exercise notebook whose headings ``## N · Title`` are numbered from 1, in order."""
    lines = text.split("\n")
    number = 0
    for index in lines_outside_code(text):
        if _HEADING.match(lines[index]):
            number += 1
            lines[index] = _HEADING.sub(f"## {number} · ", lines[index])
    return "\n".join(lines)


def with_hours(lesson: str, chapter: Chapter) -> str:
    """Return a lesson that states the hours of its exercises, if it states any.

    Raises:
        CourseError: if a prompt lacks its difficulty and minutes.
    """
    if not _HOURS.search(lesson):
        return lesson
    hours = round(sum(effort.minutes for effort in efforts(chapter)) / 60)
    word = _WORDS[hours] if hours < len(_WORDS) else str(hours)
    return _HOURS.sub(rf"\g<1>{word}\g<3>", lesson)


def with_counts(readme: str, course: Sequence[Chapter]) -> str:
    """Return a README with the number of exercises of the course and of each chapter that its table lists."""
    counts = {chapter.name[:2]: len(chapter.exercises()) for chapter in course}

    def row(match: re.Match[str]) -> str:
        count = counts.get(match["number"])
        return match[0] if count is None else f"| {match['number']} · {match['text']}: {count} exercises |"

    return _ROW.sub(row, _TOTAL.sub(rf"\g<1>{sum(counts.values())}\g<2>", readme, count=1))
