"""Define a question, and write questions as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LETTERS = "ABCD"


@dataclass(frozen=True)
class Question:
    """A question about one definition."""

    kind: str  # the kind, such as ``"shape"``
    # what it is about within its kind: the questions of a student have different topics, if there are enough of them
    topic: str
    text: str  # the question
    options: tuple[str, ...]  # the options, in the order in which they stand
    key: int  # the index of the right option
    explanation: str  # what the run showed
    generic: bool = False  # whether all correct code has the same key

    @property
    def letter(self) -> str:
        """The letter of the right option."""
        return LETTERS[self.key]

    @property
    def answer(self) -> str:
        """The right option."""
        return self.options[self.key]


def numbered_code(source: str, hidden_lines: Sequence[int] = ()) -> str:
    """Return code with line numbers; lines of docstrings are left out, and the others keep their numbers."""
    lines = source.split("\n")
    width = len(str(len(lines)))
    shown, hidden = [], set(hidden_lines)
    for number, line in enumerate(lines, start=1):
        if number not in hidden:
            shown.append(f"{number:>{width}}  {line}".rstrip())
        elif number - 1 not in hidden:
            shown.append(f"{'':>{width}}  {line[: len(line) - len(line.lstrip())]}…")
    return "\n".join(shown)


def question_text(question: Question, number: int) -> str:
    """Return a question with its options as plain text."""
    options = [f"   {letter})  {option}" for letter, option in zip(LETTERS, question.options, strict=False)]
    return "\n".join([f"{number}. {question.text}", *options])


def key_text(question: Question, number: int) -> str:
    """Return the key of a question with its explanation as plain text."""
    explanation = question.explanation.replace("\n", "\n   ")
    return f"{number}. {question.letter})  {question.answer}\n   {explanation}"
