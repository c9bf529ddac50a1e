"""Make the questions for each student of a graded chapter, with runs in the sandbox, and store them in one file per student."""

from __future__ import annotations

import hashlib
import json
import secrets
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError
from autograder.grading.record.results import GradeResult, read_results
from autograder.grading.record.viva_journal import VivaJournal
from autograder.grading.run import MakeExecutor, run_submissions
from autograder.grading.submissions import read_submitted_companions
from autograder.intake.downloads.archive import escape_unprintable
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.test_cells import is_locked, is_test
from autograder.intake.roster import read_roster
from autograder.limited_process import FailedCallError, LimitedProcess
from autograder.quizzes.questions.question import Question
from autograder.quizzes.questions.quiz import ENOUGH
from autograder.quizzes.viva.told_facts import DefinitionQuestions, choose_definitions, make_questions_by_definition

# The maximum number of characters of facts.
_KEPT_OUTPUT = 2_000_000
# CPU time limits for reading a notebook's definitions, and for making questions from facts.
_READING_SECONDS, _MAKING_SECONDS = 4.0, 8.0
# The default number of questions per student.
USUAL = 4
# Increased whenever the same code would get other questions.
_VERSION = 2
_MODULE = "autograder.quizzes.questions.with_recordings"


@dataclass(frozen=True)
class Interview:
    """The questions for one student."""

    student: str
    name: str  # the student's name, or the id
    parts: tuple[DefinitionQuestions, ...] = ()  # the questions by definition
    problem: str = ""  # the reason why there are too few questions, or empty
    made_from: str = ""  # a hash of all inputs of the questions
    requested: int = USUAL  # the number of questions that the lecturer has chosen

    @property
    def questions(self) -> list[tuple[str, Question]]:
        """The questions in order, each with its exercise."""
        return [(part.exercise, question) for part in self.parts for question in part.questions]

    @property
    def count(self) -> int:
        """The number of questions."""
        return sum(len(part.questions) for part in self.parts)


def interview_folder(course: Course, chapter: str) -> Path:
    """Return the path of a chapter's interview folder."""
    return course.root / "viva" / chapter


def last_question_count(course: Course, chapter: str) -> int:
    """Return the number of questions per student that was last used for a chapter."""
    try:
        newest = max(
            (interview_folder(course, chapter) / "students").glob("*.json"), key=lambda path: path.stat().st_mtime
        )
        return int(json.loads(newest.read_text(encoding="utf-8"))["requested"])
    except (OSError, ValueError, KeyError, TypeError):
        return USUAL


def make_interviews(
    course: Course,
    chapter: str,
    count: int,
    settings: GradingSettings,
    *,
    report: Callable[[str], None] = lambda student: None,
    make_executor: MakeExecutor | None = None,
    workers: WorkerPool | None = None,
) -> list[Interview]:
    """Make the interviews of all students of a graded chapter who have not withdrawn, ordered by student.

    Earlier questions are kept if the code is unchanged, or if the student has answered one of them.

    Args:
        chapter: the chapter's name.
        count: the number of questions per student.
        settings: the grading settings, with the chapter's seed and student package.
        report: called with each student's id when their questions are ready.
        make_executor: creates the executors, instead of worker processes.
        workers: running worker processes, which keep running.

    Raises:
        CourseError: if no submission of the chapter is graded, or its student package cannot make questions.
    """
    roster = read_roster(course)
    gone = {student for student, item in roster.items() if item.state}
    results = [one for one in read_results(course, chapter) if one.status == "graded" and one.student not in gone]
    if not results:
        raise CourseError(
            f"nothing of {chapter} is graded",
            where=course.root / "results" / chapter,
            do=f"Grade it first: {shell_command(course, 'autograde', chapter)}",
        )
    answered = {name for name, talk in VivaJournal(course, chapter).conversations().items() if talk.begun}
    names = {student: item.name for student, item in roster.items()}
    made: dict[str, Interview] = {}
    waiting: dict[str, _Task] = {}
    with LimitedProcess(make_questions_by_definition.__module__) as process:
        process.start()
        for result in results:
            task = _make_task(course, result, count, settings, names.get(result.student) or result.student, process)
            kept = _read_interview(course, chapter, task, whatever=task.student in answered)
            if kept is not None or not task.sources:
                made[task.student] = kept or task.make_interview(task.problem)
            else:
                waiting[task.student] = task
        if waiting:
            _require_questions(course, chapter, settings)
        for done in made:
            report(done)
        settings = replace(settings, kept_output=_KEPT_OUTPUT)
        for execution in run_submissions(
            make_executor, settings, _build_submissions(course, waiting.values()), workers
        ):
            task = waiting[execution.student]
            made[task.student] = _make_interview(task, execution, settings.package, process)
            _write_interview(course, chapter, made[task.student])
            report(task.student)
    return [made[student] for student in sorted(made)]


def _require_questions(course: Course, chapter: str, settings: GradingSettings) -> None:
    """Raise an error if the student package lacks the module that collects facts."""
    if settings.package:
        with zipfile.ZipFile(settings.package) as wheel:
            if _MODULE.replace(".", "/") + ".py" in wheel.namelist():
                return
    raise CourseError(
        f"{chapter} has no student package that can make questions about students' code",
        where=course.folder("student", chapter=chapter),
        do=f"Make it again: {shell_command(course, 'assign', chapter)}",
    )


@dataclass(frozen=True)
class _Task:
    """The code and settings for one student's questions."""

    student: str
    chapter: str
    name: str
    notebook: str
    sources: Mapping[str, str]
    count: int
    seed: str
    mark: str
    made_from: str
    problem: str  # the reason if there are no definitions to ask about

    def make_interview(self, problem: str = "", parts: Sequence[DefinitionQuestions] = ()) -> Interview:
        return Interview(self.student, self.name, tuple(parts), escape_unprintable(problem), self.made_from, self.count)


def _make_task(
    course: Course, result: GradeResult, count: int, settings: GradingSettings, name: str, process: LimitedProcess
) -> _Task:
    seed = f"{settings.seed} {result.chapter} {result.student}"
    mark = secrets.token_hex(16)
    path = course.folder("autograded", result.student, result.chapter) / f"{result.chapter}.ipynb"
    good = [item.name for item in result.exercises if item.max_score and item.score >= ENOUGH * item.max_score]
    sources: dict[str, str] = {}
    problem = "no exercise has nine tenths of its points and code of its own"
    try:
        read = nbformat.read(path, as_version=4)
        cells = [cell.source for cell in read.cells if _is_own(cell)]
        sources = process.call(choose_definitions, cells, good, seed, seconds=_READING_SECONDS)
        notebook = _add_question_cells(read, sources, mark, count)
    except FailedCallError as error:
        problem, notebook = f"the code could not be read for questions, because {error}", ""
    except Exception as error:  # a graded notebook that was damaged afterwards
        sources, notebook = {}, f"{type(error).__name__}"
    key = [_VERSION, seed, count, sources, result.submission, settings.package and Path(settings.package).name]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return _Task(result.student, result.chapter, name, notebook, sources, count, seed, mark, digest, problem)


def _is_own(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and not is_test(cell) and not is_locked(cell)


def _add_question_cells(notebook: NotebookNode, sources: Mapping[str, str], mark: str, enough: int) -> str:
    """Return a notebook, as JSON, that runs a student's cells without tests, and then prints facts about their code.

    Args:
        notebook: the graded notebook.
        sources: the definitions by exercise.
        mark: the beginning of a line with facts, and a part of the loaded function's name.
        enough: the number of questions to reach.
    """
    cells = [cell.copy() for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
    for cell in cells:
        cell.outputs, cell.execution_count = [], None
    load = f"from {_MODULE} import sealed as _{mark}\n_{mark} = _{mark}()"
    call = f"_{mark}({dict(sources)!r}, globals(), {mark!r}, {enough})"
    copy = notebook.copy()
    copy.cells = [new_code_cell(load, id="questions-load"), *cells, new_code_cell(call, id="questions")]
    copy.metadata = {}
    return json.dumps(copy)


def _build_submissions(course: Course, tasks: Iterable[_Task]) -> Iterator[Submission]:
    for task in tasks:
        path = submitted_notebook(course, task.chapter, task.student)
        files = read_submitted_companions(course, task.chapter, path).files if path.parent.is_dir() else {}
        yield Submission(task.student, task.chapter, task.notebook, files)


def _make_interview(task: _Task, execution: Execution, package: str, process: LimitedProcess) -> Interview:
    """Make an interview from the output of one run, which is verified because student code may have printed it."""
    if not execution.notebook:
        return task.make_interview(execution.failure)
    outputs = json.loads(execution.notebook)["cells"][-1].get("outputs", [])
    printed = "".join(_output_text(output) for output in outputs if output.get("output_type") == "stream")
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if errors and task.mark not in printed:
        text = f"{errors[0].get('ename')}: {errors[0].get('evalue')}"[:200]
        return task.make_interview(f"the code could not be run for questions ({text})")
    try:
        made = process.call(
            make_questions_by_definition,
            printed,
            task.mark,
            task.sources,
            package,
            task.seed,
            task.count,
            seconds=_MAKING_SECONDS,
        )
    except FailedCallError as error:
        return task.make_interview(f"no questions could be made of the code, because {error}")
    parts = msgspec.convert(made, list[DefinitionQuestions])
    asked = sum(len(part.questions) for part in parts)
    return task.make_interview(
        "" if asked == task.count else f"the code gives {asked} of {task.count} questions", parts
    )


def _output_text(output: Mapping[str, Any]) -> str:
    text: str | Sequence[str] = output.get("text", "")
    return text if isinstance(text, str) else "".join(text)


def _interview_path(course: Course, chapter: str, student: str) -> Path:
    return interview_folder(course, chapter) / "students" / f"{student}.json"


def _write_interview(course: Course, chapter: str, interview: Interview) -> None:
    path = _interview_path(course, chapter, interview.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(interview), indent=1).encode(), durable=False)


def _read_interview(course: Course, chapter: str, task: _Task, *, whatever: bool) -> Interview | None:
    """Read the earlier interview about the same code, or with ``whatever`` about any code; None if there is no such interview."""
    try:
        kept = msgspec.json.decode(_interview_path(course, chapter, task.student).read_bytes(), type=Interview)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return replace(kept, name=task.name) if whatever or kept.made_from == task.made_from else None
