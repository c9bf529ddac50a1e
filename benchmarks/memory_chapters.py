"""Memory of a worker that has graded every chapter, against one that has graded a single one.

    python benchmarks/memory_chapters.py [--students 5] [--json FILE]

One worker grades chapter 03's submissions of a sample class, then those of all other chapters, then chapter 03's again. While it grades
chapter 03, its whole family is looked at: the worker, the checker that it forks, and the processes on the students' side. What they share
is counted once (PSS). The most that was seen is told.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from classroom import CHAPTER, PROJECT
from family import memory
from measure import Figures, Target
from memory import watched

from autograder.commands.selftest.sample_class import sample_class
from autograder.course.authoring.chapter import load_chapters
from autograder.course.folder import Course
from autograder.course.release.assign import assign
from autograder.engine.interface import Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerExecutor
from autograder.grading.submissions import build_submission, read_submitted_companions
from autograder.intake.notebook.manifest import released_manifest

RATIO = 1.5


@dataclass(frozen=True)
class Assignment:
    """A chapter to grade: the students' package, and notebooks as workers get them."""

    chapter: str
    package: str
    notebooks: tuple[str, ...]

    def graded_by(self, executor: WorkerExecutor) -> None:
        """Let a worker grade all notebooks; of one that cannot be graded, the failure is no matter."""
        executor.change_settings(GradingSettings(seed=1, package=self.package))
        for number, notebook in enumerate(self.notebooks):
            executor.grade_one(Submission(f"student-{number}", self.chapter, notebook))


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=5, help="how many submissions of each chapter (default: 5)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        assignments = made(Path(folder), options.students)
        rows = measured(assignments)
    one, every = rows[0], rows[-1]
    figures = Figures(
        "memory_chapters",
        f"python benchmarks/memory_chapters.py --students {options.students}",
        ("chapters graded", "whole family, MiB", "worker, MiB", "checker, MiB", "students' side, MiB"),
        rows,
        [Target(f"all {len(assignments)} chapters against one", every[1] / one[1], RATIO, most=True, unit=" times")],
    )
    figures.tell(options.json)


def made(folder: Path, students: int) -> list[Assignment]:
    """Return every chapter with submissions of a sample class, chapter 03 first."""
    course = Course.open(folder, create=True)
    names = [chapter.name for chapter in load_chapters(PROJECT)]
    assign(PROJECT, course, names)
    sample = sample_class(PROJECT, course, names, students=students)
    ordinary = {name: [item.id for item in sample if item.chapters[name].oddity in ("", "late")] for name in names}
    names.sort(key=lambda name: name != CHAPTER)
    return [_assignment(course, name, ordinary[name]) for name in names]


def _assignment(course: Course, name: str, students: list[str]) -> Assignment:
    package = str(next(course.folder("student", chapter=name).glob("*.whl")))
    manifest = released_manifest(course, name)
    paths = {student: course.folder("submitted", student, name) / f"{name}.ipynb" for student in students}
    notebooks = tuple(
        build_submission(student, path, manifest, read_submitted_companions(course, name, path))[0].notebook
        for student, path in paths.items()
        if path.is_file()
    )
    return Assignment(name, package, notebooks)


def measured(assignments: list[Assignment]) -> list[tuple[str, int, int, int, int]]:
    """Return the memory while the first chapter is graded: at first, and after all others."""
    first, *others = assignments
    executor = WorkerExecutor(GradingSettings(seed=1, package=first.package))
    try:
        first.graded_by(executor)
        rows = [("1", *_seen(executor, first))]
        for other in others:
            other.graded_by(executor)
        return [*rows, (str(len(assignments)), *_seen(executor, first))]
    finally:
        executor.close()


def _seen(executor: WorkerExecutor, assignment: Assignment) -> tuple[int, int, int, int]:
    """Return the most that the family takes while a chapter is graded, and the parts of it, in MiB."""
    process = executor._process
    assert process is not None
    programs: dict[int, str] = {}

    def look() -> dict[int, int]:
        sizes = memory(process.pid)
        programs.update({pid: _program(pid) for pid in sizes if pid not in programs})
        return sizes

    most = max(watched(look, lambda: assignment.graded_by(executor)), key=lambda sizes: sum(sizes.values()))
    # A checker is a fork of the worker and runs the same program; students' processes are forks of another one.
    checkers = [pid for pid in most if pid != process.pid and programs[pid] == programs[process.pid]]
    worker, checker = most.get(process.pid, 0), sum(most[pid] for pid in checkers)
    family = sum(most.values())
    return tuple(round(size / 2**20) for size in (family, worker, checker, family - worker - checker))  # type: ignore[return-value]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
