"""Convert a lesson to a notebook for students, with stored outputs, that runs on the student's own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook

from autograder.course.authoring import lesson_cache
from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.execute_lessons import execute_missing
from autograder.course.authoring.myst import set_cell_ids, write_notebook
from autograder.course.authoring.printed_values import append_values_cell, count_values, fill_in_values, printed_values
from autograder.course.release.plain_markdown import PlainMarkdown, collect_references
from autograder.errors import CourseError
from tfcourse.lessons.waiting_cells import source_key

_TIMEOUT = 300
_FIRST = """\
# Your own code: what you have solved in {notebook} (save it first) runs in this lesson from here on.
import tfcourse

tfcourse.use("{notebook}")"""
_NOTE = """\
*This is lesson {number} as a notebook. It shows what the course's own code gives, until you run a cell. Cells that need an exercise which
you have not solved yet say which one, keep the course's output, and the next cell goes on. Solve more, save, and run it again.*"""


def lesson_name(chapter: Chapter) -> str:
    """Return the file name of a chapter's lesson notebook, ``03_lesson.ipynb``."""
    return f"{chapter.number}_lesson.ipynb"


def lesson_notebooks(chapters: Sequence[Chapter]) -> dict[str, bytes]:
    """Return the lesson notebooks of chapters by name; a chapter without a lesson with code has none.

    Lessons without cached outputs for the present state of the package are executed in parallel.

    Raises:
        CourseError: if a lesson's cell fails.
    """
    with_lesson = [chapter for chapter in chapters if _has_code(chapter.lesson)]
    executed = executed_lessons(with_lesson)
    return {chapter.name: write_notebook(_student_notebook(chapter, executed[chapter.name])) for chapter in with_lesson}


def _has_code(lesson: Path) -> bool:
    return lesson.is_file() and "```{code-cell}" in lesson.read_text(encoding="utf-8")


def executed_lessons(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return executed lessons by chapter name, from the cache if possible.

    Raises:
        CourseError: if a lesson's cell fails.
    """
    if not chapters:
        return {}
    root, lessons = chapters[0].root, []
    for chapter in chapters:
        text = append_values_cell(chapter.lesson.read_text(encoding="utf-8"), chapter.lesson)
        lessons.append((chapter.lesson, read_myst_markdown_notebook(text, path=chapter.lesson)))
    folder = lesson_cache.execution_cache_path(root, root / lesson_cache.EXECUTIONS)
    cache, errors = execute_missing(folder, lessons, _TIMEOUT)
    for path, error in errors.items():
        problem = f"a cell of the lesson fails ({type(error).__name__})"
        raise CourseError(problem, where=path, do=str(error)[-2000:]) from error
    return {path.parent.name: cache.merge_match_into_notebook(notebook)[1] for path, notebook in lessons}


def _student_notebook(chapter: Chapter, executed: Any) -> Any:
    plain = PlainMarkdown(chapter.name, collect_references(chapter.root))
    plain.number_equations(cell.source for cell in executed.cells if cell.cell_type == "markdown")
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": _KERNEL, "language_info": {"name": "python"}})
    outputs = {}
    values = _take_values(executed)
    for cell in executed.cells:
        if cell.cell_type == "markdown":
            count = count_values(cell.source)
            text, values = fill_in_values(cell.source, values[:count]), values[count:]
            notebook.cells.append(nbformat.v4.new_markdown_cell(plain(text)))
        elif cell.cell_type == "code":
            stored = [_stable_output(output) for output in cell.outputs]
            notebook.cells.append(
                nbformat.v4.new_code_cell(cell.source, outputs=stored, metadata=_folding_metadata(cell))
            )
            outputs[source_key(cell.source)] = stored
    name = f"{chapter.name}.ipynb"
    first = nbformat.v4.new_code_cell(_FIRST.format(notebook=name))
    note = nbformat.v4.new_markdown_cell(_NOTE.format(number=chapter.number))
    # After the title, which notebook programs use as the document's name.
    notebook.cells[1:1] = [note, first]
    notebook.metadata["tfcourse"] = {
        "lesson": chapter.name,
        "outputs": {key: stored for key, stored in outputs.items() if stored},
    }
    set_cell_ids(notebook)
    return notebook


def _take_values(executed: Any) -> list[str]:
    """Remove the cell that printed values for the prose, and return the values."""
    if not any(count_values(cell.source) for cell in executed.cells if cell.cell_type == "markdown"):
        return []
    values = printed_values(executed)
    del executed.cells[-1]
    return values


_KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


def _stable_output(output: Any) -> Any:
    """Return an output without fields that vary between runs or that no notebook program shows."""
    stable = {key: value for key, value in output.items() if key != "execution_count"}
    if output.output_type == "execute_result":
        stable["execution_count"] = None
    return nbformat.from_dict(stable)


def _folding_metadata(cell: Any) -> dict[str, Any]:
    """Return the metadata that fold a cell as on the site."""
    tags = set(cell.metadata.get("tags", ()))
    folded = {
        "source_hidden": bool(tags & {"hide-input", "remove-input", "hide-cell"}),
        "outputs_hidden": bool(tags & {"hide-output", "hide-cell"}),
    }
    return {"jupyter": {key: True for key, value in folded.items() if value}} if any(folded.values()) else {}
