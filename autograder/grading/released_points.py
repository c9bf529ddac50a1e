"""Compare a chapter's present points with those of its release."""

from __future__ import annotations

from pathlib import Path

from autograder.authoring.myst import notebook_of, read_text
from autograder.course.folder import Course
from autograder.course.paths import project_root, shell_command
from autograder.errors import CourseError
from autograder.submission.manifest import Manifest, released_manifest

# Test cells are named after their exercise.
_TEST = "test_"


def current_points(project: Path, chapter: str) -> dict[str, float]:
    """Return the points of a chapter's exercises in the project, by name; empty if the project has no such chapter."""
    path = project / "chapters" / chapter / "exercises.md"
    if not path.is_file():
        return {}
    marks = [cell.metadata.get("nbgrader", {}) for cell in notebook_of(read_text(path), path).cells]
    worth = {mark.get("grade_id", ""): mark["points"] for mark in marks if "points" in mark}
    return {name.removeprefix(_TEST): float(points) for name, points in worth.items() if name.startswith(_TEST)}


def released_points(manifest: Manifest) -> dict[str, float]:
    """Return the points of a chapter's exercises at its release, by name."""
    tests = (cell for cell in manifest.cells if cell.grade and cell.name.startswith(_TEST))
    return {cell.name.removeprefix(_TEST): cell.points for cell in tests}


def refuse_changed_points(course: Course, chapter: str) -> None:
    """Refuse to grade a chapter whose points differ from its release: marks would silently change their meaning.

    Raises:
        CourseError: if they differ. Exercises that only the project or only the course has do not count, nor do questions in words.
    """
    try:
        now = current_points(project_root(), chapter)
    except CourseError:
        return  # the course is graded without its project
    then = released_points(released_manifest(course, chapter))
    both = then.keys() & now.keys()
    moved = sorted(name for name in both if then[name] != now[name])
    if moved:
        before, after = (sum(points[name] for name in both) for points in (then, now))
        shown = ", ".join(moved[:5]) + (" …" if len(moved) > 5 else "")
        raise CourseError(
            f"points of {chapter} changed from {before:g} to {after:g} since it was released ({shown})",
            where=course.root,
            do=f"Nothing was graded. {shell_command(course, 'regrade', chapter, '--new-points')} takes them over and lists who moves.",
        )
