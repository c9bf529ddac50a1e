"""Downloads of Blackboard, Brightspace and Gradescope are read, and a layout that is not known is called that."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

import pytest

from autograder.collecting.archive import Entry, entries_of, notebooks
from autograder.collecting.gradescope import with_submitters
from autograder.collecting.platform_names import assignment_title, kinds_by_share, read
from autograder.collecting.student_ids import by_student
from autograder.collecting.uploads import Upload, other_files, uploads_of
from autograder.errors import CourseError
from autograder.roster.roster import Student

CASES = Path(__file__).parents[2] / "corpus" / "cases"
CHAPTER = "03_scaled_dot_product"
CLASS = {
    student.id: student
    for student in (
        Student("aberg", "Ada Berg", number="s1001", email="ada@uni.example", enrolled=True),
        Student("blind", "Bo Lind", number="s1002", enrolled=True),
        Student("ada", "Ada Lovelace", login="ada", enrolled=True),
    )
}


def entry(path: str) -> Entry:
    """Return a file of a download; only its name counts."""
    return Entry(PurePosixPath(path), None, bytes)


def owners(*paths: str) -> dict[str, list[Upload]]:
    """Return the uploads of a download by the student who gets them."""
    uploads, _, _ = uploads_of([entry(path) for path in paths], CHAPTER, frozenset(), frozenset(CLASS))
    owned, problems = by_student(uploads, CLASS, CHAPTER)
    assert problems == []
    return owned


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


def test_a_login_with_an_underscore_gets_nobody_elses_work() -> None:
    names = [f"Sheet_3_{login}_attempt_2026-10-24-18-00-00_a.ipynb" for login in ("bob_ada", "s1001")]
    assert assignment_title(names) == "Sheet_3"
    kinds, title = kinds_by_share(names, ()), assignment_title(names)
    assert [[way.owner for way in read(name, kinds, (), title)] for name in names] == [["bob_ada"], ["s1001"]]


def test_one_name_that_can_be_divided_in_two_ways_is_nobodys() -> None:
    one = [entry("Sheet_3_s1001_attempt_2026-10-24-18-00-00_a.ipynb")]
    uploads, unowned, _ = uploads_of(one, CHAPTER, frozenset())
    assert (uploads, [file.why[:28] for file in unowned]) == ([], ["Its name can be read in 2 wa"])


def test_the_first_attempt_in_a_name_is_blackboards() -> None:
    """A student may call a file like another student's upload."""
    time = "attempt_2026-10-24-18-00-00"
    owned = owners(f"Sheet 3_s1001_{time}_x_s1002_{time}_a.ipynb", f"Sheet 3_ada_{time}_b.ipynb")
    assert sorted(owned) == ["aberg", "ada"]


@pytest.mark.parametrize(
    "pattern",
    [
        "{number}-777 - {name} - Oct 24, 2026 610 PM/work.ipynb",
        "{number}-777 - {name}- October 24, 2026 6:10 PM - work.ipynb",
    ],
)
def test_brightspaces_download_finds_students_by_their_name(pattern: str) -> None:
    people = (("101", "Ada Berg"), ("102", "Bo Lind"), ("103", "Wei Chen"))
    owned = owners(*(pattern.format(number=number, name=name) for number, name in people))
    assert sorted(owned) == ["aberg", "blind", "wei-chen"]
    assert {upload.submitted for uploads in owned.values() for upload in uploads} == {"2026-10-24 18:10:00"}
    assert {upload.title for uploads in owned.values() for upload in uploads} == {"work"}


def test_a_display_name_on_brightspace_is_no_login() -> None:
    places = (f"{number}-777 - {name} - Oct 24, 2026 610 PM/a.ipynb" for number, name in ((1, "ada"), (2, "Bo Lind")))
    uploads, _, _ = uploads_of(list(map(entry, places)), CHAPTER, frozenset(), frozenset(CLASS))
    owned, problems = by_student(uploads, CLASS, CHAPTER)
    assert (sorted(owned), [problem.kind for problem in problems]) == (["ada-1", "blind"], ["same name"])


GRADESCOPE = """\
---
submission_11:
  :submitters:
  - :name: Ada Berg
    :sid: s1001
    :email: ada@uni.example
  :created_at: 2026-10-24 16:00:00.5 Z
submission_12:
  :submitters:
  - :name: Bo Lind
    :sid: ''
    :email: bo@uni.example
  - :name: Wei Chen
    :sid: '77'
    :email: wei@uni.example
  :created_at: 2026-10-24 17:00:00 +02:00
"""


def test_gradescopes_folders_get_their_submitters_and_a_group_each_member(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("assignment_9_export/submission_metadata.yml", GRADESCOPE)
        archive.writestr("assignment_9_export/submission_11/work.ipynb", "{}")
        archive.writestr("assignment_9_export/submission_12/work.ipynb", "{}")
    entries = with_submitters(entries_of(tmp_path / "export.zip")[0], CLASS)
    owned = {}
    for file in entries:
        owned[str(file.path)] = file.submitted
    assert owned == {
        "s1001/work.ipynb": "2026-10-24T16:00:00.500000+00:00",
        "Bo Lind/work.ipynb": "2026-10-24T17:00:00+02:00",
        "77/work.ipynb": "2026-10-24T17:00:00+02:00",
    }
    assert sorted(owners(*owned)) == ["77", "aberg", "blind"]


def test_a_list_of_submitters_within_a_students_folder_is_not_read() -> None:
    entries = [entry("x/ada/submission_metadata.yml"), entry("x/ada/submission_11/work.ipynb")]
    assert with_submitters(entries, CLASS) == entries


def test_a_list_of_submitters_that_is_no_yaml_is_refused() -> None:
    broken = Entry(PurePosixPath("submission_metadata.yml"), None, lambda: b"a: [")
    with pytest.raises(CourseError, match="list of submitters cannot be read"):
        with_submitters([broken], CLASS)
