"""A named problem: what is wrong with a submission, where, and what to do about it; and the problems that a notebook carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Told to lecturers and not to students: what a student's code does while it sees the hidden questions could say what they are.
FOR_LECTURERS = frozenset({"worth a look"})

# Where a sanitised notebook keeps what was found about it; a submission cannot bring its own, for nothing of its metadata is kept.
METADATA_KEY = "tfcourse"
# Characters of a problem's parts. What a student wrote may be in any of them, and all of it is printed, kept and shown on pages.
LONGEST = 2_000
_LONGEST_PLACE = 200
# Problems that are told of one submission.
MOST = 40
LEFT_OUT = "more problems"


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text for people that is not longer than that; of a longer one the beginning, and how long it is."""
    if len(text) <= longest:
        return text
    ending = f" … ({len(text):,} characters in all)."
    return text[: longest - len(ending)].rstrip(" ,;.") + ending


@dataclass(frozen=True)
class Problem:
    """Something that went otherwise than it should; it is told, it costs only what it must, and it stops nobody else.

    Its texts are limited, for a student may decide how long they would be.

    Attributes:
        kind: its short name, for example ``"wrong chapter"``; the same cause always has the same name.
        what: what happened, as a sentence.
        where: the file, the cell or the exercise that it happened in, if there is one.
        do: what to do about it, if something can be done.
        fatal: whether the submission cannot be graded because of it.
        remark: whether it is worth a remark only: it cost nothing, and nobody has to do anything about it.
    """

    kind: str
    what: str
    where: str = ""
    do: str = ""
    fatal: bool = False
    remark: bool = False

    def __post_init__(self) -> None:
        for name, longest in (("what", LONGEST), ("do", LONGEST), ("where", _LONGEST_PLACE)):
            object.__setattr__(self, name, shortened(getattr(self, name), longest))

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data, ready for JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Return the problem that :meth:`to_dict` described."""
        values = {name: data[name] for name in ("kind", "what", "where", "do", "fatal")}
        return cls(**values, remark=data.get("remark", False))

    def __str__(self) -> str:
        prefix = f"{self.where}: " if self.where else ""
        text = f"{prefix}{self.what}" + (f" {self.do}" if self.do else "")
        # A terminal obeys what a student's exception may say.
        return "".join(sign if sign.isprintable() else " " for sign in text)


def problems_of(notebook: Any) -> list[Problem]:
    """Return the problems that a sanitised notebook carries."""
    mark: Mapping[str, Any] = notebook.metadata.get(METADATA_KEY) or {}
    return [Problem.from_dict(item) for item in mark.get("problems", [])]


def add_problems(notebook: Any, problems: list[Problem]) -> None:
    """Add problems to those that a sanitised notebook carries."""
    set_problems(notebook, problems_of(notebook) + problems)


def set_problems(notebook: Any, problems: Sequence[Problem]) -> None:
    """Have a sanitised notebook carry these problems, and of very many the worst."""
    notebook.metadata[METADATA_KEY] = {"problems": [problem.to_dict() for problem in most_important(problems)]}


def most_important(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Return problems, in order; of very many the worst, and that there are more."""
    if len(problems) <= MOST:
        return problems
    others = [problem for problem in problems if problem.kind != LEFT_OUT]
    ranked = sorted(range(len(others)), key=lambda i: (not others[i].fatal, others[i].remark, i))
    important = [others[i] for i in sorted(ranked[: MOST - 1])]
    return [
        *important,
        Problem(LEFT_OUT, f"More problems were found; the {MOST - 1} most important are listed.", remark=True),
    ]
