"""An invented class that hands in what real classes hand in: right solutions, known mistakes, gaps, and a few damaged files.

Everything is drawn from a seed, and every score can be predicted from what was drawn, before anything is graded. So the class serves as a
demonstration and as a test of the whole way from submissions to the gradebook.
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
from autograder.authoring.exercise_source import standalone_source
from autograder.authoring.rubrics import read_rubrics
from autograder.checking.exercise import Exercise
from autograder.checking.sheet import decide
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.collecting.roster import Student, merged, read_roster, safe_id, write_roster
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.grading.course_settings import configured_settings, with_seed
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
# What is odd about a submission, apart from its solutions.
Oddity = Literal["", "late", "stripped", "not a notebook", "not handed in", "broken cell"]


@dataclass(frozen=True)
class Expected:
    """What a student did in one exercise, and the score that follows from it.

    Attributes:
        kind: a right solution, a known mistake, the untouched stub, or a cell that Python cannot read.
        score: points that the check must give; None for a known mistake if that was not worked out.
        max_score: points that it could give.
        mistake: the misconception's name, if it is one.
    """

    kind: Kind
    score: float | None
    max_score: float
    mistake: str = ""


@dataclass(frozen=True)
class SampleWork:
    """What a student did in one chapter.

    Attributes:
        oddity: what is odd about the file; empty for most.
        exercises: by exercise, what was done and what it is worth. Nothing is worth anything in a file that cannot be graded.
        answered: the questions that have an answer.
    """

    oddity: Oddity = ""
    exercises: Mapping[str, Expected] = field(default_factory=dict)
    answered: tuple[str, ...] = ()

    @property
    def gradable(self) -> bool:
        """Whether the checks get to see anything."""
        return self.oddity not in ("not a notebook", "not handed in")

    @property
    def score(self) -> float | None:
        """Points that the checks must give in all; None if those of a known mistake were not worked out."""
        if not self.gradable:
            return 0.0
        known = [item.score for item in self.exercises.values() if item.score is not None]
        return float(sum(known)) if len(known) == len(self.exercises) else None


@dataclass(frozen=True)
class SampleStudent:
    """An invented student.

    Attributes:
        id: the student's id.
        name: their invented name.
        skill: how likely they are to get an exercise of middling difficulty right.
        chapters: what they did, by chapter.
    """

    id: str
    name: str
    skill: float
    chapters: Mapping[str, SampleWork]

    def to_dict(self) -> dict[str, Any]:
        """Return the student as plain data, ready for JSON."""
        works = {chapter: {**asdict(work), "score": work.score} for chapter, work in self.chapters.items()}
        return {"id": self.id, "name": self.name, "skill": self.skill, "chapters": works}


def sample_class(
    root: Path, course: Course, chapters: Sequence[str], *, students: int = 24, seed: int = 0, predict: bool = False
) -> list[SampleStudent]:
    """Make a class and put its submissions into a course.

    Args:
        root: the project; answers to questions are shortened model answers from its rubrics.
        course: the course, with the chapters released; it must hold no submissions but those of an earlier sample class. A chapter
            without a due date gets one, so that somebody can be late.
        chapters: names of chapters, in lecture order.
        students: how many students.
        seed: the same seed makes the same class.
        predict: whether to work out what its known mistakes are worth, which takes longer than all of the rest and depends on the
            course's hidden questions, too.

    Returns:
        The students, ordered by id; also written to ``sample_class.json`` in the course folder, with those of an earlier sample class whose
        submissions are still there.

    Raises:
        CourseError: if a chapter is not released, real submissions are there, or a file cannot be written.
    """
    earlier = _earlier(course)
    released = {chapter: _released(course, chapter) for chapter in chapters}
    people = _people(students, random.Random(f"people {seed}"))
    # Before their submissions are there: a run that is stopped in the middle leaves none that the next would take for a real student's.
    _save(course, earlier | {student: {"id": student} for student, _ in people})
    made = []
    for number, (student, name) in enumerate(people):
        rng = random.Random(f"{student} {seed}")
        skill = round(min(0.97, max(0.08, rng.betavariate(4.0, 2.0))), 3)
        works = {}
        for place, chapter in enumerate(chapters):
            work, notebook = _work(rng, skill, released[chapter], _oddity(number, place, len(chapters)), root, chapter)
            _hand_in(course, student, chapter, work, notebook, rng)
            works[chapter] = work
        made.append(SampleStudent(student, name, skill, works))
    made.sort(key=lambda student: student.id)
    if predict:
        # By the course's own hidden questions: a mistake may show on some and not on others.
        made = _scored(made, with_seed(course, configured_settings(course)).seed or 0)
    _set_due_dates(course, chapters)
    write_roster(course, merged(read_roster(course), [Student(student.id, student.name) for student in made]))
    _save(course, earlier | {student.id: student.to_dict() for student in made})
    return made


def predicted_scores(mistakes: Mapping[str, Sequence[str]], seed: int) -> dict[tuple[str, str], float]:
    """Return what the grader gives for misconceptions, decided by the checks' own sheets and not by running a notebook.

    Args:
        mistakes: by exercise, names of misconceptions.
        seed: the seed of the hidden questions.

    Returns:
        By exercise and misconception, the score.
    """
    scores = parallel_map(_predicted, [(name, given, seed) for name, given in mistakes.items()])
    return {(name, mistake): score for name, given in zip(mistakes, scores, strict=True) for mistake, score in given}


def _predicted(asked: tuple[str, Sequence[str], int]) -> list[tuple[str, float]]:
    name, mistakes, seed = asked
    return [(mistake, _predicted_score(name, mistake, seed)) for mistake in mistakes]


def _predicted_score(name: str, mistake: str, seed: int) -> float:
    about = exercises()[name]
    wrong = next(item.wrong for item in about.misconceptions if item.name == mistake)
    # A diagnosis costs time, and no points.
    alone = replace(about.sheet(hidden=True, seed=seed), misconceptions=(), plain=None)
    return decide(alone, LocalSubject(wrong)).score


def _scored(students: Sequence[SampleStudent], seed: int) -> list[SampleStudent]:
    """Return students whose known mistakes have the scores that follow from them."""
    made: dict[str, dict[str, None]] = {}
    for student in students:
        for work in student.chapters.values():
            for name, item in work.exercises.items():
                if item.mistake:
                    made.setdefault(name, {})[item.mistake] = None
    scores = predicted_scores({name: sorted(made[name]) for name in exercises() if name in made}, seed)

    def scored(name: str, item: Expected) -> Expected:
        return replace(item, score=scores[name, item.mistake]) if item.mistake else item

    return [
        replace(
            student,
            chapters={
                chapter: replace(work, exercises={name: scored(name, item) for name, item in work.exercises.items()})
                for chapter, work in student.chapters.items()
            },
        )
        for student in students
    ]


@cache
def _code(name: str, mistake: str) -> str:
    about = exercises()[name]
    wrongs = {item.name: item.wrong for item in about.misconceptions}
    return standalone_source(wrongs[mistake] if mistake else about.reference, rename=name)


def _earlier(course: Course) -> dict[str, dict[str, Any]]:
    """Return what is known of the students who have submissions here, by id: all of them are of an earlier sample class.

    Raises:
        CourseError: if one of them is not, or it cannot be told.
    """
    there = {path.name for path in course.folder("submitted").glob("*") if path.is_dir()}
    elsewhere = "Make the sample class in a course folder of its own (--course)."
    known: dict[str, dict[str, Any]] = {}
    saved = course.root / SAVED_AS
    if saved.is_file():
        try:
            known = {item["id"]: item for item in json.loads(saved.read_text(encoding="utf-8"))}
        except (ValueError, TypeError, KeyError) as error:
            raise CourseError(f"this is no list of a sample class ({error})", where=saved, do=elsewhere) from error
    if strangers := sorted(there - known.keys()):
        raise CourseError(
            f"there are submissions of real students here: {', '.join(strangers[:3])}{' …' if len(strangers) > 3 else ''}",
            where=course.folder("submitted"),
            do=elsewhere,
        )
    return {student: item for student, item in known.items() if student in there}


def _save(course: Course, students: Mapping[str, Mapping[str, Any]]) -> None:
    content = json.dumps([students[student] for student in sorted(students)], indent=1, ensure_ascii=False)
    _write({course.root / SAVED_AS: f"{content}\n".encode()})


def _write(contents: Mapping[Path, bytes]) -> None:
    """Write files, all or none, and take away what a run that was killed has left of them."""
    remove_stale_temp_files(contents)
    try:
        write_all_or_none(contents)
    except CourseError as error:
        do = "Check the folder's permissions and free space, and run the command again."
        raise CourseError(error.what, where=error.where, do=do) from error


def _released(course: Course, chapter: str) -> Any:
    path = course.folder("release", ".", chapter) / f"{chapter}.ipynb"
    if not path.is_file():
        raise CourseError(
            f"chapter {chapter} is not released here",
            where=course.root,
            do=f"Release it first: {shell_command(course, 'assign', chapter)}",
        )
    return nbformat.read(path, as_version=4)


def _people(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Return ids and names, pairwise distinct; a class larger than the list of names has namesakes with numbers."""
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    rng.shuffle(names)
    chosen = []
    for number in range(count):
        again, place = divmod(number, len(names))
        name = names[place] + (f" {again + 1}" if again else "")
        chosen.append((safe_id(name), name))
    return chosen


def _oddity(number: int, place: int, chapters: int) -> Oddity:
    """Deal the odd cases to fixed students of the draw, so that every class of eight or more has each of them."""
    last = place == chapters - 1
    if number in (1, 5):
        return "late"
    if number == 2:
        return "stripped"
    if number == 3 and last:
        return "not a notebook"
    if number == 4 and last and chapters > 1:
        return "not handed in"
    return "broken cell" if number == 6 and not place else ""


def _work(
    rng: random.Random, skill: float, released: Any, oddity: Oddity, root: Path, chapter: str
) -> tuple[SampleWork, Any]:
    notebook = copy.deepcopy(released)
    stubs = [cell for cell in notebook.cells if cell.cell_type == "code" and _mark(cell).get("solution")]
    known = [cell for cell in stubs if _mark(cell)["grade_id"] in exercises()]
    expected = {}
    for place, cell in enumerate(known):
        about = exercises()[_mark(cell)["grade_id"]]
        difficulty = place / max(1, len(known) - 1)
        expected[about.name] = _solve(rng, skill, difficulty, about, cell)
    if oddity == "broken cell" and known:
        expected[_break(known[0])] = Expected("broken", 0.0, exercises()[_mark(known[0])["grade_id"]].points)
    answered = tuple(_answer(rng, skill, notebook, root, chapter)) if oddity != "not a notebook" else ()
    if oddity == "stripped":
        _strip(notebook)
    work = SampleWork(oddity, expected, answered)
    return (work, notebook) if work.gradable else (SampleWork(oddity), notebook)


def _solve(rng: random.Random, skill: float, difficulty: float, about: Exercise, cell: Any) -> Expected:
    """Draw what a student of this skill does with an exercise, and write it into the cell."""
    chance = skill + 0.25 * (0.5 - difficulty)
    luck = rng.random()
    if luck < chance:
        cell.source = _code(about.name, "")
        return Expected("right", about.points, about.points)
    if not about.misconceptions or luck > chance + (1 - chance) * 0.8:
        return Expected("stub", 0.0, about.points)
    # The mistakes that a check names first are the ones that are made most.
    weights = [1 / (place + 1.5) for place in range(len(about.misconceptions))]
    mistake = rng.choices(about.misconceptions, weights)[0].name
    cell.source = _code(about.name, mistake)
    # What it is worth is worked out once all are drawn, if at all.
    return Expected("mistake", None, about.points, mistake)


def _break(cell: Any) -> str:
    """Leave a cell as it is left when the bell rings; return the exercise that it belongs to."""
    cell.source = cell.source.rstrip() + "\n\nprint(result of the last line"
    return str(_mark(cell)["grade_id"])


def _answer(rng: random.Random, skill: float, notebook: Any, root: Path, chapter: str) -> list[str]:
    rubrics = read_rubrics(root / "chapters" / chapter / "rubrics.md")
    answered = []
    for cell in notebook.cells:
        mark = _mark(cell)
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
        answered.append(mark["grade_id"])
    return answered


def _mark(cell: Any) -> Mapping[str, Any]:
    mark: Mapping[str, Any] = cell.metadata.get("nbgrader", {})
    return mark


def _strip(notebook: Any) -> None:
    """Do to a notebook what Colab does: other metadata, other ids."""
    notebook.metadata = {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {"id": f"c0LAB{number}"}
        cell.pop("id", None)
    notebook.nbformat_minor = 0


def _hand_in(course: Course, student: str, chapter: str, work: SampleWork, notebook: Any, rng: random.Random) -> None:
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
    _write({folder / "timestamp.txt": stamp, folder / f"{chapter}.ipynb": handed_in})


def _set_due_dates(course: Course, chapters: Sequence[str]) -> None:
    with Gradebook(course.gradebook_url, str(course.config().CourseDirectory.get("course_id", ""))) as gradebook:
        for chapter in chapters:
            assignment = gradebook.find_assignment(chapter)
            if assignment.duedate is None:
                assignment.duedate = DUE.replace(tzinfo=None)
        gradebook.db.commit()
