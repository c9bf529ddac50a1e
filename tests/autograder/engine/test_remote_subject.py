"""How a remote subject's answers travel: whatever it answers is a finding. What is seen of it, tests/autograder/checking asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from autograder.checking.decision import decide
from autograder.checking.draw import Case
from autograder.checking.request import Observation
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise, exercises
from autograder.engine.checker import remote_subject as subject_module
from autograder.engine.checker.remote_subject import RemoteSubject, register_answer
from autograder.engine.transport.serialization import pack

from .student import AMPLE, DONE, Said, Scripted, Student, conversation_with

# These tests are about other things than refusing.
EVERYTHING = tuple({name for exercise in exercises().values() for name in exercise.forbidden})
CALLS = [Case({"x": index}).request() for index in range(3)]


@cache
def implementations() -> dict[str, Any]:
    """Return every known implementation: of each exercise the reference, and each misconception."""
    return {
        f"{exercise.name}__{name}": code
        for exercise in exercises().values()
        for name, code in (
            ("reference", exercise.reference),
            *((f"wrong_{index}", known.implementation) for index, known in enumerate(exercise.misconceptions)),
        )
    }


@pytest.fixture(scope="module")
def everyone() -> Iterator[Student]:
    """A process in which every known implementation is defined."""
    made = Student(implementations())
    made.pretend_to_refuse()
    yield made
    made.close()


# What passes between the processes does not depend on the exercise: every sixth has each kind of value.
SOME = [*exercises()][::6]


@pytest.mark.parametrize(("place", "name"), enumerate(SOME), ids=SOME)
def test_the_verdict_on_known_implementations_is_the_one_that_is_given_here(
    everyone: Student, place: int, name: str
) -> None:
    """Compare the reference and one mistake, whose number changes from exercise to exercise; other tests show that all are caught."""
    sheet, mistakes = exercises()[name].sheet(), len(exercises()[name].misconceptions)
    for label in (f"{name}__reference", f"{name}__wrong_{place % mistakes}"):
        everyone.begin()
        there, here = decide(sheet, everyone.subject(label)), decide(sheet, LocalSubject(implementations()[label]))
        assert there == here, label
        assert there.passed == label.endswith("__reference"), label


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt"),
        # Nobody borrows the words by which the course refuses its own solution.
        ("class UsesReferenceError(Exception): pass\ndef f(x): raise UsesReferenceError(str(x))", "Exception"),
    ],
)
def test_an_exception_is_told_by_a_name_that_python_knows(student: Student, source: str, error: str) -> None:
    student.define(source)
    assert student.subject().observe(Case({"x": torch.tensor([0.0727])}).request()).error == error


def test_what_is_counted_cannot_be_told_from_a_call_by_what_autograd_does(student: Student) -> None:
    requests = [Case({"x": torch.ones(2)}).request(action) for action in ("call", "operations", "functions")]
    source = "seen = []\ndef f(x):\n    seen.append((torch.is_grad_enabled(), x.requires_grad))\n    return x"
    student.define(source)
    for request in requests:
        student.subject().observe(request)
    assert student.run("assert seen == [(False, False)] * 3"), student.outputs


def test_a_callable_object_is_examined_where_it_lives_and_gains_nothing_by_being_one() -> None:
    """What it does there counts: its forbidden calls are seen, though it is no plain function."""
    name = "scaled_dot_product_attention"
    cheat = (
        "class Attention:\n"
        "    def __call__(self, q, k, v, mask=None, **more):\n"
        "        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
    )
    for made in (
        f"{name} = Attention()",
        f"{name} = functools.partial(Attention())",
        f"{name} = functools.cache(Attention().__call__)",
    ):
        student = Student(forbidden=exercises()[name].forbidden)
        found = student.define(cheat + made, name)
        verdict = decide(exercise(name).sheet(hidden=True, seed=3), found)
        assert verdict.score == 0
        assert "scaled_dot_product_attention" in verdict.findings[0].message
        student.close()


@pytest.mark.parametrize("wrapper", ["functools.partial({})", "functools.cache({})", "(lambda *a, **k: {}(*a, **k))"])
def test_a_right_function_keeps_its_points_in_a_wrapper_of_the_students(everyone: Student, wrapper: str) -> None:
    everyone.begin()
    made = wrapper.format("causal_mask__reference")
    found = everyone.define(f"causal_mask = {made}", "causal_mask")
    assert decide(exercise("causal_mask").sheet(hidden=True, seed=3), found).passed


FINE = pack({"outputs": {"output": 1}})


def part(observed: Any) -> list[bytes]:
    """An answer in one part, which is its end."""
    return [pack({"part": 0, "answers": observed}), DONE]


def in_parts(question: Mapping[str, Any], say: Callable[[Any], Any]) -> list[bytes]:
    """Answers to every request of a question, group by group."""
    requests = iter(question["requests"])
    parts = [[pack(say(next(requests))) for _ in range(size)] for size in question["sizes"]]
    return [*(pack({"part": number, "answers": answers}) for number, answers in enumerate(parts)), DONE]


@pytest.mark.parametrize("sizes", [[1, 10**5, 2, 10**5, 3], [5_000] * 100], ids=["too long", "too many"])
def test_answers_for_which_the_tray_has_no_room_come_in_their_place(student: Student, sizes: list[int]) -> None:
    student.define("def f(x, n): return x.repeat(n)")
    groups = [[Case({"x": torch.tensor([float(i)]), "n": size}).request()] for i, size in enumerate(sizes)]
    found = student.subject().observe_groups(groups)
    assert [(seen.outputs["output"][-1].item(), len(seen.outputs["output"])) for (seen,) in found] == list(
        enumerate(sizes)
    )


def test_code_that_goes_on_when_it_is_interrupted_spoils_no_later_cell(student: Student) -> None:
    student.define(
        """
import time
def f(x):
    try:
        time.sleep(600 if x == 1 else 0)
    except:
        pass
    return x + 5
"""
    )
    student.begin(replace(AMPLE, seconds=0.5))
    answered, late, later = student.subject().observe_groups([[call] for call in CALLS])
    assert answered[0].outputs == {"output": 5}
    assert all("stopped after 0.5 s" in (group[0].error or "") for group in (late, later))
    student.begin()
    assert student.run("y = 1") is True
    assert student.subject().observe(CALLS[2]).outputs == {"output": 7}


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[Scripted, Any, RemoteSubject]]]:
    """Return a function that makes a process of what it will say, the conversation with it, and the subject in it."""
    made = []

    def make(*answers: Any, name: str = "f") -> tuple[Scripted, Any, RemoteSubject]:
        process = Scripted(*answers)
        made.append(process)
        conversation = conversation_with(process, EVERYTHING)
        return process, conversation, RemoteSubject(conversation, 1, name)

    yield make
    for process in made:
        process.close()


class TestForgedAnswers:
    """Whatever comes in the place of an observation is a finding about the student's code."""

    @pytest.fixture
    def observed(self, scripted: Any) -> Callable[..., list[Observation]]:
        def ask(*answers: Said, requests: int = 1) -> list[Observation]:
            (found,) = scripted(*answers)[2].observe_groups([CALLS[:requests]])
            assert len(found) == requests
            return found

        return ask

    @pytest.mark.parametrize(
        "answer",
        [
            b"", b"\xc1", b"\x80", pack(None), pack([1]), pack({}), pack({"value": 1}), part(None), part([]), part([b"", b""]), part([b""]),
            part([b"\xc1"]), part(["text"]), part([None]), part([[1]]), part({"a": 1}), part(torch.ones(1)),
            pack({"interrupted": False}), pack({"interrupted": "yes"}), pack({"end": True}),
            pack({1: 2}), pack({"out": 3}), pack({"out": None}),
            *(part([pack(said)]) for said in (
                3, None, [], {"outputs": 3}, {"outputs": [1]}, {"outputs": {1: 2}}, {"error": 3}, {"error": ["x"]}, {"mutated": 3},
                {"mutated": [1]}, {"mutated": (1,)}, {"mutated": ("x",) * 10_001}, {"operations": -1}, {"operations": 1.5},
                {"operations": True},
                {"largest": "x"}, {"functions": "abc"}, {"functions": (b"x",)},
            )),
        ],
        ids=lambda answer: repr(answer)[:60],
    )  # fmt: skip
    def test_an_answer_or_observation_of_another_form_is_malformed(
        self, observed: Callable[..., list[Observation]], answer: Said
    ) -> None:
        (found,) = observed(answer)
        assert (found.error or "").startswith("MalformedAnswer")
        assert not found.outputs

    def test_too_few_and_too_many_observations_are_malformed(self, observed: Any) -> None:
        for count in (1, 3):
            assert all(seen.error for seen in observed(part([FINE] * count), requests=2))
        assert [seen.error for seen in observed(part([FINE] * 2), requests=2)] == [None, None]

    def test_who_answers_more_than_was_asked_is_asked_no_more(self, scripted: Any) -> None:
        _, conversation, subject = scripted([pack({"part": 0, "answers": [FINE]})] * 3)
        assert [seen.error for seen in subject.observe_groups([CALLS[:1]])[0]] == [None]
        assert not conversation.alive
        assert (subject.observe(CALLS[1]).error or "").startswith("MalformedAnswer")

    def test_what_was_answered_before_a_process_went_stays_answered(self, scripted: Any) -> None:
        _, _, subject = scripted([pack({"part": 0, "answers": [FINE] * 2}), b""])
        first, second = subject.observe_groups([CALLS[:2], CALLS[1:]])
        assert [seen.error for seen in first] == [None, None]
        assert second[0] == first[1], "it was asked once"
        assert (second[1].error or "").startswith("MalformedAnswer")

    def test_what_is_answered_to_one_cell_is_limited_in_all(self, scripted: Any) -> None:
        observation = pack({"outputs": {"output": torch.ones(2**16)}})  # 256 KiB
        _, conversation, subject = scripted(*[part([observation])] * 5)
        conversation.begin(replace(AMPLE, answers_mb=1), lambda output: None)
        errors = [subject.observe(Case({"x": index}).request()).error or "" for index in range(5)]
        assert errors[:3] == ["", "", ""]
        assert all("Its answers exceeded the limit of 1 MiB" in error for error in errors[3:])
        assert not conversation.alive

    @pytest.mark.parametrize(
        "laid",
        [
            b"\xc1",
            pack(3),
            pack({}),
            pack({"out": {}}),
            pack({"part": 0}),
            *(pack({"part": number, "after": 0}) for number in (1, -1, "0", True)),
        ],
        ids=repr,
    )
    def test_what_lies_on_the_tray_in_another_form_is_malformed(self, scripted: Any, laid: bytes) -> None:
        def say(question: Any) -> bytes:
            process.their_mailbox.send(laid)
            return DONE

        process, _, subject = scripted(say)
        assert (subject.observe(CALLS[0]).error or "").startswith("MalformedAnswer")

    def test_what_lay_on_the_tray_before_something_was_asked_is_no_answer(self, scripted: Any) -> None:
        def say(question: Any) -> bytes:
            process.their_mailbox.send(pack({"part": 0, "after": 0, "answers": [FINE]}))
            return DONE

        process, _, subject = scripted(say)
        process.their_mailbox.send(pack({"part": 0, "after": 0, "answers": [pack({"outputs": {"output": 2}})]}))
        assert subject.observe(CALLS[0]).outputs == {"output": 1}

    def test_after_too_much_output_nothing_is_an_answer_however_fast_it_came(self, scripted: Any) -> None:
        flood = {"output_type": "stream", "name": "stdout", "text": "x" * 1_000}

        def say(question: Any) -> list[bytes]:
            for number in range(3):
                process.their_mailbox.send(pack({"part": number, "after": number, "answers": [FINE]}))
            return [pack({"out": flood}), pack({"out": flood}), DONE]

        process, conversation, subject = scripted(say)
        conversation.begin(replace(AMPLE, output=1_500), lambda output: None)
        found = subject.observe_groups([[Case({"x": number}).request()] for number in range(3)])
        assert [(seen.error or "").partition(":")[0] for (seen,) in found] == ["", "", "OutputLimit"]

    def test_what_one_group_asks_twice_is_asked_once(self, scripted: Any) -> None:
        _, _, subject = scripted(part([FINE, pack({"outputs": {"output": 2}})]))
        ((one, two, three),) = subject.observe_groups([[CALLS[0], CALLS[0], CALLS[1]]])
        assert one is two
        assert (one.outputs["output"], three.outputs["output"]) == (1, 2)

    def test_one_malformed_observation_leaves_the_others_as_they_are(self, observed: Any) -> None:
        one, two = observed(part([FINE, b"\xc1"]), requests=2)
        assert (one.error, dict(one.outputs)) == (None, {"output": 1})
        assert two.error is not None

    def test_a_process_that_has_gone_is_a_finding_for_every_question(self, scripted: Any) -> None:
        process, conversation, subject = scripted()
        process.kill()
        conversation._how_it_ended = lambda child: -11
        for _ in range(2):
            (found,) = subject.observe_groups([CALLS])
            assert [(seen.error or "").partition(":")[0] for seen in found] == ["ProcessEnded"] * 3
            assert "SIGSEGV" in (found[0].error or "")

    def test_an_error_about_memory_is_told_as_the_limit_that_it_is(self, observed: Any) -> None:
        (found,) = observed(part([pack({"error": "RuntimeError: can't allocate memory: 8 GB"})]))
        assert found.error == "MemoryLimit: It needed more than 4 GiB of memory."

    def test_a_long_error_is_cut(self, observed: Any) -> None:
        (found,) = observed(part([pack({"error": "x" * 10**6})]))
        assert len(found.error or "") == 1000

    @pytest.mark.parametrize("name", list(exercises()))
    def test_no_answer_of_one_kind_passes_every_aspect_of_any_exercise(self, scripted: Any, name: str) -> None:
        """An echo, silence, a shape: what could be said without knowing anything."""
        sheet = replace(exercises()[name].sheet(), misconceptions=())
        forged: list[Callable[[Any], dict[str, Any]]] = [
            lambda request: {},
            lambda request: {"operations": 1, "largest": 1, "functions": ()},
            lambda request: {"outputs": {"output": next(iter(request["arguments"].values()), None)}},
            lambda request: {"outputs": {f"gradient of {name}": torch.zeros(()) for name in request.get("wrt", ())}},
        ]
        for say in forged:

            def answer(question: Mapping[str, Any], say: Callable[[Any], dict[str, Any]] = say) -> list[bytes]:
                return in_parts(question, say)

            verdict = decide(sheet, scripted(*[answer] * 2, name=name)[2])
            assert not verdict.passed
            assert verdict.score <= verdict.max_score / 2


@pytest.mark.parametrize("name", ["causal_mask", "scaled_dot_product_attention", "gru_cell"])
def test_a_right_answer_is_known_by_its_bytes_and_the_verdict_is_the_same(
    everyone: Student, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sheet = exercises()[name].sheet(hidden=True, seed=5)
    codes = [label for label in implementations() if label.startswith(f"{name}__")]

    def verdicts() -> list[Any]:
        found = []
        for label in codes:
            everyone.begin()
            found.append(decide(sheet, everyone.subject(label)).to_dict())
        return found

    monkeypatch.setattr(subject_module, "_expected", {})
    before = verdicts()
    answers = [answer for section in sheet.sections for given in section.expected for answer in given]
    for answer in answers:
        register_answer(answer)
    assert verdicts() == before
    everyone.begin()
    requests = [request for section in sheet.sections for probe in section.probes for request in probe.requests]
    (there,) = everyone.subject(f"{name}__reference").observe_groups([requests])
    known = [mine for mine, theirs in zip(there, answers, strict=True) if mine is theirs]
    assert len(known) > len(answers) / 2
    (other,) = everyone.subject(f"{name}__reference").observe_groups([[replace(requests[0], arguments={})]])
    assert other[0].error, "another answer is read as it is"
