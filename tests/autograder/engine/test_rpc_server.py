"""The student's side answers every question, whatever its cells have done to the process."""

from __future__ import annotations

from autograder.checking.draw import Case

from .student import Student


def test_a_copy_of_the_process_answers_nothing(student: Student) -> None:
    student.run("import os\nchild = os.fork()")
    for number in range(20):
        assert student.result(f"f = lambda: {number}") == number
    assert student.result("f = lambda: child") > 0


def test_a_question_about_what_is_not_there_is_answered_and_so_is_the_next_one(student: Student) -> None:
    observe = {"do": "observe", "cell": 99, "backward": False, "sizes": [], "requests": []}
    for question in ({"do": "nothing"}, {"do": "look"}, observe, {}):
        assert student.conversation.ask(question) == {"interrupted": False}
    for name in ("missing", "__builtins__x", "a b"):
        assert student.conversation.ask({"do": "look", "cell": 0, "name": name}) == {"value": False}
    assert student.result("f = lambda: 1") == 1


def test_what_a_test_cell_checks_is_the_same_for_all_its_questions(student: Student) -> None:
    first = student.define("def f(): return 1")
    assert student.run("def f(): return 2")
    assert first.observe(Case({}).request()).outputs == {"output": 1}
    assert student.subject().observe(Case({}).request()).outputs == {"output": 2}
