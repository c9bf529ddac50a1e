"""Define the program ``tfcourse``, which loads a command's module when the command is called.

Exit codes: 0 done; 1 the thing examined falls short; 2 wrong usage, wrong input or wrong environment; 130 stopped with Ctrl-C, 143 with
SIGTERM.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
from importlib import import_module
from pathlib import Path

try:
    import click

    from autograder.commands.console import keep_example_lines
except ModuleNotFoundError as _missing:
    # The reference and the checks work without the commands' dependencies, for instance on a GPU worker.
    sys.stderr.write(f"tfcourse: {_missing}. Install what the commands need: pip install 'tfcourse[grading,book]'\n")
    raise SystemExit(2) from None

from tfcourse import __version__

# Python would free every object of nbgrader and its database before it ends, one by one: a quarter of a second of each command.
atexit.register(gc.freeze)

# The commands by their users. Each has a module of its name; libraries such as PyTorch and nbgrader are imported within its function, so
# that `--help` is fast.
COMMANDS = {
    "For lecturers, in the order of a semester": (
        *("doctor", "solve", "sample-class", "build", "assign", "students", "autograde", "choose", "decide", "mark"),
        *("report", "export", "regrade", "replay", "viva", "exam", "generate"),
    ),
    "For course authors": ("sync",),
    "For students": ("validate",),
}


class _Group(click.Group):
    """A group that loads a command on use, and lists it with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        loaded: click.Command = getattr(import_module(f"autograder.commands.{name}"), name)
        loaded.short_help = loaded.get_short_help_str(sys.maxsize)
        return loaded

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for users, names in COMMANDS.items():
            with formatter.section(users):
                formatter.write_dl(
                    [(name, str(getattr(self.get_command(ctx, name), "short_help", ""))) for name in names]
                )


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 done, but something waits for you or falls short; 2 could not run; 130 stopped with Ctrl-C.",
)
@click.version_option(__version__, prog_name="tfcourse")
@keep_example_lines
def main() -> None:
    """Build the course's site, hand out its chapters, and grade submissions.

    A chapter can be named by its number or a word of its name, such as 3 or gpt.

    Example:
      tfcourse assign 03
      tfcourse autograde 03 --submissions downloads.zip
    """
    if shutil.which("alembic") is None:
        # nbgrader calls this program by name when it creates a gradebook. It is beside this Python, perhaps not on the path.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
