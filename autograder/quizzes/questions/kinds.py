"""Make questions of each kind from facts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from autograder.quizzes.questions.changes import ALWAYS, ERROR, NOTHING, REMOVED, Change
from autograder.quizzes.questions.facts import Facts, RunFacts
from autograder.quizzes.questions.options import OPTIONS, filled
from autograder.quizzes.questions.question import Question
from autograder.quizzes.questions.trace import Point

_TIMES = ("first", "second", "third")


def shuffled(options: Sequence[str], key: str, rng: random.Random) -> tuple[tuple[str, ...], int]:
    """Return options in a random order, and the index of the key."""
    order = rng.sample(list(options), len(options))
    return tuple(order), order.index(key)


def shapes(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for the shape of a variable after a line, or of an expression."""
    yield from _about_points(facts, rng, "shape", lambda point: point.sort == "shape")


def values(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for a plain value of a variable or an expression, for an input that is shown completely or for given sizes."""
    yield from _about_points(facts, rng, "value", lambda point: point.sort in ("int", "tuple", "list", "str", "dict"))


def _about_points(facts: Facts, rng: random.Random, kind: str, fits: Callable[[Point], bool]) -> Iterator[Question]:
    for run in rng.sample(facts.runs, len(facts.runs)):
        first = {(point.line, point.text): point.shown for point in run.points if not point.visit}
        usable = [
            point
            for point in run.points
            # A later visit is worth a question where it is different from the first.
            if fits(point)
            and not _is_told(point)
            and (not point.visit or first.get((point.line, point.text)) != point.shown)
        ]
        by_sort = {sort: list(group) for sort, group in groupby(sorted(usable, key=_sort), key=_sort)}
        for sort in rng.sample(list(by_sort), len(by_sort)):
            question = _about_one_point(run, by_sort[sort], sort, kind, rng)
            if question is not None:
                yield question


def _sort(point: Point) -> str:
    return point.sort


def _is_told(point: Point) -> bool:
    """Return whether a value is written in the code or is a size of the input by its name alone."""
    return point.shown == point.text or (point.sort == "int" and point.text.isidentifier() and not point.after)


def _about_one_point(
    run: RunFacts, points: Sequence[Point], sort: str, kind: str, rng: random.Random
) -> Question | None:
    answers = list(dict.fromkeys(point.shown for point in points))
    real = rng.sample(answers, min(OPTIONS, len(answers)))
    options = filled(real, sort, run.input)
    if options is None:
        return None
    key = rng.choice(real)
    point = rng.choice([point for point in points if point.shown == key])
    order, index = shuffled(options, key, rng)
    again = any((one.line, one.text, one.visit) == (point.line, point.text, 1) for one in run.points)
    once = not point.visit and not again and run.counts.get(point.line, 2) < 2
    when = "" if once else f" the {_TIMES[point.visit]} time"
    place = (
        f"which {kind} does `{point.text}` have after line {point.line} has run{when}"
        if point.after
        else f"which {kind} does `{point.text}` have in line {point.line}{', when it runs' + when if when else ''}"
    )
    told = f"Run on this input, line {point.line} gives `{point.text}` the {kind} {point.shown}{when and f' {when.strip()}'}."
    return Question(kind, f"{point.line} {point.text}", f"For {run.input}: {place}?", order, index, told)


def counts(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask how often a line runs."""
    countable = {one.line for one in facts.statements if one.countable}
    for run in rng.sample(facts.runs, len(facts.runs)):
        lines = {line: run.counts.get(line, 0) for line in sorted(countable)}
        if not run.counts or max(lines.values(), default=0) < 2:
            continue
        real = list(dict.fromkeys(lines.values()))
        real = rng.sample(real, min(OPTIONS, len(real)))
        options = filled([str(count) for count in real], "int", run.input)
        if options is not None:
            key = rng.choice(real)
            line = rng.choice([line for line, count in lines.items() if count == key])
            order, index = shuffled(options, str(key), rng)
            text = f"For {run.input}: how often does line {line} run?"
            yield Question("count", str(line), text, order, index, f"On this input, line {line} ran {_often(key)}.")


def _often(count: int) -> str:
    return {0: "not once", 1: "once", 2: "twice"}.get(count, f"{count} times")


def branches(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which line does not run, or which one alone does."""
    lines = [one.line for one in facts.statements if not one.raises and one.countable]
    for run in rng.sample(facts.runs, len(facts.runs)):
        if not run.counts:
            continue
        ran, idle = ([line for line in lines if (line in run.counts) is state] for state in (True, False))
        choices = [("does not run", idle, ran)] * (len(ran) >= OPTIONS - 1) * bool(idle)
        choices += [("runs", ran, idle)] * (len(idle) >= OPTIONS - 1) * bool(ran)
        if choices:
            verb, keys, others = rng.choice(choices)
            line = rng.choice(keys)
            options = [_line_text(facts, one) for one in (line, *rng.sample(others, OPTIONS - 1))]
            order, index = shuffled(options, options[0], rng)
            text = f"For {run.input}: which of these lines {verb}?"
            told = (
                f"On this input, line {line} {verb}; of the three others, {'each' if verb != 'runs' else 'none'} does."
            )
            yield Question("branch", str(line), text, order, index, told)


def _line_text(facts: Facts, line: int) -> str:
    text = facts.source.split("\n")[line - 1].split("  #")[0].strip()
    return f"line {line}: {text[:70]}{'…' if len(text) > 70 else ''}"


def changed_lines(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for the verdict of the check on the code with one line changed."""
    by_outcome = _by_outcome(facts.changes)
    if len(by_outcome) < 2:
        return
    for _ in range(len(by_outcome)):
        possible = rng.sample(list(by_outcome), min(OPTIONS, len(by_outcome)))
        key = rng.choice(possible)
        others = [name for name in (NOTHING, ERROR, *facts.rows) if name not in possible]
        outcomes = [*possible, *rng.sample(others, min(OPTIONS - len(possible), len(others)))]
        if len(outcomes) == OPTIONS:
            change = rng.choice(by_outcome[key])
            texts = {outcome: _outcome_text(facts, outcome) for outcome in outcomes}
            order, index = shuffled(list(texts.values()), texts[key], rng)
            text = f"{_change_sentence(change)}\n   What does the check say of the changed code?"
            yield Question("change", _change_topic(change), text, order, index, f"The check, run on it: {change.seen}")


def responsible_lines(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which change makes a row of the check the first one to fail."""
    by_outcome = _by_outcome(facts.changes)
    if len(by_outcome) < 2:
        return
    for key in rng.sample(list(by_outcome), len(by_outcome)):
        others = [name for name in by_outcome if name != key]
        names = rng.sample(others, min(OPTIONS - 1, len(others)))
        right = rng.choice(by_outcome[key])
        wrong = [rng.choice(by_outcome[name]) for name in names]
        rest = [change for name in names for change in by_outcome[name] if change not in wrong]
        wrong += rng.sample(rest, min(OPTIONS - 1 - len(wrong), len(rest)))
        texts = list(dict.fromkeys(_change_text(change) for change in (right, *wrong)))
        if len(texts) == OPTIONS:
            order, index = shuffled(texts, texts[0], rng)
            text = f"Each of these changes one line of your code. With which one does the check say: {_outcome_text(facts, key)}?"
            told = f"The check, run on your code with line {right.line} changed: {right.seen}"
            yield Question("responsible", _change_topic(right), text, order, index, told)


def _by_outcome(changes: Sequence[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.outcome, []).append(change)
    return found


def _outcome_text(facts: Facts, outcome: str) -> str:
    if outcome == NOTHING:
        return "every row passes"
    if outcome == ERROR:
        return "its first call raises an error"
    return f"the first row that fails is “{facts.rows[outcome].rstrip('.')}”"


def _change_topic(change: Change) -> str:
    return f"{change.line} {change.before} {change.after}"


def _change_sentence(change: Change) -> str:
    if change.after == REMOVED:
        return f"Line {change.line}, `{change.before}`, is removed{' with its block' if change.before.startswith('if ') else ''}."
    if change.after == ALWAYS:
        return f"The block under line {change.line}, `{change.before}`, always runs, whatever the condition."
    return f"Line {change.line}, `{change.before}`, is changed to `{change.after}`."


def _change_text(change: Change) -> str:
    if change.after == REMOVED:
        return f"line {change.line}, `{change.before}`, removed"
    if change.after == ALWAYS:
        return f"line {change.line}, `{change.before}`: its block always runs"
    return f"line {change.line}: `{change.after}`"


def results(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask what comes out for a small input, of the code as it is or with one line changed; the options are what these return."""
    for run in rng.sample(facts.runs, len(facts.runs)):
        changed = {text: change for change in facts.changes if (text := change.results.get(run.number, ""))}
        if not run.result or len({run.result, *changed}) < OPTIONS:
            continue
        options = rng.sample([run.result, *sorted(text for text in changed if text != run.result)], OPTIONS)
        key = rng.choice(options)
        order, index = shuffled(options, key, rng)
        if key == run.result:
            text, topic, told = f"For {run.input}: what is returned?", run.input, "Run on this input, your code returns"
        else:
            change = changed[key]
            text = f"{_change_sentence(change)}\n   What does the changed code return for {run.input}?"
            topic, told = _change_topic(change), "Run on this input, the changed code returns"
        yield Question("result", topic, text, order, index, f"{told} {key}.", generic=key == run.result)


def parameters(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask how many parameters a class, or one of its parts, has."""
    for run in rng.sample(facts.runs, len(facts.runs)):
        totals: Mapping[str, int] = run.parameters
        real = list(dict.fromkeys(totals.values()))
        if not real:
            continue
        real = rng.sample(real, min(OPTIONS, len(real)))
        options = filled([str(count) for count in real], "int", run.input)
        if options is None:
            continue
        key = rng.choice(real)
        name = rng.choice([name for name, count in totals.items() if count == key])
        order, index = shuffled(options, str(key), rng)
        what = f"self.{name}" if name else f"an instance of {facts.exercise}"
        text = f"For {run.input.partition('; call:')[0]}: how many numbers can {what} learn?"
        told = f"Made with these arguments, {what} has {key} parameters."
        yield Question("parameters", f"{name} {run.number}", text, order, index, told, generic=True)


Kind: TypeAlias = Callable[[Facts, random.Random], Iterator[Question]]
KINDS: tuple[Kind, ...] = (changed_lines, shapes, responsible_lines, counts, values, results, parameters)
# They are asked where the others do not give enough questions: a line that does not run is often told by its looks.
LAST_KINDS: tuple[Kind, ...] = (branches,)
