"""Define a question, choose its options, and write questions as plain text.

Nothing but the code tells the right option apart. Wherever the code gives four different answers at four places, these are the options,
and the place is chosen after them: each option is as likely to be the key as any other. Otherwise answers that plausible mistakes give
fill the set: axes exchanged, an axis forgotten or added, a number off by one. Each of them starts from any option, right or wrong, so that
the others do not all resemble the key.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

LETTERS = "ABCD"
OPTIONS = 4
_ATTEMPTS = 200
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
    # what it is about within its kind: the questions of a student have different topics, if there are enough of them
    topic: str
    text: str  # the question
    options: tuple[str, ...]  # the options, in the order in which they stand
    key: int  # the index of the right option
    explanation: str  # what the run showed
    generic: bool = False  # whether all correct code has the same key


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


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Return items by a key, in their order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def filled(real: Sequence[str], sort: str, context: str) -> list[str] | None:
    """Return four different options that contain the given ones; None if no mistakes are known for their sort.

    The same answers in the same context are filled with the same mistakes. Else a program that sees the questions of a whole class could
    tell the answers, which occur often, from mistakes that differ in every question.

    Args:
        real: at most four answers that the code gives.
        sort: the sort of the answers, as ``trace.describe`` names it.
        context: the input.
    """
    edit = _EDITS.get(sort)
    options = list(dict.fromkeys(real))[:OPTIONS]
    if not options or (edit is None and len(options) < OPTIONS):
        return None
    for attempt in range(_ATTEMPTS):
        if len(options) == OPTIONS:
            break
        assert edit is not None
        rng = random.Random(f"{context} {attempt}")
        other = edit(rng.choice(sorted(options)), rng)
        if other is not None and other not in options:
            options.append(other)
    return options if len(options) == OPTIONS else None


def _edited_shape(text: str, rng: random.Random) -> str | None:
    """Return a shape with two axes exchanged, an axis dropped, or an axis of size 1 added."""
    sizes = list(ast.literal_eval(text))
    choices = ["exchange"] * (2 * (len(sizes) > 1)) + ["drop"] * (len(sizes) > 1) + ["add", "copy"]
    choice = rng.choice(choices)
    if choice == "exchange":
        i, j = rng.sample(range(len(sizes)), 2)
        sizes[i], sizes[j] = sizes[j], sizes[i]
    elif choice == "drop":
        del sizes[rng.randrange(len(sizes))]
    elif choice == "copy" and sizes:
        sizes[rng.randrange(len(sizes))] = rng.choice(sizes)
    else:
        sizes.insert(rng.randrange(len(sizes) + 1), 1)
    return str(tuple(sizes)) if len(sizes) <= 6 else None


def _edited_int(text: str, rng: random.Random) -> str | None:
    value = int(text)
    return str(rng.choice([value + 1, value - 1, value + 2, 2 * value, value // 2])) if value >= 0 else str(-value)


def _edited_items(text: str, rng: random.Random) -> str | None:
    """Return a list or tuple in another order, or with an item less or another one twice."""
    value: Any = ast.literal_eval(text)
    items = list(value)
    choice = rng.choice(["reverse", "drop", "exchange", "again"])
    if choice == "reverse":
        items.reverse()
    elif choice == "drop" and len(items) > 1:
        del items[rng.randrange(len(items))]
    elif choice == "exchange" and len(items) > 1:
        i, j = rng.sample(range(len(items)), 2)
        items[i], items[j] = items[j], items[i]
    elif 0 < len(items) <= 3:
        items.append(rng.choice(items))
    return repr(type(value)(items)) if items else None


_EDITS: dict[str, Callable[[str, random.Random], str | None]] = {
    "shape": _edited_shape,
    "int": _edited_int,
    "tuple": _edited_items,
    "list": _edited_items,
}
