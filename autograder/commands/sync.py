"""Run ``tfcourse sync``."""

from __future__ import annotations

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.course.paths import project_root


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with code 1 if a file is out of date.")
@command
def sync(check: bool) -> CommandResult:
    """Update stubs, solution notebooks and stated numbers from the reference.

    Example:
      tfcourse sync --check
    """
    root = project_root()
    from autograder.course.authoring.sync import sync as sync_chapters

    drifts = sync_chapters(root, check=check)
    if check:
        lines = [*map(str, drifts), f"{len(drifts)} drift{'s' * (len(drifts) != 1)}"]
    else:
        lines = [f"updated: {drift.file} ({drift.cell or 'the whole file'}: {drift.what})" for drift in drifts]
    text = "\n".join(lines) if drifts else "Everything matches the reference."
    return CommandResult([vars(drift) for drift in drifts], text, EXIT_FAILED if check and drifts else 0)
