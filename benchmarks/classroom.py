"""The course that is measured: chapter 03's real assignment, with the submissions of an invented class."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from autograder.course.folder import Course
from autograder.grading.plugin import configured
from autograder.record.gradebook_writer import GradebookWriter
from autograder.release.assign import assign
from autograder.selftest.sample_class import SampleStudent, sample_class

CHAPTER = "03_scaled_dot_product"
PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Classroom:
    """A course with submissions.

    Attributes:
        course: its folder.
        students: who has handed something in, in order.
    """

    course: Course
    students: tuple[str, ...]

    def submission(self, student: str) -> Path:
        """Return a student's notebook."""
        return self.course.folder("submitted", student, CHAPTER) / f"{CHAPTER}.ipynb"

    def sanitised(self) -> dict[str, str]:
        """Return the notebooks as workers get them."""
        with GradebookWriter(self.course, CHAPTER, configured(self.course)) as books:
            return {student: books.sanitise(student, self.submission(student)) for student in self.students}

    def package(self) -> str:
        """Return the students' wheel."""
        return str(next(self.course.folder("student", chapter=CHAPTER).glob("*.whl")))


def classroom(folder: Path, students: int, *, ordinary: bool = True) -> Classroom:
    """Make a course with a class in it.

    Args:
        folder: where.
        students: how many submissions.
        ordinary: only such as stock nbgrader can grade: late or on time, right, wrong or unfinished, but undamaged.
    """
    course = Course.open(folder, create=True)
    assign(PROJECT, course, [CHAPTER])
    made = sample_class(PROJECT, course, [CHAPTER], students=students + 4 if ordinary else students)
    chosen = [student.id for student in made if not ordinary or _is_ordinary(student)][:students]
    for student in made:
        if student.id not in chosen:
            shutil.rmtree(course.folder("submitted", student.id), ignore_errors=True)
    return Classroom(course, tuple(chosen))


def _is_ordinary(student: SampleStudent) -> bool:
    return student.chapters[CHAPTER].oddity in ("", "late")
