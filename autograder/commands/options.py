"""Define the options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from autograder.errors import CourseError

Command = TypeVar("Command", bound=Callable[..., Any])

chapters_argument = click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")


required_chapters_argument = click.argument("chapters", nargs=-1, required=True, metavar="CHAPTER...")


course_option = click.option(
    "--course",
    "course_dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Course folder (an nbgrader course). [default: the current folder if it is one, otherwise course/ in the project]",
)


jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Number of submissions that run at once. [default: the number of cores]"
)


_device_option = click.option(
    "--device",
    metavar="[cpu|cuda|auto]",
    default="auto",
    show_default=True,
    help="Device of student code; auto uses a GPU if there is one. "
    "A GPU weakens the sandbox: use --device cpu for work that you do not trust.",
)


weaker_option = click.option(
    "--allow-weaker-isolation",
    "allow_weaker",
    is_flag=True,
    help="Continue even if this machine lacks the isolation that the course requires. Use it only for code that you trust.",
)


_scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Run submissions on the workers of a Dask scheduler; local starts one on this machine.",
)


def page_options(function: Command) -> Command:
    """Add the options of a command that opens a local page."""
    for option in (
        click.option("--no-browser", is_flag=True, help="Print the address of the page, but do not open a browser."),
        click.option("--port", type=click.IntRange(0, 65535), default=0, help="The page's port. [default: a free one]"),
        click.option(
            "--marker", metavar="NAME", help="Record the page's entries under this name. [default: your user name]"
        ),
    ):
        function = option(function)
    return function


def execution_options(function: Command) -> Command:
    """Add the options of a command that runs submissions."""
    for option in (
        _scheduler_option,
        weaker_option,
        _device_option,
        jobs_option,
    ):  # click lists the last decorator first
        function = option(function)
    return function


OTHER_COURSE = "Check who may write there, or name another course folder with --course."


def parse_project_chapters(root: Path, typed: str) -> list[str]:
    """Return the names of the chapters in a list such as ``01,03,05-07``, in the order of the course."""
    from autograder.course.chapter_names import parse_chapter_list

    return sorted(resolve_project_chapters(root, parse_chapter_list(typed)))


def resolve_project_chapters(root: Path, typed: Sequence[str]) -> list[str]:
    """Return the full names of typed chapters, or of all chapters if none is typed."""
    from autograder.course.authoring.chapter import find_chapter, load_chapters

    if typed:
        return list(dict.fromkeys(find_chapter(root, name).name for name in typed))
    names = [chapter.name for chapter in load_chapters(root)]
    if not names:
        raise CourseError("no chapter has exercises", where=root / "chapters", do="Add chapters/NN_topic/exercises.md.")
    return names
