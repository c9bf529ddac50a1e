"""Make questions about what a change does: a changed line, or a changed input. Every key is a run, and a run refutes each other option."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from autograder.quizzes.questions.changes import Change
from autograder.quizzes.questions.edits import Edit
from autograder.quizzes.questions.facts import Facts, InputText
from autograder.quizzes.questions.question import MOST_WORDS, OPTIONS, Question, grouped, made

_Option = TypeVar("_Option")
# Options that say nearly the same would both be right to a reader.
_MOST_ALIKE = 0.5


def edit_sentence(edit: Edit) -> str:
    """Say what an edit does."""
    lines = f"Line {edit.first}" if edit.first == edit.last else f"Lines {edit.first}–{edit.last}"
    one = edit.first == edit.last
    return (
        f"{lines} {'becomes' if one else 'become'} `{edit.after}`."
        if edit.after
        else f"{lines} {'is' if one else 'are'} left out."
    )


def mistakes(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which known mistake a changed line is."""
    texts = facts.given.mistakes
    real = grouped((change for change in facts.changes if change.mistake in texts), lambda change: change.mistake)
    for name in rng.sample(list(real), len(real)):
        change = rng.choice(real[name])
        stem = f"{edit_sentence(change.edit)} What goes wrong?"
        most = (MOST_WORDS - len(f"{stem} {texts[name]}".split())) // (OPTIONS - 1)
        others = [one for one in facts.given.apart[name] if one in texts and len(texts[one].split()) <= most]
        # The mistakes of other lines come first: each of them is the key of another question.
        # The rest is the same for a whole class: else a program that sees all its questions could tell what is true of this code.
        rest = random.Random(facts.exercise).sample(others, len(others))
        order = [
            *rng.sample([one for one in others if one in real], len([one for one in others if one in real])),
            *rest,
        ]
        chosen = [name]
        for one in order:
            if (
                len(chosen) < OPTIONS
                and one not in chosen
                and not any(_alike(texts[one], texts[other]) for other in chosen)
            ):
                chosen.append(one)
        reasons = [
            f"Code with this mistake gives other answers than your changed code: “{texts[one]}”." for one in chosen
        ]
        told = "The changed code answers every call of the check as code with this mistake does."
        options = [texts[one] for one in chosen]
        yield from made("mistake", change.edit.lines, stem, options, reasons, told, rng)


def same_for_all(options: Sequence[_Option], key: object) -> list[_Option]:
    """Return at most three options, the same for a whole class: else a program that sees all its questions could tell what is true."""
    return random.Random(str(key)).sample(list(options), min(OPTIONS - 1, len(options)))


def _alike(a: str, b: str) -> bool:
    first, second = set(a.lower().split()), set(b.lower().split())
    return len(first & second) > _MOST_ALIKE * min(len(first), len(second))


def purposes(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for which inputs a changed line matters."""
    properties = {text: set(numbers) for text, numbers in facts.given.properties.items()}
    every = set().union(*properties.values()) if properties else set()
    for change in _that_answer(facts, rng):
        calls = set(change.calls)
        keys = [text for text, numbers in properties.items() if numbers == calls]
        if len(keys) != 1 or min(len(calls), len(every - calls)) < 2:
            continue
        others = [text for text, numbers in properties.items() if numbers and numbers not in (calls, every)]
        chosen = [keys[0], *same_for_all(others, change.edit)]
        reasons = [_against(properties[text], calls) for text in chosen]
        told = (
            f"Of {len(every)} calls of the check, exactly the {len(calls)} to which this applies give another result."
        )
        text = f"{edit_sentence(change.edit)} For exactly which inputs does the result change?"
        yield from made("purpose", change.edit.lines, text, [f"where {one}" for one in chosen], reasons, told, rng)


def _that_answer(facts: Facts, rng: random.Random) -> list[Change]:
    """Return the changes whose results can be compared: none is an error."""
    changes = [change for change in facts.changes if not change.raises]
    return rng.sample(changes, len(changes))


def _against(numbers: set[int], calls: set[int]) -> str:
    if numbers - calls:
        return f"{_counted(len(numbers - calls))} to which this applies gives the same result as before."
    return f"{_counted(len(calls - numbers))} to which this does not apply gives another result, too."


def _counted(number: int) -> str:
    return "A call of the check" if number == 1 else f"Each of {number} calls of the check"


def what_ifs(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which of four calls alone a changed line matters for, or does not."""
    told_whole = [number for number, one in enumerate(facts.given.inputs) if one.complete]
    for change in _that_answer(facts, rng):
        felt = [number for number in told_whole if number in change.inputs]
        kept = [number for number in told_whole if number not in change.inputs]
        for ones, others, text in (
            (felt, kept, "Which of these calls alone gives another result?"),
            (kept, felt, "Which of these calls alone gives the same result as before?"),
        ):
            if not ones or len(others) < OPTIONS - 1:
                continue
            chosen = [rng.choice(ones), *rng.sample(others, OPTIONS - 1)]
            stem, options = apart([facts.given.inputs[number] for number in chosen])
            now = [f" It returns {change.results[n]}." if n in change.results else "" for n in chosen]
            same = "gives the same result as before" if others is kept else "gives another result than before"
            different = "gives another result than before" if others is kept else "gives the same result as before"
            reasons = [f"With the change, this call {same}.{text}" for text in now]
            told = f"With the change, this call {different}; the three others do not.{now[0]}"
            stem = f" With {stem}:" if stem else ""
            yield from made(
                "input", change.edit.lines, f"{edit_sentence(change.edit)}{stem} {text}", options, reasons, told, rng
            )


def apart(inputs: Sequence[InputText]) -> tuple[str, list[str]]:
    """Return what inputs have in common, and the text of each without it."""
    if len({tuple(one.arguments) for one in inputs}) > 1 or any("; call:" in one.text for one in inputs):
        return "", [one.text for one in inputs]
    names = list(inputs[0].arguments)
    shared = [name for name in names if len({one.arguments[name] for one in inputs}) == 1]
    texts = [", ".join(f"{name} = {one.arguments[name]}" for name in names if name not in shared) for one in inputs]
    return ", ".join(f"{name} = {inputs[0].arguments[name]}" for name in shared), texts


def feelings(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which rows of the result change if one row of an argument gets other numbers."""
    for one in rng.sample(facts.effects, len(facts.effects)):
        places = [(name, row) for name, rows in one.felt.items() for row in rows]
        # Where each row depends on itself alone, there is nothing to ask.
        alone = all(felt == (row,) for rows in one.felt.values() for row, felt in rows.items())
        for name, row in rng.sample(places, len(places)) if not alone else ():
            key = one.felt[name][row]
            real = {felt for rows in one.felt.values() for felt in rows.values()}
            usual = [tuple(range(one.rows)), (row,), tuple(range(row, one.rows)), tuple(range(row + 1)), ()]
            others = [
                rows
                for rows in dict.fromkeys([*usual, *sorted(real)])
                if rows != key and max(rows, default=0) < one.rows
            ]
            chosen = [key, *others[: OPTIONS - 1]]
            texts = [rows_text(rows, one.rows) for rows in chosen]
            reasons = [f"With three draws of other numbers, what changed was: {texts[0]}."] * len(chosen)
            text = f"For {facts.given.inputs[one.number].text}: row {row} of `{name}` gets other numbers. Which rows of the result change?"
            yield from made("rows", "rows", text, texts, reasons, reasons[0], rng, generic=True)


def rows_text(rows: Sequence[int], count: int) -> str:
    """Return some of so many rows in words."""
    if not rows:
        return "none"
    if len(rows) == count:
        return "all"
    if len(rows) == 1:
        return f"only row {rows[0]}"
    if len(rows) > 2 and list(rows) == list(range(rows[0], rows[-1] + 1)):
        return f"rows {rows[0]} to {rows[-1]}"
    return f"rows {', '.join(map(str, rows[:-1]))} and {rows[-1]}"


def invariances(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which change of the input leaves the result as it is, or which alone does not."""
    for one in rng.sample(facts.effects, len(facts.effects)):
        by_state: Mapping[bool, list[str]] = {
            state: [text for text, kept in one.kept.items() if kept is state] for state in (True, False)
        }
        for state, verb in ((True, "leaves the result as it is"), (False, "changes the result")):
            if by_state[state] and len(by_state[not state]) >= OPTIONS - 1:
                chosen = [same_for_all(by_state[state], verb)[0], *same_for_all(by_state[not state], verb)]
                reasons = [
                    f"Run on the changed input, the result {'is another one' if state else 'stays as it is'}."
                ] * OPTIONS
                text = f"For {facts.given.inputs[one.number].text}: which of these {verb}?"
                told = f"Of the four, this change alone {verb}, with three draws of other numbers."
                yield from made("invariance", "invariance", text, chosen, reasons, told, rng, generic=True)


def rewritings(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which expression may take the place of another one."""
    for one in rng.sample(facts.rewritings, len(facts.rewritings)):
        for kept, others, verb in (
            (one.same, one.different, "changes no result"),
            (one.different, one.same, "changes results"),
        ):
            if kept and len(others) >= OPTIONS - 1:
                chosen = [same_for_all(kept, one.text)[0], *same_for_all(others, one.text)]
                text = f"In line {one.line}, which of these in the place of `{one.text}` {verb}?"
                told = f"Of the four, this one alone {verb} on the calls of the check."
                reasons = [
                    f"With this, {'a result changes or an error comes' if kept is one.same else 'every result stays as it is'}."
                ] * OPTIONS
                yield from made("equal", f"{one.line} equal", text, [f"`{new}`" for new in chosen], reasons, told, rng)
