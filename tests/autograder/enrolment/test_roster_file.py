"""A class list comes into the roster: it is read as the platforms write it, matched by what is unique, and never guessed at."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.archive import Entry
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.downloads.uploads import Upload
from autograder.intake.people.class_list import read_class_list
from autograder.intake.people.enrol import Enrolment, enrol
from autograder.intake.people.standing import split_by_listed_time
from autograder.intake.roster import Student, merge_collected, read_roster, roster_path, write_roster

from .conftest import moodle

CHAPTER, OTHER = "03_scaled_dot_product", "04_multi_head"
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Assignment 1 (77)
    Points Possible,,,,,10.00
"Lovelace, Ada",901,s0001,al1815,Lab A,8
"de la Cruz, Íñigo",902,s0002,ic,Lab A and Lab B,
"Student, Test",999,,8f4c,Lab A,
"""
MOODLE = {
    "en": "First name,Last name,ID number,Email address,Groups",
    "en, older": "First name,Surname,ID number,Email address,Groups",
    "de": "Vorname,Nachname,ID-Nummer,E-Mail-Adresse,Gruppen",
    "fr": "Prénom,Nom de famille,Numéro d’identification,Adresse de courriel,Groupes",
    "fr, older": "Prénom,Nom,Numéro d'identification,Adresse de courriel,Groupes",
    "pl": "Imię,Nazwisko,Numer ID,Adres e-mail,Grupy",
}
PEOPLE = "Zoltán,Wójcik,1234,zw@example.org,Team 1\nJun,Xu,1235,jx@example.org,\n"

Enrol = Callable[..., Enrolment]


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(rows: Sequence[Sequence[str]], header: str = "id,name") -> str:
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), *rows])
    return text.getvalue()


def canvas(owner: str, user: str, upload: str) -> Upload:
    return Upload(Entry(PurePosixPath(f"{owner}_{user}_{upload}_a.ipynb"), None, bytes), owner, "canvas", user, upload)


def hand_in(course: Course, student: str, chapter: str = CHAPTER) -> None:
    course.folder("submitted", student, chapter).mkdir(parents=True)


# ------------------------------------------------------------------------------------------------------------------ reading


def test_canvas_gradebook_is_read(course: Course, enrolled: Enrol) -> None:
    assert enrolled(CANVAS).added == ("al1815", "ic")
    ada, cruz = read_roster(course).values()
    assert ada == Student(
        *("al1815", "Ada Lovelace", "canvas", "901", {}, "Lovelace"),
        number="s0001",
        login="al1815",
        section="Lab A",
        enrolled=True,
    )
    assert (cruz.name, cruz.first_and_last_name) == ("Íñigo de la Cruz", ("Íñigo", "de la Cruz"))


@pytest.mark.parametrize("name", ["Team 1", "team_1", "TEAM  1"])
def test_canvas_groups_called_alike_are_refused(course: Course, enrolled: Enrol, name: str) -> None:
    """Students may name their group on Canvas: no group gets the work of another that way."""
    header = "name,canvas_user_id,user_id,login_id,sections,group_name,canvas_group_id,group_id"
    people = "Ada,901,,ada,,Team 1,5,\nBo,902,,bo,,Team 1,5,\nMal,903,,mal,,{name},6,\nEve,904,,eve,,,,\n"
    with pytest.raises(CourseError, match="lines 2 and 4 are of different groups called 'team 1'"):
        enrolled(f"{header}\n{people.format(name=name)}")
    assert read_roster(course) == {}
    enrolled(f"{header}\n{people.format(name='Team 2')}")
    assert len(read_roster(course)) == 4


@pytest.mark.parametrize("language", MOODLE)
def test_moodle_headings_are_read_in_languages(tmp_path: Path, language: str) -> None:
    class_list = read_class_list(written(tmp_path / "p.csv", f"{MOODLE[language]}\n{PEOPLE}"))
    zoltan, jun = class_list.members.values()
    assert class_list.platform == "moodle"
    assert (zoltan.name, zoltan.surname, zoltan.number) == ("Zoltán Wójcik", "Wójcik", "1234")
    assert (zoltan.email, zoltan.group, jun.group) == ("zw@example.org", "Team 1", "")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_delimiters_and_encodings_are_recognised(tmp_path: Path, delimiter: str, encoding: str) -> None:
    text = "id,name,email,number,group\nzw,Zoltán Wójcik,zw@example.org,17,A\n".replace(",", delimiter)
    (member,) = read_class_list(written(tmp_path / "c.csv", text.encode(encoding))).members.values()
    assert (member.id, member.name, member.email, member.number, member.group) == (
        *("zw", "Zoltán Wójcik", "zw@example.org", "17", "A"),
    )


def test_excels_line_with_the_delimiter_is_skipped(tmp_path: Path) -> None:
    assert list(read_class_list(written(tmp_path / "c.csv", "sep=;\r\nid;name\r\nada;Ada\r\n")).members) == [3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"\n \n,,\n", "empty"),
        (b"id,name\n", "no student"),
        (b"PK\x03\x04" + bytes(40), "workbook"),
        (b"\xd0\xcf\x11\xe0" + bytes(40), "workbook"),
        ("id,name\nada,Ada\nzw,Wójcik\n".encode("cp1250"), "line 3 is not UTF-8"),
        ("id,name\nzw,Élodie\n".encode("cp1252"), "line 2 is not UTF-8"),
        ("id,name\nada,Ada\n".encode("utf-16-le"), "UTF-8"),
        (b"who,where\nada,here\n", ": who, where"),
        (b"id,name\nada,Ada\nAda,Bo\n", "lines 2 and 3 give the id 'ada' to different students"),
        (b'Student,ID\n"L, A",9\n"M, B",9\n', "lines 2 and 3 give the number '9' to different students"),
        (b"id,name\nada," + b"x" * 200_000, "line 2 is no line of a CSV table"),
    ],
)
def test_what_is_no_class_list_is_refused(course: Course, tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(CourseError, match=message):
        enrol(course, written(tmp_path / "c.csv", data))
    assert not roster_path(course).exists()


@pytest.mark.parametrize("bad", ["../../etc", "a/b", "con", "=cmd()", "a\\b", ".", "é"])
def test_an_unsafe_id_is_left_out_and_named(course: Course, enrolled: Enrol, bad: str) -> None:
    enrolment = enrolled(table([[bad, "Eve"], ["ada", "Ada"]]))
    assert enrolment.added == ("ada",)
    (problem,) = enrolment.problems
    assert (problem.kind, problem.where) == ("unsafe id", "class.csv, line 2")


def test_names_of_any_kind_make_safe_ids(course: Course, enrolled: Enrol) -> None:
    names = ["=cmd()", "../../etc/passwd", "a\x1b[31m\u0007b", "Ω", "C:\\con", "x" * 3_000]
    enrolment = enrolled(table([[name] for name in names], "name"))
    assert enrolment.problems == ()
    roster = read_roster(course)
    assert len(roster) == len(names)
    assert all(student.name.isprintable() for student in roster.values())
    assert not any(set(name) & set("/\\\x1b=") or ".." in name for name in roster)


def test_a_line_without_name_and_id_is_named(enrolled: Enrol) -> None:
    (problem,) = enrolled("id,name,email\n,,eve@example.org\nada,Ada,\n").problems
    assert (problem.kind, problem.where) == ("no name", "class.csv, line 2")


def test_a_list_with_whole_names_keeps_surnames(course: Course, enrolled: Enrol) -> None:
    enrolled(CANVAS)
    groups = "name,canvas_user_id,user_id,login_id,sections,group_name,canvas_group_id\n"
    enrolled(f"{groups}Íñigo de la Cruz,902,s0002,ic,Lab A,Team 1,7\nAugusta King,901,s0001,al1815,Lab A,Team 1,7\n")
    names = {student.id: student.first_and_last_name for student in read_roster(course).values()}
    assert names == {"ic": ("Íñigo", "de la Cruz"), "al1815": ("Augusta", "King")}


# ----------------------------------------------------------------------------------------------------------------- matching


def test_a_platforms_number_matches_before_anything_else(course: Course, enrolled: Enrol) -> None:
    write_roster(
        course,
        {
            "lovelaceada-901": Student("lovelaceada-901", "lovelaceada", "canvas", "901", {CHAPTER: "5001"}),
            "al1815": Student("al1815", "Ada Lovelace"),
        },
    )
    enrolment = enrolled(CANVAS)
    assert (enrolment.added, enrolment.updated) == (("ic",), ("lovelaceada-901",))
    entry = read_roster(course)["lovelaceada-901"]
    assert (entry.name, entry.uploads, entry.enrolled) == ("Ada Lovelace", {CHAPTER: "5001"}, True)
    assert not read_roster(course)["al1815"].enrolled


@pytest.mark.parametrize("folder", ["al1815", "s0001"])
def test_a_folder_named_by_login_or_number_matches(course: Course, enrolled: Enrol, folder: str) -> None:
    hand_in(course, folder)
    assert enrolled(CANVAS).updated == (folder,)


def test_a_unique_name_matches_a_moodle_download(course: Course, enrolled: Enrol) -> None:
    earlier = Student("zoltan-wojcik", "zoltán  WÓJCIK", "moodle", uploads={CHAPTER: "41"})
    write_roster(course, {"zoltan-wojcik": earlier})
    assert enrolled(f"{MOODLE['pl']}\n{PEOPLE}").updated == ("zoltan-wojcik",)
    assert read_roster(course)["zoltan-wojcik"].uploads == {CHAPTER: "41"}


def test_a_display_name_takes_nobodys_login(course: Course, enrolled: Enrol) -> None:
    """A decoy under Ada's login must not leave Ada's own work to the next student of her name."""
    decoy = Student("al1815", "al1815", "moodle", uploads={CHAPTER: "77"})
    own = Student("ada-lovelace", "Ada Lovelace", "moodle", uploads={CHAPTER: "12"})
    write_roster(course, {student.id: student for student in (decoy, own)})
    people = "Ada,Lovelace,al1815,a@example.org\nAda,Lovelace,mal,m@example.org\n"
    result = enrolled("First name,Last name,Username,Email address\n" + people)
    roster = read_roster(course)
    assert [problem.kind for problem in result.problems] == ["same name", "same name"]
    assert not roster["al1815"].enrolled
    assert not roster["ada-lovelace"].enrolled


def test_a_name_of_two_students_matches_neither(course: Course, enrolled: Enrol) -> None:
    write_roster(course, {"jan-nowak": Student("jan-nowak", "Jan Nowak", "moodle", uploads={CHAPTER: "41"})})
    text = f"{MOODLE['en']}\nJan,Nowak,111,,\nJan,Nowak,222,,\n"
    enrolment = enrolled(text)
    assert enrolment.added == ("jan-nowak-111", "jan-nowak-222")
    assert [problem.kind for problem in enrolment.problems] == ["same name", "same name"]
    assert not read_roster(course)["jan-nowak"].enrolled
    assert enrolled(text).unchanged == ("jan-nowak-111", "jan-nowak-222")


def test_a_number_contradicts_an_equal_name(course: Course, enrolled: Enrol) -> None:
    enrolled(f"{MOODLE['en']}\nJan,Nowak,111,,\n")
    enrolment = enrolled(f"{MOODLE['en']}\nJan,Nowak,222,,\n")
    assert (enrolment.added, enrolment.absent) == (("jan-nowak-222",), ("jan-nowak",))


def test_two_students_with_nothing_but_a_name_are_left_out(enrolled: Enrol) -> None:
    enrolment = enrolled(table([["Jun Xu"], ["Jun Xu "], ["Ada"]], "name,email").replace("Jun Xu ", "Jun  XU"))
    assert enrolment.added == ("ada",)
    assert [problem.kind for problem in enrolment.problems] == ["no id", "no id"]


FIRST = [["ada", "Ada", "A"], ["bo", "Bo", "A"], ["cy", "Cy", "B"]]
LATER = [["ada", "Ada King", "B"], ["dee", "Dee", ""]]


def test_reading_again_updates_and_removes_nobody(course: Course, enrolled: Enrol) -> None:
    enrolled(table(FIRST, "id,name,group"))
    enrolment = enrolled(table(LATER, "id,name,group"))
    assert (enrolment.added, enrolment.updated, enrolment.absent) == (("dee",), ("ada",), ("bo", "cy"))
    assert (enrolment.departed, enrolment.removed) == ((), {})
    roster = read_roster(course)
    assert (roster["ada"].name, roster["ada"].group) == ("Ada King", "B")
    assert [student.counts for student in roster.values()] == [True] * 4


def test_missing_students_leave_where_a_person_says_so(course: Course, enrolled: Enrol) -> None:
    enrolled(table(FIRST, "id,name,group"))
    hand_in(course, "bo")
    enrolment = enrolled(table(LATER, "id,name,group"), remove_missing=True)
    assert (enrolment.departed, enrolment.removed, enrolment.absent) == (("bo",), {"cy": "Cy"}, ())
    roster = read_roster(course)
    assert (list(roster), roster["bo"].state, roster["bo"].counts) == (["ada", "bo", "dee"], "withdrawn", False)
    # A list that has a withdrawn student does not overrule a person.
    assert enrolled(table(FIRST, "id,name,group")).withdrawn == ("bo",)
    assert read_roster(course)["bo"].state == "withdrawn"


def test_a_list_without_groups_keeps_them(course: Course, enrolled: Enrol) -> None:
    enrolled(table([["ada", "Ada", "A"]], "id,name,group"))
    enrolled(table([["ada", "Ada"]]))
    assert read_roster(course)["ada"].group == "A"
    enrolled(table([["ada", "Ada", ""]], "id,name,group"))
    assert read_roster(course)["ada"].group == ""


# --------------------------------------------------------------------------------------------------------------- collecting


def test_a_number_written_by_hand_decides(course: Course, enrolled: Enrol) -> None:
    enrolled(table([["jan-nowak", "Jan Nowak"], ["jn2", "Jan Nowak"]]))
    roster = merge_collected(read_roster(course), [Student("jn2", platform="moodle", uploads={CHAPTER: "41"})])
    owned, problems = assign_students([moodle("Jan Nowak", "41"), moodle("Jan Nowak", "42")], roster, CHAPTER)
    assert {student: [upload.upload for upload in several] for student, several in owned.items()} == {
        "jn2": ["41"],
        "jan-nowak": ["42"],
    }
    assert problems == []


@pytest.mark.parametrize("first", ["canvas", "moodle"])
def test_chapters_on_two_platforms_are_one_students(course: Course, enrolled: Enrol, first: str) -> None:
    enrolled(table([["al", "Ada Lovelace"], ["jx", "Jun Xu"]]))
    work = {OTHER: canvas("lovelaceada", "901", "5001"), CHAPTER: moodle("Ada Lovelace", "41")}
    downloads = sorted(work.items(), key=lambda item: item[1].platform != first)
    # Every download comes twice: the second one finds the student by the numbers of the first.
    for chapter, upload in [*downloads, *downloads]:
        owned, problems = assign_students([upload], read_roster(course), chapter)
        assert (list(owned), problems) == (["al"], [])
        about = Student("al", upload.owner, upload.platform, upload.user, {chapter: upload.upload})
        write_roster(course, merge_collected(read_roster(course), [about]))
    ada = read_roster(course)["al"]
    assert (ada.find_platform(OTHER), ada.find_platform(CHAPTER)) == ("canvas", "moodle")
    assert (ada.user, ada.uploads) == ("901", {OTHER: "5001", CHAPTER: "41"})


# ------------------------------------------------------------------------------------------------------------------ listing


def test_without_a_list_nobody_is_missed(course: Course) -> None:
    write_roster(course, {"ada": Student("ada", "Ada")})
    assert split_by_listed_time(course, CHAPTER) == ([], [])
