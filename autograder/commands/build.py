"""Run ``tfcourse build``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.lectures import Lectures
from autograder.commands.options import parse_project_chapters, resolve_project_chapters
from autograder.course.paths import project_root, require_writable
from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.commands.released_site import ReleasedSite
    from autograder.site.build import SiteReport


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Output folder. [default: book/_build/html]",
)
@click.option(
    "--offer",
    "offered",
    multiple=True,
    metavar="CHAPTER",
    help="Offer only this chapter's notebook and package for download; may be repeated. [default: all]",
)
@click.option(
    "--chapters",
    "listed",
    metavar="LIST",
    help="Build only these chapters, such as 01-11 or 01,03,05-07. [default: all]",
)
@click.option(
    "--course",
    "course_dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Offer what this course has released, with its title and deadlines. [default: every exercise]",
)
@click.option(
    "--practice",
    is_flag=True,
    help="Add pages with code to debug, for chapters whose solutions are in an offered package.",
)
@click.option(
    "--slides",
    "slides",
    is_flag=False,
    flag_value="all",
    metavar="[LIST]",
    help="Make lecture slides, too, for every chapter that has a deck or only for some, such as 01,03.",
)
@click.option("--pdf", is_flag=True, help="With --slides: print each deck and a handout with its notes, with Chromium.")
@command
def build(
    output: Path | None,
    offered: tuple[str, ...],
    listed: str | None,
    course_dir: Path | None,
    practice: bool,
    slides: str | None,
    pdf: bool,
) -> CommandResult:
    """Build the static site; warnings are errors.

    The package of a chapter contains the solutions of earlier chapters. While those are due, use --offer. With --course, the site offers
    the files of COURSE/student/: the exercises that the course assigns, in the chapters that it has released.

    --practice adds a page "Find the bug" to every chapter before the last one that is offered. Its functions are one edit away from a
    solution.

    --slides adds a folder with a deck for each chapter that has one. Decks in COURSE/slides/ are made, too, and replace decks of the
    same name.

    Example:
      tfcourse build --offer 03
      tfcourse build --slides 03
      tfcourse build --chapters 01-11
      tfcourse build --course ~/teaching/dl-2026
    """
    from autograder.commands.released_site import read_released_site

    root = project_root()
    if pdf and slides is None:
        raise click.UsageError("--pdf prints slides: pass --slides, too.")
    lectures = None if slides is None else Lectures(root, slides, course_dir, pdf)
    shown = parse_project_chapters(root, listed) if listed is not None else []
    only = _offered_chapters(root, offered, shown)
    released = None if course_dir is None else read_released_site(course_dir, only)
    if output is not None:
        require_writable(output.resolve(), "Name a folder that you may write to with --output.")
    from autograder.commands.practice_pages import practice_chapters
    from autograder.commands.unchanged_site import read_report, site_key, store_report
    from autograder.site.build import site_folder

    folder = site_folder(root, output)
    with progress_bar("build") as step:
        # Taken before the build: what changes meanwhile makes the next one build again.
        closed = practice_chapters(root, shown, only, released) if practice else []
        options = ["offered", *(only or ()), "shown", *shown, "practice", *closed]
        options += lectures.key() if lectures else []
        key = site_key(root, folder, options if released is None else [*options, released.key()])
        existing = read_report(root, folder, key)
        site = existing or _build(root, output, only, shown, released, closed, lectures, step)
        if existing is None:
            store_report(root, site, key)
    return _site_result(site, "unchanged" if existing else f"in {site.seconds:.0f} s", lectures)


def _offered_chapters(root: Path, typed: Sequence[str], shown: Sequence[str]) -> Sequence[str] | None:
    """Return the chapters whose files are offered, or None for all chapters.

    Raises:
        CourseError: if one of them is not on the site.
    """
    offered = resolve_project_chapters(root, typed) if typed else None
    if missing := [name for name in offered or () if shown and name not in shown]:
        raise CourseError(
            f"--offer names {', '.join(missing)}, and --chapters leaves it out",
            do="Offer chapters that the site has, or add them to --chapters.",
        )
    return offered or shown or None


def _build(
    root: Path,
    output: Path | None,
    only: Sequence[str] | None,
    shown: Sequence[str],
    released: ReleasedSite | None,
    closed: Sequence[str],
    lectures: Lectures | None,
    step: Callable[[str], None],
) -> SiteReport:
    """Build the site, and search it and the students' files for solutions."""
    from autograder.commands.practice_pages import add_practice_pages, make_practice_pages
    from autograder.course.release.leaks import find_leaks, refuse_leaks, site_materials
    from autograder.course.release.secret_texts import project_secrets
    from autograder.course.release.student_files import StudentFiles
    from autograder.site.build import build_site

    pages = make_practice_pages(root, closed, step)
    decks = lectures.build(step) if lectures else None
    if released is not None:
        files, plan = add_practice_pages(released.files, pages), released.course
        site = build_site(
            root, output=output, downloads=files, chapters=shown, course=plan, slides=decks, progress=step
        )
    else:
        step("students' notebooks, and the lessons in them")
        students = StudentFiles(root, root / ".cache" / "student", only)
        step("students' packages, beside the pages")
        with ThreadPoolExecutor(1) as thread:
            packages = thread.submit(students.add_packages)
            site = build_site(
                root,
                output=output,
                downloads=add_practice_pages(students.paths, pages),
                complete_downloads=packages.result,
                chapters=shown,
                slides=decks,
                progress=step,
            )
    step("searching the pages for solutions")
    refuse_leaks(
        find_leaks(site_materials(site.output), project_secrets(root), root),
        "do not publish this site: it gives solutions away",
    )
    return site


def _site_result(site: SiteReport, effort: str, lectures: Lectures | None) -> CommandResult:
    return CommandResult(
        {
            "output": site.output,
            "pages": site.pages,
            "seconds": site.seconds,
            "lessons": site.runtimes,
            "words": site.words,
            "slides": {deck.name: deck.halves for deck in lectures.reports} if lectures else {},
        },
        "\n".join(
            [
                *(f"{lesson.split('/')[1]}: a lesson of {length:,} words" for lesson, length in site.words.items()),
                *(str(deck) for deck in (lectures.reports if lectures else ())),
                f"{len(site.pages)} pages {effort}. Open {site.output / 'index.html'}",
            ]
        ),
    )
