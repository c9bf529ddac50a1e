"""Compare a chapter's points in three places: its checks, the project's exercise page, and the release in the course."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autograder.course.authoring.myst import parse_notebook, read_text
from autograder.course.folder import Course
from autograder.course.paths import project_root, shell_command
from autograder.errors import CourseError, list_first
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.problem import read_problems
from autograder.intake.notebook.test_cells import OUT_OF_RANGE, differing_totals

# Test cells are named after their exercise.
_TEST = "test_"


def current_points(project: Path, chapter: str) -> dict[str, float]:
    """Return the points of a chapter's exercises in the project, by name; empty if the project has no such chapter."""
    path = project / "chapters" / chapter / "exercises.md"
    if not path.is_file():
        return {}
    marks = [cell.metadata.get("nbgrader", {}) for cell in parse_notebook(read_text(path), path).cells]
    worth = {mark.get("grade_id", ""): mark["points"] for mark in marks if "points" in mark}
    return {name.removeprefix(_TEST): float(points) for name, points in worth.items() if name.startswith(_TEST)}


def released_points(manifest: Manifest) -> dict[str, float]:
    """Return the points of a chapter's exercises in its release, by name."""
    tests = (cell for cell in manifest.cells if cell.grade and cell.name.startswith(_TEST))
    return {cell.name.removeprefix(_TEST): cell.points for cell in tests}


def refuse_changed_points(course: Course, chapter: str) -> None:
    """Refuse to grade a chapter whose points have changed since its release.

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
        shown = list_first(moved)
        raise CourseError(
            f"points of {chapter} changed from {before:g} to {after:g} since it was released ({shown})",
            where=course.root,
            do=f"Nothing was graded. {shell_command(course, 'regrade', chapter, '--new-points')} applies the new points and lists the "
            "students whose grades change.",
        )


def refuse_other_totals(course: Course, chapter: str, notebook: Any) -> None:
    """Refuse to record an executed notebook if a check's total differs from its test cell's points.

    This is the course's fault, and every other submission of the chapter has it too.

    Raises:
        CourseError: if they differ.
    """
    if not (differing := differing_totals(notebook)):
        return
    name, (total, points) = next(iter(differing.items()))
    more = f" (exercises that differ: {len(differing)})" if len(differing) > 1 else ""
    raise CourseError(
        f"the check of {name.removeprefix(_TEST)} in {chapter} gives up to {total:g} points, "
        f"but its released test cell is worth {points:g}{more}",
        where=course.root,
        do=f"No further submission was graded, and recorded points stay. {_repair_advice(course, chapter, name, total)}",
    )


def _repair_advice(course: Course, chapter: str, test: str, total: float) -> str:
    """Return the advice for making a test cell's points equal its check's."""
    try:
        on_page = current_points(project_root(), chapter)
    except CourseError:
        on_page = {}
    release = shell_command(course, "regrade", chapter, "--new-points")
    if test.removeprefix(_TEST) not in on_page:
        return f"Give {test} {total:g} points in the assignment's source notebook, and release it again."
    if on_page[test.removeprefix(_TEST)] != total:
        return f"Write the check's points into the exercise page with `tfcourse sync`, then release them: {release}"
    return f"Release the check's points: {release}"


def impossible_scores(notebook: Any) -> str:
    """Describe the tests of an executed notebook that gave impossible scores; empty if all scores are possible."""
    faults = [problem for problem in read_problems(notebook) if problem.kind == OUT_OF_RANGE]
    return " ".join(f"{problem.where}: {problem.what} Correct the test." for problem in faults)
