"""Collect the released files, title and deadlines for a course's own site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.content_hash import hash_files
from autograder.course.course_file import assignment_sentences, read_course_file
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.site.build import SiteCourse


@dataclass(frozen=True)
class ReleasedSite:
    """The content of a course's own site."""

    root: Path  # the course folder
    files: Mapping[str, Sequence[Path]]  # students' files by chapter: notebook, package and lesson
    course: SiteCourse  # its title and deadlines

    def key(self) -> str:
        """Return a string that identifies the content: a hash of the files, and the course's title and deadlines."""
        paths = [path for paths in self.files.values() for path in paths]
        return "\n".join([hash_files(self.root, paths), str(self.course)])


def read_released_site(folder: Path, only: Sequence[str] | None = None) -> ReleasedSite:
    """Return the content of a course's own site.

    Args:
        folder: the course folder.
        only: the chapters that the site may offer; all by default.

    Raises:
        CourseError: if the folder is no course, or nothing of these chapters has been released there.
    """
    course = Course.open(folder)
    files = {
        path.name: sorted([*path.glob("*.ipynb"), *path.glob("*.whl")])
        for path in sorted(course.folder("student").glob("*/"))
        if only is None or path.name in only
    }
    files = {chapter: paths for chapter, paths in files.items() if paths}
    if not files:
        raise CourseError(
            "nothing has been released for students here",
            where=course.folder("student"),
            do=f"Release a chapter first: {shell_command(course, 'assign', 'CHAPTER')}",
        )
    plan = read_course_file(course.root)
    dates = {chapter: " ".join(assignment_sentences(plan, chapter)) for chapter in files}
    return ReleasedSite(
        course.root, files, SiteCourse(plan.title, {name: text for name, text in dates.items() if text})
    )
