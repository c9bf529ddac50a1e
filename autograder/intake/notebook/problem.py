"""Define the problems of a submission (kind, place, remedy), and store them in a notebook's metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Kinds for lecturers only: student code sees the hidden questions, and its behaviour could reveal them to the student.
FOR_LECTURERS = frozenset({"worth a look"})

# The metadata key of a sanitised notebook's problems. A submission cannot bring its own, because its metadata are dropped.
METADATA_KEY = "tfcourse"
# Limit of characters of a problem's parts: each may quote the student, and is printed, stored and shown on pages.
LONGEST = 2_000
_LONGEST_PLACE = 200
# The most problems of one submission.
MOST = 40
LEFT_OUT = "more problems"


def shorten(text: str, longest: int = LONGEST) -> str:
    """Truncate a text to a length and append its full length."""
    if len(text) <= longest:
        return text
    ending = f" … ({len(text):,} characters in all)."
    return text[: longest - len(ending)].rstrip(" ,;.") + ending


@dataclass(frozen=True)
class Problem:
    """A problem of one submission. It is reported and does not affect other submissions.

    Its texts are truncated, because they may quote the student.
    """

    kind: str  # its short name, for example ``"wrong chapter"``; one name per cause
    what: str  # what happened, as a sentence
    where: str = ""  # the file, cell or exercise, if any
    do: str = ""  # what to do about it, or empty
    fatal: bool = False  # whether it makes the submission ungradable
    remark: bool = False  # whether it is a remark only: it cost no points and needs no action

    def __post_init__(self) -> None:
        for name, longest in (("what", LONGEST), ("do", LONGEST), ("where", _LONGEST_PLACE)):
            object.__setattr__(self, name, shorten(getattr(self, name), longest))

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data, ready for JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Parse the data that :meth:`to_dict` returned."""
        return cls(**data)

    def __str__(self) -> str:
        prefix = f"{self.where}: " if self.where else ""
        text = f"{prefix}{self.what}" + (f" {self.do}" if self.do else "")
        # A student's exception may contain control codes for the terminal.
        return "".join(sign if sign.isprintable() else " " for sign in text)


def read_problems(notebook: Any) -> list[Problem]:
    """Return the problems in a sanitised notebook's metadata."""
    mark: Mapping[str, Any] = notebook.metadata.get(METADATA_KEY) or {}
    return [Problem.from_dict(item) for item in mark.get("problems", [])]


def add_problems(notebook: Any, problems: list[Problem]) -> None:
    """Add problems to a sanitised notebook's metadata."""
    set_problems(notebook, read_problems(notebook) + problems)


def set_problems(notebook: Any, problems: Sequence[Problem]) -> None:
    """Store problems in a sanitised notebook's metadata, only the most important if there are many."""
    notebook.metadata[METADATA_KEY] = {"problems": [problem.to_dict() for problem in select_most_important(problems)]}


def select_most_important(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Return the problems in order; if there are many, the most important and a remark about the others."""
    if len(problems) <= MOST:
        return problems
    others = [problem for problem in problems if problem.kind != LEFT_OUT]
    ranked = sorted(range(len(others)), key=lambda i: (not others[i].fatal, others[i].remark, i))
    important = [others[i] for i in sorted(ranked[: MOST - 1])]
    return [
        *important,
        Problem(LEFT_OUT, f"More problems were found; the {MOST - 1} most important are listed.", remark=True),
    ]
