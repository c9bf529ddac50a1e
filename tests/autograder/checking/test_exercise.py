"""How an exercise is declared, and the sheets that it gives."""

from dataclasses import replace

import pytest

from autograder.checking import rows
from autograder.checking.decision import decide
from autograder.checking.draw import Case
from autograder.checking.exercise import HIDDEN_ROUNDS, Exercise, Misconception
from autograder.checking.request import content_key
from autograder.checking.subject import LocalSubject


def case(draw):
    """A number."""
    return Case({"x": draw.normal(3)})


def same(x):
    """Returns its input."""
    return x


def declare(**changes):
    """An exercise about ``same``."""
    return Exercise(
        **{"reference": same, "chapter": "00_test", "rows": (rows.numbers(2.5, case),), "misconceptions": ()} | changes
    )


def test_forbidding_needs_something_to_look_at():
    with pytest.raises(ValueError, match="same forbids softmax, lerp but gives no rule_case"):
        declare(forbidden=("softmax", "lerp"))


def test_a_mistake_that_cannot_be_made_any_more_is_left_out_with_a_warning_and_stops_nothing():
    def gone():
        raise LookupError("the line is gone")

    broken = Misconception("old", "It was a mistake once.", "here", "wrong", make=gone)
    sheet = declare(misconceptions=(broken,)).sheet()
    with pytest.warns(UserWarning, match="'old' of same is left out: the line is gone"):
        verdict = decide(sheet, LocalSubject(lambda x: x + 1))
    assert verdict.score == 0
    assert not verdict.diagnoses


def test_the_same_arguments_give_the_same_sheet_and_others_give_others(exercise):
    def asked(**arguments):
        return repr([section.probes for section in exercise.sheet(**arguments).sections])

    first = asked(hidden=True, seed=3)
    exercise.sheet.__globals__["_build_sheet"].cache_clear()
    assert asked(hidden=True, seed=3) == first
    assert asked(hidden=True, seed=4) != first
    # The visible questions are those that students have.
    assert asked(seed=4) == asked(seed=3)


def test_hidden_questions_come_after_the_visible_ones_and_are_others(exercise):
    visible, hidden = exercise.sheet(), exercise.sheet(hidden=True)
    for some, more in zip(visible.sections, hidden.sections, strict=True):
        assert len(more.probes) == (1 + HIDDEN_ROUNDS) * len(some.probes)
        questions = [repr((probe.requests, probe.judge)) for probe in more.probes]
        assert questions[: len(some.probes)] == [repr((probe.requests, probe.judge)) for probe in some.probes]
        assert len(set(questions)) == len(questions)


def test_a_question_of_several_aspects_has_one_answer_and_the_visible_ones_are_those_of_the_visible_sheet(exercise):
    visible, hidden = exercise.sheet(), exercise.sheet(hidden=True)
    requests = [request for section in hidden.sections for probe in section.probes for request in probe.requests]
    answers = [answer for section in hidden.sections for given in section.expected for answer in given]
    by_question = {}
    for request, answer in zip(requests, answers, strict=True):
        by_question.setdefault(content_key(request), set()).add(id(answer))
    assert len(by_question) < len(requests)
    assert all(len(found) == 1 for found in by_question.values())
    for some, more in zip(visible.sections, hidden.sections, strict=True):
        assert all(mine is yours for mine, yours in zip(more.expected, some.expected, strict=False))
        assert [id(probe) for probe in more.probes[: more.visible]] == [id(probe) for probe in some.probes]


def test_what_mistakes_answer_to_visible_questions_is_known_on_both_sheets(exercise):
    visible, hidden = exercise.sheet(seed=9), exercise.sheet(hidden=True, seed=9)
    assert hidden.answer(0, 0, 0) is visible.answer(0, 0, 0)
    assert (0, 0, 0) not in hidden.computed_answers
    last = len(hidden.sections[0].probes) - 1
    assert hidden.answer(0, 0, last) is hidden.computed_answers[0, 0, last]


def test_rules_are_looked_at_once_for_visible_and_hidden_questions_and_by_the_seed(exercise):
    visible, hidden = exercise.sheet(seed=9), exercise.sheet(hidden=True, seed=9)
    assert hidden.rules is visible.rules
    assert repr(hidden.rules) != repr(exercise.sheet().rules)


def test_a_sheet_with_other_mistakes_needs_other_answers(exercise):
    with pytest.raises(ValueError, match="other misconceptions"):
        replace(exercise.sheet(hidden=True), misconceptions=())


def test_the_order_of_aspects_changes_no_question(exercise):
    turned = Exercise(
        reference=exercise.reference,
        chapter=exercise.chapter,
        rows=tuple(reversed(exercise.rows)),
        misconceptions=exercise.misconceptions,
    )
    asked = {section.aspect: repr(section.probes) for section in exercise.sheet().sections}
    assert {section.aspect: repr(section.probes) for section in turned.sheet().sections} == asked
