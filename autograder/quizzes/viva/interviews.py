"""Make the questions for each student of a graded chapter, in the sandbox, and keep them: one file per student."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from autograder.grading.run import MakeExecutor, executions
from autograder.grading.submissions import files_of
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.test_cells import is_locked, is_test
from autograder.intake.roster import read_roster
from autograder.quizzes.questions.code import Code, without_own_decorators
from autograder.quizzes.questions.facts import Facts
from autograder.quizzes.questions.kinds import questions
from autograder.quizzes.questions.lines import layout
from autograder.quizzes.questions.question import Question
from autograder.quizzes.questions.quiz import ENOUGH
from autograder.static_analysis.cell_ast import UnreadableCellError, parse_cell

# The exercises whose code is run for a student: the further ones, only if the first does not give enough questions.
_MOST_EXERCISES = 3
# Definitions with fewer lines than this come last.
_FEW_LINES = 4
# Characters that facts and a text within them may have.
_KEPT_OUTPUT, _LONGEST_TEXT = 2_000_000, 4_000
# The number of questions per student, unless another one is chosen.
USUAL = 4
# Changes whenever other questions would be made of the same code.
_VERSION = 1
_CELL = "questions-about-own-code"


@dataclass(frozen=True)
class Part:
    """The questions about one definition."""

    exercise: str
    source: str  # the student's code
    hidden_lines: tuple[int, ...]  # the lines of its docstrings
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Interview:
    """The questions for one student."""

    student: str
    name: str  # the student's name, or the id
    parts: tuple[Part, ...] = ()  # the questions by definition
    problem: str = ""  # why there are too few questions, or empty
    made_from: str = ""  # a hash of everything that the questions depend on
    requested: int = USUAL  # the number of questions that the lecturer has chosen

    @property
    def questions(self) -> list[tuple[str, Question]]:
        """The questions in order, each with its exercise."""
        return [(part.exercise, question) for part in self.parts for question in part.questions]

    @property
    def count(self) -> int:
        """The number of questions."""
        return sum(len(part.questions) for part in self.parts)


def folder_of(course: Course, chapter: str) -> Path:
    """Return the folder of a chapter's interviews."""
    return course.root / "viva" / chapter


def usual_count(course: Course, chapter: str) -> int:
    """Return the number of questions per student that was chosen last for a chapter."""
    try:
        newest = max((folder_of(course, chapter) / "students").glob("*.json"), key=lambda path: path.stat().st_mtime)
        return int(json.loads(newest.read_text(encoding="utf-8"))["requested"])
    except (OSError, ValueError, KeyError, TypeError):
        return USUAL


def interviews(
    course: Course,
    chapter: str,
    count: int,
    settings: GradingSettings,
    *,
    report: Callable[[str], None] = lambda student: None,
    make_executor: MakeExecutor | None = None,
    workers: WorkerPool | None = None,
) -> list[Interview]:
    """Return the questions for every student of a graded chapter who has not withdrawn, ordered by student.

    Earlier questions about the same code are kept. A student who has answered a question keeps them in any case.

    Args:
        chapter: the chapter's name.
        count: the number of questions per student.
        settings: the settings of a run, with the chapter's seed and student package.
        report: called with each student's id when their questions are ready.
        make_executor: creates the executors, instead of worker processes.
        workers: running worker processes, which stay.

    Raises:
        CourseError: if nothing of the chapter is graded, or its student package has no questions.
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
    for result in results:
        task = _task(course, result, count, settings, names.get(result.student) or result.student)
        kept = _read(course, chapter, task, whatever=task.student in answered)
        if kept is not None or not task.sources:
            made[task.student] = kept or task.interview("no exercise has nine tenths of its points and code of its own")
        else:
            waiting[task.student] = task
    for done in made:
        report(done)
    settings = replace(settings, kept_output=_KEPT_OUTPUT)
    for execution in executions(make_executor, settings, _submissions(course, waiting.values()), workers):
        task = waiting[execution.student]
        made[task.student] = _made(course, task, execution)
        _write(course, chapter, made[task.student])
        report(task.student)
    return [made[student] for student in sorted(made)]


@dataclass(frozen=True)
class _Task:
    """What is to be done for one student."""

    student: str
    chapter: str
    name: str
    notebook: str
    sources: Mapping[str, str]
    count: int
    seed: str
    mark: str
    made_from: str

    def interview(self, problem: str = "", parts: Sequence[Part] = ()) -> Interview:
        return Interview(self.student, self.name, tuple(parts), problem, self.made_from, self.count)


def _task(course: Course, result: GradeResult, count: int, settings: GradingSettings, name: str) -> _Task:
    seed = f"{settings.seed} {result.chapter} {result.student}"
    mark = secrets.token_hex(16)
    path = course.folder("autograded", result.student, result.chapter) / f"{result.chapter}.ipynb"
    sources: dict[str, str] = {}
    notebook = ""
    try:
        read = nbformat.read(path, as_version=4)
        good = [item.name for item in result.exercises if item.max_score and item.score >= ENOUGH * item.max_score]
        sources = _chosen(_own_definitions(read, good), seed)
        notebook = _with_questions(read, sources, mark, count)
    except Exception as error:  # a graded notebook that was damaged afterwards
        sources = {}
        notebook = f"{type(error).__name__}"
    key = [_VERSION, seed, count, sources, result.submission, settings.package and Path(settings.package).name]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return _Task(result.student, result.chapter, name, notebook, sources, count, seed, mark, digest)


def _own_definitions(notebook: NotebookNode, names: Collection[str]) -> dict[str, str]:
    """Return the code of exercises in a student's cells, by exercise; of several definitions the last one counts.

    Args:
        notebook: the graded notebook.
        names: the exercises to look for.
    """
    found: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or is_test(cell) or is_locked(cell):
            continue
        # A cell or a definition that cannot be read has no questions.
        with suppress(UnreadableCellError, SyntaxError, ValueError, RecursionError, AssertionError):
            tree = parse_cell(cell.source)
            lines = cell.source.split("\n")
            for node in tree.body if tree is not None else ():
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
                    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                    found[node.name] = without_own_decorators("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def _with_questions(notebook: NotebookNode, sources: Mapping[str, str], mark: str, enough: int) -> str:
    """Return a notebook, as JSON, that runs a student's cells without tests and then prints facts about their code.

    Args:
        notebook: the graded notebook.
        sources: the definitions by exercise.
        mark: the beginning of a line with facts.
        enough: so many questions are wanted.
    """
    cells = [cell.copy() for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
    for cell in cells:
        cell.outputs, cell.execution_count = [], None
    call = (
        "from autograder.quizzes.questions.with_recordings import print_facts as __print_facts\n"
        f"__print_facts({dict(sources)!r}, globals(), {mark!r}, {enough})"
    )
    cells.append(new_code_cell(call, id=_CELL))
    copy = notebook.copy()
    copy.cells, copy.metadata = cells, {}
    return json.dumps(copy)


def _printed_facts(notebook: Mapping[str, Any], mark: str) -> list[Mapping[str, Any]]:
    """Return the facts that the last cell of an executed notebook printed; malformed lines are left out.

    Raises:
        LookupError: if the cell ended with an error; the text gives it.
    """
    outputs = notebook["cells"][-1].get("outputs", [])
    text = "".join(_text(output) for output in outputs if output.get("output_type") == "stream")
    facts: list[Mapping[str, Any]] = []
    for line in text.split("\n"):
        if line.startswith(mark):
            try:
                one = json.loads(line.removeprefix(mark))
            except (ValueError, RecursionError):
                continue
            facts += [one] if isinstance(one, dict) else []
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if errors and not facts:
        raise LookupError(f"{errors[0].get('ename')}: {errors[0].get('evalue')}")
    return facts


def _text(output: Mapping[str, Any]) -> str:
    text: str | Sequence[str] = output.get("text", "")
    return text if isinstance(text, str) else "".join(text)


def _chosen(found: Mapping[str, str], seed: str) -> dict[str, str]:
    """Return some definitions in a random order, the shortest ones last."""
    rng = random.Random(seed)
    names = rng.sample(sorted(found), len(found))
    ordered = sorted(names, key=lambda name: _lines_of_code(found[name]) < _FEW_LINES)
    return {name: found[name] for name in ordered[:_MOST_EXERCISES]}


def _lines_of_code(source: str) -> int:
    return len(layout(Code("", source, {}).tree).statements)


def _submissions(course: Course, tasks: Iterable[_Task]) -> Iterator[Submission]:
    for task in tasks:
        path = submitted_notebook(course, task.chapter, task.student)
        files = files_of(course, task.chapter, path).files if path.parent.is_dir() else {}
        yield Submission(task.student, task.chapter, task.notebook, files)


def _made(course: Course, task: _Task, execution: Execution) -> Interview:
    """Return the questions made of what one run printed. Nothing that it printed is believed without a look."""
    if not execution.notebook:
        return task.interview(execution.failure)
    try:
        printed = _printed_facts(json.loads(execution.notebook), task.mark)
    except LookupError as error:
        if "autograder.quizzes.questions" in str(error):
            raise CourseError(
                f"the students' package of {task.chapter} is older than the questions about students' code",
                where=course.folder("student", chapter=task.chapter),
                do=f"Make it again: {shell_command(course, 'assign', task.chapter)}",
            ) from None
        return task.interview(f"the code could not be run for questions ({error})"[:300])
    parts: list[Part] = []
    for data, (exercise, source) in zip(printed, task.sources.items(), strict=False):
        lacking = task.count - sum(len(part.questions) for part in parts)
        part = _part(data, exercise, source, task.seed, lacking) if lacking > 0 else None
        parts += [part] if part is not None and part.questions else []
    made = sum(len(part.questions) for part in parts)
    problem = "" if made == task.count else f"the code gives {made} of {task.count} questions"
    return task.interview(problem, parts)


def _part(data: Mapping[str, Any], exercise: str, source: str, seed: str, count: int) -> Part | None:
    try:
        facts = checked_facts(data, exercise, source)
        chosen = questions(facts, seed, count)
    except Exception:  # student code can print facts of any form
        return None
    return Part(exercise, source, facts.hidden_lines, tuple(chosen))


def checked_facts(data: Mapping[str, Any], exercise: str, source: str) -> Facts:
    """Return printed facts, with the code and its lines as they were handed in.

    Raises:
        ValueError: if they cannot be facts about this code.
    """
    facts = msgspec.convert(data, Facts, str_keys=True)
    parts = layout(Code(exercise, source, {}).tree)
    lines = range(1, source.count("\n") + 2)
    texts = [text for run in facts.runs for point in run.points for text in (point.text, point.shown, point.sort)]
    texts += [text for change in facts.changes for text in (change.before, change.after, change.outcome, change.seen)]
    texts += [text for run in facts.runs for text in (run.input, run.result, *run.parameters)]
    texts += [*facts.rows, *facts.rows.values()]
    used = {point.line for run in facts.runs for point in run.points} | {change.line for change in facts.changes}
    if (
        facts.source != source
        or any(line not in lines for line in used)
        or max(map(len, texts), default=0) > _LONGEST_TEXT
    ):
        raise ValueError("these are no facts about this code")
    statements = tuple(parts.statements[line] for line in sorted(parts.statements))
    return replace(facts, exercise=exercise, statements=statements, hidden_lines=tuple(sorted(parts.docstring)))


def _path(course: Course, chapter: str, student: str) -> Path:
    return folder_of(course, chapter) / "students" / f"{student}.json"


def _write(course: Course, chapter: str, interview: Interview) -> None:
    path = _path(course, chapter, interview.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(interview), indent=1).encode(), durable=False)


def _read(course: Course, chapter: str, task: _Task, *, whatever: bool) -> Interview | None:
    """Return earlier questions about the same code, or about whatever code; None if the student has no such questions."""
    try:
        kept = msgspec.json.decode(_path(course, chapter, task.student).read_bytes(), type=Interview)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return replace(kept, name=task.name) if whatever or kept.made_from == task.made_from else None
