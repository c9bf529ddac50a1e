"""The archives of feedback are read as Moodle and Canvas read them, and bring every page to its author and to nobody else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from autograder.course.folder import CONFIG_NAME, Course
from autograder.errors import CourseError
from autograder.grading.reports.feedback_archive import export_feedback
from autograder.intake.roster import Student, write_roster

CHAPTER, NEXT = "03_scaled_dot_product", "04_multi_head"


def moodle_reads(path: str) -> tuple[int, str] | None:
    """Return the participant and the name of a file as ``assignfeedback_file_zip_importer`` finds them; none if it passes it over."""
    *folders, file = path.split("/")
    if file.startswith((".", "~")):
        return None
    parts = [*folders, file]
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) < 4 or not info[1].isdigit() or (info[2], info[3]) != ("assignsubmission", "file"):
            continue
        rest = [info[4] if len(info) == 5 else "", *parts]
        return int(info[1]), "/".join(rest)
    return None


def canvas_reads(path: str) -> tuple[int, int, str] | None:
    """Return user, attachment and shown name as Canvas's ``infer_comment_context_from_filename`` finds them."""
    words = Path(path).name.split("_")
    numbers = [word for word in words if word.isdigit()]
    if path.startswith("._") or len(numbers) < 2:
        return None
    user, attachment = numbers[:2]
    return int(user), int(attachment), "_".join(words[words.index(attachment) + 1 :])


@pytest.fixture
def course(tmp_path: Path) -> Course:
    root = tmp_path / "course"
    root.mkdir()
    (root / CONFIG_NAME).write_text("c = get_config()\n", encoding="utf-8")
    return Course.open(root)


def page(course: Course, student: str, chapter: str, text: str = "") -> bytes:
    path = course.folder("feedback", student, chapter) / f"{chapter}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<h1>{student}, {chapter}</h1>{text}", encoding="utf-8")
    return path.read_bytes()


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_moodle_gives_every_page_to_its_participant(course: Course, tmp_path: Path) -> None:
    people = {
        "ada": Student("ada", "Ada Lovelace", "moodle", uploads={CHAPTER: "41", NEXT: "77"}),
        "emilie": Student("emilie", "Émilie_du/Châtelet", "moodle", uploads={CHAPTER: "42"}),
        "dots": Student("dots", "..", "moodle", uploads={CHAPTER: "43"}),
        "digits": Student("digits", "99 12_assignsubmission_file", "moodle", uploads={CHAPTER: "44"}),
    }
    write_roster(course, people)
    pages = {student: page(course, student, CHAPTER) for student in people}
    (done,) = export_feedback(course, [CHAPTER], "moodle", tmp_path / "out")
    (path,) = done.paths
    read = {moodle_reads(name): content for name, content in contents(path).items()}
    assert read == {
        (int(person.uploads[CHAPTER]), f"/{CHAPTER}.html"): pages[student] for student, person in people.items()
    }
    assert (done.students, done.left_out) == (("ada", "digits", "dots", "emilie"), ())


def test_canvas_gives_every_page_to_its_user_beside_what_was_handed_in(course: Course, tmp_path: Path) -> None:
    people = {
        "ada": Student("ada", "Ada Lovelace", "canvas", "901", {CHAPTER: "5001"}),
        "numbers": Student("numbers", "bob_42_7 23", "canvas", "902", {CHAPTER: "5002"}),
        "greek": Student("greek", "Υπατία", "canvas", "903", {CHAPTER: "5003"}),
    }
    write_roster(course, people)
    pages = {student: page(course, student, CHAPTER) for student in people}
    (done,) = export_feedback(course, [CHAPTER], "canvas", tmp_path)
    read = {canvas_reads(name): content for name, content in contents(done.paths[0]).items()}
    assert read == {
        (int(person.user), int(person.uploads[CHAPTER]), "feedback-03-scaled-dot-product.html"): pages[student]
        for student, person in people.items()
    }


def test_who_cannot_be_reached_is_named_and_gets_into_no_archive(course: Course, tmp_path: Path) -> None:
    write_roster(
        course,
        {
            "ada": Student("ada", "Ada", "canvas", "901", {CHAPTER: "5001"}),
            "anon": Student("anon", "anon-x7", "canvas", "", {CHAPTER: "5002"}),
            "other": Student("other", "Other", "canvas", "902", {NEXT: "5003"}),
            "moodle": Student("moodle", "Mo", "moodle", "", {CHAPTER: "12"}),
        },
    )
    for student in ("ada", "anon", "other", "moodle", "unknown"):
        page(course, student, CHAPTER)
    (done,) = export_feedback(course, [CHAPTER, NEXT], "canvas", tmp_path)
    assert (done.students, done.left_out) == (("ada",), ("anon", "moodle", "other", "unknown"))
    assert len(contents(done.paths[0])) == 1


def test_large_archives_are_divided_and_nothing_is_lost(course: Course, tmp_path: Path) -> None:
    people = {f"s{i}": Student(f"s{i}", f"S {i}", "moodle", uploads={CHAPTER: str(i)}) for i in range(1, 10)}
    write_roster(course, people)
    noise = {
        student: page(course, student, CHAPTER, bytes(range(33, 127)).decode() * i) for i, student in enumerate(people)
    }
    (done,) = export_feedback(course, [CHAPTER], "moodle", tmp_path, max_bytes=1_500)
    assert len(done.paths) > 1
    assert all(path.stat().st_size <= 1_500 for path in done.paths)
    found = [item for path in done.paths for item in contents(path).items()]
    assert {moodle_reads(name): content for name, content in found} == {
        (i, f"/{CHAPTER}.html"): noise[f"s{i}"] for i in range(1, 10)
    }
    assert len(found) == 9


def test_the_same_pages_give_the_same_bytes(course: Course, tmp_path: Path) -> None:
    write_roster(course, {"ada": Student("ada", "Ada", "canvas", "901", {CHAPTER: "5001"})})
    page(course, "ada", CHAPTER)
    first, second = (export_feedback(course, [CHAPTER], "canvas", tmp_path / name)[0].paths[0] for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_without_pages_or_numbers_the_error_says_what_to_do(course: Course, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="feedback"):
        export_feedback(course, [CHAPTER], "moodle", tmp_path / "out")
    page(course, "ada", CHAPTER)
    with pytest.raises(CourseError, match="ada"):
        export_feedback(course, [CHAPTER], "moodle", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
def test_a_withdrawn_student_gets_no_page(course: Course, tmp_path: Path, platform: str) -> None:
    for student in ("ada", "bo"):
        page(course, student, CHAPTER)
    ada = Student("ada", "Ada", platform, user="1", uploads={CHAPTER: "41"}, enrolled=True)
    bo = Student("bo", "Bo", platform, user="2", uploads={CHAPTER: "42"}, enrolled=True, state="withdrawn")
    write_roster(course, {"ada": ada, "bo": bo})
    (done,) = export_feedback(course, [CHAPTER], platform, tmp_path / "out")
    assert (done.students, done.strangers) == (("ada",), ("bo",))
    assert len(contents(done.paths[0])) == 1
