"""Restore a submitted notebook's cells from their contents, because their metadata may be wrong.

Editors and web services strip metadata, copy it with a cell, or attach it to the wrong one; students delete cells and write elsewhere. The
chapter's manifest lists the required cells. Each is identified by what it defines, checks or says, then by its name, and inserted if it is
missing. In the end the metadata of all cells, and the text of the course's cells, come from the manifest.

Every cell is read many times, by key: attribute access to a notebook's cell takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nbformat.notebooknode import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.intake.notebook.cell_reader import BUDGET, CellReader, TextComparison
from autograder.intake.notebook.manifest import Manifest, SourceCell
from autograder.intake.notebook.missing_definitions import explain_missing
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.stray_answers import Layout, gather_answers
from autograder.static_analysis.cell_names import (
    checked_names,
    defined_names,
    has_invisible_characters,
    imports_check,
    imports_from_course,
    is_python,
    strip_invisible_characters,
)

# Messages list up to this many cells; beyond that they give the number.
NAMED = 3

_BACK = "Turn it back in the notebook; it was graded as if it were."


def make_reader(manifest: Manifest) -> CellReader:
    """Return a cell reader for a chapter's submission."""
    return CellReader(frozenset(cell.name for cell in manifest.cells if cell.is_stub))


def restore(notebook: Any, manifest: Manifest, reader: CellReader) -> list[Problem]:
    """Restore all of a chapter's cells in a notebook in place, with their metadata and the chapter's kernel.

    Returns:
        The repairs as problems; empty for a notebook in order.
    """
    work = _Restoration(notebook.cells, manifest, reader)
    work.drop_invisible()
    work.restore_code_cells()
    work.identify_cells()
    work.reset_locked_cells()
    work.remove_late_stubs()
    work.insert_missing()
    work.put_in_order()
    work.problems += gather_answers(Layout(manifest, work.cells, work.found, work.claims, work.label, work.texts))
    work.explain_undefined()
    work.report_skipped()
    for name, cell in work.found.items():
        source_cell = manifest.by_name[name]
        cell.metadata["nbgrader"] = source_cell.metadata()
        if source_cell.locked:
            cell["source"] = source_cell.source
    notebook.cells = work.cells
    if manifest.kernelspec:
        notebook.metadata["kernelspec"] = from_dict(dict(manifest.kernelspec))
    return work.problems


class _Restoration:
    def __init__(self, cells: Sequence[Any], manifest: Manifest, reader: CellReader) -> None:
        self.cells = list(cells)
        self.handed_in = list(cells)
        self.manifest = manifest
        self.problems: list[Problem] = []
        self.found: dict[str, Any] = {}  # name → its cell
        # The names in the cells' metadata, by identity of the cell. They are removed: from here on a name is a hint.
        names = {id(cell): cell.metadata.pop("nbgrader", {}).get("grade_id") for cell in cells}
        self.claims = {key: name for key, name in names.items() if name in manifest.by_name}
        self.texts = TextComparison()
        # A code cell that a person grades is a stub, too, but defines nothing under its name.
        stubs = (cell for cell in manifest.cells if cell.is_stub)
        self.exercises = frozenset(cell.name for cell in stubs if cell.name in defined_names(cell.source))
        self._numbers = {id(cell): number for number, cell in enumerate(cells, start=1)}
        self._reader = reader
        self._given = {name: reader.outline(manifest.by_name[name].source).bodies.get(name) for name in self.exercises}

    # Predicates on cells.

    def _bound_names(self, cell: Any) -> frozenset[str]:
        return self._reader.outline(cell["source"]).bound if cell["cell_type"] == "code" else frozenset()

    def _defined_exercises(self, cell: Any) -> frozenset[str]:
        """Return the exercises that a cell defines."""
        return self._bound_names(cell) & self.exercises

    def _checked_names(self, cell: Any) -> frozenset[str]:
        return self._reader.outline(cell["source"]).checked

    def _is_identifiable(self, cell: Any) -> bool:
        """Return whether a code cell's contents identify it."""
        return cell["cell_type"] == "code" and bool(
            self._defined_exercises(cell) or self._checked_names(cell) & self.exercises
        )

    def _find_defining_cells(self, exercise: str) -> list[Any]:
        return [cell for cell in self.cells if exercise in self._bound_names(cell)]

    def _edited_cells(self, exercise: str) -> list[Any]:
        """Return the cells that define an exercise differently from the released stub."""
        return [cell for cell in self._find_defining_cells(exercise) if self._is_edited(cell, exercise)]

    def _is_edited(self, cell: Any, exercise: str) -> bool:
        if self._is_released(cell, self.manifest.by_name[exercise]):
            return False
        # A stub need not define its name: an own exercise may have its whole function between the solution marks.
        stub_body = self._given.get(exercise)
        return not stub_body or self._reader.outline(cell["source"]).bodies.get(exercise) != stub_body

    def _is_released(self, cell: Any, source_cell: SourceCell) -> bool:
        """Return whether a cell has the text of a course cell in this or an earlier release."""
        return self.texts.is_same_as_any(cell["source"], self.manifest.wordings[source_cell.name])

    def label(self, cell: Any) -> str:
        """Return a cell's label for people: its number in the submitted notebook, and its name if it has one."""
        number, name = self._numbers.get(id(cell)), self.claims.get(id(cell), "")
        if number is None:
            return "a cell of the course that was edited"
        return f"cell {number} ({name})" if name else f"cell {number}"

    def _find_position(self, cell: Any) -> int:
        return next(i for i, other in enumerate(self.cells) if other is cell)

    def _find_positions(self, cells: Iterable[Any]) -> list[int]:
        """Return the sorted positions of cells."""
        ids = {id(cell) for cell in cells}
        return [i for i, cell in enumerate(self.cells) if id(cell) in ids]

    def _unidentified_cells(self, cell_type: str) -> list[Any]:
        """Return the cells of a type that are not identified as any cell of the chapter."""
        taken = {id(cell) for cell in self.found.values()}
        return [cell for cell in self.cells if cell["cell_type"] == cell_type and id(cell) not in taken]

    def _find_named_cells(self, source_cell: SourceCell) -> list[Any]:
        """Return the unidentified cells whose metadata carry a source cell's name."""
        taken = {id(cell) for cell in self.found.values()}
        claims = self.claims
        return [cell for cell in self.cells if claims.get(id(cell)) == source_cell.name and id(cell) not in taken]

    def _report_problem(self, kind: str, message: str, where: str = "", do: str = "", *, remark: bool = False) -> None:
        self.problems.append(Problem(kind, message, where, do, remark=remark))

    # The steps of the restoration.

    def drop_invisible(self) -> None:
        """Remove invisible characters that prevent Python from parsing a cell."""
        mended = []
        for cell in self.cells:
            # A cell is parsed up to three times: as it is, without these characters, and for its outline.
            source = cell["source"]
            if cell["cell_type"] == "code" and has_invisible_characters(source) and self._reader.may_parse(source):
                cell["source"] = strip_invisible_characters(source)
                if cell["source"] != source:
                    mended.append(self.label(cell))
        kind, do = (
            "invisible characters",
            "Such characters come with text that is copied from chats and PDFs: type the line anew.",
        )
        for label in mended[:NAMED]:
            message = "It held characters that nobody sees and Python cannot read; it was graded without them."
            self._report_problem(kind, message, label, do, remark=True)
        if len(mended) > NAMED:
            more = f"{len(mended) - NAMED} more cells held such characters; they were graded without them."
            self._report_problem(kind, more, do=do, remark=True)

    def restore_code_cells(self) -> None:
        """Convert a text cell back to code if it holds the only solution of an exercise."""
        open_ = {name for name in self.exercises if not self._edited_cells(name)}
        for cell in self.cells:
            source = cell["source"]
            if cell["cell_type"] == "code" or not self._reader.find_mentioned(source) & open_:
                continue
            if not (self._reader.may_parse(source) and is_python(source)):
                continue
            if names := self._reader.outline(source).bound & open_:
                self._change_type(cell, "code", ", ".join(sorted(names)))
                open_ -= {name for name in names if self._is_edited(cell, name)}

    def _change_type(self, cell: Any, cell_type: str, name: str) -> Any:
        """Change a cell's type, and return it."""
        message = f"The cell of {name} had become a {cell['cell_type']} cell; it was taken for {cell_type}."
        self._report_problem("cell type changed", message, self.label(cell), _BACK)
        turned = _new_cell(cell_type, cell["source"], cell["id"])
        turned["metadata"] = cell["metadata"]
        cell.clear()
        cell.update(turned)
        return cell

    def identify_cells(self) -> None:
        """Identify the chapter's cells: code by definitions and checks, texts by words, answers by place."""
        restored = set()
        steps: list[tuple[Callable[[SourceCell], bool], Callable[[SourceCell], Any]]] = [
            (lambda cell: cell.is_stub, self._find_stub),
            (lambda cell: cell.is_test, self._find_test),
            (lambda cell: cell.locked and cell.cell_type == "code" and not cell.grade, self._find_locked_code),
            (lambda cell: cell.cell_type == "markdown" and not cell.is_answer, self._find_text),
            (lambda cell: cell.is_answer, self._find_answer),
        ]
        for concerns, look in steps:
            for source_cell in self.manifest.cells:
                if source_cell.name in self.found or not concerns(source_cell) or (cell := look(source_cell)) is None:
                    continue
                self.found[source_cell.name] = cell
                if self.claims.get(id(cell)) != source_cell.name:
                    restored.add(source_cell.name)
        carried = list(self.claims.values())
        if repeated := sorted(name for name in set(carried) if carried.count(name) > 1):
            message = f"Copies of a cell carried its name; the last one counts: {', '.join(repeated)}."
            self._report_problem("repeated cells", message)
        if restored:
            names = [cell.name for cell in self.manifest.cells if cell.name in restored]
            self._report_problem("metadata restored", self._recognition_message(names), remark=True)

    def _recognition_message(self, names: Sequence[str]) -> str:
        """State how many cells were identified by their contents, and list their names if they are few."""
        count, all_ = len(names), len(self.manifest.cells)
        statement = "had lost nbgrader's metadata and were recognised by their contents"
        if count == all_:
            return f"All {all_} cells {statement}; nothing to do."
        ending = f": {', '.join(names)}." if count <= NAMED else "; nothing to do."
        return f"{count} of {all_} cells {statement}{ending}"

    def _choose_last(self, cells: Sequence[Any], source_cell: SourceCell) -> Any:
        """Return the last of some cells, preferring one that carries the name."""
        named = [cell for cell in cells if self.claims.get(id(cell)) == source_cell.name]
        return (named or cells)[-1]

    def _find_stub(self, source_cell: SourceCell) -> Any:
        """Return the cell that defines the exercise, preferring an edited cell, then its name, then the last."""
        taken = {id(cell) for cell in self.found.values()}
        for definers in (self._edited_cells(source_cell.name), self._find_defining_cells(source_cell.name)):
            # A cell that has another exercise's name and defines that exercise, too, more likely belongs to the other.
            cells = [cell for cell in definers if id(cell) not in taken and not self._is_other(cell, source_cell)]
            if cells:
                return self._choose_last(cells, source_cell)
        claimants = self._find_named_cells(source_cell)
        silent = [cell for cell in claimants if cell["cell_type"] == "code" and not self._is_identifiable(cell)]
        return silent[-1] if silent else None

    def _is_other(self, cell: Any, source_cell: SourceCell) -> bool:
        claimed = self.claims.get(id(cell))
        return claimed != source_cell.name and claimed in self._defined_exercises(cell)

    def _find_test(self, source_cell: SourceCell) -> Any:
        names = checked_names(source_cell.source)
        fitting = [
            cell
            for cell in self._unidentified_cells("code")
            if not self._defined_exercises(cell)
            and (names & self._checked_names(cell) or self._is_released(cell, source_cell))
        ]
        if fitting:
            return self._choose_last(fitting, source_cell)
        silent = [cell for cell in self._find_named_cells(source_cell) if not self._is_identifiable(cell)]
        if silent and silent[-1]["cell_type"] != "code":
            return self._change_type(silent[-1], "code", source_cell.name)
        return silent[-1] if silent else None

    def _find_locked_code(self, source_cell: SourceCell) -> Any:
        claimants = self._find_named_cells(source_cell)
        claimants = [cell for cell in claimants if cell["cell_type"] == "code" and not self._defined_exercises(cell)]
        if claimants:
            return claimants[-1]
        free = [cell for cell in self._unidentified_cells("code") if not self._is_identifiable(cell)]
        same = (cell for cell in free if self._is_released(cell, source_cell))
        importing = (cell for cell in free if self._imports_check(cell)) if imports_check(source_cell.source) else ()
        return next(same, None) or next(iter(importing), None)

    def _imports_check(self, cell: Any) -> bool:
        return "check" in self._bound_names(cell) and imports_from_course(cell["source"])

    def _find_text(self, source_cell: SourceCell) -> Any:
        """Return the cell with a course text: with the same text, its name, or a similar text."""
        free = self._unidentified_cells("markdown")
        if same := next((cell for cell in free if self._is_released(cell, source_cell)), None):
            return same
        claimants = [cell for cell in self._find_named_cells(source_cell) if cell["cell_type"] == "markdown"]
        return claimants[-1] if claimants else self.texts.find_similar(free, source_cell.source)

    def _find_answer(self, source_cell: SourceCell) -> Any:
        all_ = self._find_named_cells(source_cell)
        claimants = [cell for cell in all_ if not self._is_released(cell, source_cell)] or all_
        if not claimants:
            return self._text_after_prompt(source_cell) if source_cell.cell_type == "markdown" else None
        cell = claimants[-1]
        if cell["cell_type"] != source_cell.cell_type:
            self._change_type(cell, source_cell.cell_type, source_cell.name)
        self._note_wrong_prompt(source_cell, cell)
        return cell

    def _find_prompt(self, source_cell: SourceCell) -> Any:
        before = self.manifest.cells[: self.manifest.cells.index(source_cell)]
        return self.found.get(before[-1].name) if before else None

    def _text_after_prompt(self, source_cell: SourceCell) -> Any:
        """Return the first text cell between a question and the next named cell; None without one."""
        prompt = self._find_prompt(source_cell)
        if prompt is None:
            return None
        named = {key for key, name in self.claims.items() if self.manifest.by_name[name].is_answer}
        named |= {id(cell) for cell in self.found.values()}
        for cell in self.cells[self._find_position(prompt) + 1 :]:
            if id(cell) in named:
                return None
            if cell["cell_type"] == "markdown":
                return cell
        return None

    def _note_wrong_prompt(self, source_cell: SourceCell, cell: Any) -> None:
        """Report an answer that follows another question than its name says, for a person to decide."""
        texts = {id(self.found[w.name]): w for w in self.manifest.cells if w.name in self.found and not w.is_stub}
        prompt = self._find_prompt(source_cell)
        above = (other for other in reversed(self.cells[: self._find_position(cell)]) if id(other) in texts)
        nearest = next(above, None)
        if prompt is None or nearest is None or nearest is prompt or texts[id(nearest)].cell_type != "markdown":
            return
        message = f"This answer stands behind {texts[id(nearest)].name}; it goes by its name."
        self._report_problem("answer elsewhere", message, source_cell.name, "See which question it answers.")

    def reset_locked_cells(self) -> None:
        """Reset locked cells to the course's text; code that a student added moves to a separate cell."""
        for index, source_cell in enumerate(self.manifest.cells):
            cell = self.found.get(source_cell.name)
            if cell is None or not source_cell.locked or source_cell.cell_type != "code":
                continue
            if self._is_released(cell, source_cell):
                continue
            added = new_code_cell(source=cell["source"], id=f"edited-{index:03d}")
            if source_cell.grade:
                # Keep definitions only: other cells do not need a print or a changed number in a test.
                if self._bound_names(cell):
                    self.cells.insert(self._find_position(cell), added)
                message = "The test was edited; the course's own was run in its place."
                self._report_problem("test cell edited", message, source_cell.name, "Leave the test cells as they are.")
            else:
                self.cells.insert(self._find_position(cell) + 1, added)
                message = "The course's cell was put back; what was in it follows it."
                self._report_problem("locked cell edited", message, source_cell.name)
            cell["source"] = source_cell.source

    def remove_late_stubs(self) -> None:
        """Remove an untouched stub that follows the solution and would overwrite it."""
        for name in sorted(self.exercises):
            if not (written := self._edited_cells(name)):
                continue
            stub = self.manifest.by_name[name]
            after = (cell for cell in self.cells[self._find_position(written[0]) + 1 :] if cell["cell_type"] == "code")
            empty = {id(cell) for cell in after if self._is_released(cell, stub)}
            if empty:
                message = "The solution stands in another cell; the empty stub behind it was left out."
                self._report_problem("stub left out", message, name, remark=True)
                self.cells = [cell for cell in self.cells if id(cell) not in empty]
                self.found = {key: cell for key, cell in self.found.items() if id(cell) not in empty}

    def insert_missing(self) -> None:
        """Insert missing cells after their predecessors in the chapter."""
        inserted = []
        for index, source_cell in enumerate(self.manifest.cells):
            if source_cell.name in self.found or (source_cell.is_stub and self._find_defining_cells(source_cell.name)):
                continue
            cell = _new_cell(source_cell.cell_type, source_cell.source, f"restored-{index:03d}")
            self.cells.insert(self._insert_position(source_cell, index), cell)
            self.found[source_cell.name] = cell
            inserted.append(source_cell.name)
        if inserted:
            message = f"Cells of the chapter were missing and were put back: {', '.join(inserted)}."
            do = "Where an exercise's cell is among them, ask whether its solution stands in another file."
            self._report_problem("cells put back", message, do=do if self.exercises.intersection(inserted) else "")

    def _insert_position(self, source_cell: SourceCell, index: int) -> int:
        """Return a missing cell's position: a test follows its exercise, other cells follow their predecessor."""
        if source_cell.is_test:
            definers = [cell for name in checked_names(source_cell.source) for cell in self._find_defining_cells(name)]
            if definers:
                return self._find_positions(definers)[-1] + 1
        before = [self.found[cell.name] for cell in self.manifest.cells[:index] if cell.name in self.found]
        behind = self._find_position(before[-1]) + 1 if before else 0
        if not source_cell.is_stub:
            return behind
        # A student's own cell may define the exercise in a way that its text does not show: the stub must not overwrite it.
        setup = [self._find_position(self.found[c.name]) for c in self._setup_cells() if c.name in self.found]
        first_free = next(iter(self._find_positions(self._unidentified_cells("code"))), behind)
        return max(min(behind, first_free), max(setup, default=-1) + 1)

    def _setup_cells(self) -> list[SourceCell]:
        """Return the locked code cells before the first exercise, such as the setup."""
        first = next((i for i, cell in enumerate(self.manifest.cells) if cell.is_stub), 0)
        return [cell for cell in self.manifest.cells[:first] if cell.locked and cell.cell_type == "code"]

    def put_in_order(self) -> None:
        """Move the setup before the cells that need it, and tests after their exercises; keep other cells' order."""
        tests = [cell for cell in self.manifest.cells if cell.is_test]
        moved = []
        for opening in reversed(self._setup_cells()):
            exercises = [cell for cell in self.cells if self._defined_exercises(cell)][:1]
            needing = self._find_positions([*exercises, *(self.found[cell.name] for cell in tests)])
            first = next(iter(needing), len(self.cells))
            if self._find_position(self.found[opening.name]) >= first:
                self._move_cell(self.found[opening.name], first)
                moved.append(opening.name)
        # A moved test comes after the last exercise, and after the tests that were moved before it.
        anchor = next(
            (cell for cell in reversed(self.cells) if self._defined_exercises(cell)), next(iter(self.cells), None)
        )
        for source_cell in tests:
            test = self.found[source_cell.name]
            names = checked_names(source_cell.source) & self.exercises
            definers = [cell for name in names for cell in self._edited_cells(name) or self._find_defining_cells(name)]
            if definers and self._find_position(test) < self._find_positions(definers)[0]:
                self._move_cell(test, self._find_position(anchor))
                anchor = test
                moved.append(source_cell.name)
        if moved:
            message = f"Cells stood before what they need and were moved: {', '.join(moved)}."
            self._report_problem("cells moved", message, do="Run the notebook from top to bottom before handing in.")

    def _move_cell(self, cell: Any, position: int) -> None:
        """Move a cell to a position, counted without the cell."""
        self.cells = [other for other in self.cells if other is not cell]
        self.cells.insert(position, cell)

    def explain_undefined(self) -> None:
        """Explain exercises without a valid definition."""
        missing = {
            name: cell if id(cell := self.found.get(name)) in self._numbers else None
            for name in sorted(self.exercises)
            if not self._edited_cells(name)
        }
        silent = frozenset(name for name in missing if not self._find_defining_cells(name))
        locked = {id(self.found[cell.name]) for cell in self.manifest.cells if cell.locked and cell.name in self.found}
        cells = [(self._numbers[id(cell)], cell) for cell in self.handed_in if id(cell) not in locked]
        if missing:
            self.problems += explain_missing(missing, silent, cells, self.manifest, self._reader)

    def report_skipped(self) -> None:
        """Report cells that exceeded the parser's budget, because an exercise may have been missed."""
        if count := self._reader.skipped:
            message = (
                f"{count} of its cells {'was' if count == 1 else 'were'} too long, or too much, for Python's parser"
                f" (a notebook may have {BUDGET:,} characters of code); they were searched line by line, and run as they are."
            )
            self._report_problem("much code", message, do="See whether all its exercises were found.", remark=True)


def _new_cell(cell_type: str, source: str, cell_id: str) -> Any:
    make = new_code_cell if cell_type == "code" else new_markdown_cell
    return make(source=source, id=cell_id)


def names_present(notebook: Any, reader: CellReader | None = None) -> frozenset[str]:
    """Return the names in a notebook: of cells, of functions and classes, and of checked exercises."""
    reader = reader or CellReader()
    names: set[str] = set()
    for cell in notebook.cells:
        names.add(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        names |= reader.find_mentioned(cell["source"])
        if cell["cell_type"] == "code":
            outline = reader.outline(cell["source"])
            names |= outline.written | outline.checked
    return frozenset(names)
