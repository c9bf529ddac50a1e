"""Play a semester from an empty folder: the commands of ``book/semester.md``, and what a lecturer does between them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbgrader.api import Gradebook

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.marking.questions import MarkState, read_questions

from .agreement import Agreement, numbers_agree
from .changed_check import ChangedCheck
from .downloads import CANVAS_CHAPTER, Person, pack_canvas, pack_moodle, read_people
from .marking_page import mark_everything, marking_page

PROJECT = Path(__file__).resolve().parents[2]
STUDENTS = 40
PLAN = """\
title = "Deep learning, winter term"
time_zone = "Europe/Warsaw"

[late]
per_day = 0.10                  # each begun day takes off a tenth
cap = 0.50                      # and never more than half

[chapters.01_recurrent]
only = ["rnn_cell", "clip_gradient_norm", "gru_cell"]
due = 2026-11-02T23:59:00

[chapters.03_scaled_dot_product]
only = ["soft_lookup", "causal_mask", "padding_mask", "question_query_key"]
due = 2026-11-16T23:59:00

[chapters.07_decoding]
only = ["length_penalty", "temperature", "top_k"]
due = 2027-01-18T23:59:00
"""
# The page has these, in this order. The roster's command, `tfcourse students FILE`, goes behind the first one.
COMMANDS = (
    "tfcourse assign 01 03 07",
    "tfcourse autograde 03 --submissions canvas.zip",
    "tfcourse autograde 03 --submissions canvas-again.zip",
    "tfcourse autograde 01 --submissions moodle.zip",
    "tfcourse mark 03",
    "tfcourse report",
    "tfcourse export",
    "tfcourse export --feedback canvas 03",
    "tfcourse regrade 03 --dry-run",
    "tfcourse regrade 03",
)
SEED = "3251450720898221488"
# After these the feedback pages must show what the gradebook has. Marks reach them with the next of these commands.
RENEWS_PAGES = ("autograde", "export --feedback", "regrade 03")
LATE_BY = "2026-11-18 10:00:00 UTC"  # A day and eleven hours after the deadline: two begun days.
COMMENT = "See lesson 03, section 3."
# The limits of a test machine. Grading needs no accelerator and takes what isolation there is.
_OPTIONS = ("--device", "cpu", "--jobs", "2", "--allow-weaker-isolation")


@dataclass
class Semester:
    """What is there while it is played, and what came of it.

    Attributes:
        folder: the downloads, the workshop in which the class is invented, and the exports.
        course: the course.
        patch: changes what the commands use.
        people: the class.
        output: what each command printed.
        agreements: what the comparison after each command came to.
        late: the ids of the late students on Canvas; the last one has an extension.
        again: the ids of those who handed in twice.
        marks: the state of every answer after marking, by student.
        scores: points before the penalty and penalty in the Canvas chapter, before the regrade and after it.
    """

    folder: Path
    course: Course
    patch: pytest.MonkeyPatch
    people: Sequence[Person] = ()
    output: dict[str, str] = field(default_factory=dict)
    agreements: dict[str, Agreement] = field(default_factory=dict)
    late: Sequence[str] = ()
    again: Mapping[str, bytes] = field(default_factory=dict)
    marks: dict[str, MarkState] = field(default_factory=dict)
    scores: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def run(self, *words: object) -> str:
        """Run a command in the course and return what it prints; it must succeed."""
        done = CliRunner().invoke(main, [*map(str, words), "--course", str(self.course.root)])
        assert done.exit_code == 0, f"{words}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        return done.stdout.replace(f"{self.course.root}", "course")

    def play(self, command: str) -> None:
        """Run one of the page's commands, and compare the numbers after it."""
        words = [str(self.folder / word) if word.endswith(".zip") else word for word in shlex.split(command)[1:]]
        options = _OPTIONS if words[0] in ("autograde", "regrade") else ()
        self.output[command] = self.mark(words) if words[0] == "mark" else self.run(*words, *options)
        if words[0] == "assign":
            return
        exports = self.folder / "exports" / str(len(self.agreements))
        pages = any(command.startswith(f"tfcourse {renews}") for renews in RENEWS_PAGES) and "--dry-run" not in command
        self.agreements[command] = numbers_agree(self.course, self.run, exports, pages=pages)

    def mark(self, words: Sequence[str]) -> str:
        """Mark all answers on the page; groups get 0, 0.5, … points in turn."""
        command = [str(Path(sys.executable).with_name("tfcourse")), *words, "--course", str(self.course.root)]
        with marking_page(command, PROJECT) as (address, printed):
            groups = mark_everything(address, lambda number: number % 5 / 2, COMMENT)
            code_comments_step(self, address)
        self.marks = self.answers()
        return printed.replace(address, "ADDRESS") + f"groups: {groups}\n"

    def answers(self) -> dict[str, MarkState]:
        """Return what the gradebook has about every answer in words."""
        return {
            one.student: one.state
            for question in read_questions(self.course, CANVAS_CHAPTER)
            for one in question.answers
        }

    def canvas_scores(self) -> dict[str, tuple[float, float]]:
        """Return points before the penalty and penalty by student, in the Canvas chapter."""
        with Gradebook(self.course.gradebook_url, "tfcourse") as gradebook:
            submissions = gradebook.assignment_submissions(CANVAS_CHAPTER)
            return {one.student_id: (one.score, one.late_submission_penalty or 0.0) for one in submissions}


def play_semester(folder: Path, patch: pytest.MonkeyPatch) -> Semester:
    """Play all commands in order, with what a lecturer does between them."""
    semester = Semester(folder, Course(folder / "course"), patch)
    semester.course.root.mkdir()
    (semester.course.root / "course.toml").write_text(PLAN, encoding="utf-8")
    # The same hidden questions every time, so that the page shows what the commands print.
    (semester.course.root / "secret_seed").write_text(SEED, encoding="ascii")
    before = {COMMANDS[1]: _first_round, COMMANDS[2]: _second_round, COMMANDS[8]: _change_check}
    for command in COMMANDS:
        if command in before:
            before[command](semester)
        semester.play(command)
    semester.scores.append(semester.canvas_scores())
    return semester


def roster_step(semester: Semester) -> None:
    """Stand where the roster is read, as soon as there is a command for that."""


def code_comments_step(semester: Semester, address: str) -> None:
    """Stand where groups of code answers get comments, as soon as the marking page shows them."""


def _first_round(semester: Semester) -> None:
    """Have the class do its work in a copy of the course, and download it."""
    roster_step(semester)
    workshop = semester.folder / "workshop"
    shutil.copytree(semester.course.root, workshop)
    words = ["sample-class", "01", "03", "--students", str(STUDENTS), "--course", str(workshop)]
    assert CliRunner().invoke(main, words).exit_code == 0
    semester.people = read_people(workshop)
    semester.late = [person.canvas_id for person in semester.people if CANVAS_CHAPTER in person.late]
    pack_canvas(semester.folder / "canvas.zip", semester.people, {})
    pack_moodle(semester.folder / "moodle.zip", semester.people)


def _second_round(semester: Semester) -> None:
    """Write when late work came, grant an extension, and download what six students have handed in again."""
    for student in semester.late:
        stamp = semester.course.folder("submitted", student, CANVAS_CHAPTER) / "timestamp.txt"
        stamp.write_text(LATE_BY, encoding="utf-8")
    with (semester.course.root / "course.toml").open("a", encoding="utf-8") as plan:
        plan.write(f'\n[extensions."{semester.late[-1]}"]\n{CANVAS_CHAPTER} = 2026-11-20T23:59:00\n')
    semester.again = dict(_improved(semester))
    pack_canvas(semester.folder / "canvas-again.zip", semester.people, semester.again)


def _improved(semester: Semester) -> Iterator[tuple[str, bytes]]:
    """Yield the second notebooks of six students: the whole class's best code, and their own answers."""
    scores = semester.canvas_scores()
    works = {person.canvas_id: person.works.get(CANVAS_CHAPTER, b"") for person in semester.people}
    best = _code(works[max(scores, key=lambda student: scores[student][0])])
    weak = sorted(scores.keys() - set(semester.late), key=lambda student: (scores[student][0], student))
    for student in weak[:6]:
        if works[student].startswith(b"{"):
            notebook = nbformat.reads(works[student].decode(), as_version=4)
            for cell in notebook.cells:
                cell.source = best.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""), cell.source)
            yield student, nbformat.writes(notebook).encode()


def _code(notebook: bytes) -> dict[str, str]:
    cells = nbformat.reads(notebook.decode(), as_version=4).cells
    return {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    }


def _change_check(semester: Semester) -> None:
    """Change a check; submissions are not run again, which other tests do."""
    semester.scores.append(semester.canvas_scores())
    semester.patch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    executor = ChangedCheck(semester.course)
    semester.patch.setattr(
        "autograder.grading.dispatch._executions_here",
        lambda workers, settings, submissions: map(executor.grade_one, submissions),
    )
