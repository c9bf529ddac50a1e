"""The questions of a student's package, which has recorded sheets and no reference: the quiz, and the facts for a lecturer's pages."""

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
    """Return the recorded sheet of an exercise.

    Raises:
        LookupError: if this build has none of that name.
    """
    path = FOLDER / f"{exercise}.safetensors"
    if not exercise.isidentifier() or not path.is_file():
        raise LookupError(f"there is no exercise named {exercise!r} in this package")
    return read_sheet(path)


def sealed() -> Callable[..., None]:
    """Return the function that prints facts, and forget the modules that it uses.

    It is called before a student's cells run. They import copies of these modules afterwards, and a changed copy changes no facts.
    """
    names = [name for name in sys.modules if name.startswith(_SEALED)]
    for package, _, child in (name.rpartition(".") for name in names):
        vars(sys.modules[package]).pop(child, None)
    for name in names:
        del sys.modules[name]
    return print_facts


def print_facts(sources: Mapping[str, str], namespace: Mapping[str, Any], mark: str, enough: int) -> None:
    """Print the facts about some definitions, a line of JSON after a mark for each, until there are enough questions.

    It runs in the sandbox, after a student's cells and in their process, so code that is written for it can still tell other
    effects of changed lines than they have. Everything else is compared with the course's own (`autograder.quizzes.viva.told_facts`).

    Args:
        sources: the definitions by exercise.
        namespace: the global names of the notebook.
        mark: the beginning of a line with facts.
        enough: so many questions are wanted.
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
    """A stream that keeps nothing: what student code prints while it is run for questions is of no interest."""

    def write(self, text: str) -> int:
        """Return the length of the text."""
        return len(text)
