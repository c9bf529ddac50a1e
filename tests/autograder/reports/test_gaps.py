"""Report and export say what is in the gradebook and no longer in the course folder."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nbgrader.api import Gradebook

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.grading.record.results import ExerciseResult, GradeResult, result_path, write_result
from autograder.grading.reports.class_report import read_student_work
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.missing import missing_results_messages, removed_message, unclear_message
from autograder.intake.downloads.journal import IntakeJournal, hash_content, write_journal
from autograder.intake.notebook.problem import Problem

CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"
# Ada did it all, Bo nothing, Cy handed in a PDF, and Di did nothing and was given a point by a person.
POINTS = {"ada": 3.0, "bo": 0.0, "cy": 0.0, "di": 0.0}


@pytest.fixture
def course(course_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course with four students, as grading leaves it; it is the current folder."""
    course = Course.open(course_dir)
    monkeypatch.chdir(course.root)
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        for student, points in POINTS.items():
            gradebook.add_student(student, first_name=student.capitalize(), last_name="Doe")
            gradebook.add_submission(CHAPTER, student)
            (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student).grades
            grade.auto_score, grade.needs_manual_grade = points, False
            grade.manual_score = 1.0 if student == "di" else None
            course.folder("submitted", student, CHAPTER).mkdir(parents=True)
            exercises = (ExerciseResult("split_heads", points, 3.0),)
            problems = (Problem("not a notebook", "It is a PDF.", fatal=True),) if student == "cy" else ()
            status = "not gradable" if student == "cy" else "graded"
            write_result(course, GradeResult(student, CHAPTER, status, exercises, problems=problems))
        gradebook.db.commit()
    return course


@pytest.fixture
def tell(course: Course) -> Callable[..., Result]:
    """Return a function that runs a command on the course."""
    return lambda *words: CliRunner().invoke(main, [*words, "--course", str(course.root)])


def rows(course: Course, name: str = "canvas.csv") -> dict[str, list[str]]:
    """Return an exported table's rows by their first cell."""
    with (course.root / "export" / name).open(encoding="utf-8-sig", newline="") as file:
        return {row[0]: row for row in csv.reader(file)}


COMMANDS = ["report", "export", "export --format canvas"]


def lose_results(course: Course) -> None:
    shutil.rmtree(course.root / "results")


def lose_a_result(course: Course) -> None:
    result_path(course, CHAPTER, "ada").unlink()


def fail_on_two(course: Course) -> None:
    course.folder("submitted", "eve", CHAPTER).mkdir(parents=True)
    for student in ("ada", "eve", "gone"):
        write_result(course, GradeResult(student, CHAPTER, "not recorded"))


def rename_a_folder(course: Course) -> None:
    (course.folder("submitted") / "ada").rename(course.folder("submitted") / "ada-lovelace")


def leave_times_open(course: Course) -> None:
    (course.folder("submitted", "ada", CHAPTER) / "timestamp.txt").write_text("03.11.2026 18:00")
    (course.folder("submitted", "bo", CHAPTER) / f"{CHAPTER}.ipynb").write_text("{}")
    write_journal(course, CHAPTER, IntakeJournal(late={"bo": [hash_content(b"{}")]}))


def find_a_file_of_nobody(course: Course) -> None:
    write_journal(course, CHAPTER, IntakeJournal(unowned={"/a.zip": ["week3.ipynb"]}))


def of(*students: str, **more: str) -> list[dict[str, str]]:
    return [{"student": student, "chapter": CHAPTER, **more} for student in students]


GRADE = f"tfcourse autograde {CHAPTER}"
STAMP = f"submitted/STUDENT/{CHAPTER}/timestamp.txt"
# What happens, what the commands say about it, in order, and what they have in JSON.
GAPS: list[tuple[Callable[[Course], object], str, dict[str, list[dict[str, str]]]]] = [
    (lambda course: None, "", {"without_result": [], "gone": [], "open_times": [], "unowned": []}),
    (lose_results, rf"4 submissions .*no result: ada, bo, cy, di\. .*{GRADE}", {"without_result": of(*POINTS)}),
    (lose_a_result, rf"1 submission .*no result: ada\. .*{GRADE}", {"without_result": of("ada")}),
    (fail_on_two, rf"2 submissions of {CHAPTER} .*earlier attempt: ada, eve\. .*{GRADE}", {}),
    (
        rename_a_folder,
        rf"1 submission .*no longer in submitted/: ada \({CHAPTER}\).*nbgrader db student remove ada --force",
        {"gone": of("ada"), "without_result": []},
    ),
    (
        leave_times_open,
        rf"2 submissions .*may be late.*: ada \(.*time.*\), bo \(Canvas.*\)\. .*{STAMP}",
        {"open_times": of("ada", problem="no time") + of("bo", problem="late")},
    ),
    (
        find_a_file_of_nobody,
        "1 file .*a.zip belongs to no student: week3.ipynb",
        {"unowned": [{"chapter": CHAPTER, "source": "/a.zip", "file": "week3.ipynb"}]},
    ),
]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(("happen", "says", "data"), GAPS, ids=[gap[0].__name__ for gap in GAPS])
def test_a_gap_is_told_with_what_mends_it_and_nothing_else_is(
    course: Course,
    tell: Callable[..., Result],
    words: str,
    happen: Callable[[Course], object],
    says: str,
    data: dict[str, list[dict[str, str]]],
) -> None:
    happen(course)
    told = tell(*words.split())
    assert told.exit_code == 1, "nobody has decided about Cy's PDF"
    lines = [
        line for line in told.stdout.splitlines() if re.search("no result|no longer|attempt|late|no student", line)
    ]
    assert len(lines) == bool(says)
    assert all(re.search(says, line) for line in lines), lines
    found = json.loads(tell(*words.split(), "--json").stdout)
    assert {key: found[key] for key in data} == data
    if happen is rename_a_folder and "canvas" in words:
        assert "Doe, Ada" in rows(course)


def test_what_was_open_is_no_longer_told_once_it_is_settled(course: Course, tell: Callable[..., Result]) -> None:
    leave_times_open(course)
    find_a_file_of_nobody(course)
    for student in ("ada", "bo"):
        (course.folder("submitted", student, CHAPTER) / "timestamp.txt").write_text("2026-11-03 18:00")
    write_journal(course, CHAPTER, IntakeJournal())
    assert not re.search("may be late|no student", tell("report").stdout)


def test_from_elsewhere_the_command_names_the_course(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(course.root / "results")
    root = Path(shutil.copytree(course.root, tmp_path / "the course"))
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(main, ["report", "--course", str(root)])
    command = next(line for line in told.stdout.splitlines() if "no result" in line).partition("again: ")[2]
    assert shlex.split(command) == ["tfcourse", "autograde", CHAPTER, "--course", str(root)]


def test_a_platform_gets_no_0_of_whom_nobody_knows_whether_they_could_be_graded(
    course: Course, tell: Callable[..., Result]
) -> None:
    before = tell("export", "--format", "canvas")
    assert f": Cy Doe ({CHAPTER})" in before.stdout
    assert {"Doe, Ada", "Doe, Bo", "Doe, Di"} == {name for name in rows(course) if name.startswith("Doe")}
    shutil.rmtree(course.root / "results")
    told = tell("export", "--format", "canvas")
    # A point of the machine's or of a person's proves that there was something to grade.
    assert {"Doe, Ada", "Doe, Di"} == {name for name in rows(course) if name.startswith("Doe")}
    open_ = rf"2 submissions .*: Bo Doe \({CHAPTER}\), Cy Doe \({CHAPTER}\)"
    assert re.search(open_, told.stdout)
    assert re.search(open_, tell("export").stdout)
    with (course.root / "export" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        scores = {row["student_id"]: row["score"] for row in csv.DictReader(file) if row["assignment"] == CHAPTER}
    assert scores == {"ada": "3.00", "bo": "", "cy": "", "di": "1.00"}
    assert json.loads(tell("export", "--json").stdout)["not_gradable"] == of("bo", "cy")


def test_an_answer_that_waits_proves_that_there_was_something_to_grade(course: Course) -> None:
    shutil.rmtree(course.root / "results")
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "bo").grades
        grade.auto_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()
    assert [grade.gradable for grade in read_grades(course, [CHAPTER])] == [True, True, None, True]


def test_without_a_submission_grading_again_is_not_what_helps(course: Course) -> None:
    shutil.rmtree(course.root / "results")
    shutil.rmtree(course.folder("submitted", "ada"))
    (sentence,) = missing_results_messages(course, read_grades(course, [CHAPTER]))
    assert "no result: bo, cy, di." in sentence


def test_many_are_counted_and_a_few_are_named(course: Course) -> None:
    one = read_grades(course, [CHAPTER])[0]
    many = [replace(one, student=f"s{i:03d}", has_result=False) for i in range(200)]
    (sentence,) = missing_results_messages(course, many)
    text = removed_message([replace(grade, in_place=False) for grade in many])
    assert ["s009" in told and "190" in told and "s010" not in told for told in (sentence, text)] == [True, True]


def test_an_assignment_that_is_no_chapter_has_no_results(course: Course) -> None:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.add_assignment("homework")
        gradebook.add_notebook("problem1", "homework")
        gradebook.add_submission("homework", "ada")
        gradebook.db.commit()
    course.folder("submitted", "ada", "homework").mkdir()
    grades = read_grades(course, ["homework"])
    assert (missing_results_messages(course, grades), unclear_message(grades)) == ([], "")


def test_who_was_taken_out_of_the_gradebook_as_advised_is_in_no_report(
    course: Course, tell: Callable[..., Result]
) -> None:
    shutil.rmtree(course.folder("submitted", "ada"))
    (command,) = re.findall("nbgrader db .*", tell("report").stdout)
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=course.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "no longer" not in tell("report").stdout
    assert [work.grade.student for work in read_student_work(course, [CHAPTER])] == ["bo", "cy", "di"]


def test_a_result_of_which_the_gradebook_knows_nothing_is_no_grade(course: Course) -> None:
    write_result(course, GradeResult("eve", CHAPTER, "graded", (ExerciseResult("split_heads", 3.0, 3.0),)))
    course.folder("submitted", "eve", CHAPTER).mkdir(parents=True)
    eve = read_student_work(course, [CHAPTER])[-1]
    assert (eve.grade.student, eve.recorded, eve.graded) == ("eve", False, False)


def test_a_person_decides_about_a_pdf_and_can_take_it_back(course: Course, tell: Callable[..., Result]) -> None:
    assert "tfcourse decide" in tell("export").stdout
    for words in (["4", "too many"], ["-1", "x"], ["nan", "x"], ["2"], ["2", " "], ["2", "both", "--undo"], []):
        assert tell("decide", "cy", CHAPTER, "--", *words).exit_code == 2, words
    for student, chapter in (("nobody", CHAPTER), ("cy", "99"), ("ada", CHAPTER)):
        assert tell("decide", student, chapter, "2", "A PDF").exit_code == 2
    assert tell("decide", "cy", CHAPTER, "--undo").exit_code == 2
    assert tell("decide", "cy", CHAPTER, "1", "A PDF").exit_code == 0
    assert tell("decide", "cy", CHAPTER, "2", "A PDF, half of it right").exit_code == 0
    for command in COMMANDS:
        told = tell(*command.split())
        assert (told.exit_code, told.stdout.count("A PDF, half of it right")) == (0, 1), told.output
        assert "tfcourse decide" not in told.stdout
    assert rows(course)["Doe, Cy"][-1] == "2.00"
    assert (rows(course, "grades.csv")["assignment"][-1], rows(course, "grades.csv")[CHAPTER][-1]) == (
        "decided_by_hand",
        "",
    )
    assert "A PDF, half of it right" in (course.root / "report.html").read_text()
    (work,) = (work for work in read_student_work(course, [CHAPTER]) if work.grade.student == "cy")
    assert (work.graded, work.grade.score, work.problems, len(work.remarks)) == (True, 2.0, (), 1)
    write_result(course, GradeResult("cy", CHAPTER, "graded", (ExerciseResult("split_heads", 0.0, 3.0),)))
    (grade,) = (grade for grade in read_grades(course, [CHAPTER]) if grade.student == "cy")
    assert (grade.score, "--undo" in grade.decision) == (2.0, True)
    assert tell("decide", "cy", CHAPTER, "--undo").exit_code == 0
    assert not any(grade.decision for grade in read_grades(course))
