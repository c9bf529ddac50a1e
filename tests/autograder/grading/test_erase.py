"""After a student is erased, no file of the course folder names them, and everybody else's work is as before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner
from nbgrader.api import Gradebook

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.grading.record.journal import open_journal, submission_states
from autograder.grading.record.results import GradeResult, read_results, write_result
from autograder.grading.record.signatures import signatures_path
from autograder.grading.record.viva_journal import VivaAnswer, VivaJournal
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.moodle import last_worksheets
from autograder.intake.downloads.journal import Choice, IntakeJournal, PendingSubmission, read_journal, write_journal
from autograder.intake.people.enrol import enrol
from autograder.intake.roster import read_roster, write_roster

CHAPTER = "04_multi_head"
GONE, STAYS = "zoe-quagmire", "zoe-quagmire-2"
NAME = "Zoë Quagmire"


def filled(course: Course, tmp_path: Path) -> None:
    """Write about two students what each command leaves behind."""
    (tmp_path / "class.csv").write_text(
        f"id,name,email\n{GONE},{NAME},zq@example.org\n{STAYS},Zoe Other,zo@example.org\n"
    )
    enrol(course, tmp_path / "class.csv")
    (course.root / "course.toml").write_text(
        f'title = "ours"\n[chapters.04]\ndue = 2026-11-01T12:00:00\n[extensions.{GONE}]\n04 = 2026-11-02T12:00:00\n'
    )
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook, open_journal(course, CHAPTER) as journal:
        for student in (GONE, STAYS):
            gradebook.add_student(student, first_name=NAME if student == GONE else "Zoe", last_name="X")
            gradebook.add_submission(CHAPTER, student)
            journal.record_begin(student, "hash")
            journal.record_end(student)
            write_result(course, GradeResult(student, CHAPTER, "graded", ()))
            VivaJournal(course, CHAPTER).answer(student, "me", "sheet", 3, 0, VivaAnswer("split_heads", 1, True))
            for folder in ("submitted", "autograded", "feedback", "replaced"):
                parts = (CHAPTER, student) if folder == "replaced" else (student, CHAPTER)
                path = course.root.joinpath(folder, *parts, f"{CHAPTER}.ipynb")
                path.parent.mkdir(parents=True)
                path.write_text(f"{student}'s work")
            path = signatures_path(course, CHAPTER, student)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        journal.mark_stale([GONE, STAYS])
    (course.root / "journal" / f"{CHAPTER}.pages.json").write_text(json.dumps({GONE: "a", STAYS: "b"}))
    roster = read_roster(course)
    for student, number in ((GONE, "12"), (STAYS, "13")):
        roster[student] = replace(roster[student], participants={CHAPTER: number})
    write_roster(course, roster)
    (course.root / "worksheets").mkdir()
    (course.root / "worksheets" / f"{CHAPTER}.exported.json").write_text(json.dumps({"12": "1.00", "13": "2.00"}))
    (course.root / "marks").mkdir()
    mark = {"begin": {"id": "1", "changes": {GONE: {"before": 1}, STAYS: {"before": 2}}}}
    (course.root / "marks" / "journal.jsonl").write_text(
        json.dumps(mark) + "\n" + json.dumps({"committed": "1"}) + "\n"
    )
    intake = IntakeJournal(unowned={"/downloads/a.zip": ["Ann_1_03.ipynb", f"{NAME} _1_03.ipynb"]})
    for student in (GONE, STAYS):
        intake.pending.append(PendingSubmission(student, "/b.zip", f"{student}.ipynb", {"x": ("", "hash")}))
        intake.times[student] = "2026-10-24 18:00"
        intake.choices[student] = Choice("hash", ("hash",))
    write_journal(course, CHAPTER, intake)


def test_nothing_names_an_erased_student_and_the_others_stay(course_dir: Path, tmp_path: Path) -> None:
    course = Course.open(course_dir)
    filled(course, tmp_path)

    def run(*words: str) -> int:
        return CliRunner().invoke(main, [*words, "--course", str(course.root)]).exit_code

    assert run("report") == 1, "a file belongs to nobody"
    assert run("export") == 1
    before = next(grade for grade in read_grades(course, [CHAPTER]) if grade.student == STAYS)
    assert run("students", "--erase", NAME) == 2, "a name alone erases nobody"
    assert run("students", "--erase", "nobody") == 2
    assert run("students", "--erase", GONE, "--withdraw", STAYS) == 2
    assert GONE in read_roster(course)
    told = CliRunner().invoke(main, ["students", "--erase", GONE, "--json", "--course", str(course.root)])
    assert (told.exit_code, json.loads(told.stdout)["remaining"]) == (0, [])
    spelled = [text.encode() for text in (NAME, json.dumps(NAME)[1:-1], "zq@example.org", "Quagmire")]
    for path in sorted(path for path in course.root.rglob("*") if path.is_file()):
        content = path.read_bytes().replace(STAYS.encode(), b"")
        assert not [text for text in (GONE.encode(), *spelled) if text in content], path
        assert GONE not in path.relative_to(course.root).as_posix().replace(STAYS, "")
    assert read_grades(course, [CHAPTER]) == [before]
    assert [result.student for result in read_results(course, CHAPTER)] == [STAYS]
    assert set(submission_states(course, CHAPTER)) == {STAYS}
    assert last_worksheets(course, [CHAPTER]) == {CHAPTER: {"13": "2.00"}}
    assert set(VivaJournal(course, CHAPTER).conversations()) == {STAYS}
    intake = read_journal(course, CHAPTER)
    assert intake.unowned == {"/downloads/a.zip": ["Ann_1_03.ipynb"]}
    assert [item.student for item in intake.pending] == [*intake.times] == [*intake.choices] == [STAYS]
    marks = (course.root / "marks" / "journal.jsonl").read_text().splitlines()
    assert [list(json.loads(marks[0])["begin"]["changes"]), len(marks)] == [[STAYS], 2]
    assert "ours" in (course.root / "course.toml").read_text()
    assert (course.root / "submitted" / STAYS / CHAPTER / f"{CHAPTER}.ipynb").is_file()
    (course.root / "notes.txt").write_text(f"talk to {STAYS}")
    assert run("students", "--erase", STAYS) == 1, "a file of the lecturer's names them"
