"""Make questions about what a run shows, and select questions of different kinds."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from autograder.quizzes.questions.change_kinds import (
    edit_sentence,
    feelings,
    invariances,
    mistakes,
    purposes,
    rewritings,
    what_ifs,
)
from autograder.quizzes.questions.facts import Facts
from autograder.quizzes.questions.question import OPTIONS, Question, edited_int, edited_shape, filled, made

# At most one question in so many has a key that all correct code shares, and one in so many only asks what the code shows.
GENERIC_ONE_IN, READING_ONE_IN = 2, 4
_ROUNDS = 8
_FRACTION = re.compile(r"[\d.]*(?:\.|e-?)\d+")


def shapes(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask for the shape of a variable after a line; it is no copy of one in the question."""
    for run in rng.sample(facts.runs, len(facts.runs)):
        given = facts.given.inputs[run.number]
        shown = " ".join([given.text, *given.arguments.values()])
        usable = [point for point in run.points if point.shape not in shown]
        answers = list(dict.fromkeys(point.shape for point in usable))
        if not answers:
            continue
        real = rng.sample(answers, min(OPTIONS, len(answers)))
        point = rng.choice([point for point in usable if point.shape == real[0]])
        order = filled(real, edited_shape, given.text)
        others = {one.shape: f"`{one.name}` has this shape after line {one.line}." for one in reversed(run.points)}
        told = f"Run on this input, line {point.line} gives `{point.name}` the shape {point.shape}."
        text = f"For {given.text}: which shape does `{point.name}` have after line {point.line}?"
        yield from made("shape", point.line, text, order, [others.get(one, told) for one in order], told, rng)


def results(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask what comes out for a small input, of the code as it is or with one line changed; the options are what these return."""
    for run in rng.sample(facts.runs, len(facts.runs)):
        changed = {text: change for change in facts.changes if (text := change.results.get(run.number, ""))}
        given = facts.given.inputs[run.number].text
        possible = sorted(text for text in {run.result, *changed} if text and _needs_no_calculator(text, given))
        if not run.result or len(possible) < OPTIONS:
            continue
        options = rng.sample(possible, OPTIONS)
        key, topic, sentence = options[0], "result", ""
        if key != run.result:
            topic, sentence = f"result {changed[key].edit.lines}", f"{edit_sentence(changed[key].edit)} "
        text = f"{sentence}What does the code {'then ' if sentence else ''}return for {given}?"
        reasons = [
            "Your code returns this as it is."
            if one == run.result
            else f"This comes out if: {edit_sentence(changed[one].edit)}"
            for one in options
        ]
        told = f"Run on this input, the {'changed ' if sentence else ''}code returns {key}."
        yield from made("result", topic, text, options, reasons, told, rng, generic=key == run.result)


def _needs_no_calculator(text: str, given: str) -> bool:
    """Return whether the fractions in a result are copied from the input."""
    return all(fraction in given for fraction in _FRACTION.findall(text))


def parameters(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Ask how many parameters a class, or one of its parts, has."""
    for run in rng.sample(facts.runs, len(facts.runs)):
        real = list(dict.fromkeys(run.parameters.values()))
        if not real:
            continue
        given = facts.given.inputs[run.number].text.partition("; call:")[0]
        real = rng.sample(real, min(OPTIONS, len(real)))
        key = rng.choice(real)
        options = [str(key), *(o for o in filled([str(count) for count in real], edited_int, given) if o != str(key))]
        name = rng.choice([name for name, count in run.parameters.items() if count == key])
        what = f"self.{name}" if name else f"an instance of {facts.exercise}"
        told = f"Made with these arguments, {what} has {key} parameters."
        text = f"For {given}: how many numbers can {what} learn?"
        yield from made("parameters", "parameters", text, options, [told] * len(options), told, rng, generic=True)


Kind: TypeAlias = Callable[[Facts, random.Random], Iterator[Question]]
#: Kinds that ask what a line or an input is for, and kinds that ask what the code shows.
UNDERSTANDING: tuple[Kind, ...] = (mistakes, purposes, what_ifs, feelings, invariances)
READING: tuple[Kind, ...] = (rewritings, results, shapes, parameters)
# A sheet has at most one question of these kinds.
SIZES = {"shape", "parameters"}


def questions(facts: Facts, seed: int | str, count: int = 4) -> list[Question]:
    """Return different questions about one definition, of as many kinds as there are. The same facts and seed give the same questions.

    Of four, three ask for understanding where the code allows it.

    Args:
        facts: what running it showed.
        count: how many are wanted; there may be fewer.
    """
    rng = random.Random(f"{seed} {facts.exercise}")
    deep, plain = (_in_turn(facts, rng, kinds) for kinds in (UNDERSTANDING, READING))
    found: list[Question] = []
    for candidates, most in ((deep, count - count // READING_ONE_IN), (plain, count), (deep, count)):
        for question in candidates:
            if (
                len(found) < most
                and not any(_clash(question, other) for other in found)
                and _has_room(question, found, count)
            ):
                found.append(question)
    return rng.sample(found, len(found))


def _in_turn(facts: Facts, rng: random.Random, kinds: Sequence[Kind]) -> list[Question]:
    """Return candidates, one of each kind, then a second one of each kind, and so on; kinds in a random order."""
    ordered: list[tuple[int, int, Question]] = []
    for number, kind in enumerate(rng.sample(kinds, len(kinds))):
        asked = {question.text: question for _ in range(_ROUNDS) for question in kind(facts, rng)}
        turns: Counter[str] = Counter()
        for question in asked.values():
            # Of each topic the first question has its turn before the second one of any.
            ordered.append((100 * turns[question.topic] + len(turns), number, question))
            turns[question.topic] += 1
    return [question for _, _, question in sorted(ordered, key=lambda item: item[:2])]


def _clash(a: Question, b: Question) -> bool:
    """Return whether two questions are about one line or ask for the same thing, or both are about sizes."""
    return bool(set(a.topic.split()) & set(b.topic.split())) or a.text == b.text or {a.kind, b.kind} <= SIZES


def _has_room(question: Question, found: Sequence[Question], count: int) -> bool:
    return not question.generic or sum(one.generic for one in found) < max(1, count // GENERIC_ONE_IN)
