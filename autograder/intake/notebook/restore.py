"""Restore a submitted notebook's cells from their contents, because their metadata may be wrong.

Editors and web services strip metadata, copy it with a cell, or attach it to the wrong one; students delete cells and write elsewhere. The
chapter's manifest lists the required cells. Each is identified by what it defines, checks or says, then by its name, and inserted if it is
missing. In the end the metadata of all cells, and the text of the course's cells, come from the manifest.

Every cell is read many times, by key: attribute access to a notebook's cell takes ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nbformat.notebooknode import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import compute_checksum

from autograder.intake.notebook.cell_reader import BUDGET, CellReader
from autograder.intake.notebook.manifest import Manifest, SourceCell
from autograder.intake.notebook.missing_definitions import explain_missing
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.stray_answers import Layout, gather_answers
from autograder.intake.notebook.text_comparison import TextComparison
from autograder.static_analysis.cell_names import (
    checked_names,
    defined_names,
    has_invisible,
    imports_check,
    imports_from_course,
    is_python,
    strip_invisible_characters,
)

# Messages list up to this many cells; beyond that they give the number.
NAMED = 3

_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS.*?^### END HIDDEN TESTS[^\n]*\n?", re.MULTILINE | re.DOTALL)
_BACK = "Turn it back in the notebook; it was graded as if it were."


def reader_for(manifest: Manifest) -> CellReader:
    """Return a reader for the cells of a chapter's submission."""
    return CellReader(frozenset(cell.name for cell in manifest.cells if cell.is_stub))


def restore(notebook: Any, manifest: Manifest, reader: CellReader | None = None) -> list[Problem]:
    """Restore all cells of a notebook's chapter, each once and with its true metadata, and the chapter's kernel.

    Args:
        notebook: a notebook as ``reading.read_notebook`` returns it; changed in place.
        manifest: the chapter's cells.
        reader: parses its cells; by default a new reader.

    Returns:
        The repairs as problems; empty for a notebook in order.
    """
    work = _Restoration(notebook.cells, manifest, reader or reader_for(manifest))
    work.take_claims()
    work.drop_invisible()
    work.turn_back()
    work.match()
    work.keep_edits()
    work.set_stubs_aside()
    work.insert_missing()
    work.put_in_order()
    work.gather_answers()
    work.name_lost()
    work.name_skipped()
    work.restore_metadata()
    notebook.cells = work.cells
    if manifest.kernelspec:
        notebook.metadata["kernelspec"] = from_dict(dict(manifest.kernelspec))
    return work.problems


class _Restoration:
    def __init__(self, cells: Sequence[Any], manifest: Manifest, reader: CellReader) -> None:
        self.cells = list(cells)
        self.handed_in = list(enumerate(cells, start=1))
        self.manifest = manifest
        self.problems: list[Problem] = []
        self.found: dict[str, Any] = {}  # name → its cell
        self.claims: dict[str, list[Any]] = {}  # name → the cells with this name in their metadata
        self.inserted: set[str] = set()
        # A code cell that a person grades is a stub, too, but defines nothing under its name.
        stubs = (cell for cell in manifest.cells if cell.is_stub)
        self.exercises = frozenset(cell.name for cell in stubs if cell.name in defined_names(cell.source))
        # Facts about cells by identity, to avoid searching all cells.
        self._numbers = {id(cell): number for number, cell in self.handed_in}
        self._claimed: dict[int, str] = {}
        self._untouched: set[int] = set()
        self._reader = reader
        self._texts = TextComparison()
        self._given = {name: reader.outline(manifest.by_name[name].source).bodies.get(name) for name in self.exercises}

    # Predicates on cells.

    def _defines(self, cell: Any) -> frozenset[str]:
        """Return the exercises that a cell defines."""
        return self._bound(cell) & self.exercises

    def _bound(self, cell: Any) -> frozenset[str]:
        return self._reader.outline(cell["source"]).bound if cell["cell_type"] == "code" else frozenset()

    def _checks(self, cell: Any) -> frozenset[str]:
        return self._reader.outline(cell["source"]).checked

    def _definers(self, exercise: str) -> list[Any]:
        return [cell for cell in self.cells if exercise in self._bound(cell)]

    def _written(self, exercise: str) -> list[Any]:
        """Return the cells that define an exercise otherwise than the released stub."""
        return [cell for cell in self._definers(exercise) if self._is_written(cell, exercise)]

    def _is_written(self, cell: Any, exercise: str) -> bool:
        if self._texts.same(cell["source"], self.manifest.by_name[exercise].source):
            return False
        # A stub need not define its name: an own exercise may have its whole function between the solution marks.
        stub_body = self._given.get(exercise)
        return not stub_body or self._reader.outline(cell["source"]).bodies.get(exercise) != stub_body

    def _label(self, cell: Any) -> str:
        """Return a cell's label for people: its number in the submitted notebook, and its name if it has one."""
        number, name = self._numbers.get(id(cell)), self._claimed.get(id(cell), "")
        if number is None:
            return "a cell of the course that was edited"
        return f"cell {number} ({name})" if name else f"cell {number}"

    def _position(self, cell: Any) -> int:
        return next(i for i, other in enumerate(self.cells) if other is cell)

    def _positions(self, cells: Iterable[Any]) -> list[int]:
        """Return the sorted positions of cells."""
        ids = {id(cell) for cell in cells}
        return [i for i, cell in enumerate(self.cells) if id(cell) in ids]

    def _positions_of_exercises(self) -> list[int]:
        """Return the sorted positions of cells that define an exercise."""
        return [i for i, cell in enumerate(self.cells) if self._defines(cell)]

    def _free(self, *cell_types: str) -> Iterator[Any]:
        taken = {id(cell) for cell in self.found.values()}
        return (cell for cell in self.cells if cell["cell_type"] in cell_types and id(cell) not in taken)

    def _claimants(self, source_cell: SourceCell) -> list[Any]:
        taken = {id(cell) for cell in self.found.values()}
        return [cell for cell in self.claims.get(source_cell.name, []) if id(cell) not in taken]

    # The steps of the restoration.

    def take_claims(self) -> None:
        """Collect the names in the cells' metadata and remove them: from here on a name is a hint."""
        for cell in self.cells:
            metadata = cell.metadata.pop("nbgrader", {})
            name = metadata.get("grade_id")
            if name in self.manifest.by_name:
                # Students may have an older release, whose text is no addition of theirs.
                if metadata.get("locked") and metadata.get("checksum") == _checksum(cell, metadata):
                    self._untouched.add(id(cell))
                self.claims.setdefault(name, []).append(cell)
                self._claimed[id(cell)] = name

    def drop_invisible(self) -> None:
        """Remove invisible characters that prevent Python from parsing a cell."""
        places = []
        for cell in self.cells:
            # A cell is parsed up to three times: as it is, without these characters, and for its outline.
            if (
                cell["cell_type"] != "code"
                or not has_invisible(cell["source"])
                or not self._reader.may_parse(cell["source"])
            ):
                continue
            if (mended := strip_invisible_characters(cell["source"])) != cell["source"]:
                places.append(self._label(cell))
                cell.source = mended
        message = "It held characters that nobody sees and Python cannot read; it was graded without them."
        do = "Such characters come with text that is copied from chats and PDFs: type the line anew."
        self.problems += [Problem("invisible characters", message, label, do, remark=True) for label in places[:NAMED]]
        if len(places) > NAMED:
            more = f"{len(places) - NAMED} more cells held such characters; they were graded without them."
            self.problems.append(Problem("invisible characters", more, do=do, remark=True))

    def turn_back(self) -> None:
        """Convert a text cell back to code if it holds the only solution of an exercise."""
        open_ = {name for name in self.exercises if not self._written(name)}
        for index, cell in enumerate(self.cells):
            if cell["cell_type"] == "code" or not (self._reader.mentioned(cell["source"]) & open_):
                continue
            if not (self._reader.may_parse(cell["source"]) and is_python(cell["source"])):
                continue
            if names := self._reader.outline(cell["source"]).bound & open_:
                converted = self._turn(index, "code", ", ".join(sorted(names)))
                open_ -= {name for name in names if self._is_written(converted, name)}

    def _turn(self, index: int, cell_type: str, name: str) -> Any:
        """Replace a cell by one of another type, and return it."""
        old = self.cells[index]
        make = new_code_cell if cell_type == "code" else new_markdown_cell
        cell = make(source=old.source, metadata=old.metadata, id=old.id)
        message = f"The cell of {name} had become a {old.cell_type} cell; it was taken for {cell_type}."
        self.problems.append(Problem("cell type changed", message, self._label(old), _BACK))
        self.cells[index] = cell
        number = self._numbers[id(cell)] = self._numbers[id(old)]
        self.handed_in[number - 1] = (number, cell)
        if claimed := self._claimed.get(id(old)):
            self._claimed[id(cell)] = claimed
            self.claims[claimed] = [cell if other is old else other for other in self.claims[claimed]]
        return cell

    def match(self) -> None:
        """Identify the chapter's cells: code by its definitions and checks, texts by their words, answers by names and positions."""
        restored = []
        for look in (self._find_stub, self._find_test, self._find_locked_code, self._find_text, self._find_answer):
            for source_cell in self.manifest.cells:
                cell = None if source_cell.name in self.found else look(source_cell)
                if cell is not None:
                    self.found[source_cell.name] = cell
                    if self._claimed.get(id(cell)) != source_cell.name:
                        restored.append(source_cell.name)
        repeated = sorted(name for name, cells in self.claims.items() if len(cells) > 1)
        if repeated:
            message = f"Copies of a cell carried its name; the last one counts: {', '.join(repeated)}."
            self.problems.append(Problem("repeated cells", message))
        if restored:
            order = [cell.name for cell in self.manifest.cells if cell.name in restored]
            self.problems.append(Problem("metadata restored", self._recognised(order), remark=True))

    def _recognised(self, names: Sequence[str]) -> str:
        """Report which cells were identified by their contents, by name if they are few."""
        count, all_ = len(names), len(self.manifest.cells)
        statement = "had lost nbgrader's metadata and were recognised by their contents"
        if count == all_:
            return f"All {all_} cells {statement}; nothing to do."
        return f"{count} of {all_} cells {statement}" + (
            f": {', '.join(names)}." if count <= NAMED else "; nothing to do."
        )

    def _find_stub(self, source_cell: SourceCell) -> Any:
        """Return the cell that defines the exercise. Prefer an edited cell, then one with its name, then the last."""
        if not source_cell.is_stub:
            return None
        claimants = self._claimants(source_cell)
        taken = {id(cell) for cell in self.found.values()}
        for definers in (self._written(source_cell.name), self._definers(source_cell.name)):
            free = [cell for cell in definers if id(cell) not in taken]
            # A cell that has another exercise's name and defines that exercise, too, more likely belongs to the other.
            candidates = [cell for cell in free if not self._is_other(cell, source_cell)]
            named = [cell for cell in candidates if self._claimed.get(id(cell)) == source_cell.name]
            if candidates:
                return (named or candidates)[-1]
        silent = [cell for cell in claimants if cell["cell_type"] == "code" and not self._says(cell)]
        return silent[-1] if silent else None

    def _is_other(self, cell: Any, source_cell: SourceCell) -> bool:
        claimed = self._claimed.get(id(cell))
        return claimed != source_cell.name and claimed in self._defines(cell)

    def _says(self, cell: Any) -> bool:
        """Return whether a code cell's contents identify it."""
        return bool(self._defines(cell)) or bool(self._checks(cell) & self.exercises)

    def _find_test(self, source_cell: SourceCell) -> Any:
        if not source_cell.is_test:
            return None
        names, visible, claimants = (
            checked_names(source_cell.source),
            _visible(source_cell),
            self._claimants(source_cell),
        )
        fitting = [
            cell
            for cell in self._free("code")
            if not self._defines(cell) and (names & self._checks(cell) or self._texts.same(cell["source"], visible))
        ]
        named = [cell for cell in fitting if self._claimed.get(id(cell)) == source_cell.name]
        if named or fitting:
            return (named or fitting)[-1]
        silent = [cell for cell in claimants if not self._says_code(cell)]
        if silent and silent[-1].cell_type != "code":
            return self._turn(self._position(silent[-1]), "code", source_cell.name)
        return silent[-1] if silent else None

    def _says_code(self, cell: Any) -> bool:
        return cell["cell_type"] == "code" and self._says(cell)

    def _find_locked_code(self, source_cell: SourceCell) -> Any:
        if not source_cell.locked or source_cell.cell_type != "code" or source_cell.grade:
            return None
        free = [cell for cell in self._free("code") if not self._says(cell)]
        same = [cell for cell in free if self._texts.same(cell["source"], source_cell.source)]
        claimants = [
            cell for cell in self._claimants(source_cell) if cell["cell_type"] == "code" and not self._defines(cell)
        ]
        importing = [cell for cell in free if self._imports_check(cell)] if imports_check(source_cell.source) else []
        return next(iter((*claimants[-1:], *same, *importing)), None)

    def _imports_check(self, cell: Any) -> bool:
        return "check" in self._bound(cell) and imports_from_course(cell["source"])

    def _find_text(self, source_cell: SourceCell) -> Any:
        """Return the cell of a course's text: the same text, or its name, or a similar text."""
        if source_cell.cell_type != "markdown" or source_cell.is_answer:
            return None
        free = list(self._free("markdown"))
        same = [cell for cell in free if self._texts.same(cell["source"], source_cell.source)]
        claimants = [cell for cell in self._claimants(source_cell) if cell["cell_type"] == "markdown"]
        return next(iter((*same, *claimants[-1:])), None) or self._texts.first_alike(free, source_cell.source)

    def _find_answer(self, source_cell: SourceCell) -> Any:
        if not source_cell.is_answer:
            return None
        claimants = self._claimants(source_cell)
        claimants = [
            cell for cell in claimants if not self._texts.same(cell["source"], source_cell.source)
        ] or claimants
        if not claimants:
            return next(self._answers_after_prompt(source_cell), None) if source_cell.cell_type == "markdown" else None
        cell = claimants[-1]
        if cell.cell_type != source_cell.cell_type:
            cell = self._turn(self._position(cell), source_cell.cell_type, source_cell.name)
        self._note_wrong_prompt(source_cell, cell)
        return cell

    def _prompt_of(self, source_cell: SourceCell) -> Any:
        before = self.manifest.cells[: self.manifest.cells.index(source_cell)]
        return self.found.get(before[-1].name) if before else None

    def _answers_after_prompt(self, source_cell: SourceCell) -> Iterator[Any]:
        """Yield candidates for an answer: the text cells between its question and the next named cell."""
        prompt = self._prompt_of(source_cell)
        if prompt is None:
            return
        claimed = {
            id(cell) for name, cells in self.claims.items() for cell in cells if self.manifest.by_name[name].is_answer
        }
        taken = {id(cell) for cell in self.found.values()}
        for cell in self.cells[self._position(prompt) + 1 :]:
            if id(cell) in taken or id(cell) in claimed:
                return
            if cell["cell_type"] == "markdown":
                yield cell

    def _note_wrong_prompt(self, source_cell: SourceCell, cell: Any) -> None:
        """Report an answer that follows another question than its name says: only a person can see which it answers."""
        texts = {id(self.found[w.name]): w.name for w in self.manifest.cells if w.name in self.found and not w.is_stub}
        prompt = self._prompt_of(source_cell)
        above = (texts[id(other)] for other in reversed(self.cells[: self._position(cell)]) if id(other) in texts)
        nearest = next(above, None)
        if prompt is None or nearest is None or nearest == texts.get(id(prompt)):
            return
        if self.manifest.by_name[nearest].cell_type == "markdown":
            message = f"This answer stands behind {nearest}; it goes by its name."
            self.problems.append(
                Problem("answer elsewhere", message, source_cell.name, "See which question it answers.")
            )

    def keep_edits(self) -> None:
        """Reset locked cells to the course's text; code that a student added to one moves to its own cell."""
        for index, source_cell in enumerate(self.manifest.cells):
            cell = self.found.get(source_cell.name)
            if (
                cell is None
                or not source_cell.locked
                or source_cell.cell_type != "code"
                or self._texts.same(cell.source, _visible(source_cell))
            ):
                continue
            added = new_code_cell(source=cell.source, id=f"edited-{index:03d}")
            if source_cell.grade:
                # Keep definitions only: other cells do not need a print or a changed number in a test.
                if self._reader.outline(cell.source).bound:
                    self.cells.insert(self._position(cell), added)
                message = "The test was edited; the course's own was run in its place."
                self.problems.append(
                    Problem("test cell edited", message, source_cell.name, "Leave the test cells as they are.")
                )
            else:
                self.cells.insert(self._position(cell) + 1, added)
                message = "The course's cell was put back; what was in it follows it."
                self.problems.append(Problem("locked cell edited", message, where=source_cell.name))
            cell.source = source_cell.source

    def set_stubs_aside(self) -> None:
        """Remove an untouched stub that follows the solution and would overwrite it."""
        for name in sorted(self.exercises):
            written = self._written(name)
            first = self._position(written[0]) if written else len(self.cells)
            stub = self.manifest.by_name[name].source
            empty = {
                id(cell)
                for cell in self.cells[first + 1 :]
                if cell["cell_type"] == "code" and self._texts.same(cell["source"], stub)
            }
            if empty:
                message = "The solution stands in another cell; the empty stub behind it was left out."
                self.problems.append(Problem("stub left out", message, where=name, remark=True))
                self.cells = [cell for cell in self.cells if id(cell) not in empty]
                self.found = {key: cell for key, cell in self.found.items() if id(cell) not in empty}

    def insert_missing(self) -> None:
        """Insert missing cells after their predecessors in the chapter."""
        inserted = []
        for index, source_cell in enumerate(self.manifest.cells):
            if source_cell.name in self.found or (source_cell.is_stub and self._definers(source_cell.name)):
                continue
            make = new_code_cell if source_cell.cell_type == "code" else new_markdown_cell
            cell = make(source=source_cell.source, id=f"restored-{index:03d}")
            self.cells.insert(self._place_for(source_cell, index), cell)
            self.found[source_cell.name] = cell
            inserted.append(source_cell.name)
        self.inserted = set(inserted)
        if inserted:
            message = f"Cells of the chapter were missing and were put back: {', '.join(inserted)}."
            do = "Where an exercise's cell is among them, ask whether its solution stands in another file."
            advice = do if self.inserted & self.exercises else ""
            self.problems.append(Problem("cells put back", message, do=advice))

    def _place_for(self, source_cell: SourceCell, index: int) -> int:
        """Return the position for a missing cell: a test after the last definition of its exercise, others after their predecessor."""
        if source_cell.is_test:
            written = [cell for name in checked_names(source_cell.source) for cell in self._definers(name)]
            if written:
                return self._positions(written)[-1] + 1
        before = [self.found[cell.name] for cell in self.manifest.cells[:index] if cell.name in self.found]
        behind = self._position(before[-1]) + 1 if before else 0
        if not source_cell.is_stub:
            return behind
        # A student's own cell may define the exercise in a way that its text does not show: the stub must not overwrite it.
        setup = [self._position(self.found[c.name]) for c in self._openings() if c.name in self.found]
        free = {id(cell) for cell in self._free("code")}
        first_free = next((i for i, cell in enumerate(self.cells) if id(cell) in free), behind)
        return max(min(behind, first_free), max(setup, default=-1) + 1)

    def _openings(self) -> list[SourceCell]:
        """Return the locked code cells before the first exercise, such as the setup."""
        first = next((i for i, cell in enumerate(self.manifest.cells) if cell.is_stub), 0)
        return [cell for cell in self.manifest.cells[:first] if cell.locked and cell.cell_type == "code"]

    def put_in_order(self) -> None:
        """Move the setup before all cells that need it, and tests after their exercises. The student decides the order of other cells."""
        moved = [source_cell.name for source_cell in reversed(self._openings()) if self._to_the_front(source_cell)]
        last = (self._positions_of_exercises() or [0])[-1]
        anchor = self.cells[last] if self.cells else None
        for source_cell in (cell for cell in self.manifest.cells if cell.is_test):
            test = self.found[source_cell.name]
            names = checked_names(source_cell.source) & self.exercises
            definers = [cell for name in names for cell in self._written(name) or self._definers(name)]
            if definers and self._position(test) < self._positions(definers)[0]:
                self.cells = [cell for cell in self.cells if cell is not test]
                self.cells.insert(self._position(anchor) + 1, test)
                anchor = test
                moved.append(source_cell.name)
        if moved:
            message = f"Cells stood before what they need and were moved: {', '.join(moved)}."
            self.problems.append(
                Problem("cells moved", message, do="Run the notebook from top to bottom before handing in.")
            )

    def _to_the_front(self, source_cell: SourceCell) -> bool:
        cell = self.found[source_cell.name]
        needing = self._positions_of_exercises()[:1] + [
            self._position(self.found[c.name]) for c in self.manifest.cells if c.is_test
        ]
        first = min(needing, default=len(self.cells))
        if self._position(cell) < first:
            return False
        self.cells = [other for other in self.cells if other is not cell]
        self.cells.insert(first, cell)
        return True

    def gather_answers(self) -> None:
        """Show answers in words that stand outside of their cells to the marker."""
        untouched = frozenset(self._untouched)
        layout = Layout(self.cells, self.found, self.claims, untouched, self._label, self._texts)
        self.problems += gather_answers(layout, self.manifest)

    def name_lost(self) -> None:
        """Explain exercises that have no definition where it counts."""
        missing = {
            name: None if name in self.inserted else self.found.get(name)
            for name in sorted(self.exercises)
            if not self._written(name)
        }
        silent = frozenset(name for name in missing if not self._definers(name))
        locked = {id(self.found[cell.name]) for cell in self.manifest.cells if cell.locked and cell.name in self.found}
        cells = [(number, cell) for number, cell in self.handed_in if id(cell) not in locked]
        if missing:
            self.problems += explain_missing(missing, silent, cells, self.manifest, self._reader)

    def name_skipped(self) -> None:
        """Report cells that exceeded the parser's budget, because an exercise may have been missed."""
        if count := self._reader.skipped:
            message = (
                f"{count} of its cells {'was' if count == 1 else 'were'} too long, or too much, for Python's parser"
            )
            message += f" (a notebook may have {BUDGET:,} characters of code); they were searched line by line, and run as they are."
            self.problems.append(
                Problem("much code", message, do="See whether all its exercises were found.", remark=True)
            )

    def restore_metadata(self) -> None:
        """Write the true metadata and the course's texts, including hidden tests."""
        for name, cell in self.found.items():
            source_cell = self.manifest.by_name[name]
            cell.metadata["nbgrader"] = source_cell.metadata()
            if source_cell.locked:
                cell["source"] = source_cell.source


def _checksum(cell: Any, metadata: Mapping[str, Any]) -> str:
    """Return nbgrader's checksum of a cell that had this metadata; empty if it has none."""
    try:
        return str(compute_checksum(from_dict({**cell, "metadata": {"nbgrader": dict(metadata)}})))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""


def _visible(source_cell: SourceCell) -> str:
    """Return a course's cell without its hidden tests, as students have it."""
    return _HIDDEN.sub("", source_cell.source + "\n")


def names_present(notebook: Any, reader: CellReader | None = None) -> frozenset[str]:
    """Return the names in a notebook: of cells in their metadata, of functions and classes, and of checked exercises."""
    reader = reader or CellReader()
    names: set[str] = set()
    for cell in notebook.cells:
        names.add(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        names |= reader.mentioned(cell["source"])
        if cell["cell_type"] == "code":
            outline = reader.outline(cell["source"])
            names |= outline.written | outline.checked
    return frozenset(names)
