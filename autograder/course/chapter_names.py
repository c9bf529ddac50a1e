"""Match typed text to chapter names: ``3``, ``03``, ``gpt`` and ``03_scaled`` are all valid."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from autograder.errors import CourseError


def matching_chapters(typed: str, chapters: Iterable[str]) -> list[str]:
    """Return the chapters that match a text: by exact name, otherwise by prefix, otherwise by a word of the name.

    An exact match wins: ``HW1`` is not ``HW-1`` or ``HW10``. Otherwise case and separators are ignored. A number needs no leading zero and
    never matches the beginning of a longer number: ``1`` is chapter 01, not 10.
    """
    exact, names = typed.strip().rstrip("/"), sorted(chapters)
    name = exact.casefold()
    if not name:
        return []
    if exact in names:
        return [exact]
    if alike := [chapter for chapter in names if chapter.casefold() == name]:
        return alike
    if name.isdecimal():
        return [chapter for chapter in names if chapter.partition("_")[0].lstrip("0") == name.lstrip("0") != ""]
    part = _fold_name(name)
    for matches in (str.__eq__, str.startswith, lambda chapter, text: f"_{text}" in chapter):
        if alike := [chapter for chapter in names if matches(_fold_name(chapter), part)]:
            return alike
    return []


def resolve_chapter(typed: str, chapters: Collection[str], problem: str, *, do: str, where: object = None) -> str:
    """Return the single chapter that a text matches.

    Args:
        problem: what continues the message that there is no such chapter.
        do: what to do then.
        where: where it was looked for.

    Raises:
        CourseError: if the text means no chapter or more than one.
    """
    matches = matching_chapters(typed, chapters)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CourseError(f"{typed!r} can mean {', '.join(matches)}", do="Write more of the name.")
    message = f"there is no chapter {typed!r}{problem}.{suggest_chapter(typed, chapters)}".rstrip(".")
    raise CourseError(message, where=where, do=do)


def _fold_name(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.casefold())


def parse_chapter_list(typed: str) -> list[str]:
    """Parse a list of chapters such as ``01,03,05-07,gpt``: names as typed, and ranges as their numbers.

    Raises:
        CourseError: if the list is empty, or a range runs backwards.
    """
    names: list[str] = []
    for part in filter(None, (part.strip() for part in typed.split(","))):
        first, dash, last = (end.strip() for end in part.partition("-"))
        if not (dash and first.isdecimal() and last.isdecimal()):
            names.append(part)
        elif int(first) > int(last):
            raise CourseError(f"the range {part} runs backwards", do=f"Write {last}-{first}.")
        else:
            names += [f"{number:02}" for number in range(int(first), int(last) + 1)]
    if not names:
        raise CourseError("the list of chapters is empty", do="Name chapters, such as 01,03,05-07.")
    return names


def suggest_chapter(typed: str, chapters: Iterable[str]) -> str:
    """Return a question that suggests the most similar chapter, with a leading blank; empty without a similar one."""
    names = sorted(chapters)
    topics = {topic: chapter for chapter in names if (topic := _fold_name(chapter.partition("_")[2]))}
    by_part = {part: chapter for topic, chapter in topics.items() for part in topic.split("_")}
    candidates = {**by_part, **topics, **{_fold_name(chapter): chapter for chapter in names}}
    close = get_close_matches(_fold_name(typed.strip()), candidates, n=1, cutoff=0.6)
    return f" Did you mean {candidates[close[0]]}?" if close else ""
