"""Downloads that once gave wrong numbers or lost what a student wrote, with the exercises that they were made for."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import zipfile
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.course.authoring.chapter import find_chapter
from autograder.course.authoring.myst import write_notebook
from autograder.course.authoring.selection import select_exercises
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.record.results import GradeResult
from autograder.grading.reports.export import absent_grades, export
from autograder.grading.reports.grades import read_grades
from autograder.intake.downloads.collect import collect
from autograder.intake.people.enrol import enrol
from autograder.intake.roster import Student, write_roster
from autograder.marking.chapter_reader import ChapterReader

from ..autograder.grading.scripted import Scripted

PROJECT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"
CHAPTER, QUESTION = "03_scaled_dot_product", "question_query_key"
SELECTION = ("soft_lookup", "causal_mask", "padding_mask", QUESTION)
DECODING = "07_decoding"
OWN_NAMES = ("HW-1", "HW1", "HW10", "Lab 1 (warm-up)")
SENTENCE = "Queries ask and keys are asked; the scores compare the two"
PLAN = f"""
time_zone = "Europe/Warsaw"
[late]
grace_minutes = 0
per_day = 0.10
[chapters.03]
only = {list(SELECTION)}
due = 2026-10-24T20:00:00
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which the chapter is released. Do not write into it."""
    root = tmp_path_factory.mktemp("cases") / "course"
    course = Course.open(root, create=True)
    (root / "course.toml").write_text(PLAN, encoding="utf-8")
    write_source(root, CHAPTER, SELECTION)
    release(course, CHAPTER)
    return root


def write_source(root: Path, name: str, selection: tuple[str, ...]) -> None:
    """Write the source notebook of some exercises of a chapter."""
    chapter = select_exercises(find_chapter(PROJECT, name), lambda exercise: exercise in selection)
    source = root / "source" / name / f"{name}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(write_notebook(source_notebook(chapter)))


def release(course: Course, *names: str) -> None:
    """Release assignments whose source notebooks are there."""
    # nbgrader calls alembic by its name when it makes a gradebook; it lies beside this Python.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        for name in names:
            generate_assignment(course.config(), name)


@pytest.fixture
def course(released: Path, tmp_path: Path) -> Course:
    """A course of one's own."""
    return Course.open(Path(shutil.copytree(released, tmp_path / "course")))


def with_todays_prompts(name: str, course: Course) -> Path:
    """Return an archive of cases in which the course's own text is that of today's release, so that only students' text differs."""
    release_path = course.root / "release" / CHAPTER / f"{CHAPTER}.ipynb"
    today = {_grade_id(cell): _source(cell) for cell in json.loads(release_path.read_text(encoding="utf-8"))["cells"]}
    path = course.root.parent / name
    with zipfile.ZipFile(CASES / name) as old, zipfile.ZipFile(path, "w") as new:
        contents = {info: old.read(info) for info in old.infolist()}
        notebooks = {info: json.loads(data) for info, data in contents.items() if info.filename.endswith(".ipynb")}
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for notebook in notebooks.values():
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown" and cell["metadata"].get("nbgrader", {}).get("locked"):
                    found[_grade_id(cell)][_source(cell)] += 1
        for info, data in contents.items():
            if info in notebooks:
                for cell in notebooks[info]["cells"]:
                    if (name_of_cell := _grade_id(cell)) in found:
                        ((before, _),) = found[name_of_cell].most_common(1)
                        cell["source"] = _source(cell).replace(before, today[name_of_cell])
                data = json.dumps(notebooks[info]).encode()
            new.writestr(info, data)
    return path


def _grade_id(cell: dict[str, Any]) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def grade(course: Course, chapter: str = CHAPTER) -> dict[str, GradeResult]:
    """Grade everybody: each exercise gives two points."""
    points = dict.fromkeys((*SELECTION[:3], "length_penalty", "temperature"), 2.0)
    students = [path.parent.name for path in course.root.glob(f"submitted/*/{chapter}")]
    executor = Scripted(dict.fromkeys(students, points))
    results = autograde(course, chapter, device="cpu", settings=GradingSettings(seed=7), make_executor=executor)
    return {result.student: result for result in results}


def test_an_answer_outside_of_its_cell_waits_for_the_marker_with_its_text(course: Course) -> None:
    collect(course, CHAPTER, with_todays_prompts("answer_elsewhere.zip", course))
    results = grade(course)
    assert set(results) == {"control", "below", "between", "inprompt", "incode", "split"}
    (question,) = (one for one in ChapterReader(course, CHAPTER).questions() if one.name == QUESTION)
    answers = {answer.student: answer for answer in question.answers}
    assert {student for student, answer in answers.items() if answer.state.waiting} == set(results)
    for student in set(results) - {"split"}:
        assert SENTENCE in answers[student].text
    split = answers["split"].text
    assert split.index("First part: queries ask") < split.index("Second part: so the two could be merged")
    for student, result in results.items():
        named = [problem for problem in result.problems if problem.kind == "answer elsewhere"]
        assert len(named) == (student != "control")


def test_times_charge_what_a_calendar_and_a_clock_say(course: Course) -> None:
    collect(course, CHAPTER, with_todays_prompts("times.zip", course))
    results = grade(course)
    # 20:00 in Warsaw was 18:00 in UTC on that day; all of these moments are written with a zone.
    due = datetime(2026, 10, 24, 18, tzinfo=UTC)
    moments = {
        "autumn": datetime(2026, 10, 25, 18, 30, tzinfo=UTC),
        **dict.fromkeys(("cest", "cet", "est", "name", "offset", "utc"), datetime(2026, 10, 24, 17, 50, tzinfo=UTC)),
    }
    # The clock in Warsaw goes back in the night: the first late day ends at 19:00 in UTC.
    ends = due + timedelta(hours=25)
    expected = {student: 0.6 * ((moment > due) + (moment > ends)) for student, moment in moments.items()}
    assert {student: results[student].late_penalty for student in moments} == pytest.approx(expected)
    assert expected["autumn"] == pytest.approx(0.6), "a tenth of three exercises with two points each"
    assert results["dots"].late_penalty == 0
    # The notebooks come from an older release, which every result says.
    kinds = {
        student: {problem.kind for problem in result.problems} - {"other checks"} for student, result in results.items()
    }
    assert kinds["dots"] == {"no time"}
    assert not any(kinds[student] for student in moments)


def test_an_id_in_other_letters_is_one_student_however_it_came(course: Course) -> None:
    people = [Student("ADA01", "Ada Berg", enrolled=True), Student("dee", "Dee Eck", enrolled=True)]
    write_roster(course, {student.id: student for student in people})
    in_place = Course.open(Path(shutil.copytree(course.root, course.root.with_name("in_place"))))
    archive = CASES / "capital_id_in_place.zip"
    with zipfile.ZipFile(archive) as file:
        file.extractall(in_place.root / "submitted")
    collect(in_place, CHAPTER)
    collect(course, CHAPTER, archive)
    graded = [{student: result.score for student, result in grade(one).items()} for one in (in_place, course)]
    assert graded == [{"ADA01": 6.0}] * 2


def test_files_beside_a_notebook_come_along(course: Course) -> None:
    collect(course, CHAPTER, with_todays_prompts("files_beside.zip", course))
    modules = {path.parents[1].name: path.read_text() for path in course.root.glob("submitted/*/*/my_helpers.py")}
    assert sorted(modules) == ["ada-berg", "bo-lind"]
    assert all("def lower(" in text for text in modules.values())


def test_pictures_in_answers_are_shown_however_they_were_put_there(course: Course) -> None:
    collect(course, CHAPTER, with_todays_prompts("pictures.zip", course))
    results = grade(course)
    assert set(results) == {"attached", "datauri", "onlydatauri", "filepic", "imgtag"}
    pages = {
        page.parents[1].name: page.read_text() for page in write_feedback(course, CHAPTER, autograder_config(course))
    }
    for student, page in pages.items():
        assert re.search(r'<img [^>]*src="data:image/png;base64,iVBORw0KGgo', page), student
        assert "<img src=&quot;" not in page
    (question,) = (one for one in ChapterReader(course, CHAPTER).questions() if one.name == QUESTION)
    assert {answer.student for answer in question.answers if answer.state.waiting} == set(results)


def test_a_file_for_canvas_has_cells_only_for_work_that_is_graded(course: Course, tmp_path: Path) -> None:
    write_source(course.root, DECODING, ("length_penalty", "temperature"))
    release(course, DECODING)
    enrol(course, CASES / "canvas_people.csv")
    collect(course, CHAPTER, CASES / "canvas_03.zip")
    collect(course, DECODING, CASES / "canvas_07.zip")
    assert set(grade(course)) == {"aberg", "blind", "cdahl", "deck"}
    results = grade(course, DECODING)
    assert {name: result.status for name, result in results.items()} == {
        "aberg": "graded",
        "cdahl": "to decide",
        "deck": "not gradable",
    }
    grades = read_grades(course)
    export(grades, "canvas", tmp_path)
    cells = {path.name: canvas_cells(path) for path in tmp_path.glob("canvas*.csv")}
    # An empty cell would delete a grade that was entered by hand on Canvas.
    assert cells == {
        "canvas.csv": {"11": {CHAPTER: "6.00", DECODING: "4.00"}},
        f"canvas-{CHAPTER}.csv": {number: {CHAPTER: "6.00"} for number in ("12", "13", "14")},
    }
    assert [grade.student for grade in absent_grades(grades)] == ["blind"]


def canvas_cells(path: Path) -> dict[str, dict[str, str]]:
    """Return the points of each student in a file for Canvas, by the student's number there."""
    with path.open(encoding="utf-8") as file:
        _, *rows = csv.DictReader(file)
    return {row["ID"]: dict(list(row.items())[5:]) for row in rows}


def test_assignments_with_similar_names_are_graded_one_by_one(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(CASES / "own_names.zip") as file:
        file.extractall(course.root)
    release(course, *OWN_NAMES)
    points = {f"count_{tag}": number for tag, number in zip("pqrs", (0.5, 1.0, 1.5, 2.0), strict=True)}
    executor = Scripted({"ada": points})
    monkeypatch.setattr(
        "autograder.grading.run._run_locally",
        lambda workers, settings, submissions: map(executor.grade_one, submissions),
    )
    for number, name in enumerate(OWN_NAMES, start=1):
        done = CliRunner().invoke(main, ["autograde", name, "--course", str(course.root), "--device", "cpu"])
        assert done.exit_code == 0, done.output
        scores = {grade.chapter: grade.score for grade in read_grades(course, OWN_NAMES) if not grade.waits_for}
        assert scores == dict(zip(OWN_NAMES[:number], points.values(), strict=False))
