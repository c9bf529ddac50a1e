"""Ask three questions about a student's own code, in a notebook or a terminal. Nothing is recorded."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from autograder.checking.decision import decide
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.quizzes.questions.code import Code, NoSourceError
from autograder.quizzes.questions.facts import gather_facts
from autograder.quizzes.questions.kinds import make_questions
from autograder.quizzes.questions.question import LETTERS, Question, numbered_code, question_text

QUESTIONS = 3
# The fraction of the points that code needs for questions about it.
ENOUGH = 0.9
_NO_KEYBOARD = "quiz() asks questions at the keyboard, and there is none here."


def ask_about(candidate: Callable[..., Any], sheet: Sheet, seed: int | None = None) -> None:
    """Check a function or class, and ask questions about its code if it earns at least nine tenths of its points.

    Args:
        sheet: the visible tests of its check.
        seed: the seed of the question choice; random by default.
    """
    verdict = decide(sheet, LocalSubject(candidate))
    if verdict.score < ENOUGH * verdict.max_score:
        print(f"{verdict}\n\nThe quiz asks about code that works. Correct it first, and then call quiz again.")
        return
    try:
        facts = gather_facts(Code.from_candidate(candidate), sheet)
    except NoSourceError as error:
        print(f"There are no questions: {error}.")
        return
    chosen = make_questions(facts, random.randrange(2**32) if seed is None else seed, QUESTIONS)
    if not chosen:
        print(
            f"There are no questions about this code of {facts.exercise}: it is too short, or it cannot be run step by step."
        )
        return
    print(f"Your code of {facts.exercise}:\n\n{numbered_code(facts.source, facts.hidden_lines)}\n")
    _ask_all(chosen)


def _ask_all(chosen: list[Question]) -> None:
    right = 0
    for number, question in enumerate(chosen, start=1):
        print(question_text(question, number))
        try:
            letter = _read_answer(len(question.options))
        except (EOFError, OSError, RuntimeError):  # a notebook without a keyboard
            print(_NO_KEYBOARD)
            return
        if not letter:
            print("Stopped.")
            return
        is_right = letter == question.letter
        right += is_right
        verdict = "Right." if is_right else f"No: {question.letter})  {question.answer}"
        print(f"{verdict}\n{question.explanation}\n{question.reason_against(letter)}".rstrip() + "\n")
    print(f"{right} of {len(chosen)} right. Nothing is recorded; quiz again for other questions.")


def _read_answer(options: int) -> str:
    """Read a letter from the keyboard; return an empty string to stop."""
    letters = LETTERS[:options]
    while True:
        typed = input(f"{', '.join(letters)}, or q to stop: ").strip().upper()
        if typed in ("Q", "QUIT"):
            return ""
        if len(typed) == 1 and typed in letters:
            return typed
