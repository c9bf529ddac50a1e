"""Real downloads are read, and lists of submitters are read from the download's own place alone."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from autograder.collecting.archive import Entry, entries_of, notebooks
from autograder.collecting.gradescope import with_submitters
from autograder.collecting.platform_names import assignment_title
from autograder.collecting.student_ids import by_student
from autograder.collecting.uploads import other_files, uploads_of
from autograder.errors import CourseError
from autograder.roster.roster import Student

CASES = Path(__file__).parents[2] / "corpus" / "cases"
CHAPTER = "03_scaled_dot_product"
CLASS = {
    student.id: student
    for student in (
        Student("aberg", "Ada Berg", number="s1001", enrolled=True),
        Student("blind", "Bo Lind", number="s1002", enrolled=True),
    )
}


def test_blackboards_download_finds_students_by_their_login_and_their_last_attempt() -> None:
    entries, _ = entries_of(CASES / "blackboard.zip")
    uploads, unowned, _ = uploads_of(list(notebooks(entries)), CHAPTER, frozenset(), frozenset(CLASS))
    owned, problems = by_student(uploads, CLASS, CHAPTER)
    assert (sorted(owned), unowned, problems) == (["aberg", "blind", "s1003"], [], [])
    first, last = sorted(owned["aberg"], key=lambda upload: upload.order)
    assert (first.submitted, last.submitted) == ("2026-10-23 18:00:00", "2026-10-24 18:00:00")
    assert first.series == last.series == (CHAPTER,)
    files, _, unclear = other_files(entries, CHAPTER, frozenset(), frozenset(CLASS))
    assert (files, unclear) == ([], [])


def test_the_title_of_an_assignment_on_blackboard_is_what_names_share() -> None:
    names = [f"Sheet_3_{login}_attempt_2026-10-24-18-00-00_a.ipynb" for login in ("bob_ada", "s1001")]
    assert assignment_title(names) == "Sheet_3"


def test_a_list_of_submitters_that_is_no_yaml_is_refused() -> None:
    broken = Entry(PurePosixPath("submission_metadata.yml"), None, lambda: b"a: [")
    with pytest.raises(CourseError, match="submitters"):
        with_submitters([broken], CLASS)
