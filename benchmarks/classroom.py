"""The course that is measured: a chapter's real assignment, with the submissions of an invented class."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from autograder.commands.selftest.sample_class import SampleStudent, sample_class
from autograder.course.folder import Course
from autograder.course.release.assign import assign
from autograder.grading.submissions import build_submission, read_submitted_companions
from autograder.intake.notebook.manifest import released_manifest

CHAPTER = "03_scaled_dot_product"
PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Classroom:
    """A course with submissions.

    Attributes:
        course: its folder.
        students: who has handed something in, in order.
        chapter: the folder of the chapter that is graded.
    """

    course: Course
    students: tuple[str, ...]
    chapter: str = CHAPTER

    def submission(self, student: str) -> Path:
        """Return a student's notebook."""
        return self.course.folder("submitted", student, self.chapter) / f"{self.chapter}.ipynb"

    def sanitised(self) -> dict[str, str]:
        """Return the notebooks as workers get them."""
        manifest = released_manifest(self.course, self.chapter)
        return {
            student: build_submission(
                student, path, manifest, read_submitted_companions(self.course, self.chapter, path)
            )[0].notebook
            for student in self.students
            for path in [self.submission(student)]
        }

    def package(self) -> str:
        """Return the students' wheel."""
        return str(next(self.course.folder("student", chapter=self.chapter).glob("*.whl")))


def classroom(folder: Path, students: int, *, chapter: str = CHAPTER, ordinary: bool = True) -> Classroom:
    """Make a course with a class in it.

    Args:
        folder: where.
        students: how many submissions.
        chapter: the chapter's folder.
        ordinary: only such as stock nbgrader can grade: late or on time, right, wrong or unfinished, but undamaged.
    """
    course = Course.open(folder, create=True)
    assign(PROJECT, course, [chapter])
    made = sample_class(PROJECT, course, [chapter], students=students + 4 if ordinary else students)
    chosen = [student.id for student in made if not ordinary or _is_ordinary(student, chapter)][:students]
    for student in made:
        if student.id not in chosen:
            shutil.rmtree(course.folder("submitted", student.id), ignore_errors=True)
    return Classroom(course, tuple(chosen), chapter)


def _is_ordinary(student: SampleStudent, chapter: str) -> bool:
    return student.chapters[chapter].oddity in ("", "late")
