"""No second program: what a student's process says when its code wants to start one.

The kernel refuses to start programs in a student's process (:mod:`autograder.engine.sandbox.seccomp`). This module only explains the
refusal: IPython's commands for the system's shell print a sentence and the cell goes on, Python's own functions raise an error with that
sentence.
"""

from __future__ import annotations

from typing import Any

from IPython.utils.text import LSString, SList

# IPython's cell magics that hand the cell to a program.
_SCRIPTS = ("bash", "perl", "pypy", "python", "python2", "python3", "ruby", "script", "sh")
# What a shell says of a command that it found and could not run.
NOT_RUN = 126
_LONGEST = 60


class ProgramError(PermissionError):
    """A program was to be started. It is an OSError, so libraries that merely ask a program for something go on without."""


def explanation(command: str) -> str:
    """Return what is said to somebody whose code wants to start a program.

    Args:
        command: the program, or the whole line for the shell.
    """
    line = " ".join(command.split())
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
    return f"Programs cannot be started while a notebook is graded: “{shown}” was not run. This costs no points."


class ShellRefusal:
    """What an IPython shell does in the place of starting programs; mixed into its class."""

    user_ns: dict[str, Any]

    def system(self, cmd: str) -> None:
        """Say that a command is not run, and go on: a cell may define an exercise below it."""
        print(explanation(cmd))
        self.user_ns["_exit_code"] = NOT_RUN

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Say that a command is not run, and return its empty output, as a list of lines or as text."""
        self.system(cmd)
        return SList([]) if split else LSString("")


def refuse_script_magics(shell: Any) -> None:
    """Have a shell explain ``%%bash`` and the other cell magics that hand a cell to a program."""

    def refuse(line: str, cell: str) -> None:
        shell.system(f"{line} {cell}")

    for name in _SCRIPTS:
        shell.register_magic_function(refuse, "cell", name)
