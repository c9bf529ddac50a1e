"""A semester of exceptions: after every step, each number that a course shows is what the rules say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course.release import student_build

from .exceptions import IN_GROUPS, ON_MOODLE, PROJECT, STRANGER, STUDENTS, Exceptions, play
from .platform_lists import login


@pytest.fixture(scope="module")
def semester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exceptions]:
    """The semester, played to its end."""
    with pytest.MonkeyPatch.context() as patch:
        # nbgrader calls alembic by its name when it makes a gradebook; it lies beside this Python.
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        folder = tmp_path_factory.mktemp("exceptions")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.chdir(PROJECT)
        # Recorded answers are for checks at home and take half a minute per chapter.
        patch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
        yield play(folder, patch)


STEPS = (
    *("chapter on moodle", "leave and excuse", "join late", "chapter in groups", "two deadlines", "fewer points"),
    *("mark", "count otherwise", "make grades", "hand in again", "take back", "change check"),
)
SOURCES = {
    *("gradebook", "report --json", "report's cards", "report's table", "report's totals", "totals in JSON"),
    *("grades in JSON", "grades.csv", "totals.csv", "moodle", "canvas", "feedback"),
    *("archive for moodle", "archive for canvas", "not counted"),
}


def test_every_number_is_what_the_rules_say(semester: Exceptions) -> None:
    assert tuple(semester.comparisons) == STEPS
    differences = {step: done.differences for step, done in semester.comparisons.items()}
    assert not any(differences.values()), "\n".join(
        f"after {step}: {line}" for step, lines in differences.items() for line in lines
    )


def test_every_source_has_numbers(semester: Exceptions) -> None:
    last = semester.comparisons[STEPS[-1]].compared
    assert last.keys() == SOURCES
    assert all(last.values())
    # A number per student and chapter, in every file of grades.
    assert last["moodle"] >= STUDENTS - 3
    assert last["canvas"] >= STUDENTS - 4
    assert sum(sum(done.compared.values()) for done in semester.comparisons.values()) > 4_000


def test_semester_has_every_exception(semester: Exceptions) -> None:
    """Otherwise an exception could go unnoticed, because nobody met it."""
    after = semester.expected
    last, marked = after["take back"], after["mark"]
    on_moodle = last.of_chapter(ON_MOODLE)
    late = {round(row.penalty / row.raw, 6) for row in on_moodle.values() if row.work and row.raw}
    assert late == {0.0, 0.1, 0.2, 0.4, 0.5}
    ids = [login(person) for person in semester.people if person.name == "Anna Schmidt"]
    assert len({on_moodle[student].raw for student in ids}) == 2
    shared = [row for (chapter, who), row in last.rows.items() if chapter == IN_GROUPS and row.submitter != who]
    assert len(shared) == 5
    partners = [(row, last.everyone[IN_GROUPS, row.submitter]) for row in shared]
    assert {(row.penalty > 0, own.penalty > 0) for row, own in partners} >= {(True, False), (False, True), (True, True)}
    assert any(row.waiting for row in after["fewer points"].rows.values())
    assert not any(row.waiting for row in marked.rows.values())
    assert [row.waiting for row in on_moodle.values() if row.waiting] == [("causal_mask",)]
    assert len({row.raw for row in marked.rows.values()}) > 20
    closed = [row for row in after["make grades"].of_chapter(IN_GROUPS).values() if row.raw and not row.score]
    assert len(closed) >= 3
    totals = after["make grades"].totals()
    assert len({total.grade for total in totals.values()}) >= 3
    assert {total.passed for total in totals.values()} == {True, False}
    assert login(semester.roles["absent late"]) not in totals


def test_changed_check_moves_points_and_no_marks(semester: Exceptions) -> None:
    before, after = (semester.expected[step].of_chapter(ON_MOODLE) for step in ("take back", "change check"))
    moved = {student for student in after if after[student].raw < before[student].raw}
    marked = {student for _, student, name in semester.happened.marks if name == "causal_mask"}
    assert len(moved) >= 10
    assert marked
    assert not moved & marked


def test_stranger_is_named_until_a_person_decides(semester: Exceptions) -> None:
    assert f"{STRANGER} (kim-unknown)" in semester.output["stranger"]
    assert ": kim-unknown" in semester.output["archive"]


def test_rules_name_who_moves(semester: Exceptions) -> None:
    before, after = (semester.expected[step].of_chapter(ON_MOODLE) for step in ("mark", "count otherwise"))
    moved = [who for who in after if (after[who].score, after[who].best) != (before[who].score, before[who].best)]
    assert len(moved) > 30
    assert "padding_mask: dropped" in semester.output["rules"]
