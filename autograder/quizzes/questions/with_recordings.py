"""Ask questions and print facts in a student package, which has recorded sheets instead of references."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from autograder.checking.recorded import FOLDER, read_sheet
from autograder.checking.sheet import Sheet
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.facts import gather_facts
from autograder.quizzes.questions.kinds import make_questions
from autograder.quizzes.questions.quiz import ask_about

_SEALED = ("autograder.checking", "autograder.quizzes")


def quiz(candidate: Callable[..., Any], *, seed: int | None = None) -> None:
    """Ask three questions about your own code of an exercise.

    Args:
        candidate: your function or class; the exercise is found by its name.
        seed: selects the questions; by default every call has other ones.

    Raises:
        LookupError: if this build has no exercise of that name.
    """
    ask_about(candidate, recorded_sheet(str(getattr(candidate, "__name__", ""))), seed)


def recorded_sheet(exercise: str) -> Sheet:
    """Read the recorded sheet of an exercise.

    Raises:
        LookupError: if this build has no exercise of that name.
    """
    path = FOLDER / f"{exercise}.safetensors"
    if not exercise.isidentifier() or not path.is_file():
        raise LookupError(f"there is no exercise named {exercise!r} in this package")
    return read_sheet(path)


def sealed() -> Callable[..., None]:
    """Return :func:`print_facts`, and remove the modules that it uses from ``sys.modules``.

    Called before a student's cells run. The cells then import copies of these modules, and changing a copy changes no facts.
    """
    names = [name for name in sys.modules if name.startswith(_SEALED)]
    for package, _, child in (name.rpartition(".") for name in names):
        vars(sys.modules[package]).pop(child, None)
    for name in names:
        del sys.modules[name]
    return print_facts


def print_facts(sources: Mapping[str, str], namespace: Mapping[str, Any], mark: str, enough: int) -> None:
    """Print the facts about definitions, one line of JSON after a mark per definition, until there are enough questions.

    This runs in the sandbox, in the process of the student's cells, so malicious code can still print false effects of changed lines.
    :mod:`autograder.quizzes.viva.told_facts` compares everything else with the course's own data.

    Args:
        sources: the definitions by exercise.
        namespace: the global names of the notebook.
        mark: the beginning of a line with facts.
        enough: the number of questions to reach.
    """
    made = 0
    for exercise, source in sources.items():
        with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(_Nowhere()):
            try:
                facts = gather_facts(Code(exercise, source, namespace), recorded_sheet(exercise))
                made += len(make_questions(facts, 0, enough))
                told = asdict(facts)
            except Exception as error:
                told = {"failed": type(error).__name__}
        sys.stdout.write(f"{mark}{json.dumps(told)}\n")
        if made >= enough:
            return


class _Nowhere(io.TextIOBase):
    """A stream that discards text, for the output of student code that runs for questions."""

    def write(self, text: str) -> int:
        """Discard a text, and return its length."""
        return len(text)
