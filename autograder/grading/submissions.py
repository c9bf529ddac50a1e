"""Find a chapter's submissions, and hash the contents that decide their grades."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.course.folder import Course
from autograder.engine.interface import Submission
from autograder.errors import CourseError
from autograder.grading.record.results import dumps_by_line
from autograder.intake.downloads.choices import undecided_notebooks
from autograder.intake.notebook.attached_files import CompanionFiles, read_companion_files
from autograder.intake.notebook.intake import load_submission
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import add_problems


def select_students(course: Course, chapter: str, students: Sequence[str] | None = None) -> list[str]:
    """Return the selected students, sorted; all who handed in by default.

    Args:
        chapter: the chapter's name.
        students: the requested students; by default all who have handed in.

    Raises:
        CourseError: if one of them has not handed in, or nobody has.
    """
    submitted = submitted_students(course, chapter)
    selected = submitted if students is None else sorted(set(students))
    if strangers := sorted(set(selected) - set(submitted)):
        raise CourseError(
            f"there is no submission for {chapter} by {', '.join(strangers)}",
            where=course.folder("submitted"),
            do=f"A submission is a folder submitted/STUDENT/{chapter}. Is the id spelled as the folder is?",
        )
    if not selected:
        raise CourseError(
            f"there is no submission for {chapter}",
            where=course.folder("submitted"),
            do=f"Put notebooks into submitted/STUDENT/{chapter}/, or bring them in with --submissions FOLDER_OR_ZIP.",
        )
    return selected


def submitted_students(course: Course, chapter: str) -> list[str]:
    """Return the students who handed in a chapter, sorted."""
    return sorted(path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir())


def read_submitted_companions(course: Course, chapter: str, notebook: Path) -> CompanionFiles:
    """Return a submitted notebook's companion files; the course's files take precedence."""
    return read_companion_files([notebook.parent, course.folder("source", chapter=chapter)])


def build_submission(name: str, path: Path, manifest: Manifest, companions: CompanionFiles) -> tuple[Submission, str]:
    """Build the submission to run from a submitted file, and return it with the hash of its text.

    Args:
        name: the student, or the student and the file where several notebooks are to be run.
    """
    intake = load_submission(path, manifest)
    add_problems(intake.notebook, list(companions.problems))
    content = dumps_by_line(intake.notebook, "cells", sort_keys=True)
    return Submission(name, manifest.chapter, content, companions.files), text_hash(intake.notebook)


def text_hash(notebook: Mapping[str, Any]) -> str:
    """Hash the sources of a notebook's cells, to detect a grader that mixes up two submissions."""
    sources = ("".join(cell["source"]) for cell in notebook["cells"])
    return hashlib.sha256("\0".join(sources).encode("utf-8", "surrogateescape")).hexdigest()


def submission_hash(notebook: Path, files: Mapping[str, str]) -> str:
    """Hash a submission: its notebook and companion files, without the time stamp.

    Args:
        files: the files beside it, as :func:`read_submitted_companions` has them.
    """
    digest = hashlib.sha256()
    if notebook.is_file():
        with notebook.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    for name in sorted(files):
        digest.update(hashlib.sha256(f"{name}\0{files[name]}".encode("utf-8", "surrogateescape")).digest())
    for name, data in undecided_notebooks(notebook.parent, notebook.stem).items():
        digest.update(hashlib.sha256(f"{name}\0".encode("utf-8", "surrogateescape") + data).digest())
    return digest.hexdigest()
