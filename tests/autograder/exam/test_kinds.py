"""Questions of each kind about a few exercises; all exercises are in tests/exam."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from autograder.checking.judges import is_same_answer
from autograder.checking.request import Request, content_key
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.quizzes.exam.evidence import NOT_CONFIRMED, Evidence, confirm_mistake, gather_evidence
from autograder.quizzes.exam.inputs import exam_inputs
from autograder.quizzes.exam.kinds import ExamQuestion, make_family
from autograder.quizzes.exam.shown_code import ShownCode, changed_lines, wrong_code
from tests.exam.test_every_exercise import diagnosed

pytestmark = pytest.mark.usefixtures("one_thread")
VERSIONS = 4
Make = Callable[[str, str], list[ExamQuestion]]


@pytest.fixture(scope="module")
def evidence() -> Callable[[str], Evidence]:
    """Return a function that gathers the evidence of an exercise, once."""
    kept: dict[str, Evidence] = {}

    def gathered(name: str) -> Evidence:
        if name not in kept:
            kept[name] = gather_evidence(exercise(name))
        return kept[name]

    return gathered


@pytest.fixture(scope="module")
def family(evidence: Callable[[str], Evidence]) -> Make:
    """Return a function that makes a family of a kind about an exercise."""

    def made(name: str, kind: str) -> list[ExamQuestion]:
        found = make_family(kind, evidence(name), random.Random(1), "test", VERSIONS)
        assert found is not None
        return list(found)

    return made


FAMILIES = [("soft_lookup", "diagnosis"), ("length_penalty", "input"), ("length_penalty", "result")]


@pytest.mark.parametrize(("name", "kind"), FAMILIES)
def test_versions_differ_and_each_has_four_options_evidence_and_its_diagnosis(
    family: Make, name: str, kind: str
) -> None:
    items = family(name, kind)
    assert len({item.mistake for item in items}) == VERSIONS
    assert len({item.key for item in items}) >= VERSIONS - 1
    for item in items:
        assert len(set(item.options)) == len(item.options) == len(item.refuted) == 4
        assert [index for index, text in enumerate(item.refuted) if not text] == [item.key]
        assert item.proof
        assert diagnosed(exercise(name), item.code) == [item.mistake]


def test_a_diagnosis_is_the_explanation_of_the_mistake(family: Make) -> None:
    assert all(item.answer == item.explanation for item in family("soft_lookup", "diagnosis"))


def test_one_input_alone_differs_from_the_others(family: Make, evidence: Callable[[str], Evidence]) -> None:
    for version, item in enumerate(family("length_penalty", "input")):
        known = evidence("length_penalty")
        mistake = next(one for one in known.mistakes if one.mistake.name == item.mistake)
        requests = {one.text: one.request for one in exam_inputs(known.exercise, "test", version)}
        same = [_agree(known, mistake.candidate, requests[option]) for option in item.options]
        assert same.count(same[item.key]) == 1
        assert ("differently" in item.question) is not same[item.key]


def _agree(known: Evidence, candidate: Callable[..., object], request: Request) -> bool:
    right, wrong = (LocalSubject(one).observe(request) for one in (known.exercise.reference, candidate))
    return is_same_answer(right, wrong)


def changed(code: ShownCode, change: Callable[[str], str]) -> ShownCode:
    """Return shown code with the same change of its text and of its definitions."""
    return replace(
        code,
        source=change(code.source),
        definitions={key: change(text) for key, text in code.definitions.items()},
    )


def test_versions_change_the_same_place_if_they_can(family: Make, evidence: Callable[[str], Evidence]) -> None:
    right = evidence("length_penalty").right
    codes = [replace(right, source=item.code) for item in family("length_penalty", "result")]
    assert len({changed_lines(right, code) for code in codes}) == 1


def test_no_input_of_an_exam_is_a_hidden_test() -> None:
    for name in ("layer_norm", "top_k", "padding_mask"):
        sheet = exercise(name).sheet(hidden=True)
        hidden = {
            content_key(request)
            for section in sheet.sections
            for probe in section.probes[section.visible :]
            for request in probe.requests
        }
        plain = {
            content_key(request)
            for section in sheet.sections
            for probe in section.probes[: section.visible]
            for request in probe.requests
        }
        shown = {content_key(one.request) for version in range(4) for one in exam_inputs(exercise(name), "x", version)}
        assert shown
        assert not shown & (hidden - plain)


def test_inputs_of_versions_differ_in_their_numbers() -> None:
    first, second = ({one.place: one.text for one in exam_inputs(exercise("soft_lookup"), "x", v)} for v in (0, 1))
    shared = set(first) & set(second)
    assert shared
    assert any(first[place] != second[place] for place in shared)


def test_code_with_two_mistakes_is_not_confirmed() -> None:
    one = exercise("soft_lookup")
    mistake = next(item for item in one.misconceptions if not _is_left_out(one.name, item.name))
    code = wrong_code(one, mistake)
    worse = changed(
        code, lambda text: text.replace("raise ValueError", "raise TypeError").replace("values\n", "values * 3\n")
    )
    assert confirm_mistake(one, mistake, code) is not None
    assert confirm_mistake(one, mistake, changed(worse, lambda text: f"{text} * 7")) is None


def _is_left_out(name: str, mistake: str) -> bool:
    return mistake in gather_evidence(exercise(name)).left_out


def test_every_mistake_is_shown_or_has_a_reason(evidence: Callable[[str], Evidence]) -> None:
    known = evidence("soft_lookup")
    names = [one.mistake.name for one in known.mistakes] + list(known.left_out)
    assert sorted(names) == sorted(one.name for one in known.exercise.misconceptions)
    assert NOT_CONFIRMED not in known.left_out.values()
