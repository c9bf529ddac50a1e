"""Names of archives are read in the encoding that their bytes or the class list prove, and in no other."""

from __future__ import annotations

import unicodedata
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from autograder.intake.downloads.archive import Entry, list_entries
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.downloads.uploads import Upload
from autograder.intake.name_spellings import decode_member_name, find_listed_spelling
from autograder.intake.roster import Student

CASES = Path(__file__).parents[2] / "corpus" / "cases"
CHAPTER = "03_scaled_dot_product"


def member(raw: bytes, *, flag: bool = False) -> zipfile.ZipInfo:
    """Return a member of an archive as Python's zipfile reads its name."""
    info = zipfile.ZipInfo(raw.decode("utf-8" if flag else "cp437"))
    info.flag_bits = 0x800 if flag else 0
    return info


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("flag", [True, False])
def test_utf_8_is_read_with_and_without_the_flag_and_composed(form: str, flag: bool) -> None:
    raw = unicodedata.normalize(form, "Jürgen Müller_101/a.ipynb").encode()
    assert decode_member_name(member(raw, flag=flag)) == "Jürgen Müller_101/a.ipynb"


def test_a_name_in_code_page_437_stays() -> None:
    assert decode_member_name(member("Jürgen Müller".encode("cp437"))) == "Jürgen Müller"


def test_a_backslash_within_a_japanese_character_splits_no_path() -> None:
    assert "\\" in "表 花子".encode("cp932").decode("cp437")
    assert decode_member_name(member("表 花子_102/a.ipynb".encode("cp932"))) == "表 花子_102/a.ipynb"


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("田中 太郎", "cp932"),
        ("王小明", "gb18030"),
        ("김철수", "cp949"),
        ("Łukasz Wójcik", "cp852"),
        ("Łukasz Wójcik", "cp1250"),
        ("Иван Петров", "cp866"),
    ],
)
@pytest.mark.parametrize("read_as", ["cp437", "latin-1"])
def test_the_class_list_says_in_which_code_page_a_name_is(name: str, encoding: str, read_as: str) -> None:
    spoilt = name.encode(encoding).decode(read_as)
    students = [Student("x", name, enrolled=True), Student("y", "Ada Berg", enrolled=True)]
    assert find_listed_spelling(spoilt, students) == name
    assert find_listed_spelling(spoilt, students[1:]) == ""
    place = PurePosixPath(f"{spoilt}_101_assignsubmission_file/a.ipynb")
    upload = Upload(Entry(place, None, bytes), spoilt, "moodle", upload="101")
    owned, problems = assign_students([upload], {student.id: student for student in students}, CHAPTER)
    assert (list(owned), problems) == (["x"], [])


def test_two_students_whom_one_name_may_spell_get_nothing() -> None:
    spoilt = "田中".encode("cp932").decode("cp437")
    other = spoilt.encode("cp437").decode("gb18030")
    students = [Student("x", "田中", enrolled=True), Student("y", other, enrolled=True)]
    assert find_listed_spelling(spoilt, students) == ""


def test_a_finders_archive_has_the_students_names() -> None:
    entries, problems = list_entries(CASES / "moodle_from_finder.zip")
    owners = {entry.path.parts[1].partition("_")[0] for entry in entries}
    assert (owners, problems) == ({"Jürgen Müller", "Zoë O'Brien", "Anna Berg"}, [])
