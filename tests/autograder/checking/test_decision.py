"""From answers to a verdict: points, rules, and which known mistake it was."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

from autograder.checking import rows
from autograder.checking.decision import decide
from autograder.checking.draw import Case
from autograder.checking.exercise import Exercise, Misconception
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


def guarded(compute: Callable[..., Any], *, writes: bool = False) -> Callable[..., Any]:
    """Return a candidate that refuses unequal widths, computes, and may write to its input."""

    def candidate(x, y):
        if x.shape[-1] != y.shape[-1]:
            raise ValueError
        result = compute(x, y)
        x += writes
        return result

    return candidate


def mean(y):
    return y.mean(-2, keepdim=True)


def is_large(y):
    return y.abs().max() > 100


def cut(x, y):
    """Both to the smaller width."""
    d = min(x.shape[-1], y.shape[-1])
    return x[..., :d], y[..., :d]


def overflow(y):
    if is_large(y):
        raise OverflowError
    return mean(y)


def stub(x, y):
    raise NotImplementedError


def refuse(x, y):
    raise ValueError("no")


# -------------------------------------------------------------------------------------------------------------- points


def test_the_reference_earns_every_point_and_no_diagnosis(exercise, verdict_on):
    verdict = verdict_on(exercise.reference)
    assert verdict.passed
    assert (verdict.score, verdict.max_score) == (6.5, 6.5) == (exercise.points,) * 2
    assert [finding.aspect for finding in verdict.findings] == [aspect.name for aspect in exercise.rows]
    assert (verdict.exercise, verdict.chapter, verdict.diagnoses) == ("blend", "00_test", ())


def test_a_row_of_numbers_gives_all_its_points_or_none_and_a_side_row_by_right_numbers(verdict_on):
    verdict = verdict_on(guarded(lambda x, y: 2 * x + mean(y.clamp(-10, 10))))
    earned = {finding.aspect: finding.earned for finding in verdict.findings}
    # Three of four points of numbers are right, so what is beside them pays three quarters, rounded to two decimals.
    assert earned == {"values": 3.0, "large": 0.0, "inputs": 0.75, "loops": 0.38, "memory": 0.38, "errors": 0.38}
    assert verdict.score == pytest.approx(4.89)
    (inputs,) = (finding for finding in verdict.findings if finding.aspect == "inputs")
    assert (inputs.passed, inputs.is_reduced) == (True, True)
    assert "1.89 of 2.5 points" in str(verdict)


@pytest.mark.parametrize(("earned", "reduced"), [(0.12, False), (0.11, True)])
def test_a_row_whose_points_are_rounded_is_not_reduced(earned, reduced):
    assert Finding("loops", "No loop.", 0.125, True, "fine", earned=earned).is_reduced is reduced


@pytest.mark.parametrize("candidate", [lambda x, y: 3 * x, refuse, stub])
def test_code_without_a_right_number_earns_nothing(verdict_on, candidate):
    assert verdict_on(candidate).score == 0


def test_side_rows_are_not_judged_where_the_numbers_are_wrong(verdict_on):
    findings = {finding.aspect: finding for finding in verdict_on(lambda x, y: x[..., :1]).findings}
    assert {name for name, finding in findings.items() if finding.message == NOT_JUDGED} >= {"inputs", "loops"}
    assert not findings["loops"].example
    assert "ValueError" in findings["errors"].message


def test_a_wrong_answer_is_shown_where_it_is_small_and_visible(exercise, verdict_on):
    (values, *_) = verdict_on(guarded(lambda x, y: 2 * x + y.sum(-2, keepdim=True))).findings
    assert all(part in values.example for part in ("x = a tensor (", "the result at [", "\n  yours ", "\n  expected "))
    visible = {section.probes[0].requests[0].arguments["x"].shape for section in exercise.sheet().sections}
    wrong_elsewhere = guarded(lambda x, y: (2 if x.shape in visible else 3) * x + mean(y))
    verdict = decide(exercise.sheet(hidden=True, seed=5), LocalSubject(wrong_elsewhere))
    hidden = [finding for finding in verdict.findings if "hidden question" in finding.message]
    assert hidden
    assert not any(finding.example for finding in hidden)


def cases(**fixed):
    return lambda draw: Case({"n": 1, "text": "abc", **fixed})


def grown(rows_):
    return lambda draw: Case({"x": draw.normal(rows_, 8)})


def repeat(n, text):
    if n < 0:
        raise ValueError(n)
    return n * text


def grow(x):
    return x.exp()


def cost(n: int) -> Cost:
    return Cost(n, 2 * n)


EDGES = rows.edge(
    2, cases(n=0), cases(text=""), cases(), name="edges", title="Edges.", gradients=False, dtypes=()
)  # fmt: skip
SIZES = rows.numbers(2, grown(2), grown(3), gradients=False)
COSTS = rows.numbers(2, lambda draw: Case({"n": 3}), gradients=False)
REFUSED = rows.errors(1, cases(), cases(n=-1), title="A negative n is a ValueError.")


@pytest.mark.parametrize(
    ("reference", "row", "candidate", "parts"),
    [
        (repeat, EDGES, lambda n, text: n * text if text else None, ("for text = '':", "None", "expected ''")),
        (repeat, REFUSED, lambda n, text: n * text, ("for n = -1:", "expected a ValueError")),
        (grow, SIZES, lambda x: x.exp() + (len(x) != 2), ("for x of shape (3, 8): all 24 numbers",)),
        (cost, COSTS, lambda n: (n, n), ("result.bytes is 3, expected 6",)),
        (cost, COSTS, lambda n: (n,), ("result.bytes is missing",)),
    ],
    ids=["value", "error", "shape", "field", "missing field"],
)
def test_a_message_names_the_case_that_failed_and_the_field(reference, row, candidate, parts):
    about = Exercise(reference=reference, chapter="00_test", rows=[row])
    (finding,) = decide(about.sheet(), LocalSubject(candidate)).findings
    assert all(part in finding.message for part in parts), finding.message


# --------------------------------------------------------------------------------------------------------------- rules


def lerp(x, y):
    return torch.lerp(x, 3 * x, 0.5) + mean(y)


@pytest.mark.parametrize(
    ("candidate", "word"),
    [
        (lerp, "calls lerp"),
        (lambda x, y: lerp(x, y) if is_large(y) else 2 * x + mean(y), "calls lerp"),
        (lambda x, y: lerp(x, y) if x.requires_grad else 2 * x + mean(y), "calls lerp"),
        (lambda x, y: torch.lerp(x, x, 0.5) and x @ y, "calls lerp"),
        (stub, "written"),
    ],
    ids=["always", "on large numbers only", "with gradients only", "and fails", "stub"],
)
def test_a_broken_rule_costs_every_point_and_is_told_once(verdict_on, candidate, word):
    verdict = verdict_on(candidate)
    assert verdict.score == 0
    (message,) = {finding.message for finding in verdict.findings}
    assert word in message
    assert not verdict.diagnoses


def test_a_borrowed_solution_earns_nothing_and_is_told_why(exercise, sheet):
    subject = LocalSubject(lambda x, y: exercise.reference(x, y), {exercise.reference.__code__})
    verdict = decide(sheet, subject)
    assert verdict.score == 0
    assert all("own blend" in f.message and "UsesReferenceError" not in f.message for f in verdict.findings)


# ----------------------------------------------------------------------------------------------------------- diagnoses


@pytest.mark.parametrize("index", range(6))
def test_a_known_mistake_is_recognised_in_every_aspect_that_it_fails_and_in_no_other(exercise, verdict_on, index):
    mistake = exercise.misconceptions[index]
    verdict = verdict_on(mistake.implementation)
    assert not verdict.passed
    assert set(named(verdict).values()) == {mistake.name}
    assert verdict.diagnoses == (mistake.diagnosis,)
    assert all(finding.diagnosis is None for finding in verdict.findings if finding.passed)


NOT_DOUBLED = dict.fromkeys(("values", "large"), "not doubled")


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (guarded(lambda x, y: x.add(torch.einsum("bsd->bd", y)[:, None] / y.size(1))), NOT_DOUBLED),
        (
            guarded(lambda x, y: 2 * x + mean(y.clamp(-10, 10)), writes=True),
            {"large": "clipped", "inputs": "in place"},
        ),
        (lambda x, y: (lambda a, b: a + mean(b))(*cut(x, y)), {**NOT_DOUBLED, "errors": None}),
        # Nothing known explains the wrong values.
        (guarded(lambda x, y: 2 * x + mean(y) + 0.5 * ~is_large(y), writes=True), {"values": None, "inputs": None}),
        # Every known mistake fails something else.
        (lambda x, y: (lambda a, b: 2 * a + mean(b))(*cut(x, y)), {"errors": None}),
        (guarded(lambda x, y: 2.5 * x + mean(y)), {"values": None, "large": None}),
        # A loop, too, gives the right numbers.
        (guarded(lambda x, y: 2 * x + mean(y) + torch.zeros(10**4).sum()), {"memory": None}),
        # An error of the same kind is no evidence by itself.
        (guarded(lambda x, y: 2.5 * x + overflow(y)), {"values": None, "large": None}),
    ],
    ids=["otherwise", "two", "no error", "more wrong", "no mistake", "unknown", "another aspect", "same error"],
)
def test_a_mistake_is_named_where_it_explains_what_is_wrong_and_nowhere_else(verdict_on, candidate, expected):
    found = named(verdict_on(candidate))
    assert found.items() >= expected.items()
    assert set(found.values()) == set(expected.values())


def test_answers_to_hidden_questions_do_not_choose_the_mistake_that_is_named(exercise):
    visible = [probe.requests[0].arguments for section in exercise.sheet().sections for probe in section.probes]

    def is_visible(x, y):
        return any(torch.equal(x, known["x"]) and torch.equal(y, known["y"]) for known in visible)

    for mistake in exercise.misconceptions:

        def chosen(x, y, wrong=mistake.implementation):
            if is_visible(x, y):
                raise RuntimeError
            return wrong(x, y)

        verdict = decide(exercise.sheet(hidden=True, seed=5), LocalSubject(chosen))
        assert not verdict.passed
        assert verdict.diagnoses == (), mistake.name


def test_a_row_that_was_not_judged_explains_nothing():
    def letters(text: str) -> list[str]:
        return list(text)

    def doubled(text: str) -> list[str]:
        return [*text, *text]

    def text(draw):
        return Case({"text": "abc"})

    about = Exercise(
        reference=letters,
        chapter="00_test",
        rows=[rows.numbers(2, text, gradients=False), rows.inputs_kept(1, text)],
        misconceptions=(Misconception("doubled", "Each letter comes twice.", "here", "wrong", make=lambda: doubled),),
    )
    assert named(decide(about.sheet(), LocalSubject(doubled))) == {"values": "doubled", "inputs": "doubled"}
    # Neither changes its input: that both fail the row about it says nothing of the numbers.
    assert named(decide(about.sheet(), LocalSubject(lambda text: [text]))) == {"values": None, "inputs": None}


# ------------------------------------------------------------------------------------------ a mistake that only crashes


class Scaler(torch.nn.Module):
    """Multiplies by a row."""

    SHAPE = (1,)

    def __init__(self, width):
        super().__init__()
        self.row = torch.nn.Parameter(torch.rand(width, *self.SHAPE[1:]))
        self.width = width

    def forward(self, x):
        return x * self.row


class Column(Scaler):
    """The weight is a column, where a row is asked for."""

    SHAPE = (1, 1)


class Pair(Scaler):
    """The weight is two columns."""

    SHAPE = (1, 2)


class Crash(Scaler):
    """It cannot work."""

    def forward(self, x):
        raise TypeError("a sum is missing")


class OtherCrash(Scaler):
    """It cannot work either, for another reason."""

    def forward(self, x):
        raise TypeError("something else entirely")


def scaled(draw):
    b, d = draw.sizes(2)
    return Case({"x": draw.normal(b, d)}, init={"width": d}, state={"row": draw.normal(d)})


SCALER = Exercise(
    reference=Scaler,
    chapter="00_test",
    rows=(rows.numbers(3, scaled, scaled), rows.attributes(0.5, scaled, names=("width",))),
    misconceptions=(
        Misconception("weight as a column", "The weight is a column.", "here", "wrong", make=lambda: Column),
        Misconception("without a sum", "It cannot work.", "here", "wrong", make=lambda: Crash),
    ),
)


@pytest.mark.parametrize(
    ("candidate", "names"),
    [(Column, {"weight as a column"}), (Pair, {None}), (Crash, {None}), (OtherCrash, {None})],
)
def test_weights_that_do_not_fit_in_the_same_way_are_a_mistake_and_a_crash_proves_none(candidate, names):
    verdict = decide(SCALER.sheet(), LocalSubject(candidate))
    assert set(named(verdict).values()) == names
    assert "WeightsError" not in verdict.findings[0].message


def test_mistakes_are_not_run_while_everything_is_right(sheet, exercise):
    def never(mistake, section, probe):
        raise AssertionError("the answers of the mistakes are not needed")

    assert decide(replace(sheet, ask_mistake=never), LocalSubject(exercise.reference)).passed


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
    assert list(noted.computed_answers) == asked
    # Whoever makes a known mistake is compared to the end with that one.
    decide(noted, LocalSubject(exercise.misconceptions[0].implementation))
    everything = {(0, j, k) for j, section in enumerate(sheet.sections) for k in range(len(section.probes))}
    assert everything <= set(noted.computed_answers)


def test_all_wrong_inputs_that_raise_no_error_are_shown_at_once_and_a_valid_one_is_called_valid() -> None:
    def split_heads(x: torch.Tensor, n_heads: int) -> torch.Tensor:
        return x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    finding = next(finding for finding in check(split_heads).findings if finding.aspect == "errors")
    assert len(finding.example.splitlines()) == 3
    assert "ValueError" in finding.example
    (valid, *_) = next(s for s in known_exercise("noam_learning_rate").sheet().sections if s.aspect == "errors").probes

    def noam_learning_rate(step: int, d_model: int, warmup: int) -> float:
        asked = {"step": step, "d_model": d_model, "warmup": warmup}
        if min(asked.values()) < 1 or asked == valid.requests[0].arguments:
            raise ValueError(step)
        return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))

    finding = next(finding for finding in check(noam_learning_rate).findings if finding.aspect == "errors")
    assert "valid: it raised ValueError" in finding.message
