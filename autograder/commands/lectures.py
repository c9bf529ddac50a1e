"""Make the slides that ``tfcourse build --slides`` adds to a site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.content_hash import hash_tree
from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.site.slides.build import DeckReport

_OWN = "slides"


class Lectures:
    """The lecture slides of a site.

    Args:
        root: the project.
        typed: ``all``, or a list of chapters or own decks such as ``01,03,welcome``.
        course_dir: the course folder, whose folder ``slides`` may hold a lecturer's own decks.
        pdf: whether to print them, too.
    """

    def __init__(self, root: Path, typed: str, course_dir: Path | None, pdf: bool) -> None:
        self._root = root
        self._typed = typed
        self._own = course_dir / _OWN if course_dir is not None and (course_dir / _OWN).is_dir() else None
        self._pdf = pdf
        self.reports: tuple[DeckReport, ...] = ()  # what each deck takes; empty for slides that are unchanged

    def key(self) -> list[str]:
        """Return what the slides depend on, other than the project's files."""
        return ["slides", self._typed, str(self._pdf), "" if self._own is None else hash_tree(self._own)]

    def build(self, step: Callable[[str], None]) -> Path:
        """Build the decks and return their folder.

        Raises:
            CourseError: if a chapter that was named has no deck, or a deck is wrong.
        """
        from autograder.course.chapter_names import parse_chapter_list
        from autograder.site.slides.build import build_decks
        from autograder.site.slides.pdf import find_chromium, print_decks
        from autograder.site.slides.source import decks

        chromium = find_chromium() if self._pdf else None
        every = decks(self._root, self._own)
        named = list(every) if self._typed == "all" else [_pad_number(name) for name in parse_chapter_list(self._typed)]
        if missing := [name for name in named if name not in every]:
            raise CourseError(
                f"there is no deck {', '.join(missing)}",
                where=self._root / "chapters",
                do=f"Decks: {', '.join(every) or 'none'}. A deck is chapters/NN_topic/slides.md.",
            )
        built = build_decks(self._root, every, named, step)
        self.reports = built.reports
        if chromium is not None:
            print_decks(built.folder, named, chromium, step)
        return built.folder


def _pad_number(name: str) -> str:
    return f"{int(name):02}" if name.isdecimal() else name
