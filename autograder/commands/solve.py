"""Run ``tfcourse solve``."""

from __future__ import annotations

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command, progress_bar
from autograder.commands.options import chapters_argument, resolve_project_chapters
from autograder.course.paths import project_root


@click.command()
@chapters_argument
@click.option(
    "--device",
    metavar="[cpu|cuda|auto]",
    default="auto",
    show_default=True,
    help="Device of the solutions; auto uses the CPU, and also a GPU if there is one.",
)
@command
def solve(chapters: tuple[str, ...], device: str) -> CommandResult:
    """Check that solutions get full points and stubs none.

    Example:
      tfcourse solve --device cpu
    """
    root = project_root()
    from autograder.commands.selftest.solve import resolve_devices
    from autograder.commands.selftest.solve import solve as solve_chapters

    names = resolve_project_chapters(root, chapters)
    where = resolve_devices(device)
    with progress_bar("solve", 2 * len(names) * len(where)) as step:
        solved = [item for on_device in where for item in solve_chapters(root, names, device=on_device, progress=step)]
    sound = sum(item.is_sound for item in solved)
    lines = [str(item) for item in solved]
    lines.append(f"{sound} of {len(solved)} exercises sound ({' and '.join(where)})")
    all_sound = sound == len(solved) > 0
    return CommandResult([item.to_dict() for item in solved], "\n".join(lines), 0 if all_sound else EXIT_FAILED)
