"""``course.toml`` says what a course uses, or says in which line it cannot be understood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.course.course_file import (
    ChapterPlan,
    CourseFile,
    LateRule,
    course_file_path,
    days_late,
    late_share,
    read_course_file,
    set_selection,
    write_template,
)
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


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "true", '"2"', "1001"])
def test_a_weight_that_is_no_weight_is_refused(tmp_path: Path, weight: str) -> None:
    with pytest.raises(CourseError, match=r"line 2: chapters\S*weight"):
        read_course_file(put(tmp_path, f"[chapters.07_decoding]\nweight = {weight}\n"))


def test_template_is_valid_and_says_nothing(tmp_path: Path) -> None:
    assert write_template(tmp_path)
    assert not write_template(tmp_path)
    assert read_course_file(tmp_path, CHAPTERS) == CourseFile()


def test_template_shows_every_key(tmp_path: Path) -> None:
    lines = course_file_path(tmp_path).read_text().splitlines() if write_template(tmp_path) else []
    code = [
        line.removeprefix("# ") for line in lines if line.startswith("# ") and ("=" in line or line.startswith("# ["))
    ]
    # `only` and `without` exclude each other.
    shown = "\n".join(line for line in code if not line.startswith("without") and "`" not in line)
    plan = read_course_file(put(tmp_path, shown), CHAPTERS)
    for struct in (plan, plan.late, plan.chapters["07_decoding"]):
        plain = type(struct)()
        left = {name for name in struct.__struct_fields__ if getattr(struct, name) == getattr(plain, name)}
        assert left <= {"without", "grace_minutes"}, "a key of the schema that the template does not show"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[chapters.07_decoding]\nwight = 1", 2, "there is no key 'wight'"),
        ("time_zone = 'Mars/Olympus'", 1, "no time zone 'Mars/Olympus'"),
        ("[late]\nper_day = 3", 2, "late.per_day"),
        ("[chapters.07_decoding]\nonly = ['a']\nwithout = ['b']", 2, "exclude each other"),
        ("title = ''\n[chapters.07_decodin]\ndue = 2027-03-01T12:00:00", 2, "Did you mean 07_decoding?"),
        ("[extensions.ada]\n07_decoding = 3", None, "expected `datetime`, got `int`"),
        ("[chapters.07_decoding]\ndue = 2027-03-01", 2, "Write day and time"),
        ("title =", None, "this is not TOML"),
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


@pytest.mark.parametrize(
    ("late", "days", "share"),
    [(0, 0, 0.0), (15, 0, 0.0), (16, 1, 0.1), (24 * 60, 1, 0.1), (24 * 60 + 1, 2, 0.2), (9 * 24 * 60, 9, 0.5), (15 * 24 * 60, 15, 1.0)],
)  # fmt: skip
def test_late_days_and_their_price(late: int, days: int, share: float) -> None:
    rule = LateRule(grace_minutes=15, per_day=0.1, cap=0.5, closed_after_days=14)
    due = datetime(2027, 3, 1, 23, 59, tzinfo=UTC)
    assert days_late(due + timedelta(minutes=late), due, rule, UTC) == days
    assert late_share(days, rule) == pytest.approx(share)
