"""From answers to a verdict: points, rules, and which known mistake it was."""

from dataclasses import replace

import pytest
import torch

from autograder.checking import aspects as look
from autograder.checking.draw import Case
from autograder.checking.exercise import Exercise, misconception
from autograder.checking.sheet import NO_RIGHT_NUMBER, ONLY_EASY_NUMBERS, decide
from autograder.checking.subject import LocalSubject


def named(verdict):
    """The diagnosis of each failed aspect."""
    return {f.aspect: f.diagnosis and f.diagnosis.name for f in verdict.findings if not f.passed}


# -------------------------------------------------------------------------------------------------------------- points


def test_the_reference_earns_every_point_and_no_diagnosis(exercise, verdict_on):
    verdict = verdict_on(exercise.reference)
    assert verdict.passed
    assert (verdict.score, verdict.max_score) == (6.5, 6.5) == (exercise.points,) * 2
    assert [finding.aspect for finding in verdict.findings] == [aspect.name for aspect in exercise.rows]
    assert (verdict.exercise, verdict.chapter, verdict.diagnoses) == ("blend", "00_test", ())


def test_an_aspect_gives_all_its_points_or_none(verdict_on):
    calls = []

    def wrong_once(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        calls.append(1)
        return 2 * x + y.mean(-2, keepdim=True) + (0.5 if len(calls) == 4 else 0.0)

    verdict = verdict_on(wrong_once)  # two calls for the rules, one for shape and "values", one for "values"
    assert [finding.aspect for finding in verdict.findings if not finding.passed] == ["values"]
    assert verdict.score == 4.5


def test_wrong_code_still_earns_what_it_does_right(verdict_on):
    verdict = verdict_on(lambda x, y: 2 * x + y.clamp(-10, 10).mean(-2, keepdim=True))
    assert {f.aspect for f in verdict.findings if not f.passed} == {"large", "errors"}
    assert verdict.score == 5.0


def test_code_without_a_right_number_earns_its_shape_and_nothing_by_doing_nothing(verdict_on):
    verdict = verdict_on(lambda x, y: 3 * x)
    assert {f.aspect for f in verdict.findings if f.passed} == {"shape"}
    assert {f.message for f in verdict.findings if f.aspect in ("inputs", "vectorised", "memory")} == {NO_RIGHT_NUMBER}
    assert verdict.score == 1.0


def test_code_that_always_refuses_earns_nothing(verdict_on):
    def refuse(x, y):
        raise ValueError("no")

    assert verdict_on(refuse).score == 0


# --------------------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize("masked_only", [False, True], ids=["always", "on large numbers only"])
def test_a_forbidden_function_costs_every_point_wherever_it_is_used(verdict_on, masked_only):
    def forbidden(x, y):
        mean = y.mean(-2, keepdim=True)
        if masked_only and y.abs().max() < 100:
            return 2 * x + mean
        return torch.lerp(x, 3 * x, 0.5) + mean

    verdict = verdict_on(forbidden)
    assert verdict.score == 0
    message = "it calls lerp, which this exercise asks you to do yourself"
    assert {finding.message for finding in verdict.findings} == {message}
    assert not verdict.diagnoses


def test_a_function_that_fails_where_the_rule_is_looked_at_is_held_to_it_all_the_same(verdict_on):
    def fails(x, y):
        torch.lerp(x, x, 0.5)
        return x @ y

    assert {finding.message for finding in verdict_on(fails).findings} == {
        "it calls lerp, which this exercise asks you to do yourself"
    }


def test_a_stub_earns_nothing_and_gets_no_diagnosis(verdict_on):
    def stub(x, y):
        raise NotImplementedError

    verdict = verdict_on(stub)
    assert verdict.score == 0
    assert {finding.message for finding in verdict.findings} == {"not written yet"}
    assert not verdict.diagnoses


def test_a_borrowed_solution_earns_nothing_and_is_told_why(exercise, sheet):
    subject = LocalSubject(lambda x, y: exercise.reference(x, y), {exercise.reference.__code__})
    verdict = decide(sheet, subject)
    assert verdict.score == 0
    assert all("the course's own blend" in finding.message for finding in verdict.findings)
    assert not any("UsesReferenceError" in finding.message for finding in verdict.findings)


# ----------------------------------------------------------------------------------------------------------- diagnoses


@pytest.mark.parametrize("index", range(6))
def test_a_known_mistake_is_recognised_in_every_aspect_that_it_fails(exercise, verdict_on, index):
    mistake = exercise.misconceptions[index]
    verdict = verdict_on(mistake.wrong)
    assert not verdict.passed
    assert set(named(verdict).values()) == {mistake.name}
    assert verdict.diagnoses == (mistake.diagnosis,)


def test_the_same_mistake_written_otherwise_is_recognised(verdict_on):
    def written_otherwise(x, y):
        if x.size(-1) != y.size(-1):
            raise ValueError
        return x.add(torch.einsum("bsd->bd", y)[:, None] / y.size(1))

    assert set(named(verdict_on(written_otherwise)).values()) == {"not doubled"}


def test_two_mistakes_in_one_function_are_both_found(verdict_on):
    def clips_and_writes(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        result = 2 * x + y.clamp(-10, 10).mean(-2, keepdim=True)
        x += 1
        return result

    verdict = verdict_on(clips_and_writes)
    assert named(verdict) == {"large": "clipped", "inputs": "in place"}
    assert [diagnosis.name for diagnosis in verdict.diagnoses] == ["clipped", "in place"]


def test_damage_is_recognised_although_the_numbers_are_wrong_as_well(verdict_on):
    def wrong_and_writes(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        result = 2 * x + y.mean(-2, keepdim=True) + (0.5 if y.abs().max() < 100 else 0)
        x += 1
        return result

    verdict = verdict_on(wrong_and_writes)
    assert named(verdict) == {"values": None, "inputs": "in place"}


def test_a_mistake_that_nobody_knows_gets_no_diagnosis(verdict_on):
    def unknown(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return 2.5 * x + y.mean(-2, keepdim=True)

    verdict = verdict_on(unknown)
    assert not verdict.passed
    assert not verdict.diagnoses


def test_right_numbers_that_fail_another_aspect_are_another_mistake(verdict_on):
    def wasteful(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return 2 * x + y.mean(-2, keepdim=True) + torch.zeros(10**4).sum()

    assert named(verdict_on(wasteful)) == {"memory": None}, "a loop, too, gives the right numbers"


def test_a_right_aspect_never_carries_a_diagnosis(exercise, verdict_on):
    for mistake in exercise.misconceptions:
        assert all(f.diagnosis is None for f in verdict_on(mistake.wrong).findings if f.passed)


def test_an_error_of_the_same_kind_is_no_evidence_by_itself(verdict_on):
    def fails_otherwise(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        if y.abs().max() > 100:
            raise OverflowError
        return 2.5 * x + y.mean(-2, keepdim=True)

    found = named(verdict_on(fails_otherwise))
    assert {"values", "large"} <= set(found)
    assert set(found.values()) == {None}


# ------------------------------------------------------------------------------------------ a mistake that only crashes


@misconception("weight as a column", read="here")
class Column(torch.nn.Module):
    """The weight is a column, where a row is asked for."""

    def __init__(self, width):
        super().__init__()
        self.row = torch.nn.Parameter(torch.rand(width, 1))

    def forward(self, x):
        return x * self.row[:, 0]


@misconception("without a sum", read="here")
class Crash(torch.nn.Module):
    """It cannot work."""

    def __init__(self, width):
        super().__init__()
        self.row = torch.nn.Parameter(torch.rand(width))
        self.width = width

    def forward(self, x):
        raise TypeError("a sum is missing")


class Scaler(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.row = torch.nn.Parameter(torch.rand(width))
        self.width = width

    def forward(self, x):
        return x * self.row


def scaled(draw):
    b, d = draw.sizes(2)
    return Case({"x": draw.normal(b, d)}, init={"width": d}, state={"row": draw.normal(d)})


SCALER = Exercise(
    reference=Scaler,
    chapter="00_test",
    rows=(
        look.shape(1, scaled),
        look.values(2, scaled, scaled),
        look.attributes(0.5, scaled, names=("width",)),
    ),
    misconceptions=(Column, Crash),
)


def put(methods):
    """Put another implementation of the class to its exercise."""
    return decide(SCALER.sheet(), LocalSubject(type("Scaler", (Scaler,), methods)))


def test_weights_that_do_not_fit_in_the_same_way_are_the_same_mistake():
    verdict = decide(SCALER.sheet(), LocalSubject(Column.wrong))
    assert set(named(verdict).values()) == {"weight as a column"}
    assert "row should have shape" in verdict.findings[0].message
    assert "WeightsError" not in verdict.findings[0].message


def test_weights_that_do_not_fit_otherwise_are_another_mistake():
    def square(self, width):
        torch.nn.Module.__init__(self)
        self.row = torch.nn.Parameter(torch.rand(width, width))

    assert not put({"__init__": square}).diagnoses


def test_a_crash_proves_no_mistake_that_crashes_too():
    def crash(self, x):
        raise TypeError("something else entirely")

    assert not put({"forward": crash}).diagnoses, "although an attribute is right"
    assert not decide(SCALER.sheet(), LocalSubject(Crash.wrong)).diagnoses


# --------------------------------------------------------------------------------------------------- easy numbers


def all_zero(draw):
    """Two sequences of nothing but zeros."""
    return Case({"x": torch.zeros(2, 3, 4), "y": torch.zeros(2, 5, 4)})


@pytest.mark.parametrize("easy", [True, False])
def test_easy_numbers_earn_their_own_points_and_open_no_others(exercise, easy):
    zeros = look.values(1, all_zero, name="zeros", easy=easy)
    sheet = replace(exercise, rows=(*exercise.rows, zeros)).sheet()
    verdict = decide(sheet, LocalSubject(lambda x, y: 3 * x))
    passed = {f.aspect for f in verdict.findings if f.passed}
    assert {"shape", "zeros"} <= passed
    assert ("inputs" in passed) is not easy
    if easy:
        assert {f.message for f in verdict.findings if f.aspect in ("inputs", "memory")} == {ONLY_EASY_NUMBERS}


def test_a_known_mistake_in_one_place_opens_no_other_points_and_in_most_it_does(verdict_on):
    def here(bound):
        def mostly(x, y):
            if x.shape[-1] != y.shape[-1]:
                raise ValueError
            return (1 if y.abs().max() < bound else 3) * x + y.mean(-2, keepdim=True)

        return mostly

    in_most = verdict_on(here(100))  # the mistake "not doubled" but for large numbers, which are half as much worth
    assert named(in_most) == {"values": "not doubled", "large": None}
    assert "inputs" in {f.aspect for f in in_most.findings if f.passed}
    in_one = verdict_on(lambda x, y: here(0)(x, y) if y.abs().max() < 100 else here(1e9)(x, y))
    assert {f.aspect: f.diagnosis and f.diagnosis.name for f in in_one.findings if f.aspect in ("values", "large")} == {
        "values": None,
        "large": "not doubled",
    }
    assert {f.message for f in in_one.findings if f.aspect == "inputs"} == {NO_RIGHT_NUMBER}


def test_mistakes_are_not_run_while_everything_is_right(sheet, exercise):
    def never(mistake, section, probe):
        raise AssertionError("the answers of the mistakes are not needed")

    quiet = replace(sheet, ask_mistake=never)
    assert decide(quiet, LocalSubject(exercise.reference)).passed


def test_a_mistake_is_asked_no_more_than_it_takes_to_tell_it_from_an_answer(sheet, exercise):
    asked = []

    def ask_mistake(*place):
        assert place not in asked, "asked twice"
        asked.append(place)
        return sheet.ask_mistake(*place)

    noted = replace(sheet, ask_mistake=ask_mistake)
    verdict = decide(noted, LocalSubject(lambda x, y: x * 7 + y))  # nobody's mistake
    failed = [j for j, finding in enumerate(verdict.findings) if not finding.passed]
    assert set(asked) == {(i, j, 0) for i in range(len(sheet.misconceptions)) for j in failed}
    assert list(noted.answered) == asked
    # Whoever makes a known mistake is compared to the end with that one.
    decide(noted, LocalSubject(exercise.misconceptions[0].wrong))
    everything = {(0, j, k) for j, section in enumerate(sheet.sections) for k in range(len(section.probes))}
    assert everything <= set(noted.answered)
