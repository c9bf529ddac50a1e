"""A submission of somebody who is not on the class list is named, and paired with a student where two names agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograder.course.folder import Course
from autograder.enrolment.decisions import add, ignore
from autograder.enrolment.enrol import Enrolment
from autograder.enrolment.strangers import is_stranger, problems, propose_pairs, strangers
from autograder.roster.roster import Student, merged, read_roster, write_roster

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
    write_roster(course, merged(read_roster(course), collected))
    for student in ("aberg", "j-rgen-m-ller", "test-student"):
        hand_in(student)
    return course


def test_a_stranger_is_named_with_the_student_who_is_likely_meant(class_of_three: Course) -> None:
    found_by_id = {stranger.student: stranger for stranger in strangers(class_of_three, [CHAPTER])}
    assert {name: stranger.proposed for name, stranger in found_by_id.items()} == {
        "j-rgen-m-ller": "jm",
        "test-student": "",
    }
    assert found_by_id["test-student"].absent == ("jm", "zo")
    pair, other = map(str, problems(class_of_three, found_by_id.values()))
    assert "J_rgen M_ller (j-rgen-m-ller) handed in" in pair
    assert "Jürgen Müller (jm) is on the list and handed in nothing" in pair
    assert "students --same j-rgen-m-ller jm" in pair
    assert "students --same test-student STUDENT" in other
    assert "--ignore test-student" in other


def test_a_decision_ends_the_question(class_of_three: Course) -> None:
    add(class_of_three, "j-rgen-m-ller")
    ignore(class_of_three, "test-student")
    assert strangers(class_of_three, [CHAPTER]) == []
    roster = read_roster(class_of_three)
    assert (roster["j-rgen-m-ller"].counts, roster["test-student"].counts) == (True, False)


def test_without_a_class_list_nobody_is_a_stranger(course: Course, hand_in: Callable[..., None]) -> None:
    hand_in("ada")
    assert strangers(course, [CHAPTER]) == []
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
