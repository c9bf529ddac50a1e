"""The student's side answers every question, whatever its cells have done to the process."""

from __future__ import annotations

from autograder.engine.transport.serialization import Reference

from .student import Student


def test_a_copy_of_the_process_answers_nothing_wherever_it_was_made(student: Student) -> None:
    student.run("import os\nchild = os.fork()")
    for number in range(20):
        assert student.define(f"f = lambda: {number}")() == number
    assert student.names["child"] > 0
    f = student.define("import os\ndef f(): return os.fork() > 0")
    assert [f() for _ in range(5)] == [True] * 5


def test_a_question_about_what_is_not_there_is_an_error_and_the_next_one_is_answered(student: Student) -> None:
    for question in (
        {"do": "nothing"},
        {"do": "get", "of": 3},
        {"do": "backward", "graph": 99, "wrt": 0, "grads": []},
        {},
    ):
        assert "raised" in _asked(student, question)
    assert student.define("f = lambda: 1")() == 1


def _asked(student: Student, question: dict[str, object]) -> dict[str, object]:
    return student.conversation.ask(question)


def test_what_was_kept_can_be_let_go(student: Student) -> None:
    student.define("f = lambda: 1")
    first = student.conversation.ask({"do": "look", "name": "f"})["value"]
    number = object.__getattribute__(first, "_reference").number
    assert student.conversation.ask({"do": "drop", "numbers": [number, 10**6]}) == {"value": None}
    for name in ("missing", "__builtins__x", "a b"):
        assert student.conversation.ask({"do": "look", "name": name}) == {"missing": True}


def test_an_exception_is_told_with_the_lines_of_the_cells_that_it_passed(student: Student) -> None:
    student.define("def g():\n    raise ValueError('x')\ndef f():\n    return g()")
    raised = student.conversation.ask(
        {"do": "call", "of": Reference(1, "function", "f"), "grad": False, "wrt": [], "args": (), "kwargs": {}}
    )["raised"]
    assert (raised["type"], raised["text"], raised["memory"]) == ("ValueError", "x", False)
    assert raised["bases"] == ["ValueError", "Exception", "BaseException", "object"]
    assert raised["where"] == ["f, line 6", "g, line 4"]
