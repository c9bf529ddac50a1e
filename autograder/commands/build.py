"""Run ``tfcourse build``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.options import chapters_of_project
from autograder.course.paths import project_root, require_writable

if TYPE_CHECKING:
    from autograder.site.build import SiteReport


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the site goes. [default: book/_build/html]",
)
@click.option(
    "--offer",
    "offered",
    multiple=True,
    metavar="CHAPTER",
    help="Offer only this chapter's notebook and package for download; may be repeated. [default: all]",
)
@command
def build(output: Path | None, offered: tuple[str, ...]) -> CommandResult:
    """Build the static site; warnings are errors.

    A chapter's package holds the solutions of the chapters before it: while those are due, --offer only what is open.

    Example:
      tfcourse build --offer 03
    """
    root = project_root()
    only = chapters_of_project(root, offered) if offered else None
    if output is not None:
        require_writable(output.resolve(), "Name a folder that you may write to with --output.")
    from autograder.commands.unchanged_site import remember_site, site_key, unchanged_site
    from autograder.site.build import site_folder

    with progress_bar("build") as step:
        # Taken before the build: what changes meanwhile makes the next one build again.
        key = site_key(root, only or ())
        site = unchanged_site(root, site_folder(root, output), key)
        if site is None:
            site = _build(root, output, only, step)
            remember_site(root, site, key)
    return _result(site)


def _build(root: Path, output: Path | None, only: Sequence[str] | None, step: Callable[[str], None]) -> SiteReport:
    """Build the site with the students' files, and search both for solutions."""
    from autograder.release.leaks import find_leaks, refuse_leaks, site_materials
    from autograder.release.parts_index import PARTS_INDEX
    from autograder.release.secret_texts import project_secrets
    from autograder.release.student_files import student_files
    from autograder.site.build import build_site

    step("students' files")
    downloads = student_files(root, root / ".cache" / "student", only=only)
    site = build_site(root, output=output, downloads=downloads, progress=step)
    step("searching the pages for solutions")
    refuse_leaks(
        find_leaks(site_materials(site.output), project_secrets(root), root / PARTS_INDEX),
        "do not publish this site: it gives solutions away",
    )
    return site


def _result(site: SiteReport) -> CommandResult:
    return CommandResult(
        {
            "output": site.output,
            "pages": site.pages,
            "seconds": site.seconds,
            "lessons": site.runtimes,
            "words": site.words,
        },
        "\n".join(
            [
                *(f"{lesson.split('/')[1]}: a lesson of {length:,} words" for lesson, length in site.words.items()),
                f"{len(site.pages)} pages in {site.seconds:.0f} s. Open {site.output / 'index.html'}",
            ]
        ),
    )
