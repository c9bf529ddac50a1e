"""Make questions of each kind from facts, and select questions of different kinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from autograder.quizzes.questions.changes import ALWAYS, ERROR, NOTHING, REMOVED, Change
from autograder.quizzes.questions.facts import Facts, RunFacts
from autograder.quizzes.questions.question import OPTIONS, Question, filled, grouped
from autograder.quizzes.questions.trace import Point

_TIMES = ("first", "second", "third")
# At most one question in so many has a key that all correct code shares.
GENERIC_ONE_IN = 4
_ROUNDS = 8
_ABOUT_CHANGES = {"change", "responsible", "result"}


def _made(
    kind: str,
    topic: str,
    text: str,
    options: Sequence[str],
    key: str,
    told: str,
    rng: random.Random,
    generic: bool = False,
) -> Question:
    """Return a question with its options in a random order."""
    order = rng.sample(list(options), len(options))
    return Question(kind, topic, text, tuple(order), order.index(key), told, generic)


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
        by_sort = grouped(sorted(usable, key=lambda point: point.sort), lambda point: point.sort)
        for sort in rng.sample(list(by_sort), len(by_sort)):
            question = _about_one_point(run, by_sort[sort], sort, kind, rng)
            if question is not None:
                yield question


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
    again = any((one.line, one.text, one.visit) == (point.line, point.text, 1) for one in run.points)
    once = not point.visit and not again and run.counts.get(point.line, 2) < 2
    when = "" if once else f" the {_TIMES[point.visit]} time"
    place = (
        f"which {kind} does `{point.text}` have after line {point.line} has run{when}"
        if point.after
        else f"which {kind} does `{point.text}` have in line {point.line}{', when it runs' + when if when else ''}"
    )
    told = f"Run on this input, line {point.line} gives `{point.text}` the {kind} {point.shown}{when and f' {when.strip()}'}."
    return _made(kind, f"{point.line} {point.text}", f"For {run.input}: {place}?", options, key, told, rng)


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
            text = f"For {run.input}: how often does line {line} run?"
            told = f"On this input, line {line} ran {_often(key)}."
            yield _made("count", str(line), text, options, str(key), told, rng)


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
            text = f"For {run.input}: which of these lines {verb}?"
            told = (
                f"On this input, line {line} {verb}; of the three others, {'each' if verb != 'runs' else 'none'} does."
            )
            yield _made("branch", str(line), text, options, options[0], told, rng)


def _line_text(facts: Facts, line: int) -> str:
    text = facts.source.split("\n")[line - 1].split("  #")[0].strip()
    return f"line {line}: {text[:70]}{'…' if len(text) > 70 else ''}"


def changed_lines(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for the verdict of the check on the code with one line changed."""
    by_outcome = grouped(facts.changes, lambda change: change.outcome)
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
            text = f"{_change_sentence(change)}\n   What does the check say of the changed code?"
            told = f"The check, run on it: {change.seen}"
            yield _made("change", _change_topic(change), text, [*texts.values()], texts[key], told, rng)


def responsible_lines(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask which change makes a row of the check the first one to fail."""
    by_outcome = grouped(facts.changes, lambda change: change.outcome)
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
            text = f"Each of these changes one line of your code. With which one does the check say: {_outcome_text(facts, key)}?"
            told = f"The check, run on your code with line {right.line} changed: {right.seen}"
            yield _made("responsible", _change_topic(right), text, texts, texts[0], told, rng)


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
        if key == run.result:
            text, topic, told = f"For {run.input}: what is returned?", run.input, "Run on this input, your code returns"
        else:
            change = changed[key]
            text = f"{_change_sentence(change)}\n   What does the changed code return for {run.input}?"
            topic, told = _change_topic(change), "Run on this input, the changed code returns"
        yield _made("result", topic, text, options, key, f"{told} {key}.", rng, generic=key == run.result)


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
        what = f"self.{name}" if name else f"an instance of {facts.exercise}"
        text = f"For {run.input.partition('; call:')[0]}: how many numbers can {what} learn?"
        told = f"Made with these arguments, {what} has {key} parameters."
        yield _made("parameters", f"{name} {run.number}", text, options, str(key), told, rng, generic=True)


Kind: TypeAlias = Callable[[Facts, random.Random], Iterator[Question]]
KINDS: tuple[Kind, ...] = (changed_lines, shapes, responsible_lines, counts, values, results, parameters)
# They are asked where the others do not give enough questions: a line that does not run is often told by its looks.
LAST_KINDS: tuple[Kind, ...] = (branches,)


def questions(facts: Facts, seed: int | str, count: int = 4) -> list[Question]:
    """Return different questions about one definition, of as many kinds as there are. The same facts and seed give the same questions.

    Args:
        facts: what running it showed.
        count: how many are wanted; there may be fewer.
    """
    rng = random.Random(f"{seed} {facts.exercise}")
    candidates = [*_in_turn(facts, rng, KINDS), *_in_turn(facts, rng, LAST_KINDS)]
    found: list[Question] = []
    # A topic comes a second time, with another input, only where there is nothing else to ask.
    for overlap in (_overlap, _same_text):
        for question in candidates:
            spent = question.generic and sum(one.generic for one in found) >= count // GENERIC_ONE_IN
            if len(found) < count and not spent and not any(overlap(question, other) for other in found):
                found.append(question)
    return rng.sample(found, len(found))


def _in_turn(facts: Facts, rng: random.Random, kinds: Sequence[Kind]) -> list[Question]:
    """Return candidates, one of each kind, then a second one of each kind, and so on; kinds in a random order."""
    ordered: list[tuple[int, int, Question]] = []
    for number, kind in enumerate(rng.sample(kinds, len(kinds))):
        made = {question.text: question for _ in range(_ROUNDS) for question in kind(facts, rng)}
        turns: Counter[str] = Counter()
        for question in made.values():
            # Of each topic the first question has its turn before the second one of any.
            ordered.append((100 * turns[question.topic] + len(turns), number, question))
            turns[question.topic] += 1
    return [question for _, _, question in sorted(ordered, key=lambda item: item[:2])]


def _overlap(a: Question, b: Question) -> bool:
    """Return whether two questions ask the same, or one tells the answer of the other."""
    return (a.kind == b.kind or {a.kind, b.kind} <= _ABOUT_CHANGES) and a.topic == b.topic


def _same_text(a: Question, b: Question) -> bool:
    same_change = {a.kind, b.kind} <= _ABOUT_CHANGES and a.topic == b.topic
    return a.text == b.text or same_change
