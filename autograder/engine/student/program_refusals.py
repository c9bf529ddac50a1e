"""Explain to students that their code cannot start programs.

The kernel refuses to start programs in a student's process (:mod:`autograder.engine.sandbox.seccomp`). This module only explains the
refusal: IPython's commands for the system's shell print a sentence and the cell goes on, Python's own functions raise an error with that
sentence.
"""

from __future__ import annotations

from typing import Any

from IPython.utils.text import LSString, SList

# IPython's cell magics that run the cell in another program.
_SCRIPTS = ("bash", "perl", "pypy", "python", "python2", "python3", "ruby", "script", "sh")
# A shell's exit status for a command that exists and cannot run.
NOT_RUN = 126
_LONGEST = 60


class ProgramError(PermissionError):
    """Student code tried to start a program. As an OSError, it is handled by libraries that only query a program."""


def explain_start(command: str) -> str:
    """Return the message for a student whose code tried to start a program.

    Args:
        command: the program, or the whole line for the shell.
    """
    line = " ".join(command.split())
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
    return f"Programs cannot be started while a notebook is graded: “{shown}” was not run. This costs no points."


def explain_copy() -> str:
    """Return the message for a student whose code tried to copy its process, as ``os.fork`` does."""
    return "Processes cannot be started while a notebook is graded; threads can. This costs no points."


class ShellRefusal:
    """A mixin that makes an IPython shell explain that it starts no programs."""

    user_ns: dict[str, Any]

    def system(self, cmd: str) -> None:
        """Print that the command was not run, and continue the cell, which may define an exercise."""
        print(explain_start(cmd))
        self.user_ns["_exit_code"] = NOT_RUN

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Print that the command was not run, and return empty output, as a list of lines or as text."""
        self.system(cmd)
        return SList([]) if split else LSString("")


def refuse_script_magics(shell: Any) -> None:
    """Make a shell explain that ``%%bash`` and the other script magics do not run."""

    def refuse(line: str, cell: str) -> None:
        shell.system(f"{line} {cell}")

    for name in _SCRIPTS:
        shell.register_magic_function(refuse, "cell", name)
