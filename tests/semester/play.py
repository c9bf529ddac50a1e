"""Play a semester from an empty folder: the commands of ``book/semester.md``, and what a lecturer does between them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbgrader.api import Gradebook

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.questions import MarkState

from .changed_check import ChangedCheck
from .downloads import CANVAS_CHAPTER, Person, pack_canvas, pack_moodle, read_people, write_class_list
from .marking_page import mark_answers_in_words, mark_largest_group, marking_page

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
# The page has these, in this order.
COMMANDS = (
    "tfcourse assign 01 03 07",
    "tfcourse students class.csv",
    "tfcourse autograde 03 --submissions canvas.zip",
    "tfcourse autograde 03 --submissions canvas-again.zip",
    "tfcourse autograde 01 --submissions moodle.zip",
    "tfcourse mark 03",
    "tfcourse report",
    "tfcourse export",
    "tfcourse export --feedback canvas 03",
    "tfcourse regrade 03",
)
# The page mentions it, without its output.
DRY_RUN = "tfcourse regrade 03 --dry-run"
SEED = "3251450720898221488"
LATE_BY = "2026-11-18 10:00:00 UTC"  # A day and eleven hours after the deadline: two begun days.
COMMENT = "See lesson 03, section 3."
# The largest group of wrong answers to this exercise gets these points and this comment.
CODE_EXERCISE, CODE_POINTS, CODE_COMMENT = "causal_mask", 1.5, "Draw the mask for three tokens first."
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
        late: the ids of the late students on Canvas; the last one has an extension.
        marks: the state of every answer in words after marking, by student.
        group: the students whose wrong code behaves alike and gets one comment.
        code_marks: the state of every answer to that exercise after marking, by student.
        scores: points before the penalty and penalty in the Canvas chapter, before the regrade and after it.
    """

    folder: Path
    course: Course
    patch: pytest.MonkeyPatch
    people: Sequence[Person] = ()
    output: dict[str, str] = field(default_factory=dict)
    late: Sequence[str] = ()
    marks: dict[str, MarkState] = field(default_factory=dict)
    group: Sequence[str] = ()
    code_marks: dict[str, MarkState] = field(default_factory=dict)
    scores: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def run(self, *words: object) -> str:
        """Run a command in the course and return what it prints; it must succeed, or name work that has no grade."""
        done = CliRunner().invoke(main, [*map(str, words), "--course", str(self.course.root)])
        assert done.exit_code in (0, 1), f"{words}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done.stdout.replace(f"{self.course.root}", "course")

    def play(self, command: str) -> None:
        """Run one of the page's commands."""
        words = [
            str(self.folder / word) if word.endswith((".zip", ".csv")) else word for word in shlex.split(command)[1:]
        ]
        options = _OPTIONS if words[0] in ("autograde", "regrade") else ()
        self.output[command] = self.mark(words) if words[0] == "mark" else self.run(*words, *options)

    def mark(self, words: Sequence[str]) -> str:
        """Mark all answers in words, where groups get 0, 0.5, … points in turn, and the largest group of an exercise."""
        command = [str(Path(sys.executable).with_name("tfcourse")), *words, "--course", str(self.course.root)]
        with marking_page(command, PROJECT) as (address, printed):
            groups = mark_answers_in_words(address, lambda number: number % 5 / 2, COMMENT)
            code_groups = code_comments_step(self, address)
        self.marks, self.code_marks = self.answers(), self.code_answers()
        sizes = f"groups: {groups}\n{CODE_EXERCISE}: {code_groups} groups, the largest of {len(self.group)}\n"
        return printed.replace(address, "ADDRESS") + sizes

    def answers(self) -> dict[str, MarkState]:
        """Return what the gradebook has about every answer in words."""
        return {
            one.student: one.state
            for question in ChapterReader(self.course, CANVAS_CHAPTER).questions()
            if not question.is_code
            for one in question.answers
        }

    def code_answers(self) -> dict[str, MarkState]:
        """Return what the gradebook has about every answer to the exercise whose largest group gets a comment."""
        question = ChapterReader(self.course, CANVAS_CHAPTER).question(CODE_EXERCISE)
        assert question is not None
        return {answer.student: answer.state for answer in (*question.answers, *question.others)}

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
    before = {COMMANDS[1]: roster_step, COMMANDS[3]: _second_round, COMMANDS[9]: _change_check}
    for command in COMMANDS:
        if command in before:
            before[command](semester)
        semester.play(command)
    semester.scores.append(semester.canvas_scores())
    return semester


def roster_step(semester: Semester) -> None:
    """Have the class do its work in a copy of the course; write the class list and download the work."""
    workshop = semester.folder / "workshop"
    shutil.copytree(semester.course.root, workshop)
    words = ["sample-class", "01", "03", "--students", str(STUDENTS), "--course", str(workshop)]
    assert CliRunner().invoke(main, words).exit_code == 0
    semester.people = read_people(workshop)
    write_class_list(semester.folder / "class.csv", semester.people)
    semester.late = [person.canvas_id for person in semester.people if CANVAS_CHAPTER in person.late]
    pack_canvas(semester.folder / "canvas.zip", semester.people, {})
    pack_moodle(semester.folder / "moodle.zip", semester.people)


def code_comments_step(semester: Semester, address: str) -> int:
    """Give the largest group of an exercise points and a comment; return how many groups there are."""
    question = ChapterReader(semester.course, CANVAS_CHAPTER).question(CODE_EXERCISE)
    assert question is not None
    largest = max(question.groups, key=lambda group: len(group.members))
    assert any(semester.course.root.glob(f"journal/behaviour/{CANVAS_CHAPTER}/*.json"))
    semester.group = [answer.student for answer in largest.members]
    return mark_largest_group(address, CODE_EXERCISE, CODE_POINTS, CODE_COMMENT)


def _second_round(semester: Semester) -> None:
    """Write when late work came, grant an extension, and download what six students have handed in again."""
    for student in semester.late:
        stamp = semester.course.folder("submitted", student, CANVAS_CHAPTER) / "timestamp.txt"
        stamp.write_text(LATE_BY, encoding="utf-8")
    with (semester.course.root / "course.toml").open("a", encoding="utf-8") as plan:
        plan.write(f'\n[extensions."{semester.late[-1]}"]\n{CANVAS_CHAPTER} = 2026-11-20T23:59:00\n')
    pack_canvas(semester.folder / "canvas-again.zip", semester.people, dict(_improved(semester)))


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
    """Change a check, and see who would move; submissions are not run again, which other tests do."""
    semester.scores.append(semester.canvas_scores())
    semester.patch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    executor = ChangedCheck(semester.course)
    semester.patch.setattr(
        "autograder.grading.run._run_locally",
        lambda workers, settings, submissions: map(executor.grade_one, submissions),
    )
    semester.output[DRY_RUN] = semester.run(*shlex.split(DRY_RUN)[1:], *_OPTIONS)
    assert semester.canvas_scores() == semester.scores[-1]
