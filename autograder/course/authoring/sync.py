"""Synchronise generated files with the reference, or report their differences."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nbformat

import tfcourse
from autograder.atomic_files import write_all_or_none
from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter, Drift, grade_id, load_chapters, raise_if_drifted
from autograder.course.authoring.myst import parse_notebook, read_text
from autograder.course.authoring.numbering import renumber_headings, update_counts, update_hours
from autograder.course.authoring.solution_notebook import expected_cell, solution_bytes, solution_notebook, synced_text
from autograder.errors import CourseError
from autograder.static_analysis.scopes import bound_names, global_names

COMMAND = "tfcourse sync"


def sync(
    root: Path,
    *,
    check: bool = False,
    only: Sequence[str] | None = None,
    registry: Mapping[str, Exercise] | None = None,
) -> list[Drift]:
    """Synchronise stubs, tests, points, solution notebooks and stated numbers with the reference.

    In ``exercises.md`` only stub cells, test cells and the numbers of headings are rewritten; in a lesson only the hours of its exercises,
    in the README only the numbers of exercises. A second run changes nothing.

    Args:
        check: report only, and write nothing.
        only: names of the chapters; all by default.
        registry: every exercise of the course by name; by default the exercises in ``autograder.checks``.

    Returns:
        With ``check``, all differences; else the differences that were mended.

    Raises:
        CourseError: if a file cannot be read or written, the installed package is not this project's, or (without ``check``) a difference
            needs mending by hand. Then nothing has been written.
    """
    require_project_package(root)
    every = load_chapters(root, registry)
    selected = [chapter for chapter in every if only is None or chapter.name in only]
    drifts = [drift for chapter in selected for drift in _chapter_drifts(chapter)]
    if only is None:
        drifts += _stray_drifts(root, every, registry)
    numbers = _number_changes(root, selected, every if only is None else ())
    drifts += [Drift(path, "", "the numbers of exercises or hours are out of date", _MEND, True) for path in numbers]
    if check:
        return drifts
    raise_if_drifted(
        [drift for drift in drifts if not drift.mendable],
        "some things must be mended by hand first",
        do=f"Then run {COMMAND} again. Nothing was changed.",
    )
    write_all_or_none(_file_changes(selected) | numbers)
    return drifts


def require_project_package(root: Path) -> None:
    """Check that the imported reference package belongs to this project.

    Raises:
        CourseError: if the project has its own package and another one was imported.
    """
    project_package, imported = root.resolve() / "tfcourse", Path(str(tfcourse.__file__)).resolve().parent
    if project_package.is_dir() and project_package != imported:
        raise CourseError(
            f"the package tfcourse that Python found is another one ({imported})",
            where=root,
            do="Install this project with: pip install -e . (or put it first on PYTHONPATH).",
        )


def _file_changes(selected: Sequence[Chapter]) -> dict[Path, bytes]:
    changes: dict[Path, bytes] = {}
    for chapter in selected:
        expected = {chapter.path: synced_text(chapter).encode(), chapter.solution_path: solution_bytes(chapter)}
        changes |= {path: new for path, new in expected.items() if not path.exists() or path.read_bytes() != new}
    return changes


def _number_changes(root: Path, selected: Sequence[Chapter], counted: Sequence[Chapter]) -> dict[Path, bytes]:
    """Return the new content of lessons and the README whose stated numbers are outdated."""
    changes: dict[Path, bytes] = {}
    texts = [(chapter.lesson, partial(update_hours, chapter=chapter)) for chapter in selected]
    if counted:
        texts.append((root / "README.md", partial(update_counts, course=counted)))
    for path, update in texts:
        if not path.is_file():
            continue
        text = read_text(path)
        try:
            new = update(text)
        except CourseError:  # the drifts of the chapter report it
            continue
        if new != text:
            changes[path] = new.encode()
    return changes


def _chapter_drifts(chapter: Chapter) -> list[Drift]:
    faults = chapter.faults()
    try:
        faults += [drift for cell in chapter.notebook().cells for drift in _cell_drifts(chapter, cell)]
        text = synced_text(chapter)
        faults += _undefined_name_drifts(chapter, parse_notebook(text, chapter.path), "stub")
        faults += _undefined_name_drifts(chapter, solution_notebook(chapter), "solution")
        faults += _solution_drifts(chapter)
        if renumber_headings(chapter.text) != chapter.text:
            faults.append(Drift(chapter.path, "", "the headings are not numbered in order", _MEND, mendable=True))
        if chapter.lesson.is_file():
            update_hours(read_text(chapter.lesson), chapter)
    except CourseError as error:
        faults.append(Drift(Path(error.where or chapter.path), "", error.what, error.do))
    return list(dict.fromkeys(faults))


def _cell_drifts(chapter: Chapter, cell: Any) -> Iterator[Drift]:
    expected = expected_cell(chapter, cell)
    if expected is None:
        return
    if expected.points is not None and cell.metadata.nbgrader.get("points") != expected.points:
        actual_points = cell.metadata.nbgrader.get("points")
        message = f"it gives {actual_points} points, and the check {expected.points:g}"
        yield Drift(chapter.path, grade_id(cell), message, _MEND, "points" in cell.metadata.nbgrader)
    if cell.source != expected.source:
        yield Drift(
            chapter.path, grade_id(cell), _describe_difference(cell.source, expected.source), _MEND, mendable=True
        )


_MEND = f"Run {COMMAND}."


def _describe_difference(actual: str, expected: str) -> str:
    """Describe the differences between two versions of an exercise's cell."""
    try:
        ours, actual_parts = _definition_parts(expected), _definition_parts(actual)
    except (SyntaxError, ValueError):
        return "the cell is not what the reference gives"
    names = ("signature", "docstring", "body")
    different = [name for name, a, b in zip(names, ours, actual_parts, strict=True) if a != b]
    if not different:
        return "the cell is written otherwise than the reference gives"
    return f"its {' and its '.join(different)} {'is' if len(different) == 1 else 'are'} not the reference's"


def _definition_parts(source: str) -> tuple[str, list[str | None], str]:
    """Return the signatures, docstrings and bodies of the single definition in a cell."""
    (definition,) = ast.parse(source).body
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise ValueError("no definition")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    owners = [node for node in ast.walk(definition) if isinstance(node, kinds)]
    documentation = [ast.get_docstring(owner, clean=False) for owner in owners]
    for owner, text in zip(owners, documentation, strict=True):
        owner.body = owner.body[1 if text is not None else 0 :]
    bodies = [owner.body for owner in owners if not isinstance(owner, ast.ClassDef)]
    dumped = "\n".join(ast.dump(statement) for body in bodies for statement in body)
    for owner in owners:
        owner.body = [item for item in owner.body if isinstance(item, kinds)] if isinstance(owner, ast.ClassDef) else []
    return ast.dump(definition), documentation, dumped


def _solution_drifts(chapter: Chapter) -> Iterator[Drift]:
    path = chapter.solution_path
    if not path.exists():
        yield Drift(path, "", "the solution notebook is missing", _MEND, mendable=True)
        return
    actual = path.read_bytes()
    if actual == solution_bytes(chapter):
        return
    differs = False
    for name, message in _notebook_differences(actual, solution_notebook(chapter)):
        differs = True
        yield Drift(path, name, message, _MEND, mendable=True)
    if not differs:
        yield Drift(path, "", "the generated file was changed", _MEND, mendable=True)


def _notebook_differences(actual: bytes, expected: Any) -> Iterator[tuple[str, str]]:
    try:
        cells = {cell.get("id", ""): cell for cell in nbformat.reads(actual.decode(), as_version=4).cells}
    except (ValueError, AttributeError, nbformat.ValidationError):
        yield "", "the generated file is no notebook any more"
        return
    for cell in expected.cells:
        name = grade_id(cell) or _cell_label(cell)
        other = cells.pop(cell.id, None)
        if other is None:
            yield name, "the cell is missing from the generated notebook"
        elif other.source != cell.source:
            yield (
                name,
                _describe_difference(other.source, cell.source)
                if cell.cell_type == "code"
                else "its text is not the source's",
            )
        elif other.metadata != cell.metadata:
            yield name, "its metadata is not the source's"
    for cell in cells.values():
        yield grade_id(cell) or _cell_label(cell), "the cell does not belong in the generated notebook"


def _cell_label(cell: Any) -> str:
    """Return the beginning of a cell's text as a label."""
    return repr(str(cell.source).strip().partition("\n")[0][:50])


def _stray_drifts(root: Path, every: Sequence[Chapter], registry: Mapping[str, Exercise] | None) -> Iterator[Drift]:
    """Report exercises of chapters without a notebook, and solutions of removed chapters."""
    names = {chapter.name for chapter in every}
    if registry is None:
        from autograder.checks import exercises

        registry = exercises()
    for chapter in dict.fromkeys(item.chapter for item in registry.values()):
        if chapter not in names:
            path = root / "chapters" / chapter / "exercises.md"
            yield Drift(path, "", "exercises are declared for this chapter and it has no notebook", "Write it.")
    for path in sorted((root / "solutions").glob("*/exercises.ipynb")):
        if path.parent.name not in names:
            yield Drift(path, "", "there is no such chapter any more", "Delete the file.")


def _undefined_name_drifts(chapter: Chapter, notebook: Any, kind: str) -> Iterator[Drift]:
    """Report names that a code cell uses before they are defined, so that the notebook would stop with an error."""
    defined = set(dir(builtins))
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            # A cell may hold a magic or a shell line; the names that it binds are unknown, and the author is responsible.
            continue
        defined |= bound_names(tree.body)
        missing = sorted({read.id for read in global_names(tree)} - defined)
        if missing:
            yield Drift(
                chapter.path,
                grade_id(cell),
                f"its {kind} uses {', '.join(missing)}, which no cell above it defines",
                "Import it in the setup cell, or move the exercise below what it builds on.",
            )
