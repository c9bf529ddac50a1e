"""The command line: thin commands over the library.

Exit codes: 0 done; 1 the thing examined falls short; 2 wrong usage, wrong input or wrong environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.errors import CourseError
from tfcourse import __version__

P = ParamSpec("P")
R = TypeVar("R")

errors = Console(stderr=True, highlight=False)

# Libraries are imported inside the commands: `tfcourse --help` must not wait for torch and nbgrader.


def _people_read(command: Callable[P, R]) -> Callable[P, R]:
    """Show a CourseError as what, where and what to do, with exit code 2."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except CourseError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("stopped. What was finished is kept; run the same command again to go on.")

    return run


def fail(message: str) -> NoReturn:
    """Say what went wrong and leave with exit code 2."""
    errors.print("[bold red]tfcourse:[/]", end=" ")
    errors.print(message, markup=False)
    sys.exit(2)


def say(text: str = "") -> None:
    """Print a line for people."""
    click.echo(text)


def as_json(data: object) -> None:
    """Print data for scripts."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def project_root() -> Path:
    """Return the course's project: the nearest folder upwards that holds ``_config.yml`` and ``chapters/``."""
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "_config.yml").is_file() and (folder / "chapters").is_dir():
            return folder
    raise CourseError(
        "this is not inside the course's project (no folder above has _config.yml and chapters/)",
        where=here,
        do="Change into your clone of the course and run the command again.",
    )


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Yield a function that marks one step as done: a bar on a terminal, a plain line elsewhere."""
    if not errors.is_terminal:
        done = 0

        def line(step: str) -> None:
            nonlocal done
            done += 1
            click.echo(f"{title}: {step}" + (f" ({done}/{total})" if total else ""), err=True)

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=total)

        def step(text: str) -> None:
            bar.update(task, advance=1, description=f"{title}: {text}"[:60])

        yield step


course_option = click.option(
    "--course",
    "course_dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("course"),
    show_default=True,
    help="The course folder, an nbgrader course.",
)
json_option = click.option("--json", "json_", is_flag=True, help="Print the result as JSON.")
device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="auto",
    show_default=True,
    help="Where student code runs.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tfcourse")
def main() -> None:
    """Build, assign, autograde and solve the course.

    Example: tfcourse assign 03 && tfcourse autograde 03 --submissions downloads.zip
    """


@main.command()
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Where the site goes (book/_build/html)."
)
@json_option
@_people_read
def build(output: Path | None, json_: bool) -> None:
    """Build the static site; warnings are errors.

    Example: tfcourse build
    """
    from autograder.authoring.student_files import student_files
    from autograder.site.build import build_site

    root = project_root()
    with progress_bar("build") as step:
        site = build_site(
            root, output=output, downloads=student_files(root, root / ".cache" / "student"), progress=step
        )
    if json_:
        as_json({"output": site.output, "pages": site.pages, "seconds": site.seconds, "lessons": site.runtimes})
    else:
        say(f"{len(site.pages)} pages in {site.seconds:.0f} s. Open {site.output / 'index.html'}")


@main.command()
@click.argument("chapters", nargs=-1, required=True, metavar="CHAPTER...")
@course_option
@json_option
@_people_read
def assign(chapters: tuple[str, ...], course_dir: Path, json_: bool) -> None:
    """Release chapters: nbgrader source, release notebook and the student's tfcourse.

    Example: tfcourse assign 03 04
    """
    from autograder.authoring.assign import assign as assign_chapters
    from autograder.course import Course

    root = project_root()
    names = _chapter_names(root, chapters)
    made = assign_chapters(root, Course.open(course_dir, create=True), names)
    if json_:
        as_json([vars(item) for item in made])
        return
    for item in made:
        say(f"{item.chapter}: give students {item.package}")
        say(f"  notebook {item.notebook}")
        say(f"  package  {item.wheel}")


def _chapter_names(root: Path, wanted: Sequence[str]) -> list[str]:
    from autograder.authoring.chapter import find_chapter

    return list(dict.fromkeys(find_chapter(root, name).name for name in wanted))
