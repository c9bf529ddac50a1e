"""What a person decides about a student stays, and only students of the class list can be withdrawn or excused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from autograder.course.course_file import ChapterPlan, CourseFile
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.reports.report_page import render_report
from autograder.intake.people.enrol import Enrolment
from autograder.intake.people.find_student import find_student, matching_students
from autograder.intake.people.standing import (
    UncountedStudent,
    add_student,
    excuse_chapter,
    has_grade,
    ignore_submitter,
    is_excused,
    is_stranger,
    withdraw_student,
)
from autograder.intake.people.strangers import find_strangers, propose_pairs, stranger_problems
from autograder.intake.roster import Student, merge_collected, read_roster, write_roster

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"


@pytest.fixture
def class_of_two(enrolled: Callable[..., Enrolment]) -> None:
    """A class of two students."""
    enrolled("id,name\nada,Ada\nbo,Bo\n")


@pytest.mark.usefixtures("class_of_two")
def test_a_decision_survives_the_next_class_list(course: Course, enrolled: Callable[..., Enrolment]) -> None:
    withdraw_student(course, "bo")
    excuse_chapter(course, "ada", CHAPTER)
    assert enrolled("id,name\nada,Ada\nbo,Bo\n").unchanged == ("ada", "bo")
    roster = read_roster(course)
    assert (roster["bo"].state, roster["ada"].excused) == ("withdrawn", (CHAPTER,))


@pytest.mark.usefixtures("class_of_two")
def test_decisions_that_have_no_meaning_are_refused(course: Course) -> None:
    for decide in (withdraw_student, lambda course, student: excuse_chapter(course, student, CHAPTER)):
        with pytest.raises(CourseError, match="eve is not on the class list"):
            decide(course, "eve")
    with pytest.raises(CourseError, match="ada is on the class list"):
        ignore_submitter(course, "ada")


CHAPTER = "03_scaled_dot_product"
LIST = "id,name\naberg,Ada Berg\njm,Jürgen Müller\nzo,Zoë O'Brien\n"


@pytest.fixture
def class_of_three(course: Course, enrolled: Callable[..., Enrolment], hand_in: Callable[..., None]) -> Course:
    """A class of which one student handed in under her own name, and two submissions are nobody's."""
    enrolled(LIST)
    collected = [
        Student("j-rgen-m-ller", "J_rgen M_ller", "moodle", uploads={CHAPTER: "101"}),
        Student("test-student", "Test Student", "moodle", uploads={CHAPTER: "999"}),
    ]
    write_roster(course, merge_collected(read_roster(course), collected))
    for student in ("aberg", "j-rgen-m-ller", "test-student"):
        hand_in(student)
    return course


def test_a_stranger_is_named_with_the_student_who_is_likely_meant(class_of_three: Course) -> None:
    found_by_id = {stranger.student: stranger for stranger in find_strangers(class_of_three, [CHAPTER])}
    assert {name: stranger.proposed for name, stranger in found_by_id.items()} == {
        "j-rgen-m-ller": "jm",
        "test-student": "",
    }
    assert found_by_id["test-student"].absent == ("jm", "zo")
    pair, other = map(str, stranger_problems(class_of_three, found_by_id.values()))
    assert "students --same j-rgen-m-ller jm" in pair
    assert "students --same test-student STUDENT" in other
    assert "--ignore test-student" in other


def test_a_decision_ends_the_question(class_of_three: Course) -> None:
    add_student(class_of_three, "j-rgen-m-ller")
    ignore_submitter(class_of_three, "test-student")
    assert find_strangers(class_of_three, [CHAPTER]) == []
    roster = read_roster(class_of_three)
    assert (roster["j-rgen-m-ller"].counts, roster["test-student"].counts) == (True, False)


def test_without_a_class_list_nobody_is_a_stranger(course: Course, hand_in: Callable[..., None]) -> None:
    hand_in("ada")
    assert find_strangers(course, [CHAPTER]) == []
    assert not is_stranger("ada", {"bo": Student("bo")})
    assert is_stranger("ada", {"bo": Student("bo", enrolled=True)})


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("Müller Jürgen", "jm"),
        ("mullerjurgen", "jm"),
        ("Jürgen Muller-Berg", "jm"),
        ("Zoe OBrien", "zo"),
        ("Ju╠êrgen Mu╠êller", "jm"),
        ("Wei Chen", ""),
    ],
)
def test_pairs_are_proposed_by_the_likeness_of_names(name: str, proposed: str) -> None:
    absent = [Student("jm", "Jürgen Müller", enrolled=True), Student("zo", "Zoë O'Brien", enrolled=True)]
    assert propose_pairs([Student("x", name)], absent).get("x", "") == proposed


def test_two_strangers_who_may_be_one_student_are_not_paired() -> None:
    absent = [Student("jm", "Jürgen Müller", enrolled=True)]
    alike = [Student("one", "Jurgen Muller"), Student("two", "jurgen muller")]
    assert propose_pairs(alike, absent) == {}


DUE = datetime(2026, 11, 1, 20, tzinfo=UTC)
PLAN = CourseFile(chapters={CHAPTER: ChapterPlan(due=DUE)})


@pytest.mark.parametrize(
    ("joined", "handed_in", "excused"),
    [
        ("2026-11-01", False, False),
        ("2026-11-02", False, True),
        ("2026-11-02", True, False),
        ("", False, False),
    ],
)
def test_what_was_due_before_somebody_joined_does_not_count_unless_handed_in(
    joined: str, handed_in: bool, excused: bool
) -> None:
    student = Student("ada", enrolled=True, joined=joined)
    assert is_excused(student, CHAPTER, DUE, handed_in=handed_in) is excused
    assert not is_excused(student, CHAPTER, None)


@pytest.mark.parametrize(
    ("student", "counts"),
    [
        (Student("ada", enrolled=True), True),
        (Student("ada", enrolled=True, state="withdrawn"), False),
        (Student("ada", state="ignored"), False),
        (Student("ada"), False),
        (Student("ada", enrolled=True, excused=(CHAPTER,)), False),
    ],
)
def test_with_a_class_list_only_its_students_count(student: Student, counts: bool) -> None:
    roster = {"ada": student, "bo": Student("bo", enrolled=True)}
    assert has_grade(roster, "ada", CHAPTER, PLAN, handed_in=True) is counts


def test_without_a_class_list_everybody_counts() -> None:
    assert has_grade({"bo": Student("bo")}, "ada", CHAPTER, PLAN, handed_in=False)
    assert not has_grade({"ada": Student("ada", state="ignored")}, "ada", CHAPTER, PLAN, handed_in=True)


def test_report_lists_them(course: Course) -> None:
    outside = [
        UncountedStudent("dee", "Dee <Eck>", (CHAPTER, OTHER), "withdrawn"),
        UncountedStudent("kim", "kim", (CHAPTER,), "unknown", is_decided=False),
    ]
    page = render_report([], title="Class", folder=course.root, outside=outside)
    assert 'Dee &lt;Eck&gt; <span class="note">dee</span></th><td>withdrawn</td>' in page
    assert page.count('<span class="pill bad">to decide</span>') == 1
    assert "Who is not counted?" not in render_report([], title="Class", folder=course.root)


PEOPLE = {
    student.id: student
    for student in (
        Student("anna-schmidt-s1", "Anna Schmidt", number="s1", enrolled=True),
        Student("as2", "Anna Schmidt", number="s2", email="as2@uni.example", enrolled=True),
        Student("jm", "Jörg Müller", login="mueller", surname="Müller", enrolled=True),
        Student("ada", "Ada Berg", enrolled=True),
        Student("ada-lovelace", "Ada Lovelace", user="901", enrolled=True),
        Student("stranger"),
    )
}


@pytest.mark.parametrize(
    ("typed", "ids"),
    [
        ("ada", ["ada"]),
        ("ADA", ["ada"]),
        ("s2", ["as2"]),
        ("901", ["ada-lovelace"]),
        ("as2@uni.example", ["as2"]),
        ("Jörg Müller", ["jm"]),
        ("jorg muller", ["jm"]),
        ("Müller, Jörg", ["jm"]),
        ("Mül", ["jm"]),
        ("mueller", ["jm"]),
        ("Ada L", ["ada-lovelace"]),
        ("L Ada", ["ada-lovelace"]),
        ("Anna Schmidt", ["anna-schmidt-s1", "as2"]),
        ("strang", ["stranger"]),
        ("Eve", []),
        ("", []),
    ],
)
def test_what_was_typed_means(typed: str, ids: list[str]) -> None:
    assert matching_students(typed, PEOPLE) == ids


def test_several_students_are_named(course: Course) -> None:
    write_roster(course, PEOPLE)
    with pytest.raises(CourseError, match=r"Anna Schmidt \(anna-schmidt-s1\), Anna Schmidt \(as2\)"):
        find_student(course, "Anna Schmidt")


def test_a_misspelling_gets_a_suggestion(course: Course) -> None:
    write_roster(course, PEOPLE)
    with pytest.raises(CourseError, match=r"Did you mean Jörg Müller \(jm\)\?"):
        find_student(course, "Jorg Mueler")
    assert find_student(course, "stranger") == "stranger"
