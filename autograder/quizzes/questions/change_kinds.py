"""Make questions about the effect of a changed line or a changed input; runs of the code prove the key and refute the other options."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from autograder.quizzes.questions.changes import Change
from autograder.quizzes.questions.edits import Edit
from autograder.quizzes.questions.effects import FACTORS, Effects
from autograder.quizzes.questions.facts import Facts, InputText
from autograder.quizzes.questions.question import (
    MOST_WORDS,
    OPTIONS,
    Question,
    count_words,
    group_by_key,
    make_question,
)

# The maximum fraction of shared words of two options, because similar options would both seem right.
_MOST_ALIKE = 0.5
# The number of words reserved for each option that is not chosen yet.
_USUAL_WORDS = 6
# The fraction of cases in which "all" is tried last: it is an option of every question, and should not be the most frequent key.
_ALL_LAST = 1 / 3
# The number of wrong options that are chosen for sharing words with the changed line.
_NEAR = 2
_WORD, _WORD_IN_CODE = re.compile(r"\w{4,}"), re.compile(r"[a-z]{2,}")


def edit_sentence(edit: Edit) -> str:
    """Describe an edit in a sentence."""
    lines = f"Line {edit.first} becomes" if edit.first == edit.last else f"Lines {edit.first}–{edit.last} become"
    return f"{lines} `{edit.after}`."


def ask_mistake(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask which known mistake a changed line makes."""
    texts = facts.given.mistakes
    real = group_by_key((change for change in facts.changes if change.mistake in texts), lambda change: change.mistake)
    for name in rng.sample(list(real), len(real)):
        change = rng.choice(real[name])
        stem = f"{edit_sentence(change.edit)} What goes wrong?"
        others = order_for_class([one for one in facts.given.apart[name] if one in texts], facts.exercise)
        # Some wrong options share words with the changed line, too; otherwise comparing words would reveal the key.
        line = _code_words(
            " ".join([*facts.source.split("\n")[change.edit.first - 1 : change.edit.last], change.edit.after])
        )
        echoes = {one: len(_code_words(texts[one]) & line) for one in [name, *others]}
        chosen = [name]
        near = sorted(others, key=lambda one: -echoes[one])
        for one in [*near[:_NEAR], *(one for one in others if one in real), *near]:
            words = count_words([stem, *(texts[other] for other in [*chosen, one])])
            room = MOST_WORDS - _USUAL_WORDS * (OPTIONS - 1 - len(chosen))
            alike = any(_are_alike(texts[one], texts[other]) for other in chosen)
            if len(chosen) < OPTIONS and one not in chosen and words <= room and not alike:
                chosen.append(one)
        if len(chosen) == 1 or max(echoes[one] for one in chosen[1:]) < echoes[name]:
            continue
        reasons = [
            f"Code with this mistake gives other answers than your changed code: “{texts[one]}”." for one in chosen
        ]
        told = "The changed code answers every call of the check as code with this mistake does."
        options = [texts[one] for one in chosen]
        yield from make_question("mistake", change.edit.lines, stem, options, reasons, told, rng)


def order_for_class(options: Iterable[str], key: object) -> list[str]:
    """Order options in the same way for a whole class; otherwise a program that sees all questions could infer the keys."""
    return sorted(options, key=lambda text: random.Random(f"{key} {text}").random())


def _code_words(text: str) -> set[str]:
    return set(_WORD_IN_CODE.findall(text.lower()))


def _are_alike(a: str, b: str) -> bool:
    first, second = (set(_WORD.findall(text.lower())) for text in (a, b))
    return len(first & second) > _MOST_ALIKE * min(len(first), len(second))


def ask_purpose(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask for which inputs a changed line can change the result."""
    properties = {text: set(numbers) for text, numbers in facts.given.properties.items() if numbers}
    every = set().union(*properties.values())
    order = order_for_class([text for text in properties if properties[text] != every], facts.exercise)
    for change in _shuffle_comparable(facts, rng):
        calls = set(change.calls)
        key = next((i for i, text in enumerate(order) if properties[text] == calls), None)
        if key is None or min(len(calls), len(every - calls)) < 2:
            continue
        # The key's neighbours in the class's order, so that no option is more frequent than the others.
        others = [text for text in [*order[key + 1 :], *order[:key]] if calls - properties[text]]
        chosen = [order[key], *others[: OPTIONS - 1]]
        reasons = [
            f"{_count_calls(len(calls - properties[text]))} to which this does not apply changes." for text in chosen
        ]
        told = (
            f"Of {len(every)} calls of the check, exactly the {len(calls)} to which this applies give another result."
        )
        text = f"{edit_sentence(change.edit)} When can the result change?"
        options = [f"only if {one}" for one in chosen]
        yield from make_question("purpose", change.edit.lines, text, options, reasons, told, rng)


def _shuffle_comparable(facts: Facts, rng: random.Random) -> list[Change]:
    """Return the changes that raise no errors, whose results can be compared, in a random order."""
    changes = [change for change in facts.changes if not change.raises]
    return rng.sample(changes, len(changes))


def _count_calls(number: int) -> str:
    return "A call of the check" if number == 1 else f"Each of {number} calls of the check"


def ask_input(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask which one of four calls a changed line affects, or does not affect."""
    told_whole = [number for number, one in enumerate(facts.given.inputs) if one.complete]
    for change in _shuffle_comparable(facts, rng):
        felt = [number for number in told_whole if number in change.inputs]
        kept = [number for number in told_whole if number not in change.inputs]
        for ones, others, text in (
            (felt, kept, "Which of these calls alone gives another result?"),
            (kept, felt, "Which of these calls alone gives the same result as before?"),
        ):
            if not ones or len(others) < OPTIONS - 1:
                continue
            chosen = [rng.choice(ones), *rng.sample(others, OPTIONS - 1)]
            stem, options = split_common_arguments([facts.given.inputs[number] for number in chosen])
            now = [f" It returns {change.results[n]}." if n in change.results else "" for n in chosen]
            same = "gives the same result as before" if others is kept else "gives another result than before"
            different = "gives another result than before" if others is kept else "gives the same result as before"
            reasons = [f"With the change, this call {same}.{text}" for text in now]
            told = f"With the change, this call {different}; the three others do not.{now[0]}"
            stem = f" With {stem}:" if stem else ""
            yield from make_question(
                "input", change.edit.lines, f"{edit_sentence(change.edit)}{stem} {text}", options, reasons, told, rng
            )


def split_common_arguments(inputs: Sequence[InputText]) -> tuple[str, list[str]]:
    """Return the text of the arguments that inputs share, and the text of each input's other arguments."""
    if len({tuple(one.arguments) for one in inputs}) > 1 or any("; call:" in one.text for one in inputs):
        return "", [one.text for one in inputs]
    names = list(inputs[0].arguments)
    shared = [name for name in names if len({one.arguments[name] for one in inputs}) == 1]
    texts = [", ".join(f"{name} = {one.arguments[name]}" for name in names if name not in shared) for one in inputs]
    return ", ".join(f"{name} = {inputs[0].arguments[name]}" for name in shared), texts


def ask_affected_rows(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask which rows of the result change if one row of an argument changes."""
    possible = [
        (one, part, row)
        for one in facts.effects
        # If each row depends only on itself, or all rows depend on everything, a question would be trivial.
        if len({len(felt) == one.rows for rows in one.felt.values() for felt in rows.values()}) > 1
        for part, rows in one.felt.items()
        for row in rows
    ]
    # Alternate between the kinds of answers, so that none is the most frequent key.
    by_answer = group_by_key(
        rng.sample(possible, len(possible)), lambda place: _list_usual_answers(*place).index(_affected_rows(*place))
    )
    answers = rng.sample(list(by_answer), len(by_answer))
    if rng.random() < _ALL_LAST:
        answers.sort(key=lambda answer: answer == 0)
    turns = zip_longest(*(by_answer[answer] for answer in answers))
    for one, part, row in (place for turn in turns for place in turn if place is not None):
        key = _affected_rows(one, part, row)
        others = [
            rows for rows in _list_usual_answers(one, part, row) if rows != key and max(rows, default=0) < one.rows
        ]
        texts = [rows_text(rows, one.rows) for rows in [key, *others[: OPTIONS - 1]]]
        reasons = [f"With three draws of other numbers, this is where `{one.part}` changed: {texts[0]}."] * len(texts)
        text = f"For {facts.given.inputs[one.number].text}: {part.format(row)} changes. For which i can `{one.part}` change?"
        yield from make_question("rows", part.partition("[")[0], text, texts, reasons, reasons[0], rng, generic=True)


def ask_scale(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask how a returned number changes if an argument is doubled."""
    possible = [(one.number, name, key) for one in facts.effects for name, key in one.scaled.items()]
    for number, name, key in rng.sample(possible, len(possible)):
        options = [key, *(one for one in FACTORS if one != key)]
        told = f"With twice this `{name}`: {key.lower()}."
        text = f"For {facts.given.inputs[number].text}: what happens to the result if `{name}` is doubled?"
        yield from make_question("scale", f"`{name}", text, options, [told] * OPTIONS, told, rng, generic=True)


def _affected_rows(one: Effects, part: str, row: int) -> tuple[int, ...]:
    return one.felt[part][row]


def _list_usual_answers(one: Effects, part: str, row: int) -> list[tuple[int, ...]]:
    """Return plausible answers: all rows, this row, from it on, up to it, none, and the right answer."""
    usual = [tuple(range(one.rows)), (row,), tuple(range(row, one.rows)), tuple(range(row + 1)), ()]
    return list(dict.fromkeys([*usual, _affected_rows(one, part, row)]))


def rows_text(rows: Sequence[int], count: int) -> str:
    """Describe row numbers below ``count`` in words, such as ``all`` or ``0 to 2``."""
    if len(rows) == count:
        return "all"
    if len(rows) > 2 and list(rows) == list(range(rows[0], rows[-1] + 1)):
        return f"{rows[0]} to {rows[-1]}"
    start = f"{', '.join(map(str, rows[:-1]))} and " if len(rows) > 1 else "only "
    return f"{start}{rows[-1]}" if rows else "none"


def ask_invariance(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions that ask which change of the input keeps the result, or which is the only change that does not."""
    for one in rng.sample(facts.effects, len(facts.effects)):
        by_state: Mapping[bool, list[str]] = {
            state: [text for text, kept in one.kept.items() if kept is state] for state in (True, False)
        }
        for state, verb in ((True, "leaves the result as it is, up to rounding"), (False, "changes the result")):
            if by_state[state] and len(by_state[not state]) >= OPTIONS - 1:
                chosen = [
                    order_for_class(by_state[state], facts.exercise)[0],
                    *order_for_class(by_state[not state], facts.exercise),
                ]
                chosen = chosen[:OPTIONS]
                reasons = [
                    f"Run on the changed input, the result {'is another one' if state else 'stays as it is'}."
                ] * OPTIONS
                text = f"For {facts.given.inputs[one.number].text}: which of these {verb}?"
                told = f"Of the four, this change alone {verb}, with three draws of other numbers."
                yield from make_question(
                    "invariance", f"invariance{state}", text, chosen, reasons, told, rng, generic=True
                )
