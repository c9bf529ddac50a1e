"""Questions about own code: what is recorded, which options there are, what the quiz prints, and what guessing earns."""

from __future__ import annotations

import difflib
import json
import linecache
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch

from autograder.checking.request import Request
from autograder.checks import exercise
from autograder.quizzes.questions import change_kinds
from autograder.quizzes.questions.change_kinds import ask_purpose, rows_text
from autograder.quizzes.questions.code import Code, NoSourceError
from autograder.quizzes.questions.edits import possible_edits
from autograder.quizzes.questions.effects import Effects, find_effects
from autograder.quizzes.questions.facts import Facts, gather_facts
from autograder.quizzes.questions.inputs import describe_request
from autograder.quizzes.questions.kinds import MOST_OF_A_LINE, make_questions
from autograder.quizzes.questions.question import Question, numbered_code
from autograder.quizzes.questions.quiz import ask_about
from autograder.quizzes.questions.with_recordings import recorded_sheet
from autograder.quizzes.viva.told_facts import check_facts

pytestmark = pytest.mark.usefixtures("one_thread")

# Short and long, functions and classes, tensors and texts: the deep set asks about all exercises and all their alternatives.
SAMPLE = (
    "masked_attention_weights",
    "causal_mask",
    "best_pair",
    "split_heads",
    "RmsNorm",
    "lstm_cell",
    "grouped_query_attention",
    "next_token_loss",
    "clip_gradient_norm",
    "gelu",
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
    return {
        name: gather_facts(Code.from_candidate(exercise(name).reference), exercise(name).sheet()) for name in sample()
    }


@pytest.fixture(scope="module")
def mine() -> Facts:
    return gather_facts(Code.from_candidate(written(MINE, "causal_mask")), exercise("causal_mask").sheet())


def test_a_changed_line_is_the_known_mistake_whose_answers_it_gives(mine: Facts) -> None:
    made = {change.edit.after: change.mistake for change in mine.changes}
    told = {one.name: one.explanation for one in exercise("causal_mask").misconceptions}
    assert "diagonal" in told[made["mask = columns < rows"]]
    assert made["mask = columns > rows"] in told
    assert not any("detach" in edit or "float32" in edit for edit in made)


def test_an_edit_leaves_the_rest_of_its_line_as_it_was_written() -> None:
    source = "def f(a, b):\n    return ( 'x' ,  a + b )  # sum"
    assert "return ( 'x' ,  a - b )" in {edit.after for edit, _, _ in possible_edits(source)}
    assert all("#" not in edit.after for edit, _, _ in possible_edits(source))


def test_the_key_of_a_purpose_holds_of_exactly_the_calls_that_change(facts: dict[str, Facts]) -> None:
    found = facts["masked_attention_weights"]
    (one, *_) = ask_purpose(found, random.Random(0))
    change = next(change for change in found.changes if change_kinds.edit_sentence(change.edit) in one.text)
    holding = {text: found.given.properties[text.removeprefix("only if ")] for text in one.options}
    assert [text for text, calls in holding.items() if calls == change.calls] == [one.answer]


def effects_of(source: str, **arguments: Any) -> Effects:
    found = find_effects(Code("f", source, {"torch": torch}), describe_request(Request("call", arguments)), 0)
    assert found is not None
    return found


def test_only_later_rows_are_felt_under_a_causal_rule() -> None:
    found = effects_of("def f(q):\n    return q.cumsum(-2)", q=torch.arange(8.0).reshape(4, 2))
    assert found.part == "result[i]"
    assert found.felt["`q[{}]`"][1] == (1, 2, 3)
    assert rows_text(found.felt["`q[{}]`"][1], 4) == "1 to 3"


def test_tokens_change_by_position() -> None:
    found = effects_of("def f(x):\n    return x.roll(1, -1)", x=torch.tensor([[1, 2, 3, 4], [4, 3, 1, 2]]))
    assert found.part == "result[:, i]"
    assert found.felt["`x[:, {}]`"] == {1: (2,), 2: (3,), 3: (0,)}


def test_a_number_that_is_returned_scales_with_an_argument() -> None:
    found = effects_of("def f(a, b, c):\n    return a * a / b", a=3, b=2, c=1)
    assert found.scaled == {"a": "It becomes four times as large", "b": "It is halved", "c": "It stays the same"}


def test_no_question_has_more_than_45_words_and_each_wrong_option_has_its_reason(facts: dict[str, Facts]) -> None:
    for one in asked(facts):
        assert one.word_count <= 45
        assert [bool(reason) for reason in one.reasons].count(False) == 1
        assert not one.reasons[one.key]


def test_of_four_questions_two_ask_for_understanding(facts: dict[str, Facts]) -> None:
    deep = {"mistake", "purpose", "input", "rows", "invariance", "scale"}
    for found in facts.values():
        for seed in range(12):
            kinds = [one.kind for one in make_questions(found, seed)]
            if len(kinds) == 4:
                assert sum(kind in deep for kind in kinds) >= 2, (found.exercise, kinds)


def test_at_most_two_questions_of_a_student_are_about_one_line_and_they_ask_for_different_things(
    facts: dict[str, Facts],
) -> None:
    for found in facts.values():
        for seed in range(12):
            topics = [
                (topic, one.kind, one.answer) for one in make_questions(found, seed) for topic in one.topic.split()
            ]
            assert len(topics) == len(set(topics))
            assert max(Counter(topic for topic, _, _ in topics).values()) <= MOST_OF_A_LINE


def test_facts_are_plain_data_and_the_same_when_they_are_gathered_again(mine: Facts) -> None:
    sheet = exercise("causal_mask").sheet()
    assert check_facts(json.loads(json.dumps(asdict(mine))), "causal_mask", mine.source, sheet) == mine
    assert gather_facts(Code.from_candidate(written(MINE, "causal_mask")), sheet) == mine


@pytest.mark.parametrize(
    "forge",
    [
        lambda data: data.update(source=data["source"].replace("<=", "<")),
        lambda data: data["runs"].update({"4": "", "99": ""}),
        lambda data: data["runs"].update({"0": "(\ud800)"}),
        lambda data: data["changes"].extend(data["changes"] * 40),
        lambda data: data["changes"][0]["edit"].update(after="mask = 'the key is A'"),
        lambda data: data["changes"][0].update(mistake="a mistake of mine"),
        lambda data: data["changes"][0].update(calls=[999]),
        lambda data: data["changes"][0].update(inputs=[-1]),
        lambda data: data["changes"][0]["results"].update({"0": "x" * 5_000}),
        lambda data: data["changes"][0]["results"].update({"0": "\x1b[2J3"}),
    ],
)
def test_facts_that_this_code_and_the_visible_tests_cannot_give_are_refused(
    mine: Facts, forge: Callable[[Any], None]
) -> None:
    data = json.loads(json.dumps(asdict(mine)))
    forge(data)
    with pytest.raises(ValueError):  # noqa: PT011 - of which kind does not matter, nor what it says
        check_facts(data, "causal_mask", mine.source, exercise("causal_mask").sheet())


def test_what_the_check_says_and_results_are_the_courses_whatever_was_printed(facts: dict[str, Facts]) -> None:
    assert any(text for found in facts.values() for text in found.runs.values())
    for name, found in facts.items():
        data = json.loads(json.dumps(asdict(found)))
        assert check_facts(data, name, found.source, exercise(name).sheet()) == found
        data["given"]["mistakes"] = {"mine": "The key is A."}
        data["given"]["inputs"][0]["text"] = "an input that I have thought of"
        for effect in data["effects"]:
            effect["kept"]["the key is A"] = True
        data["runs"] = {number: "[[9]]" if text else "" for number, text in data["runs"].items()}
        checked = check_facts(data, name, found.source, exercise(name).sheet())
        assert checked.given == found.given
        assert not checked.effects
        assert not any(checked.runs.values())


def test_the_same_seed_asks_the_same_and_another_one_something_else(facts: dict[str, Facts]) -> None:
    found = facts["masked_attention_weights"]
    assert make_questions(found, 1) == make_questions(found, 1)
    assert len({tuple(one.text for one in make_questions(found, seed)) for seed in range(6)}) > 3


def test_questions_have_four_different_options_each(facts: dict[str, Facts]) -> None:
    assert sum(len(make_questions(found, 0)) == 4 for found in facts.values()) >= len(facts) / 3
    for found in facts.values():
        chosen = make_questions(found, 0)
        assert len({one.text for one in chosen}) == len(chosen) >= 1, found.exercise
        assert sum(one.generic for one in chosen) <= 2
        assert all(len(set(one.options)) == 4 for one in chosen)


def asked(facts: dict[str, Facts]) -> list[Question]:
    """Return the different questions of a class of twelve."""
    by_text = {one.text: one for found in facts.values() for seed in range(12) for one in make_questions(found, seed)}
    return list(by_text.values())


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
        made = [one for student in range(100) for one in make_questions(found, student)]
        often = Counter((one.kind, option) for one in made for option in one.options)
        for one in made:
            right += max(range(4), key=lambda i, one=one: often[one.kind, one.options[i]]) == one.key  # type: ignore[misc]
            total += 1
    assert right <= 0.35 * total


def test_code_that_behaves_differently_when_it_is_traced_gives_no_question() -> None:
    sly = MINE.replace("    return mask", "    import sys\n    return ~mask if sys.gettrace() else mask")
    found = gather_facts(Code.from_candidate(written(sly, "causal_mask", "<sly>")), exercise("causal_mask").sheet())
    assert found.runs == {}
    assert make_questions(found, 0) == []


def test_code_that_switches_tracing_off_or_never_ends_under_it_gives_no_question() -> None:
    for line in ("import sys; sys.settrace(None)", "import sys\n    while sys.gettrace(): pass"):
        source = MINE.replace("    return mask", f"    {line}\n    return mask")
        found = gather_facts(
            Code.from_candidate(written(source, "causal_mask", "<other>")), exercise("causal_mask").sheet()
        )
        assert found.runs == {}


def test_a_function_inside_another_one_is_refused() -> None:
    outer = 1

    def causal_mask(T: int) -> int:
        return T + outer

    with pytest.raises(NoSourceError, match="inside another"):
        Code.from_candidate(causal_mask)


def test_docstrings_are_left_out_and_the_other_lines_keep_their_numbers(mine: Facts) -> None:
    shown = numbered_code(mine.source, mine.hidden_lines)
    assert "script" not in shown
    assert "3      rows = torch.arange" in shown


def test_no_question_shows_a_hidden_input() -> None:
    with pytest.raises(ValueError, match="visible"):
        gather_facts(Code.from_candidate(written(MINE, "causal_mask")), exercise("causal_mask").sheet(hidden=True))


def typed(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    waiting = list(answers)
    monkeypatch.setattr("builtins.input", lambda prompt: waiting.pop(0))


def test_the_quiz_asks_questions_and_explains_each(monkeypatch, capsys, mine: Facts) -> None:
    first, second, *rest = (one.letter for one in make_questions(mine, 5, 3))
    typed(monkeypatch, first.lower(), "what?", "B" if second == "A" else "A", *rest)
    ask_about(written(MINE, "causal_mask"), exercise("causal_mask").sheet(), seed=5)
    printed = capsys.readouterr().out
    assert f"{1 + len(rest)} of {2 + len(rest)} right" in printed
    for one in make_questions(mine, 5, 3):
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
