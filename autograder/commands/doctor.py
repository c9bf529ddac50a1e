"""Run ``tfcourse doctor``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.options import course_option
from autograder.course.paths import course_folder
from autograder.errors import CourseError


@click.command()
@course_option
@command
def doctor(course_dir: Path | None) -> CommandResult:
    """Check this machine: list what is missing and how to install it.

    It checks versions, devices, isolation and the gradebook, and changes nothing.

    Example:
      tfcourse doctor
    """
    from autograder.commands.selftest.doctor import examine

    try:
        folder = course_folder(course_dir)
    except CourseError:
        # The machine can be looked at from anywhere.
        folder = None
    items = examine(folder)
    marks = {"ok": "ok     ", "note": "note   ", "missing": "MISSING"}
    lines = [
        f"{marks[item.state]}  {item.name}: {item.detail}" + (f"\n         {item.remedy}" if item.remedy else "")
        for item in items
    ]
    missing = any(item.state == "missing" for item in items)
    return CommandResult([vars(item) for item in items], "\n".join(lines), EXIT_FAILED if missing else 0)
