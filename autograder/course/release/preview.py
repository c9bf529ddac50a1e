"""Preview a release: the cells and the student package that ``tfcourse assign`` would make, without changing the course."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.myst import write_notebook
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.folder import Course
from autograder.course.release.assign import make_student_files, selected_chapters
from autograder.course.release.nbgrader_release import generate_assignment


@dataclass(frozen=True)
class Preview:
    """What a chapter's release would be."""

    gradebook_url: str  # a temporary gradebook that holds this chapter alone
    source: Path  # the source notebook
    wheel: Path  # the students' package


@contextmanager
def previewed_release(root: Path, course: Course, chapter_names: Sequence[str]) -> Iterator[dict[str, Preview]]:
    """Release chapters into a temporary folder that exists as long as the block runs.

    Args:
        course: the course, in which nothing changes.
        chapter_names: names of chapters.

    Raises:
        CourseError: as ``assign`` does.
    """
    selected = selected_chapters(root, course, chapter_names)
    with tempfile.TemporaryDirectory() as folder:
        yield {
            chapter.name: _preview(root, course, chapter, Path(folder).resolve() / chapter.name) for chapter in selected
        }


def _preview(root: Path, course: Course, chapter: Chapter, folder: Path) -> Preview:
    config = course.config()
    config.CourseDirectory.root = str(folder)
    # The course's own gradebook may be on a server.
    config.CourseDirectory.db_url = url = f"sqlite:///{folder / 'gradebook.db'}"
    source = folder / "source" / chapter.name / f"{chapter.name}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(write_notebook(source_notebook(chapter)))
    generate_assignment(config, chapter.name)
    files = make_student_files(root, course, chapter, folder / "student")
    return Preview(url, source, next(path for path in files if path.suffix == ".whl"))
