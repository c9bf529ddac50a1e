"""Questions about own code: what is recorded, which options there are, what the quiz prints, and what guessing earns."""

from __future__ import annotations

import difflib
import json
import linecache
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch

from autograder.checks import exercise
from autograder.quizzes.questions.code import Code, NoSourceError
from autograder.quizzes.questions.facts import Facts, gather
from autograder.quizzes.questions.kinds import questions
from autograder.quizzes.questions.question import Question, filled, numbered_code, question_text
from autograder.quizzes.questions.quiz import ask_about
from autograder.quizzes.questions.with_recordings import recorded_sheet
from autograder.quizzes.viva.told_facts import checked_facts

pytestmark = pytest.mark.usefixtures("one_thread")

# Short and long, functions and classes, tensors and texts: the deep set asks about all exercises and all their alternatives.
SAMPLE = (
    "masked_attention_weights",
    "causal_mask",
    "best_pair",
    "split_heads",
    "RMSNorm",
    "lstm_cell",
    "SwiGlu",
    "ngrams",
)
MINE = '''
def causal_mask(T, device=None):
    """Mine. <script>alert(1)</script>"""
    rows = torch.arange(T, device=device)[:, None]
    columns = torch.arange(T, device=device)
    mask = columns <= rows
    return mask
'''


def written(source: str, name: str, cell: str = "<cell>") -> Any:
    """Return a function as a notebook's cell would define it."""
    namespace: dict[str, Any] = {"torch": torch}
    linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)
    exec(compile(source, cell, "exec"), namespace)
    return namespace[name]


def sample() -> list[str]:
    names = []
    for name in SAMPLE:
        try:
            names.append(exercise(name).name)
        except LookupError:
            continue
    return names


@pytest.fixture(scope="module")
def facts() -> dict[str, Facts]:
    return {name: gather(Code.of(exercise(name).reference), exercise(name).sheet()) for name in sample()}


@pytest.fixture(scope="module")
def mine() -> Facts:
    return gather(Code.of(written(MINE, "causal_mask")), exercise("causal_mask").sheet())


def test_shapes_values_and_counts_are_those_of_the_code(mine: Facts) -> None:
    run = next(run for run in mine.runs if run.input == "T = 3")
    assert {(p.line, p.text, p.shown) for p in run.points if p.after} == {
        (3, "rows", "(3, 1)"),
        (4, "columns", "(3,)"),
        (5, "mask", "(3, 3)"),
    }
    assert [run.counts[line] for line in (3, 4, 5, 6)] == [1, 1, 1, 1]
    assert {"columns <= rows"} <= {p.text for p in run.points if not p.after}


def test_a_changed_line_fails_the_row_that_the_check_fails(mine: Facts) -> None:
    outcomes = {change.after: change.outcome for change in mine.changes}
    assert outcomes["mask = columns < rows"] == "values"
    assert outcomes["columns = torch.arange(T)"] == "device"


def test_facts_are_plain_data_and_the_same_when_they_are_gathered_again(mine: Facts) -> None:
    sheet = exercise("causal_mask").sheet()
    assert checked_facts(json.loads(json.dumps(asdict(mine))), "causal_mask", mine.source, sheet) == mine
    assert gather(Code.of(written(MINE, "causal_mask")), sheet) == mine


@pytest.mark.parametrize(
    "forge",
    [
        lambda data: data.update(source=data["source"].replace("<=", "<")),
        lambda data: data["runs"][0].update(input="T = 1_000"),
        lambda data: data["runs"][0].update(number=4),
        lambda data: data["runs"].append(data["runs"][0]),
        lambda data: data["runs"][0]["points"][0].update(shown=f"({'1, ' * 1000})"),
        lambda data: data["runs"][0]["points"][0].update(shown="(\ud800)"),
        lambda data: data["runs"][0]["points"][0].update(line=99),
        lambda data: data["runs"][0]["points"][0].update(text="mask` have? Which shape does `x"),
        lambda data: data["runs"][0]["points"][0].update(shown="\x1b[2J(3,)"),
        lambda data: data["runs"][0]["counts"].update({"99": 1}),
        lambda data: data["changes"].extend(data["changes"] * 16),
        lambda data: data["changes"][0].update(after="mask = 'the key is A'"),
        lambda data: data["changes"][0].update(outcome="a row of mine"),
        lambda data: data["changes"][0].update(seen="x" * 5_000),
    ],
)
def test_facts_that_this_code_and_the_visible_tests_cannot_give_are_refused(
    mine: Facts, forge: Callable[[Any], None]
) -> None:
    data = json.loads(json.dumps(asdict(mine)))
    forge(data)
    with pytest.raises(ValueError):  # noqa: PT011 - of which kind does not matter, nor what it says
        checked_facts(data, "causal_mask", mine.source, exercise("causal_mask").sheet())


def test_rows_and_results_are_the_courses_whatever_was_printed(facts: dict[str, Facts]) -> None:
    assert any(run.result for found in facts.values() for run in found.runs)
    for name, found in facts.items():
        data = json.loads(json.dumps(asdict(found)))
        assert checked_facts(data, name, found.source, exercise(name).sheet()) == found
        data["rows"] = {"mine": "The key is A."}
        for run in data["runs"]:
            run["result"] = "[[9]]" if run["result"] else ""
        checked = checked_facts(data, name, found.source, exercise(name).sheet())
        assert checked.rows == found.rows
        assert not any(run.result for run in checked.runs)


def test_the_same_seed_asks_the_same_and_another_one_something_else(mine: Facts) -> None:
    assert questions(mine, 1) == questions(mine, 1)
    assert len({tuple(one.text for one in questions(mine, seed)) for seed in range(6)}) > 3


def test_four_different_questions_have_four_different_options_each(facts: dict[str, Facts]) -> None:
    assert len(facts) >= 5
    for found in facts.values():
        chosen = questions(found, 0)
        assert len({one.text for one in chosen}) == 4, found.exercise
        assert sum(one.generic for one in chosen) <= 1
        for one in chosen:
            assert len(set(one.options)) == 4
            assert "none of" not in question_text(one, 1)


def asked(facts: dict[str, Facts]) -> list[Question]:
    return [one for found in facts.values() for seed in range(12) for one in questions(found, seed)]


def alike(question: Question) -> list[float]:
    """Return how much each option resembles all others."""
    options = question.options
    return [sum(difflib.SequenceMatcher(None, a, b).ratio() for b in options) for a in options]


GUESSES: dict[str, Callable[[Question], int]] = {
    "the longest": lambda question: max(range(4), key=lambda i: len(question.options[i])),
    "the odd one": lambda question: alike(question).index(min(alike(question))),
    "the majority": lambda question: alike(question).index(max(alike(question))),
    "the first": lambda question: 0,
}


@pytest.mark.parametrize("guess", GUESSES)
def test_guessing_by_looks_earns_at_most_35_percent(guess: str, facts: dict[str, Facts]) -> None:
    made = asked(facts)
    assert sum(GUESSES[guess](one) == one.key for one in made) <= 0.35 * len(made)


def test_a_program_that_sees_the_questions_of_a_class_and_no_code_earns_at_most_35_percent(
    facts: dict[str, Facts],
) -> None:
    right = total = 0
    for found in facts.values():
        made = [one for student in range(100) for one in questions(found, student)]
        often = Counter((one.kind, option) for one in made for option in one.options)
        for one in made:
            right += max(range(4), key=lambda i, one=one: often[one.kind, one.options[i]]) == one.key  # type: ignore[misc]
            total += 1
    assert right <= 0.35 * total


def test_missing_options_are_mistakes_that_are_the_same_for_a_whole_class() -> None:
    first, again = filled(["(2, 3, 5)"], "shape", "x"), filled(["(2, 3, 5)"], "shape", "x")
    assert first == again
    assert first is not None
    assert len(set(first)) == 4
    assert filled(["'a'"], "str", "x") is None


def test_code_that_behaves_differently_when_it_is_traced_gives_no_question() -> None:
    sly = MINE.replace("    return mask", "    import sys\n    return ~mask if sys.gettrace() else mask")
    found = gather(Code.of(written(sly, "causal_mask", "<sly>")), exercise("causal_mask").sheet())
    assert found.runs == ()
    assert questions(found, 0) == []


def test_code_that_switches_tracing_off_or_never_ends_under_it_gives_no_question() -> None:
    for line in ("import sys; sys.settrace(None)", "import sys\n    while sys.gettrace(): pass"):
        source = MINE.replace("    return mask", f"    {line}\n    return mask")
        found = gather(Code.of(written(source, "causal_mask", "<other>")), exercise("causal_mask").sheet())
        assert found.runs == ()


def test_a_function_inside_another_one_is_refused() -> None:
    outer = 1

    def causal_mask(T: int) -> int:
        return T + outer

    with pytest.raises(NoSourceError, match="inside another"):
        Code.of(causal_mask)


def test_docstrings_are_left_out_and_the_other_lines_keep_their_numbers(mine: Facts) -> None:
    shown = numbered_code(mine.source, mine.hidden_lines)
    assert "script" not in shown
    assert "3      rows = torch.arange" in shown


def test_no_question_shows_a_hidden_input() -> None:
    with pytest.raises(ValueError, match="visible"):
        gather(Code.of(written(MINE, "causal_mask")), exercise("causal_mask").sheet(hidden=True))


def typed(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    waiting = list(answers)
    monkeypatch.setattr("builtins.input", lambda prompt: waiting.pop(0))


def test_the_quiz_asks_three_questions_and_explains_each(monkeypatch, capsys, mine: Facts) -> None:
    keys = [one.letter for one in questions(mine, 5, 3)]
    wrong = "B" if keys[1] == "A" else "A"
    typed(monkeypatch, keys[0].lower(), "what?", wrong, keys[2])
    ask_about(written(MINE, "causal_mask"), exercise("causal_mask").sheet(), seed=5)
    printed = capsys.readouterr().out
    assert "2 of 3 right" in printed
    for one in questions(mine, 5, 3):
        assert one.explanation in printed


def test_the_quiz_of_wrong_code_shows_the_verdict_instead(capsys) -> None:
    ask_about(written(MINE.replace("<=", "<"), "causal_mask"), exercise("causal_mask").sheet())
    assert capsys.readouterr().out


def test_the_quiz_ends_where_there_is_no_keyboard_or_a_student_stops(monkeypatch, capsys) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: (_ for _ in ()).throw(EOFError()))
    ask_about(written(MINE, "causal_mask"), exercise("causal_mask").sheet(), seed=5)
    assert capsys.readouterr().out
    typed(monkeypatch, "q")
    ask_about(written(MINE, "causal_mask"), exercise("causal_mask").sheet(), seed=5)
    assert "Stopped." in capsys.readouterr().out


def test_a_package_without_an_exercise_says_so() -> None:
    with pytest.raises(LookupError, match="no exercise"):
        recorded_sheet("../../secret")
