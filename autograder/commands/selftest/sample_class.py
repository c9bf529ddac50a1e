"""Generate a sample class whose submissions resemble real ones.

Everything is drawn from a seed, and every score can be predicted before anything is graded. So the class serves as a demonstration and as
a test of the whole path from submissions to the gradebook.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbgrader.api import Gradebook

from autograder.atomic_files import remove_stale_temp_files, write_all_or_none
from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.course.authoring.exercise_source import standalone_source
from autograder.course.authoring.rubrics import read_rubrics
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError, list_first
from autograder.grading.course_settings import add_seed, configured_settings
from autograder.intake.roster import Student, merge_collected, read_roster, safe_id, write_roster
from autograder.parallel import parallel_map

SAVED_AS = "sample_class.json"
DUE = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
# fmt: off
_FIRST = (
    "Amara", "Bjørn", "Chidi", "Dalia", "Emre", "Farah", "Goran", "Hana", "Ines", "Jamal", "Kaito", "Leilani", "Mateo", "Nadia",
    "Oluwaseun", "Paloma", "Qiang", "Ravi", "Saoirse", "Tomasz", "Uxía", "Viktor", "Wren", "Xochitl", "Yara", "Zoltán", "Anouk",
    "Birgit", "Cem", "Dilnoza", "Eitan", "Fatou", "Giulia", "Huda", "Ishaan", "Jun", "Katya", "Lwazi", "Mirembe", "Noor",
)
_LAST = (
    "Abara", "Bianchi", "Castillo", "Dang", "Eriksen", "Fontaine", "Ganbold", "Haddad", "Ivanov", "Jovanović", "Kamau", "Lindqvist",
    "Moreau", "Nakamura", "Okafor", "Petrov", "Quispe", "Rahman", "Sato", "Tadesse", "Ueda", "Varga", "Wójcik", "Xu", "Yılmaz",
    "Zapata", "Achterberg", "Benali", "Choudhury", "Demir",
)
# fmt: on
_WORDS = (
    "It keeps the numbers at a size that the softmax can work with.",
    "Without it the weights would sit on one key and nothing would be learned any more.",
    "I tried it in the notebook: with 64 columns the largest weight was 0.9, with 4 columns it was 0.4.",
    "I am not sure about the gradient, but the variance grows with the number of terms that are added.",
    "The mask is True where a query may attend, so the rest gets no weight at all.",
)

Kind = Literal["right", "mistake", "stub", "broken"]
# Oddities of a submission, apart from its solutions.
Oddity = Literal["", "late", "stripped", "not a notebook", "not handed in", "broken cell"]


@dataclass(frozen=True)
class ExpectedScore:
    """A student's work on one exercise and its expected score."""

    kind: Kind  # a right solution, a known mistake, the untouched stub, or a cell that Python cannot read
    score: float | None  # the points that the check must give; None for a known mistake without a prediction
    max_score: float  # the exercise's points
    mistake: str = ""  # the name of the known mistake, if any


@dataclass(frozen=True)
class SampleWork:
    """A student's work on one chapter."""

    oddity: Oddity = ""  # the oddity of the file; empty for most
    # the work and its expected score, by exercise; empty for a file that cannot be graded
    exercises: Mapping[str, ExpectedScore] = field(default_factory=dict)
    answered: tuple[str, ...] = ()  # the questions with an answer

    @property
    def gradable(self) -> bool:
        """Whether the file can be graded."""
        return self.oddity not in ("not a notebook", "not handed in")

    @property
    def score(self) -> float | None:
        """The expected total points, or None if a known mistake has no prediction."""
        if not self.gradable:
            return 0.0
        scores = [item.score for item in self.exercises.values() if item.score is not None]
        return float(sum(scores)) if len(scores) == len(self.exercises) else None


@dataclass(frozen=True)
class SampleStudent:
    """An invented student."""

    id: str  # the student's id
    name: str  # their invented name
    skill: float  # the probability of solving an exercise of medium difficulty
    chapters: Mapping[str, SampleWork]  # the work, by chapter

    def to_dict(self) -> dict[str, Any]:
        """Return the student as plain data, ready for JSON."""
        works = {chapter: {**asdict(work), "score": work.score} for chapter, work in self.chapters.items()}
        return {"id": self.id, "name": self.name, "skill": self.skill, "chapters": works}


def sample_class(
    root: Path, course: Course, chapters: Sequence[str], *, students: int = 24, seed: int = 0, predict: bool = False
) -> list[SampleStudent]:
    """Generate a class and write its submissions into a course.

    Args:
        root: the project; answers to questions are shortened model answers from its rubrics.
        course: the course, with the chapters released, and without submissions of others. A chapter without a due date gets one.
        chapters: names of chapters, in lecture order.
        students: number of students.
        seed: the same seed gives the same class.
        predict: whether to predict the scores of known mistakes, which takes longest and depends on the course's hidden tests.

    Returns:
        The students by id. ``sample_class.json`` in the course folder has them, and earlier ones whose submissions still exist.

    Raises:
        CourseError: if a chapter is not released, the course has real submissions, or a file cannot be written.
    """
    earlier = _read_earlier(course)
    released = {chapter: _read_release(course, chapter) for chapter in chapters}
    people = _draw_people(students, random.Random(f"people {seed}"))
    # Saved before the submissions: if a run is interrupted, the next one does not take its submissions for real students'.
    _save_students(course, earlier | {student: {"id": student} for student, _ in people})
    class_list = []
    for number, (student, name) in enumerate(people):
        rng = random.Random(f"{student} {seed}")
        skill = round(min(0.97, max(0.08, rng.betavariate(4.0, 2.0))), 3)
        works = {}
        for position, chapter in enumerate(chapters):
            work, notebook = _draw_work(
                rng, skill, released[chapter], _choose_oddity(number, position, len(chapters)), root, chapter
            )
            _write_submission(course, student, chapter, work, notebook, rng)
            works[chapter] = work
        class_list.append(SampleStudent(student, name, skill, works))
    class_list.sort(key=lambda student: student.id)
    if predict:
        # With the course's hidden questions: a mistake may fail on some and not on others.
        class_list = _add_scores(class_list, add_seed(course, configured_settings(course)).seed or 0)
    _set_due_dates(course, chapters)
    write_roster(
        course, merge_collected(read_roster(course), [Student(student.id, student.name) for student in class_list])
    )
    _save_students(course, earlier | {student.id: student.to_dict() for student in class_list})
    return class_list


def predict_scores(mistakes: Mapping[str, Sequence[str]], seed: int) -> dict[tuple[str, str], float]:
    """Predict the scores of known mistakes without running a notebook.

    Args:
        mistakes: names of misconceptions, by exercise.
        seed: the seed of the hidden tests.

    Returns:
        The scores, by exercise and misconception.
    """
    scores = parallel_map(_predict_question, [(name, names, seed) for name, names in mistakes.items()])
    return {(name, mistake): score for name, names in zip(mistakes, scores, strict=True) for mistake, score in names}


def _predict_question(question: tuple[str, Sequence[str], int]) -> list[tuple[str, float]]:
    name, mistakes, seed = question
    return [(mistake, _predict_score(name, mistake, seed)) for mistake in mistakes]


def _predict_score(name: str, mistake: str, seed: int) -> float:
    exercise = exercises()[name]
    wrong = next(item.implementation for item in exercise.misconceptions if item.name == mistake)
    # A diagnosis takes time and changes no points.
    alone = replace(exercise.sheet(hidden=True, seed=seed), misconceptions=(), plain=None)
    return decide(alone, LocalSubject(wrong)).score


def _add_scores(students: Sequence[SampleStudent], seed: int) -> list[SampleStudent]:
    """Return the students with the predicted scores of their known mistakes."""
    mistakes: dict[str, dict[str, None]] = {}
    for student in students:
        for work in student.chapters.values():
            for name, item in work.exercises.items():
                if item.mistake:
                    mistakes.setdefault(name, {})[item.mistake] = None
    scores = predict_scores({name: sorted(mistakes[name]) for name in exercises() if name in mistakes}, seed)

    def set_score(name: str, item: ExpectedScore) -> ExpectedScore:
        return replace(item, score=scores[name, item.mistake]) if item.mistake else item

    return [
        replace(
            student,
            chapters={
                chapter: replace(work, exercises={name: set_score(name, item) for name, item in work.exercises.items()})
                for chapter, work in student.chapters.items()
            },
        )
        for student in students
    ]


@cache
def _solution_code(name: str, mistake: str) -> str:
    exercise = exercises()[name]
    wrongs = {item.name: item.implementation for item in exercise.misconceptions}
    return standalone_source(wrongs[mistake] if mistake else exercise.reference, rename=name)


def _read_earlier(course: Course) -> dict[str, dict[str, Any]]:
    """Return the saved students who have submissions here, by id.

    Raises:
        CourseError: if one of them is not, or the saved list is damaged.
    """
    submitted = {path.name for path in course.folder("submitted").glob("*") if path.is_dir()}
    elsewhere = "Make the sample class in another course folder (--course)."
    saved_students: dict[str, dict[str, Any]] = {}
    saved = course.root / SAVED_AS
    if saved.is_file():
        try:
            saved_students = {item["id"]: item for item in json.loads(saved.read_text(encoding="utf-8"))}
        except (ValueError, TypeError, KeyError) as error:
            raise CourseError(f"this is not the list of a sample class ({error})", where=saved, do=elsewhere) from error
    if strangers := sorted(submitted - saved_students.keys()):
        raise CourseError(
            f"there are submissions of real students here: {list_first(strangers, 3)}",
            where=course.folder("submitted"),
            do=elsewhere,
        )
    return {student: item for student, item in saved_students.items() if student in submitted}


def _save_students(course: Course, students: Mapping[str, Mapping[str, Any]]) -> None:
    content = json.dumps([students[student] for student in sorted(students)], indent=1, ensure_ascii=False)
    _write_files({course.root / SAVED_AS: f"{content}\n".encode()})


def _write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files, all or none, and remove temporary files of a killed run."""
    remove_stale_temp_files(contents)
    try:
        write_all_or_none(contents)
    except CourseError as error:
        do = "Check the folder's permissions and free space, and run the command again."
        raise CourseError(error.what, where=error.where, do=do) from error


def _read_release(course: Course, chapter: str) -> Any:
    path = course.folder("release", ".", chapter) / f"{chapter}.ipynb"
    if not path.is_file():
        raise CourseError(
            f"chapter {chapter} is not released here",
            where=course.root,
            do=f"Release it first: {shell_command(course, 'assign', chapter)}",
        )
    return nbformat.read(path, as_version=4)


def _draw_people(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Return distinct ids and names, numbered in a class larger than the list of names."""
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    rng.shuffle(names)
    chosen = []
    for number in range(count):
        again, index = divmod(number, len(names))
        name = names[index] + (f" {again + 1}" if again else "")
        chosen.append((safe_id(name), name))
    return chosen


def _choose_oddity(number: int, position: int, chapters: int) -> Oddity:
    """Return a student's oddity, so that every class of eight or more has each of them."""
    last = position == chapters - 1
    if number in (1, 5):
        return "late"
    if number == 2:
        return "stripped"
    if number == 3 and last:
        return "not a notebook"
    if number == 4 and last and chapters > 1:
        return "not handed in"
    return "broken cell" if number == 6 and not position else ""


def _draw_work(
    rng: random.Random, skill: float, released: Any, oddity: Oddity, root: Path, chapter: str
) -> tuple[SampleWork, Any]:
    notebook = copy.deepcopy(released)
    stubs = [cell for cell in notebook.cells if cell.cell_type == "code" and _nbgrader_metadata(cell).get("solution")]
    checked = [cell for cell in stubs if _nbgrader_metadata(cell)["grade_id"] in exercises()]
    expected = {}
    for position, cell in enumerate(checked):
        exercise = exercises()[_nbgrader_metadata(cell)["grade_id"]]
        difficulty = position / max(1, len(checked) - 1)
        expected[exercise.name] = _write_solution(rng, skill, difficulty, exercise, cell)
    if oddity == "broken cell" and checked:
        expected[_truncate_code(checked[0])] = ExpectedScore(
            "broken", 0.0, exercises()[_nbgrader_metadata(checked[0])["grade_id"]].points
        )
    answers = tuple(_write_answers(rng, skill, notebook, root, chapter)) if oddity != "not a notebook" else ()
    if oddity == "stripped":
        _strip_metadata(notebook)
    work = SampleWork(oddity, expected, answers)
    return (work, notebook) if work.gradable else (SampleWork(oddity), notebook)


def _write_solution(
    rng: random.Random, skill: float, difficulty: float, exercise: Exercise, cell: Any
) -> ExpectedScore:
    """Write a random solution of an exercise into a cell, depending on skill."""
    chance = skill + 0.25 * (0.5 - difficulty)
    luck = rng.random()
    if luck < chance:
        cell.source = _solution_code(exercise.name, "")
        return ExpectedScore("right", exercise.points, exercise.points)
    if not exercise.misconceptions or luck > chance + (1 - chance) * 0.8:
        return ExpectedScore("stub", 0.0, exercise.points)
    # The first mistakes of a check are the most frequent ones.
    weights = [1 / (rank + 1.5) for rank in range(len(exercise.misconceptions))]
    mistake = rng.choices(exercise.misconceptions, weights)[0].name
    cell.source = _solution_code(exercise.name, mistake)
    # The score is predicted after all draws, if at all.
    return ExpectedScore("mistake", None, exercise.points, mistake)


def _truncate_code(cell: Any) -> str:
    """Truncate a cell's code in the middle of a line, and return its exercise."""
    cell.source = cell.source.rstrip() + "\n\nprint(result of the last line"
    return str(_nbgrader_metadata(cell)["grade_id"])


def _write_answers(rng: random.Random, skill: float, notebook: Any, root: Path, chapter: str) -> list[str]:
    rubrics = read_rubrics(root / "chapters" / chapter / "rubrics.md")
    names = []
    for cell in notebook.cells:
        mark = _nbgrader_metadata(cell)
        if not (mark.get("grade") and mark.get("solution")):
            continue
        model = rubrics[mark["grade_id"]].answer if mark["grade_id"] in rubrics else ""
        paragraphs = [part for part in model.split("\n\n") if part.strip()]
        if rng.random() > 0.35 + 0.65 * skill:
            continue
        if paragraphs and rng.random() < skill:
            cell.source = "\n\n".join(paragraphs[: rng.randint(1, len(paragraphs))])
        else:
            cell.source = " ".join(rng.sample(_WORDS, rng.randint(1, 3)))
        names.append(mark["grade_id"])
    return names


def _nbgrader_metadata(cell: Any) -> Mapping[str, Any]:
    mark: Mapping[str, Any] = cell.metadata.get("nbgrader", {})
    return mark


def _strip_metadata(notebook: Any) -> None:
    """Remove metadata and change ids as Colab does."""
    notebook.metadata = {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {"id": f"c0LAB{number}"}
        cell.pop("id", None)
    notebook.nbformat_minor = 0


def _write_submission(
    course: Course, student: str, chapter: str, work: SampleWork, notebook: Any, rng: random.Random
) -> None:
    hours = rng.uniform(0.5, 70.0)
    folder = course.folder("submitted", student, chapter)
    if work.oddity == "not handed in":
        for old in folder.glob("*"):
            old.unlink()
        if folder.is_dir():
            folder.rmdir()
        return
    moment = DUE + timedelta(hours=hours / 3) if work.oddity == "late" else DUE - timedelta(hours=hours)
    handed_in = nbformat.writes(notebook).encode()
    if work.oddity == "not a notebook":
        handed_in = b"%PDF-1.7\n% exported by mistake: File, Download, PDF\n"
    stamp = moment.strftime("%Y-%m-%d %H:%M:%S UTC").encode()
    _write_files({folder / "timestamp.txt": stamp, folder / f"{chapter}.ipynb": handed_in})


def _set_due_dates(course: Course, chapters: Sequence[str]) -> None:
    with Gradebook(course.gradebook_url, str(course.config().CourseDirectory.get("course_id", ""))) as gradebook:
        for chapter in chapters:
            assignment = gradebook.find_assignment(chapter)
            if assignment.duedate is None:
                assignment.duedate = DUE.replace(tzinfo=None)
        gradebook.db.commit()
