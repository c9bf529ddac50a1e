"""Whether a chapter is graded by the points under which it was released."""

from __future__ import annotations

from pathlib import Path

from autograder.authoring.myst import notebook_of, read_text
from autograder.course.folder import Course
from autograder.course.paths import project_root, shell_command
from autograder.errors import CourseError
from autograder.submission.manifest import Manifest, released_manifest

# Cells that check an exercise are named after it.
_TEST = "test_"


def current_points(project: Path, chapter: str) -> dict[str, float]:
    """Return what each exercise of a chapter is worth in the project, by name; nothing if the project has no such chapter."""
    path = project / "chapters" / chapter / "exercises.md"
    if not path.is_file():
        return {}
    marks = [cell.metadata.get("nbgrader", {}) for cell in notebook_of(read_text(path), path).cells]
    worth = {mark.get("grade_id", ""): mark["points"] for mark in marks if "points" in mark}
    return {name.removeprefix(_TEST): float(points) for name, points in worth.items() if name.startswith(_TEST)}


def released_points(manifest: Manifest) -> dict[str, float]:
    """Return what each exercise of a chapter was worth when it was released, by name."""
    tests = (cell for cell in manifest.cells if cell.grade and cell.name.startswith(_TEST))
    return {cell.name.removeprefix(_TEST): cell.points for cell in tests}


def refuse_changed_points(course: Course, chapter: str) -> None:
    """Refuse to grade a chapter by other points than those under which it was released: marks would mean something else without a word.

    Raises:
        CourseError: if they differ. Exercises that the project or the course does not have are no difference; what a question in words is
            worth is the course's own business.
    """
    try:
        now = current_points(project_root(), chapter)
    except CourseError:
        return  # a course that is graded without its project
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
