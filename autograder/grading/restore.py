"""Making a submitted notebook whole again, by what is in its cells rather than by what their metadata claim.

Editors and web services strip metadata, copy it with a cell, or hang it on the wrong one; students delete cells and write elsewhere. The
chapter's manifest says which cells there must be; each is looked for by what it defines, checks or says, then by its name, and put back
where it is missing. What the course says of its cells, and the text of those that are its own, is the manifest's in the end.

Every cell is looked at many times. What is in one is asked for by key: as an attribute it would take a notebook's cell ten times as long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from nbformat.notebooknode import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.grading.definitions import (
    body_of,
    checked_names,
    defined_names,
    imports_check,
    is_python,
    mentioned_names,
    without_invisible,
)
from autograder.grading.lost import lost_exercises
from autograder.grading.manifest import Manifest, SourceCell
from autograder.grading.problem import Problem

# Texts at least this alike are the same prompt; below it they are two.
ALIKE = 0.9
# Comparing texts is slow, and a notebook may hold thousands: after so many that could have been a prompt, no more are compared.
COMPARED = 50
# Up to so many cells are named; more names than that say less than their number.
NAMED = 3

_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS.*?^### END HIDDEN TESTS[^\n]*\n?", re.MULTILINE | re.DOTALL)
_BACK = "Turn it back in the notebook; it was graded as if it were."


def restore(notebook: Any, manifest: Manifest) -> list[Problem]:
    """Give a notebook all the cells of its chapter, each once and with its true metadata, and the chapter's kernel.

    Args:
        notebook: a notebook as ``reading.read_notebook`` returns it; changed in place.
        manifest: the chapter's cells.

    Returns:
        What had to be done; nothing for a notebook that was in order.
    """
    work = _Restoration(notebook.cells, manifest)
    work.take_claims()
    work.drop_invisible()
    work.turn_back()
    work.match()
    work.keep_edits()
    work.set_stubs_aside()
    work.insert_missing()
    work.put_in_order()
    work.name_lost()
    work.mark()
    notebook.cells = work.cells
    if manifest.kernelspec:
        notebook.metadata["kernelspec"] = from_dict(dict(manifest.kernelspec))
    return work.problems


class _Restoration:
    def __init__(self, cells: Sequence[Any], manifest: Manifest) -> None:
        self.cells = list(cells)
        self.handed_in = tuple((number, cell) for number, cell in enumerate(cells, start=1))
        self.manifest = manifest
        self.problems: list[Problem] = []
        self.found: dict[str, Any] = {}  # name → the cell that is it
        self.claims: dict[str, list[Any]] = {}  # name → the cells that carry it
        # A code cell that a person grades is a stub too, but defines nothing of its name.
        stubs = (cell for cell in manifest.cells if cell.is_stub)
        self.exercises = frozenset(cell.name for cell in stubs if cell.name in defined_names(cell.source))
        self.inserted: set[str] = set()
        self._names: dict[str, frozenset[str]] = {}

    # What a cell says.

    def _defines(self, cell: Any) -> frozenset[str]:
        """Return the exercises that a cell defines; asked often, so that every text is read once."""
        if cell["cell_type"] != "code":
            return frozenset()
        source = cell["source"]
        if source not in self._names:
            self._names[source] = defined_names(source) & self.exercises
        return self._names[source]

    def _definers(self, exercise: str) -> list[Any]:
        return [cell for cell in self.cells if exercise in self._defines(cell)]

    def _written(self, exercise: str) -> list[Any]:
        """Return the cells that define an exercise as it was not given out."""
        stub = self.manifest.by_name[exercise].source
        given = body_of(stub, exercise)
        return [
            cell
            for cell in self._definers(exercise)
            if not _same(cell["source"], stub) and (not given or body_of(cell["source"], exercise) != given)
        ]

    def _place(self, cell: Any) -> str:
        """Return how people find a cell: by its number in what was handed in, and by its name if it claims one."""
        number = next(number for number, other in self.handed_in if other is cell)
        name = next((name for name, cells in self.claims.items() if any(other is cell for other in cells)), "")
        return f"cell {number} ({name})" if name else f"cell {number}"

    def _position(self, cell: Any) -> int:
        return next(i for i, other in enumerate(self.cells) if other is cell)

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

    def drop_invisible(self) -> None:
        """Take characters out that nobody sees and that keep Python from reading a cell."""
        for cell in self.cells:
            if cell["cell_type"] == "code" and (mended := without_invisible(cell["source"])) != cell["source"]:
                what = "It held characters that nobody sees and Python cannot read; it was graded without them."
                do = "Such characters come with text that is copied from chats and PDFs: type the line anew."
                self.problems.append(Problem("invisible characters", what, self._place(cell), do, remark=True))
                cell.source = mended

    def turn_back(self) -> None:
        """Make code again of an exercise whose only solution stands in a cell that became text."""
        for place, cell in enumerate(self.cells):
            if cell["cell_type"] == "code" or not (mentioned_names(cell["source"]) & self.exercises):
                continue
            if not is_python(cell["source"]):
                continue
            names = sorted(name for name in defined_names(cell.source) & self.exercises if not self._written(name))
            if names:
                self._turn(place, "code", ", ".join(names))

    def _turn(self, place: int, cell_type: str, name: str) -> Any:
        """Put a cell of another type in the place of one; return it."""
        old = self.cells[place]
        make = new_code_cell if cell_type == "code" else new_markdown_cell
        cell = make(source=old.source, metadata=old.metadata, id=old.id)
        what = f"The cell of {name} had become a {old.cell_type} cell; it was taken for {cell_type}."
        self.problems.append(Problem("cell type changed", what, self._place(old), _BACK))
        self.cells[place] = cell
        self.handed_in = tuple((number, cell if other is old else other) for number, other in self.handed_in)
        for cells in self.claims.values():
            cells[:] = [cell if other is old else other for other in cells]
        return cell

    def match(self) -> None:
        """Find the chapter's cells: code by what it does, texts by what they say, and answers by their names and places."""
        restored = []
        for look in (self._find_stub, self._find_test, self._find_locked_code, self._find_text, self._find_answer):
            for wanted in self.manifest.cells:
                cell = None if wanted.name in self.found else look(wanted)
                if cell is not None:
                    self.found[wanted.name] = cell
                    if not any(cell is other for other in self.claims.get(wanted.name, [])):
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
            named = [cell for cell in mine if any(cell is other for other in claimants)]
            if mine:
                return (named or mine)[-1]
        silent = [cell for cell in claimants if cell["cell_type"] == "code" and not self._says(cell)]
        return silent[-1] if silent else None

    def _is_other(self, cell: Any, wanted: SourceCell) -> bool:
        claimed = {name for name, cells in self.claims.items() if any(cell is other for other in cells)}
        return bool(claimed & self._defines(cell) - {wanted.name})

    def _says(self, cell: Any) -> bool:
        """Whether a code cell says by itself what it is."""
        return bool(self._defines(cell)) or bool(checked_names(cell["source"]) & self.exercises)

    def _find_test(self, wanted: SourceCell) -> Any:
        if not wanted.is_test:
            return None
        names, visible, claimants = checked_names(wanted.source), _visible(wanted), self._claimants(wanted)
        fitting = [
            cell
            for cell in self._free("code")
            if not self._defines(cell) and (names & checked_names(cell["source"]) or _same(cell["source"], visible))
        ]
        named = [cell for cell in fitting if any(cell is other for other in claimants)]
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
        same = [cell for cell in free if _same(cell["source"], wanted.source)]
        claimants = [
            cell for cell in self._claimants(wanted) if cell["cell_type"] == "code" and not self._defines(cell)
        ]
        importing = [cell for cell in free if imports_check(wanted.source) and imports_check(cell["source"])]
        return next(iter((*claimants[-1:], *same, *importing)), None)

    def _find_text(self, wanted: SourceCell) -> Any:
        """Return the course's own text: word for word, or by its name, or by its likeness."""
        if wanted.cell_type != "markdown" or wanted.is_answer:
            return None
        free = list(self._free("markdown"))
        same = [cell for cell in free if _same(cell["source"], wanted.source)]
        claimants = [cell for cell in self._claimants(wanted) if cell["cell_type"] == "markdown"]
        return next(iter((*same, *claimants[-1:])), None) or next(_alike_cells(free, wanted.source), None)

    def _find_answer(self, wanted: SourceCell) -> Any:
        if not wanted.is_answer:
            return None
        claimants = self._claimants(wanted)
        claimants = [cell for cell in claimants if not _same(cell["source"], wanted.source)] or claimants
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
        for cell in self.cells[self._position(prompt) + 1 :]:
            if any(cell is other for other in self.found.values()) or id(cell) in claimed:
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
            if cell is None or not wanted.locked or wanted.cell_type != "code" or _same(cell.source, _visible(wanted)):
                continue
            kept = new_code_cell(source=cell.source, id=f"edited-{place:03d}")
            if wanted.grade:
                # Only what others may need: a print or a changed number in a test is nobody's helper.
                if defined_names(cell.source):
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
            for cell in self.cells[first + 1 :]:
                if cell["cell_type"] == "code" and _same(cell["source"], stub):
                    what = "The solution stands in another cell; the empty stub behind it was left out."
                    self.problems.append(Problem("stub left out", what, where=name, remark=True))
                    self.cells = [other for other in self.cells if other is not cell]
                    self.found = {key: other for key, other in self.found.items() if other is not cell}

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
                return max(map(self._position, written)) + 1
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
        last = max((self._position(c) for name in self.exercises for c in self._definers(name)), default=0)
        anchor = self.cells[last] if self.cells else None
        for wanted in (cell for cell in self.manifest.cells if cell.is_test):
            test = self.found[wanted.name]
            names = checked_names(wanted.source) & self.exercises
            definers = [cell for name in names for cell in self._written(name) or self._definers(name)]
            if definers and self._position(test) < min(map(self._position, definers)):
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
        needing = [self._position(c) for name in self.exercises for c in self._definers(name)]
        needing += [self._position(self.found[c.name]) for c in self.manifest.cells if c.is_test]
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
            self.problems += lost_exercises(lost, silent, cells, self.manifest)

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


def _same(a: str, b: str) -> bool:
    """Whether two texts are the same but for white space at the ends of lines and for empty lines."""
    if abs(len(a) - len(b)) > max(len(a), len(b)) // 2 + 100:
        return False
    # Most texts differ in their first words already.
    return a == b or (a.split(None, 2)[:2] == b.split(None, 2)[:2] and _squeezed(a) == _squeezed(b))


def _squeezed(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines() if line.strip())


def _alike_cells(cells: Sequence[Any], text: str) -> Iterator[Any]:
    """Yield the cells whose text is this one with a few words changed."""
    words, compared = text.split(), 0
    for cell in cells:
        others = cell["source"].split() if len(cell["source"]) < 2 * len(text) else []
        common = sum((Counter(words) & Counter(others)).values())
        if 2 * common < ALIKE * (len(words) + len(others)) or compared >= COMPARED:
            continue
        compared += 1
        if SequenceMatcher(None, words, others, autojunk=False).ratio() >= ALIKE:
            yield cell


def evidence(notebook: Any, names: frozenset[str]) -> frozenset[str]:
    """Return which of these names a notebook bears: as a cell's claim, as a function or class, or as something that it checks."""
    seen: set[str] = set()
    for cell in notebook.cells:
        seen.add(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        seen |= mentioned_names(cell["source"])
        if cell["cell_type"] == "code":
            seen |= defined_names(cell["source"], imports=False) | checked_names(cell["source"])
    return frozenset(seen & names)
