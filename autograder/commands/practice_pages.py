"""Make the pages *Find the bug* of closed chapters for the site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.commands.released_site import ReleasedSite


def practice_chapters(
    root: Path, shown: Sequence[str], offered: Sequence[str] | None, released: ReleasedSite | None
) -> list[str]:
    """Return the closed chapters of a site, whose solutions students may see.

    An offered package has their solutions and, in a course, their deadline is over.

    Args:
        shown: the chapters of the site; an empty sequence means all.
        offered: the chapters whose files it offers; None for all.
        released: what a course's own site offers.
    """
    from autograder.commands.options import resolve_project_chapters
    from autograder.quizzes.exam.pages import chapters_with_open_solutions

    every = resolve_project_chapters(root, ())
    closed = chapters_with_open_solutions(shown or every, list(released.files) if released else offered or every)
    return [chapter for chapter in closed if released is None or _is_past_deadline(released, chapter)]


def _is_past_deadline(released: ReleasedSite, chapter: str) -> bool:
    """Return whether a chapter is released and its class deadline is over."""
    from autograder.course.course_file import read_course_file

    due = read_course_file(released.root).due(chapter)
    return chapter in released.files and (due is None or due <= datetime.now(UTC))


def make_practice_pages(root: Path, chapters: Sequence[str], step: Callable[[str], None]) -> dict[str, Path]:
    """Make the pages of chapters, from the cache if the code is unchanged."""
    from autograder.atomic_files import write_all_or_none
    from autograder.course.artifact_cache import cached_artifact, code_hash
    from autograder.quizzes.exam.pages import PAGE, render_practice_page

    pages, key = {}, [code_hash(root)] if chapters else []
    for chapter in chapters:
        step(f"find the bug: {chapter}")
        content = cached_artifact(root, f"practice-{chapter}", key, partial(render_practice_page, chapter))
        pages[chapter] = root / ".cache" / "practice" / chapter / PAGE
        write_all_or_none({pages[chapter]: content})
    return pages


def add_practice_pages(files: Mapping[str, Sequence[Path]], pages: Mapping[str, Path]) -> dict[str, Sequence[Path]]:
    """Return students' files with the practice pages added."""
    chapters = dict.fromkeys([*files, *pages])
    return {chapter: [*files.get(chapter, ()), *([pages[chapter]] if chapter in pages else [])] for chapter in chapters}
