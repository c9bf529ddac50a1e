"""Make questions about results with a changed line, and select questions of different kinds."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from autograder.quizzes.questions.change_kinds import (
    ask_affected_rows,
    ask_input,
    ask_invariance,
    ask_mistake,
    ask_purpose,
    ask_scale,
    edit_sentence,
)
from autograder.quizzes.questions.facts import Facts
from autograder.quizzes.questions.question import OPTIONS, Question, make_question

# At most one question in GENERIC_ONE_IN has a key that all correct code shares; one in READING_ONE_IN only asks for a result.
GENERIC_ONE_IN, READING_ONE_IN = 2, 4
_ROUNDS = 8
# The maximum number of questions about the same line, which have different kinds.
MOST_OF_A_LINE = 2
_FRACTION = re.compile(r"[\d.]*(?:\.|e-?)\d+")


def ask_result(facts: Facts, rng: random.Random) -> Iterator[Question]:
    """Yield questions about the result with one line changed; other options are the results of the original code and of other changes."""
    for number, result in rng.sample(sorted(facts.runs.items()), len(facts.runs)):
        changed = {text: change for change in facts.changes if (text := change.results.get(number, ""))}
        changed.pop(result, None)
        given = facts.given.inputs[number].text
        possible = sorted(text for text in {result, *changed} if text and _needs_no_calculator(text, given))
        options = rng.sample(possible, min(OPTIONS, len(possible)))
        for key in (options[0],) if len(options) == OPTIONS and result and options[0] != result else ():
            sentence = edit_sentence(changed[key].edit)
            text = f"{sentence} What does the code then return for {given}?"
            elsewhere = {one: f"This comes out if: {edit_sentence(changed[one].edit)}" for one in changed}
            reasons = [elsewhere.get(one, "Your code returns this as it is.") for one in options]
            told = f"Run on this input, the changed code returns {key}."
            yield from make_question("result", f"result {changed[key].edit.lines}", text, options, reasons, told, rng)


def _needs_no_calculator(text: str, given: str) -> bool:
    """Return whether all fractions in a result occur in the input, so that no calculation is needed."""
    return all(fraction in given for fraction in _FRACTION.findall(text))


Kind: TypeAlias = Callable[[Facts, random.Random], Iterator[Question]]
#: The kinds that ask about the role of a line or an input, and the kinds that only ask for a result.
UNDERSTANDING: tuple[Kind, ...] = (ask_mistake, ask_purpose, ask_input, ask_affected_rows, ask_invariance, ask_scale)
READING: tuple[Kind, ...] = (ask_result,)


def make_questions(facts: Facts, seed: int | str, count: int = 4) -> list[Question]:
    """Make different questions about one definition, of as many kinds as possible; the same facts and seed give the same questions.

    Three of four questions ask for understanding, if the code allows that many.

    Args:
        facts: the facts about the definition.
        count: the maximum number of questions.
    """
    rng = random.Random(f"{seed} {facts.exercise}")
    deep, plain = (_order_candidates(facts, rng, kinds) for kinds in (UNDERSTANDING, READING))
    found: list[Question] = []
    for candidates, most in ((deep, count - count // READING_ONE_IN), (plain, count), (deep, count)):
        for question in candidates:
            if (
                len(found) < most
                and not any(_is_same_topic(question, other) for other in found)
                and _has_room(question, found, count)
            ):
                found.append(question)
    return rng.sample(found, len(found))


def _order_candidates(facts: Facts, rng: random.Random, kinds: Sequence[Kind]) -> list[Question]:
    """Return candidates, alternating between the kinds in a random order."""
    ordered: list[tuple[int, int, Question]] = []
    for number, kind in enumerate(rng.sample(kinds, len(kinds))):
        asked = {question.text: question for _ in range(_ROUNDS) for question in kind(facts, rng)}
        turns: Counter[str] = Counter()
        for question in asked.values():
            # The first question of every topic comes before the second question of any topic.
            ordered.append((100 * turns[question.topic] + len(turns), number, question))
            turns[question.topic] += 1
    return [question for _, _, question in sorted(ordered, key=lambda item: item[:2])]


def _is_same_topic(a: Question, b: Question) -> bool:
    """Return whether two questions are of the same kind about the same line, except about different mistakes."""
    same_kind = a.kind == b.kind and (a.kind != "mistake" or a.answer == b.answer)
    return a.text == b.text or (same_kind and bool(set(a.topic.split()) & set(b.topic.split())))


def _has_room(question: Question, found: Sequence[Question], count: int) -> bool:
    topics = Counter(topic for one in found for topic in one.topic.split())
    if any(topics[topic] >= MOST_OF_A_LINE for topic in question.topic.split()):
        return False
    return not question.generic or sum(one.generic for one in found) < max(1, count // GENERIC_ONE_IN)
