"""``course.toml`` says what a course uses, or says in which line it cannot be understood."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.course.course_file import (
    ChapterPlan,
    CourseFile,
    LateRule,
    count_late_days,
    course_file_path,
    late_penalty_fraction,
    read_course_file,
)
from autograder.course.course_file_edits import set_selection, write_template
from autograder.course.known_names import store_project_chapters
from autograder.errors import CourseError

NOON = datetime(2027, 3, 1, 12)  # as TOML reads a time without an offset
CHAPTERS = ["03_scaled_dot_product", "07_decoding"]


def put(folder: Path, text: str) -> Path:
    course_file_path(folder).write_text(text, encoding="utf-8")
    return folder


def test_no_file_restricts_nothing(tmp_path: Path) -> None:
    plan = read_course_file(tmp_path, CHAPTERS)
    assert plan == CourseFile()
    assert plan.selects("07_decoding", "beam_search")
    assert plan.due("07_decoding", "ada") is None


def test_weights_default_to_1_beside_one_that_is_set(tmp_path: Path) -> None:
    assert read_course_file(tmp_path).weights(CHAPTERS) == {}
    plan = read_course_file(put(tmp_path, "[chapters.07_decoding]\nweight = 2\n"), CHAPTERS)
    assert plan.weights(CHAPTERS) == {"03_scaled_dot_product": 1.0, "07_decoding": 2.0}


def test_conversations_count_by_a_weight_of_their_own(tmp_path: Path) -> None:
    viva = "03_scaled_dot_product_viva"
    plan = read_course_file(put(tmp_path, "[viva.03]\nweight = 0.5\n[viva.07]\ncanvas = 'Talk'\n"), CHAPTERS)
    expected = {"03_scaled_dot_product": 1.0, "07_decoding": 1.0, viva: 0.5, "07_decoding_viva": 0.0}
    assert plan.weights(CHAPTERS) == expected
    assert plan.weights(["03_scaled_dot_product"]) == {"03_scaled_dot_product": 1.0, viva: 0.5}
    assert plan.canvas_columns() == {"07_decoding_viva": "Talk"}
    # Without a weight there is no total to which conversations could add.
    assert read_course_file(put(tmp_path, "[viva.03]\ncanvas = 'Talk'\n"), CHAPTERS).weights(CHAPTERS) == {}


def test_template_says_nothing_and_shows_every_key(tmp_path: Path) -> None:
    assert (write_template(tmp_path), write_template(tmp_path)) == (True, False)
    assert read_course_file(tmp_path, CHAPTERS) == CourseFile()
    lines = course_file_path(tmp_path).read_text().splitlines()
    code = [
        line.removeprefix("# ") for line in lines if line.startswith("# ") and ("=" in line or line.startswith("# ["))
    ]
    # `only` and `without` exclude each other.
    shown = "\n".join(line for line in code if not line.startswith("without") and "`" not in line)
    plan = read_course_file(put(tmp_path, shown), CHAPTERS)
    for struct in (plan, plan.late, plan.chapters["07_decoding"], plan.viva["07_decoding"]):
        plain = type(struct)()
        left = {name for name in struct.__struct_fields__ if getattr(struct, name) == getattr(plain, name)}
        assert left <= {"without", "grace_minutes"}, "a key of the schema that the template does not show"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[chapters.07_decoding]\nwight = 1", 2, "there is no key 'wight'"),
        ("time_zone = 'Mars/Olympus'", 1, "no time zone 'Mars/Olympus'"),
        ("[late]\nper_day = 3", 2, "late.per_day"),
        ("[chapters.07_decoding]\nonly = ['a']\nwithout = ['b']", 2, "exclude"),
        ("title = ''\n[chapters.07_decodign]\ndue = 2027-03-01T12:00:00", 2, "Did you mean 07_decoding?"),
        ("[extensions.ada]\n07_decoding = 3", None, "expected `datetime`, got `int`"),
        ("[chapters.07_decoding]\ndue = 2027-03-01", 2, "time"),
        ("title =", None, "TOML"),
        ("[viva.07]\nwight = 1", 2, "there is no key 'wight'"),
        ("[viva.07]\nweight = -1", 2, "viva[...].weight"),
        ("[viva.09]\nweight = 1", 1, "there is no chapter '09'"),
        *(
            (f"[chapters.07_decoding]\nweight = {weight}", 2, "weight")
            for weight in ("-1", "nan", "inf", "true", '"2"', "1001")
        ),
        ("[chapters.07]\nweight = 1\n[chapters.07_decoding]\nweight = 2", 4, "07_decoding.weight"),
        ("[extensions.ada]\n07 = 2027-03-02T12:00:00\n07_decoding = 2027-03-02T12:00:00", 3, "07_decoding"),
        ("[chapters.0]\nweight = 1", 1, "chapters.0: "),
        ("[chapters.d]\nweight = 1", 1, "'d' can mean 03_scaled_dot_product, 07_decoding"),
        ("[extensions.ada]\n08 = 2027-03-02T12:00:00", 2, "extensions.ada.08: there is no chapter '08'"),
        ("[chapters]\n03 = { wieght = 2 }", 2, "there is no key 'wieght'"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, line: int | None, says: str) -> None:
    with pytest.raises(CourseError) as caught:
        read_course_file(put(tmp_path, text), CHAPTERS)
    assert says in str(caught.value)
    assert line is None or f"line {line}:" in str(caught.value)
    assert caught.value.do


def test_selection_is_kept_and_comments_stay(tmp_path: Path) -> None:
    put(tmp_path, "# ours\n[chapters.07_decoding]\ndue = 2027-03-01T12:00:00  # noon\nwithout = ['mirostat']\n")
    set_selection(tmp_path, "07_decoding", only=["top_p", "beam_search"])
    plan = read_course_file(tmp_path, CHAPTERS)
    assert plan.chapters["07_decoding"] == ChapterPlan(only=("top_p", "beam_search"), due=NOON)
    assert "# ours" in course_file_path(tmp_path).read_text()
    assert "# noon" in course_file_path(tmp_path).read_text()
    set_selection(tmp_path, "07_decoding")
    assert read_course_file(tmp_path).chapters["07_decoding"] == ChapterPlan(due=NOON)


def test_extension_never_brings_a_deadline_forward(tmp_path: Path) -> None:
    text = """
    time_zone = "Europe/Warsaw"
    [chapters.07_decoding]
    due = 2027-03-28T02:00:00+00:00
    [extensions.ada]
    07_decoding = 2027-03-30T12:00:00
    [extensions.ben]
    07_decoding = 2027-03-01T12:00:00
    """
    plan = read_course_file(put(tmp_path, text), CHAPTERS)
    general = datetime(2027, 3, 28, 2, tzinfo=UTC)
    assert plan.due("07_decoding") == plan.due("07_decoding", "ben") == general
    # Warsaw is two hours ahead of Greenwich on that day: summer time began two days before.
    assert plan.due("07_decoding", "ada") == datetime(2027, 3, 30, 10, tzinfo=UTC)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    course_file_path(tmp_path).write_bytes(b"\xff")
    with pytest.raises(CourseError, match="UTF-8"):
        read_course_file(tmp_path)


@pytest.mark.parametrize(
    ("late", "days", "share"),
    [(0, 0, 0.0), (15, 0, 0.0), (16, 1, 0.1), (24 * 60, 1, 0.1), (24 * 60 + 1, 2, 0.2), (9 * 24 * 60, 9, 0.5), (15 * 24 * 60, 15, 1.0)],
)  # fmt: skip
def test_late_days_and_their_price(late: int, days: int, share: float) -> None:
    rule = LateRule(grace_minutes=15, per_day=0.1, cap=0.5, closed_after_days=14)
    due = datetime(2027, 3, 1, 23, 59, tzinfo=UTC)
    assert count_late_days(due + timedelta(minutes=late), due, rule, UTC) == days
    assert late_penalty_fraction(days, rule) == pytest.approx(share)


def test_short_names_are_those_of_the_command_line(tmp_path: Path) -> None:
    text = "[chapters.03]\nweight = 3\n[chapters.decod]\ndue = 2027-03-01T12:00:00\n[extensions.ada]\n07 = 2027-03-02T12:00:00\n"
    plan = read_course_file(put(tmp_path, text), CHAPTERS)
    assert plan.weights(CHAPTERS) == {"03_scaled_dot_product": 3.0, "07_decoding": 1.0}
    assert plan.due("07_decoding", "ada") == datetime(2027, 3, 2, 12, tzinfo=UTC)
    # The arithmetic of a total, from the file alone: three times 60 % and once 100 % are 70 %.
    shares, weights = {"03_scaled_dot_product": 0.6, "07_decoding": 1.0}, plan.weights(CHAPTERS)
    assert sum(weights[name] * share for name, share in shares.items()) / sum(weights.values()) == pytest.approx(0.7)


def test_two_tables_of_one_chapter_count_together(tmp_path: Path) -> None:
    text = "[chapters.07.exercises.mirostat]\npoints = 2\n[chapters.07_decoding]\ndue = 2027-03-01T12:00:00\n"
    text += "[chapters.07_decoding.exercises.top_p]\npoints = 3\n"
    plan = read_course_file(put(tmp_path, text), CHAPTERS).chapters["07_decoding"]
    assert {name: rule.points for name, rule in plan.exercises.items()} == {"mirostat": 2, "top_p": 3}
    assert plan.due == NOON
    set_selection(
        put(tmp_path, "[chapters.07]\nonly = ['top_p']\n[chapters.07_decoding]\nweight = 1\n"),
        "07_decoding",
        without=["mirostat"],
    )
    assert read_course_file(tmp_path, CHAPTERS).chapters["07_decoding"] == ChapterPlan(without=("mirostat",), weight=1)


def test_the_course_folder_alone_says_which_chapters_there_are(tmp_path: Path) -> None:
    (tmp_path / "source" / "HW-1").mkdir(parents=True)
    store_project_chapters(tmp_path, CHAPTERS)
    plan = read_course_file(put(tmp_path, "[chapters.HW-1]\nweight = 2\n[chapters.3]\nweight = 1\n"))
    assert set(plan.chapters) == {"HW-1", "03_scaled_dot_product"}
    with pytest.raises(CourseError, match=r"line 3: chapters\.HW-2: there is no chapter 'HW-2'"):
        read_course_file(put(tmp_path, "[chapters.HW-1]\nweight = 2\n[chapters.HW-2]\nweight = 2\n"))


def test_an_extension_for_somebody_who_is_not_on_the_class_list_is_refused(tmp_path: Path) -> None:
    text = "title = 'T'\n[extensions.adda]\n07 = 2027-03-02T12:00:00\n"
    put(tmp_path, text)
    (tmp_path / "students.json").write_text('{"ada": {"name": "Ada"}}')
    assert read_course_file(tmp_path).extensions, "without a class list, nobody knows who may yet hand in"
    (tmp_path / "students.json").write_text('{"ada": {"name": "Ada", "enrolled": true}}')
    with pytest.raises(
        CourseError, match=r"line 2: extensions\.adda: there is no student, section or group 'adda'.*Did you mean ada\?"
    ):
        read_course_file(tmp_path)
    put(tmp_path, text.replace("adda", "ada"))
    assert list(read_course_file(tmp_path).extensions) == ["ada"]


def test_a_selection_is_written_to_the_short_name_that_the_file_has(tmp_path: Path) -> None:
    put(tmp_path, "[chapters.07]\nweight = 2\n")
    set_selection(tmp_path, "07_decoding", only=["top_p"])
    assert read_course_file(tmp_path, CHAPTERS).chapters == {"07_decoding": ChapterPlan(only=("top_p",), weight=2)}
    assert "[chapters.07]" in course_file_path(tmp_path).read_text()


CHAPTER = "07_decoding"
PEOPLE = {
    "ada": {"section": "Lab A", "group": ""},
    "bo": {"section": "Lab B", "group": "Team 1"},
    "cy": {"section": "Lab A and Lab B", "group": "Team 1, Team 2"},
    "dee": {"section": "", "group": ""},
}


def day(number: int) -> datetime:
    return datetime(2027, 3, number, tzinfo=UTC)


def dues(root: Path, text: str) -> dict[str, int]:
    """Return the day of March on which each student's work is due."""
    (root / "students.json").write_text(json.dumps(PEOPLE), encoding="utf-8")
    course_file_path(root).write_text(f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n{text}", encoding="utf-8")
    plan = read_course_file(root)
    return {student: due.day for student in PEOPLE if (due := plan.due(CHAPTER, student))}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"extensions.'lab  b'": 12}, {"ada": 10, "bo": 12, "cy": 12, "dee": 10}),
        # A group may have an earlier deadline, and a student an own one.
        ({"deadlines.'Team 1'": 5, "deadlines.bo": 7}, {"ada": 10, "bo": 7, "cy": 5, "dee": 10}),
        # Of two sections the later deadline counts, and extensions come on top.
        (
            {"deadlines.'Lab A'": 5, "deadlines.'Lab B'": 6, "extensions.cy": 8},
            {"ada": 5, "bo": 6, "cy": 8, "dee": 10},
        ),
    ],
)
def test_deadlines_of_sections_and_groups_are_their_members(
    tmp_path: Path, table: dict[str, int], expected: dict[str, int]
) -> None:
    text = "".join(f"[{name}]\n{CHAPTER} = 2027-03-{number:02}T00:00:00\n" for name, number in table.items())
    assert dues(tmp_path, text) == expected


def test_a_student_who_is_called_like_a_section_is_a_student(tmp_path: Path) -> None:
    PEOPLE_BY_ID = {**PEOPLE, "Lab A": {"section": ""}}
    (tmp_path / "students.json").write_text(json.dumps(PEOPLE_BY_ID), encoding="utf-8")
    text = f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n[extensions.'Lab A']\n{CHAPTER} = 2027-03-12T00:00:00\n"
    course_file_path(tmp_path).write_text(text, encoding="utf-8")
    plan = read_course_file(tmp_path)
    assert (plan.due(CHAPTER, "Lab A"), plan.due(CHAPTER, "ada")) == (day(12), day(10))


def test_a_deadline_needs_one_that_it_differs_from(tmp_path: Path) -> None:
    course_file_path(tmp_path).write_text("[deadlines.ada]\n07_decoding = 2027-03-05T00:00:00\n", encoding="utf-8")
    with pytest.raises(CourseError, match="07_decoding"):
        read_course_file(tmp_path)


@pytest.mark.parametrize("text", ["[", "[1]", '{"ada": 1}'])
def test_a_damaged_list_of_students_is_left_to_the_commands_that_need_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "students.json").write_text(text, encoding="utf-8")
    course_file_path(tmp_path).write_text(
        f"[chapters.{CHAPTER}]\ndue = 2027-03-10T00:00:00\n[extensions.ada]\n{CHAPTER} = 2027-03-12T00:00:00\n"
    )
    assert read_course_file(tmp_path).due(CHAPTER, "ada") == day(12)


def test_a_new_course_takes_the_rules_of_another_one_and_nothing_of_its_year(tmp_path: Path) -> None:
    last, new = tmp_path / "last", tmp_path / "new"
    for folder in (last, new):
        folder.mkdir()
    course_file_path(last).write_text(
        '# Ada is ill until May\ntitle = "Ours"\ntime_zone = "Europe/Warsaw"\nlate = { per_day = 0.2 }\n'
        '[chapters.07]\nonly = ["top_p"]\ndue = 2026-11-01T12:00:00\nweight = 2\ncanvas = "Sheet (88)"\n'
        '[chapters.07.exercises.top_p]\npoints = 9\n[viva.07]\nweight = 0.5\ncanvas = "Talk (89)"\n'
        "[total]\npass_mark = 50\n[extensions.ada]\n07 = 2026-11-05T12:00:00\n[deadlines.bo]\n07 = 2026-11-03T12:00:00\n"
    )
    assert write_template(new, last)
    assert not re.search("ada|bo\\b|2026|88|89", course_file_path(new).read_text().partition("# Taken from")[2], re.I)
    before, after = read_course_file(last), read_course_file(new)
    (chapter, viva) = (next(iter(table.values())) for table in (before.chapters, before.viva))
    assert after == msgspec.structs.replace(
        before,
        chapters=dict.fromkeys(before.chapters, msgspec.structs.replace(chapter, due=None, canvas="")),
        viva=dict.fromkeys(before.viva, msgspec.structs.replace(viva, canvas="")),
        extensions={},
        deadlines={},
    )
    for words in (["--like", str(last)], ["--like", str(tmp_path)]):
        folder = new if words[1] == str(last) else tmp_path / "other"
        told = CliRunner().invoke(main, ["assign", "07", "--course", str(folder), *words])
        assert (told.exit_code, (tmp_path / "other").exists()) == (2, False), told.output
