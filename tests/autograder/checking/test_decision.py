"""From answers to a verdict: points, rules, and which known mistake it was."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

from autograder.checking import rows
from autograder.checking.decision import decide
from autograder.checking.draw import Case
from autograder.checking.exercise import Exercise, Misconception
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import NOT_JUDGED, Finding
from autograder.checks import check
from autograder.checks import exercise as known_exercise


class Cost(NamedTuple):
    flops: int
    bytes: int


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


def test_a_row_of_numbers_gives_all_its_points_or_none_and_a_side_row_by_right_numbers(verdict_on):
    def clips(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return 2 * x + y.clamp(-10, 10).mean(-2, keepdim=True)

    verdict = verdict_on(clips)
    earned = {finding.aspect: finding.earned for finding in verdict.findings}
    # Three of four points of numbers are right, so what is beside them pays three quarters, rounded to two decimals.
    assert earned == {"values": 3.0, "large": 0.0, "inputs": 0.75, "loops": 0.38, "memory": 0.38, "errors": 0.38}
    assert verdict.score == pytest.approx(4.89)
    (inputs,) = (finding for finding in verdict.findings if finding.aspect == "inputs")
    assert inputs.passed
    assert (inputs.message, inputs.is_reduced) == ("as it should be", True)
    assert "These 4 rows pay in proportion to the right numbers: 1.89 of 2.5 points." in str(verdict)


def test_a_row_whose_points_are_rounded_is_not_reduced():
    assert not Finding("loops", "No loop.", 0.125, True, "as it should be", earned=0.12).is_reduced
    assert Finding("loops", "No loop.", 0.125, True, "as it should be", earned=0.11).is_reduced


def test_code_without_a_right_number_earns_nothing_by_doing_nothing(verdict_on):
    verdict = verdict_on(lambda x, y: 3 * x)
    assert {f.aspect for f in verdict.findings if f.passed} >= {"inputs", "memory"}
    assert verdict.score == 0


def test_a_visible_question_that_was_missed_is_shown_where_it_is_small(verdict_on):
    def wrong(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return 2 * x + y.sum(-2, keepdim=True)

    (values, *_) = verdict_on(wrong).findings
    assert "x = a tensor (" in values.example
    assert ": the result at [" in values.example
    assert "\n  yours " in values.example
    assert "\n  expected " in values.example


def test_side_rows_are_not_judged_where_the_numbers_are_wrong(verdict_on):
    def wrong(x, y):
        return x[..., :1]

    findings = {finding.aspect: finding for finding in verdict_on(wrong).findings}
    assert {name for name, finding in findings.items() if finding.message == NOT_JUDGED} >= {"inputs", "loops"}
    assert not findings["loops"].example
    assert "expected a ValueError" in findings["errors"].message


def test_a_row_of_several_cases_says_which_one_failed():
    def cases(**arguments):
        return lambda draw: Case({"n": 1, "text": "abc", **arguments})

    edges = rows.edge(2, cases(n=0), cases(text=""), cases(), name="edges", title="Edges.", gradients=False, dtypes=())
    refused = rows.errors(1, cases(), cases(n=-1), title="A negative n is a ValueError.")

    def repeat(n, text):
        if n < 0:
            raise ValueError(n)
        return n * text

    about = Exercise(reference=repeat, chapter="00_test", rows=[edges, refused])
    verdict = decide(about.sheet(), LocalSubject(lambda n, text: n * text if text else None))
    first, second = verdict.findings
    assert first.message == "for text = '': the result is None, expected ''"
    assert second.message == "for n = -1: it accepts wrong input, expected a ValueError"
    assert second.example == "for n = -1, text = 'abc': no error was raised, expected a ValueError"


def test_cases_that_differ_in_shape_alone_are_told_by_it():
    def cases(rows_):
        return lambda draw: Case({"x": draw.normal(rows_, 8)})

    row = rows.numbers(2, cases(2), cases(3), gradients=False)

    def grow(x):
        return x.exp()

    about = Exercise(reference=grow, chapter="00_test", rows=[row])
    (finding,) = decide(about.sheet(), LocalSubject(lambda x: x.exp() if len(x) == 2 else x.exp() + 1)).findings
    assert finding.message.startswith("for x of shape (3, 8): all 24 numbers in the result are wrong;")


def test_a_result_that_is_a_named_tuple_is_told_by_its_fields():
    def cost(n: int) -> Cost:
        return Cost(n, 2 * n)

    row = rows.numbers(2, lambda draw: Case({"n": 3}), gradients=False)
    about = Exercise(reference=cost, chapter="00_test", rows=[row])
    (finding,) = decide(about.sheet(), LocalSubject(lambda n: (n, n))).findings
    assert finding.message == "result.bytes is 3, expected 6"
    (finding,) = decide(about.sheet(), LocalSubject(lambda n: (n,))).findings
    assert finding.message == "result.bytes is missing"


def test_of_a_hidden_question_no_example_is_shown(exercise):
    visible = {section.probes[0].requests[0].arguments["x"].shape for section in exercise.sheet().sections}

    def wrong_elsewhere(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return (2 if x.shape in visible else 3) * x + y.mean(-2, keepdim=True)

    verdict = decide(exercise.sheet(hidden=True, seed=5), LocalSubject(wrong_elsewhere))
    failed = [finding for finding in verdict.findings if not finding.passed]
    assert failed
    assert not any(finding.example for finding in failed if "hidden question" in finding.message)


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
    message = "it calls lerp, which this exercise asks you to write yourself"
    assert {finding.message for finding in verdict.findings} == {message}
    assert not verdict.diagnoses


def test_a_function_that_fails_where_the_rule_is_looked_at_is_held_to_it_all_the_same(verdict_on):
    def fails(x, y):
        torch.lerp(x, x, 0.5)
        return x @ y

    assert {finding.message for finding in verdict_on(fails).findings} == {
        "it calls lerp, which this exercise asks you to write yourself"
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


def test_a_forgotten_error_does_not_hide_what_is_wrong_with_the_numbers(verdict_on):
    def not_doubled_and_refuses_nothing(x, y):
        d = min(x.shape[-1], y.shape[-1])
        return x[..., :d] + y[..., :d].mean(-2, keepdim=True)

    found = named(verdict_on(not_doubled_and_refuses_nothing))
    assert found.pop("errors") is None
    assert set(found.values()) == {"not doubled"}


def test_a_mistake_is_not_named_where_something_else_is_wrong_as_well(verdict_on):
    def wrong_and_writes(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        result = 2 * x + y.mean(-2, keepdim=True) + (0.5 if y.abs().max() < 100 else 0)
        x += 1
        return result

    assert not verdict_on(wrong_and_writes).diagnoses, "nothing known explains the wrong values"


def test_a_mistake_is_not_named_if_it_fails_what_was_passed(verdict_on):
    def refuses_nothing(x, y):
        d = min(x.shape[-1], y.shape[-1])
        return 2 * x[..., :d] + y[..., :d].mean(-2, keepdim=True)

    assert named(verdict_on(refuses_nothing)) == {"errors": None}, "every known mistake fails something else"


def test_a_mistake_that_nobody_knows_gets_no_diagnosis(verdict_on):
    def unknown(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        return 2.5 * x + y.mean(-2, keepdim=True)

    verdict = verdict_on(unknown)
    assert not verdict.passed
    assert not verdict.diagnoses


def test_a_row_that_was_not_judged_explains_nothing():
    def letters(text: str) -> list[str]:
        return list(text)

    def doubled(text: str) -> list[str]:
        return [*text, *text]

    row, kept = rows.numbers(2, lambda draw: Case({"text": "abc"}), gradients=False), rows.inputs_kept
    about = Exercise(
        reference=letters,
        chapter="00_test",
        rows=[row, kept(1, lambda draw: Case({"text": "abc"}))],
        misconceptions=(Misconception("doubled", "Each letter comes twice.", "here", "wrong", make=lambda: doubled),),
    )
    assert named(decide(about.sheet(), LocalSubject(doubled))) == {"values": "doubled", "inputs": "doubled"}
    # Neither changes its input: that both fail the row about it says nothing of the numbers.
    assert named(decide(about.sheet(), LocalSubject(lambda text: [text]))) == {"values": None, "inputs": None}


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


class Column(torch.nn.Module):
    """The weight is a column, where a row is asked for."""

    def __init__(self, width):
        super().__init__()
        self.row = torch.nn.Parameter(torch.rand(width, 1))

    def forward(self, x):
        return x * self.row[:, 0]


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
        rows.numbers(3, scaled, scaled),
        rows.attributes(0.5, scaled, names=("width",)),
    ),
    misconceptions=(
        Misconception("weight as a column", "The weight is a column.", "here", "wrong", make=lambda: Column),
        Misconception("without a sum", "It cannot work.", "here", "wrong", make=lambda: Crash),
    ),
)


def put(methods):
    """Put another implementation of the class to its exercise."""
    return decide(SCALER.sheet(), LocalSubject(type("Scaler", (Scaler,), methods)))


def test_weights_that_do_not_fit_in_the_same_way_are_the_same_mistake():
    verdict = decide(SCALER.sheet(), LocalSubject(Column))
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
    assert not decide(SCALER.sheet(), LocalSubject(Crash)).diagnoses


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


def test_code_that_interrupts_itself_while_it_is_looked_at_earns_nothing() -> None:
    def interrupts(**arguments: Any) -> Any:
        raise KeyboardInterrupt

    class Interrupted(LocalSubject):
        """A subject behind a wire tells an interrupt as an observation."""

        def observe(self, request: Request) -> Observation:
            return Observation(error="KeyboardInterrupt")

    sheet = known_exercise("scaled_dot_product_attention").sheet()
    verdict = decide(sheet, Interrupted(interrupts))
    assert verdict.score == 0
    assert "it raised KeyboardInterrupt while" in str(verdict)


def test_all_wrong_inputs_that_raise_no_error_are_shown_at_once() -> None:
    def split_heads(x: torch.Tensor, n_heads: int) -> torch.Tensor:
        return x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    finding = next(finding for finding in check(split_heads).findings if finding.aspect == "errors")
    assert finding.message == "3 wrong inputs raise no error, or another one"
    assert len(finding.example.splitlines()) == 3
    assert "no error was raised, expected a ValueError" in finding.example


def test_a_valid_input_in_a_row_of_errors_is_called_valid() -> None:
    (valid, *_) = next(s for s in known_exercise("noam_learning_rate").sheet().sections if s.aspect == "errors").probes
    arguments = dict(valid.requests[0].arguments)

    def noam_learning_rate(step: int, d_model: int, warmup: int) -> float:
        if min(step, d_model, warmup) < 1 or {"step": step, "d_model": d_model, "warmup": warmup} == arguments:
            raise ValueError(f"no rate for step {step}")
        return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))

    finding = next(finding for finding in check(noam_learning_rate).findings if finding.aspect == "errors")
    assert ", which is valid: it raised ValueError" in finding.message
