"""Define multiple-choice questions, shuffle their options, and format them as plain text.

Only the code distinguishes the right option: the wrong options are right in other questions.
"""

from __future__ import annotations

import io
import random
import re
import tokenize
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

LETTERS = "ABCD"
OPTIONS = 4
_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


class MultipleChoice:
    """The options of a question and the index of the right one."""

    options: tuple[str, ...]
    key: int

    @property
    def letter(self) -> str:
        """The letter of the right option."""
        return LETTERS[self.key]

    @property
    def answer(self) -> str:
        """The right option."""
        return self.options[self.key]


@dataclass(frozen=True)
class Question(MultipleChoice):
    """A question about one definition."""

    kind: str  # the kind, such as ``"shape"``
    # the numbers of the lines, or other words for the subject, which no two questions of the same kind share
    topic: str
    text: str  # the question
    options: tuple[str, ...]  # the options in display order
    key: int  # the index of the right option
    explanation: str  # the result of the run that proves the key
    generic: bool = False  # whether all correct code has the same key
    reasons: tuple[str, ...] = ()  # for each option, the reason why it is wrong; empty for the key

    def reason_against(self, letter: str) -> str:
        """Return the reason why an option is wrong; empty for the key."""
        index = LETTERS.index(letter)
        return self.reasons[index] if index < len(self.reasons) else ""

    @property
    def word_count(self) -> int:
        """The number of words of the question and its options."""
        return count_words([self.text, *self.options])


# The maximum number of words of a question, so that a conversation about four questions takes two minutes.
MOST_WORDS = 45
_WORD = re.compile(r"\S*\w\S*")


def count_words(texts: Iterable[str]) -> int:
    """Count the words of texts, without operators and other symbols."""
    return sum(len(_WORD.findall(text)) for text in texts)


def make_question(
    kind: str,
    topic: object,
    text: str,
    options: Sequence[str],
    reasons: Sequence[str],
    told: str,
    rng: random.Random,
    *,
    generic: bool = False,
) -> Iterator[Question]:
    """Yield a question with shuffled options, or nothing if it is too long or has too few distinct options.

    Args:
        topic: the subject of the question: line numbers, or other words.
        text: the question without its options.
        options: the key, followed by the wrong options.
        reasons: for each option, the reason why it is wrong; the first is ignored.
        told: the explanation of the key.
        rng: shuffles the options.
        generic: whether all correct code has the same key.
    """
    order = rng.sample(range(len(options)), len(options))
    question = Question(
        *(kind, str(topic), text, tuple(options[i] for i in order), order.index(0), told, generic),
        reasons=tuple(reasons[i] if i else "" for i in order),
    )
    if len(set(options)) == OPTIONS and question.word_count <= MOST_WORDS:
        yield question


def numbered_code(source: str, hidden_lines: Sequence[int] = ()) -> str:
    """Return code with line numbers, without docstring lines, and without comments, which could reveal answers."""
    lines = source.split("\n")
    width = len(str(len(lines)))
    shown, hidden = [], set(hidden_lines)
    comments = {
        token.start
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for number, column in comments:
        lines[number - 1] = lines[number - 1][:column].rstrip()
        hidden |= set() if lines[number - 1] else {number}
    for number, line in enumerate(lines, start=1):
        if number not in hidden:
            shown.append(f"{number:>{width}}  {line}".rstrip())
        elif number - 1 not in hidden and number in hidden_lines:
            shown.append(f"{'':>{width}}  {line[: len(line) - len(line.lstrip())]}…")
    return "\n".join(shown)


def question_text(question: Question, number: int) -> str:
    """Format a question with its options as plain text."""
    options = [f"   {letter})  {option}" for letter, option in zip(LETTERS, question.options, strict=False)]
    return "\n".join([f"{number}. {question.text}", *options])


def group_by_key(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Group items by a key, and keep their order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
