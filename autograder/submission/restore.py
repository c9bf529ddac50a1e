"""Making a submitted notebook whole again, by what is in its cells rather than by what their metadata claim.

Editors and web services strip metadata, copy it with a cell, or hang it on the wrong one; students delete cells and write elsewhere. The
chapter's manifest says which cells there must be; each is looked for by what it defines, checks or says, then by its name, and put back
where it is missing. What the course says of its cells, and the text of those that are its own, is the manifest's in the end.

Every cell is looked at many times. What is in one is asked for by key: as an attribute it would take a notebook's cell ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nbformat.notebooknode import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.static_analysis.cell_names import (
    checked_names,
    defined_names,
    has_invisible,
    imports_check,
    imports_from_course,
    is_python,
    strip_invisible_characters,
)
from autograder.submission.cell_reader import BUDGET, CellReader
from autograder.submission.manifest import Manifest, SourceCell
from autograder.submission.missing_definitions import explain_missing
from autograder.submission.problem import Problem
from autograder.submission.text_comparison import TextComparison

# Up to so many cells are named; more names than that say less than their number.
NAMED = 3

_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS.*?^### END HIDDEN TESTS[^\n]*\n?", re.MULTILINE | re.DOTALL)
_BACK = "Turn it back in the notebook; it was graded as if it were."


def reader_for(manifest: Manifest) -> CellReader:
    """Return what reads the cells of a chapter's submission."""
    return CellReader(frozenset(cell.name for cell in manifest.cells if cell.is_stub))


def restore(notebook: Any, manifest: Manifest, reader: CellReader | None = None) -> list[Problem]:
    """Give a notebook all the cells of its chapter, each once and with its true metadata, and the chapter's kernel.

    Args:
        notebook: a notebook as ``reading.read_notebook`` returns it; changed in place.
        manifest: the chapter's cells.
        reader: what reads its cells; by default a new one.

    Returns:
        What had to be done; nothing for a notebook that was in order.
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
    work.name_lost()
    work.name_skipped()
    work.mark()
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
        self.found: dict[str, Any] = {}  # name → the cell that is it
        self.claims: dict[str, list[Any]] = {}  # name → the cells that carry it
        self.inserted: set[str] = set()
        # A code cell that a person grades is a stub too, but defines nothing of its name.
        stubs = (cell for cell in manifest.cells if cell.is_stub)
        self.exercises = frozenset(cell.name for cell in stubs if cell.name in defined_names(cell.source))
        # What is known of a cell by its identity, so that nobody has to look through all cells for it.
        self._numbers = {id(cell): number for number, cell in self.handed_in}
        self._claimed: dict[int, str] = {}
        self._reader = reader
        self._texts = TextComparison()
        self._given = {name: reader.outline(manifest.by_name[name].source).bodies.get(name) for name in self.exercises}

    # What a cell says.

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
        """Return the cells that define an exercise as it was not given out."""
        return [cell for cell in self._definers(exercise) if self._is_written(cell, exercise)]

    def _is_written(self, cell: Any, exercise: str) -> bool:
        if self._texts.same(cell["source"], self.manifest.by_name[exercise].source):
            return False
        # A stub need not define its name: an own exercise may have its whole function between the solution marks.
        given = self._given.get(exercise)
        return not given or self._reader.outline(cell["source"]).bodies.get(exercise) != given

    def _place(self, cell: Any) -> str:
        """Return how people find a cell: by its number in what was handed in, and by its name if it claims one."""
        number, name = self._numbers[id(cell)], self._claimed.get(id(cell), "")
        return f"cell {number} ({name})" if name else f"cell {number}"

    def _position(self, cell: Any) -> int:
        return next(i for i, other in enumerate(self.cells) if other is cell)

    def _positions(self, cells: Iterable[Any]) -> list[int]:
        """Return where cells stand, in order."""
        wanted = {id(cell) for cell in cells}
        return [i for i, cell in enumerate(self.cells) if id(cell) in wanted]

    def _positions_of_exercises(self) -> list[int]:
        """Return where cells stand that define an exercise, in order."""
        return [i for i, cell in enumerate(self.cells) if self._defines(cell)]

    def _free(self, *cell_types: str) -> Iterator[Any]:
        taken = {id(cell) for cell in self.found.values()}
        return (cell for cell in self.cells if cell["cell_type"] in cell_types and id(cell) not in taken)

    def _claimants(self, wanted: SourceCell) -> list[Any]:
        taken = {id(cell) for cell in self.found.values()}
        return [cell for cell in self.claims.get(wanted.name, []) if id(cell) not in taken]

    # Step by step.

    def take_claims(self) -> None:
        """Take note of the names that cells carry, and take them away: from here on a name is a hint."""
        for cell in self.cells:
            name = cell.metadata.pop("nbgrader", {}).get("grade_id")
            if name in self.manifest.by_name:
                self.claims.setdefault(name, []).append(cell)
                self._claimed[id(cell)] = name

    def drop_invisible(self) -> None:
        """Take characters out that nobody sees and that keep Python from reading a cell."""
        places = []
        for cell in self.cells:
            # It is read up to three times: as it is, without them, and by whoever asks what it defines.
            if (
                cell["cell_type"] != "code"
                or not has_invisible(cell["source"])
                or not self._reader.may_parse(cell["source"])
            ):
                continue
            if (mended := strip_invisible_characters(cell["source"])) != cell["source"]:
                places.append(self._place(cell))
                cell.source = mended
        what = "It held characters that nobody sees and Python cannot read; it was graded without them."
        do = "Such characters come with text that is copied from chats and PDFs: type the line anew."
        self.problems += [Problem("invisible characters", what, place, do, remark=True) for place in places[:NAMED]]
        if len(places) > NAMED:
            more = f"{len(places) - NAMED} more cells held such characters; they were graded without them."
            self.problems.append(Problem("invisible characters", more, do=do, remark=True))

    def turn_back(self) -> None:
        """Make code again of an exercise whose only solution stands in a cell that became text."""
        open_ = {name for name in self.exercises if not self._written(name)}
        for place, cell in enumerate(self.cells):
            if cell["cell_type"] == "code" or not (self._reader.mentioned(cell["source"]) & open_):
                continue
            if not (self._reader.may_parse(cell["source"]) and is_python(cell["source"])):
                continue
            if names := self._reader.outline(cell["source"]).bound & open_:
                made = self._turn(place, "code", ", ".join(sorted(names)))
                open_ -= {name for name in names if self._is_written(made, name)}

    def _turn(self, place: int, cell_type: str, name: str) -> Any:
        """Put a cell of another type in the place of one; return it."""
        old = self.cells[place]
        make = new_code_cell if cell_type == "code" else new_markdown_cell
        cell = make(source=old.source, metadata=old.metadata, id=old.id)
        what = f"The cell of {name} had become a {old.cell_type} cell; it was taken for {cell_type}."
        self.problems.append(Problem("cell type changed", what, self._place(old), _BACK))
        self.cells[place] = cell
        number = self._numbers[id(cell)] = self._numbers[id(old)]
        self.handed_in[number - 1] = (number, cell)
        if claimed := self._claimed.get(id(old)):
            self._claimed[id(cell)] = claimed
            self.claims[claimed] = [cell if other is old else other for other in self.claims[claimed]]
        return cell

    def match(self) -> None:
        """Find the chapter's cells: code by what it does, texts by what they say, and answers by their names and places."""
        restored = []
        for look in (self._find_stub, self._find_test, self._find_locked_code, self._find_text, self._find_answer):
            for wanted in self.manifest.cells:
                cell = None if wanted.name in self.found else look(wanted)
                if cell is not None:
                    self.found[wanted.name] = cell
                    if self._claimed.get(id(cell)) != wanted.name:
                        restored.append(wanted.name)
        repeated = sorted(name for name, cells in self.claims.items() if len(cells) > 1)
        if repeated:
            what = f"Copies of a cell carried its name; the last one counts: {', '.join(repeated)}."
            self.problems.append(Problem("repeated cells", what))
        if restored:
            order = [cell.name for cell in self.manifest.cells if cell.name in restored]
            self.problems.append(Problem("metadata restored", self._recognised(order), remark=True))

    def _recognised(self, names: Sequence[str]) -> str:
        """Say which cells were known by their contents: by name where they are few."""
        found, all_ = len(names), len(self.manifest.cells)
        told = "had lost nbgrader's metadata and were recognised by their contents"
        if found == all_:
            return f"All {all_} cells {told}; nothing to do."
        return f"{found} of {all_} cells {told}" + (f": {', '.join(names)}." if found <= NAMED else "; nothing to do.")

    def _find_stub(self, wanted: SourceCell) -> Any:
        """Return the cell that defines the exercise, rather one that was written in, rather one that carries its name, the last."""
        if not wanted.is_stub:
            return None
        claimants = self._claimants(wanted)
        taken = {id(cell) for cell in self.found.values()}
        for definers in (self._written(wanted.name), self._definers(wanted.name)):
            free = [cell for cell in definers if id(cell) not in taken]
            # A cell that carries another exercise's name and defines that too is more likely the other's.
            mine = [cell for cell in free if not self._is_other(cell, wanted)]
            named = [cell for cell in mine if self._claimed.get(id(cell)) == wanted.name]
            if mine:
                return (named or mine)[-1]
        silent = [cell for cell in claimants if cell["cell_type"] == "code" and not self._says(cell)]
        return silent[-1] if silent else None

    def _is_other(self, cell: Any, wanted: SourceCell) -> bool:
        claimed = self._claimed.get(id(cell))
        return claimed != wanted.name and claimed in self._defines(cell)

    def _says(self, cell: Any) -> bool:
        """Whether a code cell says by itself what it is."""
        return bool(self._defines(cell)) or bool(self._checks(cell) & self.exercises)

    def _find_test(self, wanted: SourceCell) -> Any:
        if not wanted.is_test:
            return None
        names, visible, claimants = checked_names(wanted.source), _visible(wanted), self._claimants(wanted)
        fitting = [
            cell
            for cell in self._free("code")
            if not self._defines(cell) and (names & self._checks(cell) or self._texts.same(cell["source"], visible))
        ]
        named = [cell for cell in fitting if self._claimed.get(id(cell)) == wanted.name]
        if named or fitting:
            return (named or fitting)[-1]
        silent = [cell for cell in claimants if not self._says_code(cell)]
        if silent and silent[-1].cell_type != "code":
            return self._turn(self._position(silent[-1]), "code", wanted.name)
        return silent[-1] if silent else None

    def _says_code(self, cell: Any) -> bool:
        return cell["cell_type"] == "code" and self._says(cell)

    def _find_locked_code(self, wanted: SourceCell) -> Any:
        if not wanted.locked or wanted.cell_type != "code" or wanted.grade:
            return None
        free = [cell for cell in self._free("code") if not self._says(cell)]
        same = [cell for cell in free if self._texts.same(cell["source"], wanted.source)]
        claimants = [
            cell for cell in self._claimants(wanted) if cell["cell_type"] == "code" and not self._defines(cell)
        ]
        importing = [cell for cell in free if self._imports_check(cell)] if imports_check(wanted.source) else []
        return next(iter((*claimants[-1:], *same, *importing)), None)

    def _imports_check(self, cell: Any) -> bool:
        return "check" in self._bound(cell) and imports_from_course(cell["source"])

    def _find_text(self, wanted: SourceCell) -> Any:
        """Return the course's own text: word for word, or by its name, or by its likeness."""
        if wanted.cell_type != "markdown" or wanted.is_answer:
            return None
        free = list(self._free("markdown"))
        same = [cell for cell in free if self._texts.same(cell["source"], wanted.source)]
        claimants = [cell for cell in self._claimants(wanted) if cell["cell_type"] == "markdown"]
        return next(iter((*same, *claimants[-1:])), None) or self._texts.first_alike(free, wanted.source)

    def _find_answer(self, wanted: SourceCell) -> Any:
        if not wanted.is_answer:
            return None
        claimants = self._claimants(wanted)
        claimants = [cell for cell in claimants if not self._texts.same(cell["source"], wanted.source)] or claimants
        if not claimants:
            return next(self._answers_after_prompt(wanted), None) if wanted.cell_type == "markdown" else None
        cell = claimants[-1]
        if cell.cell_type != wanted.cell_type:
            cell = self._turn(self._position(cell), wanted.cell_type, wanted.name)
        self._note_wrong_prompt(wanted, cell)
        return cell

    def _prompt_of(self, wanted: SourceCell) -> Any:
        before = self.manifest.cells[: self.manifest.cells.index(wanted)]
        return self.found.get(before[-1].name) if before else None

    def _answers_after_prompt(self, wanted: SourceCell) -> Iterator[Any]:
        """An answer has no form of its own: it is what stands between its question and the next named cell."""
        prompt = self._prompt_of(wanted)
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

    def _note_wrong_prompt(self, wanted: SourceCell, cell: Any) -> None:
        """Say that an answer stands behind another question than its name tells: only a person can see which it answers."""
        texts = {id(self.found[w.name]): w.name for w in self.manifest.cells if w.name in self.found and not w.is_stub}
        prompt = self._prompt_of(wanted)
        above = (texts[id(other)] for other in reversed(self.cells[: self._position(cell)]) if id(other) in texts)
        nearest = next(above, None)
        if prompt is None or nearest is None or nearest == texts.get(id(prompt)):
            return
        if self.manifest.by_name[nearest].cell_type == "markdown":
            what = f"This answer stands behind {nearest}; it goes by its name."
            self.problems.append(Problem("answer elsewhere", what, wanted.name, "See which question it answers."))

    def keep_edits(self) -> None:
        """Locked cells get the course's text back; code that a student added to one stays, in a cell of its own."""
        for place, wanted in enumerate(self.manifest.cells):
            cell = self.found.get(wanted.name)
            if (
                cell is None
                or not wanted.locked
                or wanted.cell_type != "code"
                or self._texts.same(cell.source, _visible(wanted))
            ):
                continue
            kept = new_code_cell(source=cell.source, id=f"edited-{place:03d}")
            if wanted.grade:
                # Only what others may need: a print or a changed number in a test is nobody's helper.
                if self._reader.outline(cell.source).bound:
                    self.cells.insert(self._position(cell), kept)
                what = "The test was edited; the course's own was run in its place."
                self.problems.append(
                    Problem("test cell edited", what, wanted.name, "Leave the test cells as they are.")
                )
            else:
                self.cells.insert(self._position(cell) + 1, kept)
                what = "The course's cell was put back; what was in it follows it."
                self.problems.append(Problem("locked cell edited", what, where=wanted.name))
            cell.source = wanted.source

    def set_stubs_aside(self) -> None:
        """Take out an untouched stub that stands behind the solution and would undo it."""
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
                what = "The solution stands in another cell; the empty stub behind it was left out."
                self.problems.append(Problem("stub left out", what, where=name, remark=True))
                self.cells = [cell for cell in self.cells if id(cell) not in empty]
                self.found = {key: cell for key, cell in self.found.items() if id(cell) not in empty}

    def insert_missing(self) -> None:
        """Put back what is nowhere to be found, after the cell that it follows in the chapter."""
        inserted = []
        for place, wanted in enumerate(self.manifest.cells):
            if wanted.name in self.found or (wanted.is_stub and self._definers(wanted.name)):
                continue
            make = new_code_cell if wanted.cell_type == "code" else new_markdown_cell
            cell = make(source=wanted.source, id=f"restored-{place:03d}")
            self.cells.insert(self._place_for(wanted, place), cell)
            self.found[wanted.name] = cell
            inserted.append(wanted.name)
        self.inserted = set(inserted)
        if inserted:
            what = f"Cells of the chapter were missing and were put back: {', '.join(inserted)}."
            do = "Where an exercise's cell is among them, ask whether its solution stands in another file."
            asked = do if self.inserted & self.exercises else ""
            self.problems.append(Problem("cells put back", what, do=asked))

    def _place_for(self, wanted: SourceCell, place: int) -> int:
        """A test goes behind the last cell that defines what it tests; everything else behind its predecessor in the chapter."""
        if wanted.is_test:
            written = [cell for name in checked_names(wanted.source) for cell in self._definers(name)]
            if written:
                return self._positions(written)[-1] + 1
        before = [self.found[cell.name] for cell in self.manifest.cells[:place] if cell.name in self.found]
        behind = self._position(before[-1]) + 1 if before else 0
        if not wanted.is_stub:
            return behind
        # A student's own cell may define the exercise in a way that nobody can read from its text: the stub must not undo it.
        setup = [self._position(self.found[c.name]) for c in self._openings() if c.name in self.found]
        free = {id(cell) for cell in self._free("code")}
        own = next((i for i, cell in enumerate(self.cells) if id(cell) in free), behind)
        return max(min(behind, own), max(setup, default=-1) + 1)

    def _openings(self) -> list[SourceCell]:
        """Return the locked code cells that stand before the first exercise, such as the setup."""
        first = next((i for i, cell in enumerate(self.manifest.cells) if cell.is_stub), 0)
        return [cell for cell in self.manifest.cells[:first] if cell.locked and cell.cell_type == "code"]

    def put_in_order(self) -> None:
        """Move the setup before everything that needs it, and a test behind what it tests; nothing else, for order is the student's."""
        moved = [wanted.name for wanted in reversed(self._openings()) if self._to_the_front(wanted)]
        last = (self._positions_of_exercises() or [0])[-1]
        anchor = self.cells[last] if self.cells else None
        for wanted in (cell for cell in self.manifest.cells if cell.is_test):
            test = self.found[wanted.name]
            names = checked_names(wanted.source) & self.exercises
            definers = [cell for name in names for cell in self._written(name) or self._definers(name)]
            if definers and self._position(test) < self._positions(definers)[0]:
                self.cells = [cell for cell in self.cells if cell is not test]
                self.cells.insert(self._position(anchor) + 1, test)
                anchor = test
                moved.append(wanted.name)
        if moved:
            what = f"Cells stood before what they need and were moved: {', '.join(moved)}."
            self.problems.append(
                Problem("cells moved", what, do="Run the notebook from top to bottom before handing in.")
            )

    def _to_the_front(self, wanted: SourceCell) -> bool:
        cell = self.found[wanted.name]
        needing = self._positions_of_exercises()[:1] + [
            self._position(self.found[c.name]) for c in self.manifest.cells if c.is_test
        ]
        first = min(needing, default=len(self.cells))
        if self._position(cell) < first:
            return False
        self.cells = [other for other in self.cells if other is not cell]
        self.cells.insert(first, cell)
        return True

    def name_lost(self) -> None:
        """Say what became of exercises that nobody wrote where they count."""
        lost = {
            name: None if name in self.inserted else self.found.get(name)
            for name in sorted(self.exercises)
            if not self._written(name)
        }
        silent = frozenset(name for name in lost if not self._definers(name))
        locked = {id(self.found[cell.name]) for cell in self.manifest.cells if cell.locked and cell.name in self.found}
        cells = [(number, cell) for number, cell in self.handed_in if id(cell) not in locked]
        if lost:
            self.problems += explain_missing(lost, silent, cells, self.manifest, self._reader)

    def name_skipped(self) -> None:
        """Say that there was too much to read, for then an exercise may have been overlooked."""
        if count := self._reader.skipped:
            what = f"{count} of its cells {'was' if count == 1 else 'were'} too long, or too much, for Python's parser"
            what += f" (a notebook may have {BUDGET:,} characters of code); they were searched line by line, and run as they are."
            self.problems.append(
                Problem("much code", what, do="See whether all its exercises were found.", remark=True)
            )

    def mark(self) -> None:
        """Write the true metadata, and the course's own texts, tests with the hidden ones."""
        for name, cell in self.found.items():
            wanted = self.manifest.by_name[name]
            cell.metadata["nbgrader"] = wanted.metadata()
            if wanted.locked:
                cell["source"] = wanted.source


def _visible(wanted: SourceCell) -> str:
    """Return a course's cell as students have it: without its hidden tests."""
    return _HIDDEN.sub("", wanted.source + "\n")


def names_present(notebook: Any, reader: CellReader | None = None) -> frozenset[str]:
    """Return the names that a notebook bears: as a cell's claim, as a function or class, or as something that it checks."""
    reader = reader or CellReader()
    seen: set[str] = set()
    for cell in notebook.cells:
        seen.add(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        seen |= reader.mentioned(cell["source"])
        if cell["cell_type"] == "code":
            outline = reader.outline(cell["source"])
            seen |= outline.written | outline.checked
    return frozenset(seen)
