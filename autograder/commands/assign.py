"""Run ``tfcourse assign``."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.options import (
    OTHER_COURSE,
    course_option,
    required_chapters_argument,
    resolve_project_chapters,
)
from autograder.course.course_file import course_file_path
from autograder.course.course_file_edits import restore_course_file_on_failure, set_selection, write_template
from autograder.course.folder import CONFIG_NAME
from autograder.course.paths import course_folder, create_or_open_course, project_root, require_writable
from autograder.errors import CourseError


@click.command()
@required_chapters_argument
@click.option("--only", metavar="NAME,NAME", help="Assign only these exercises and questions of the chapter.")
@click.option("--without", metavar="NAME,NAME", help="Assign the chapter without these exercises and questions.")
@click.option("--all", "everything", is_flag=True, help="Undo --only and --without: assign the whole chapter.")
@click.option(
    "--like",
    metavar="COURSE",
    type=click.Path(path_type=Path, file_okay=False),
    help="Begin a new course with the rules of another course folder's course.toml, without its people and dates.",
)
@course_option
@command
def assign(
    chapters: tuple[str, ...],
    only: str | None,
    without: str | None,
    everything: bool,
    like: Path | None,
    course_dir: Path | None,
) -> CommandResult:
    """Release chapters to students.

    For each chapter this writes COURSE/student/CHAPTER.zip: the notebook, the lesson and the student package. The package contains the
    solutions of earlier chapters, so assign a chapter when those are no longer due. COURSE/source and COURSE/release contain nbgrader's
    versions. COURSE/course.toml records the choice of exercises for the next time.

    CHAPTER is a number or a word of the name, such as 3 or gpt.

    Example:
      tfcourse assign 03 04
      tfcourse assign 07 --only greedy_search,beam_search,top_p
      tfcourse assign 01 --course ../this-year --like ../last-year
    """
    root = project_root()
    choices = [option for option in (only, without, everything) if option]
    if choices and (len(choices) > 1 or len(chapters) > 1):
        raise click.UsageError("--only, --without and --all take one chapter, and exclude each other.")
    folder = course_folder(course_dir)
    require_writable(folder, OTHER_COURSE)
    if like is not None and course_file_path(folder).exists():
        do = "Name a new folder with --course, or leave out --like."
        raise CourseError("this course has rules already", where=course_file_path(folder), do=do)
    if like is not None and not course_file_path(like).is_file():
        raise CourseError("there is no course.toml", where=like, do="Name the folder of another course with --like.")
    from autograder.course.release.assign import assign as assign_chapters

    names = resolve_project_chapters(root, chapters)
    is_new = not (folder / CONFIG_NAME).is_file()
    with (
        create_or_open_course(folder) as course,
        progress_bar("assign") as step,
        restore_course_file_on_failure(course.root),
    ):
        write_template(course.root, like)
        if choices:
            _save_selection(root, course.root, names[0], _split_names(only), _split_names(without))
        assigned = assign_chapters(root, course, names, step)
    lines = [f"made a new course in {folder}{_similar_course_warning(folder)}"] if is_new else []
    lines += [
        f"{item.chapter}: give students {item.package}\n  notebook {item.notebook}\n  package  {item.wheel}"
        for item in assigned
    ]
    return CommandResult([vars(item) for item in assigned], "\n".join(lines))


def _similar_course_warning(folder: Path) -> str:
    """Return a warning if a new course's name resembles that of a course beside it, or an empty string."""
    others = {path.parent.name for path in folder.parent.glob(f"*/{CONFIG_NAME}")} - {folder.name}
    close = get_close_matches(folder.name, others, n=1)
    return f". There is a course {close[0]} beside it: if you meant that, delete {folder.name}." if close else ""


def _split_names(typed: str | None) -> list[str] | None:
    return None if typed is None else [name for name in (part.strip() for part in typed.split(",")) if name]


def _save_selection(root: Path, course: Path, chapter: str, only: list[str] | None, without: list[str] | None) -> None:
    """Save the assigned exercises of a chapter in ``course.toml``."""
    from autograder.course.authoring.chapter import find_chapter
    from autograder.course.authoring.selection import require_names

    require_names(find_chapter(root, chapter), [*(only or ()), *(without or ())])
    set_selection(course, chapter, only=only, without=without)
