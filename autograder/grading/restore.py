"""Making a submitted notebook whole again, by what is in its cells rather than by what their metadata claim.

Editors and web services strip metadata, copy it with a cell, or hang it on the wrong one; students delete cells and write elsewhere. The
chapter's manifest says which cells there must be; each is looked for by name and by content, and put back where it is missing. A notebook
that is in order comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.grading.definitions import checked_names, defined_names, imports_check
from autograder.grading.manifest import Manifest, SourceCell
from autograder.grading.problem import Problem

# Texts at least this alike are the same prompt; below it they are two.
ALIKE = 0.9
# Up to so many cells are named; more names than that say less than their number.
NAMED = 3


def restore(notebook: Any, manifest: Manifest) -> list[Problem]:
    """Give a notebook all the cells of its chapter, each once and with its true metadata.

    Args:
        notebook: a notebook as ``reading.read_notebook`` returns it; changed in place.
        manifest: the chapter's cells.

    Returns:
        What had to be done; nothing for a notebook that was in order.
    """
    work = _Restoration(notebook.cells, manifest)
    work.take_claims()
    work.match_contents()
    work.keep_edits()
    work.insert_missing()
    work.mark()
    notebook.cells = work.cells
    return work.problems


class _Restoration:
    def __init__(self, cells: Sequence[Any], manifest: Manifest) -> None:
        self.cells = list(cells)
        self.manifest = manifest
        self.problems: list[Problem] = []
        self.found: dict[str, Any] = {}  # name → the cell that is it
        self.exercises = frozenset(cell.name for cell in manifest.cells if cell.is_stub)

    def take_claims(self) -> None:
        """Believe the metadata where they name a cell of the chapter that this one can be."""
        claims: dict[str, list[Any]] = {}
        for cell in self.cells:
            name = cell.metadata.pop("nbgrader", {}).get("grade_id")
            if name in self.manifest.by_name and self._can_be(cell, self.manifest.by_name[name]):
                claims.setdefault(name, []).append(cell)
        for name, cells in claims.items():
            self.found[name] = self._choose(self.manifest.by_name[name], cells)
        repeated = sorted(name for name, cells in claims.items() if len(cells) > 1)
        if repeated:
            self.problems.append(
                Problem(
                    "repeated cells", f"Copies of a cell carried its name; the last one counts: {', '.join(repeated)}."
                )
            )

    def _can_be(self, cell: Any, wanted: SourceCell) -> bool:
        """A cell that defines an exercise is not one of the course's own, whatever it says: its text would be overwritten."""
        if wanted.locked and cell.cell_type == "code":
            return not (defined_names(cell.source) & self.exercises)
        return True

    def _choose(self, wanted: SourceCell, cells: Sequence[Any]) -> Any:
        if wanted.is_stub:
            cells = [cell for cell in cells if wanted.name in defined_names(cell.source)] or cells
        elif wanted.is_answer:
            cells = [cell for cell in cells if cell.source.strip() != wanted.source.strip()] or cells
        return cells[-1]

    def match_contents(self) -> None:
        """Look for the cells that nobody claims to be."""
        restored = []
        for wanted in self.manifest.cells:
            if wanted.is_stub:
                match = self._misplaced_stub(wanted)
            elif wanted.name in self.found:
                continue
            else:
                match = next(self._candidates(wanted), None)
            if match is not None:
                self.found[wanted.name] = match
                restored.append(wanted.name)
        if restored:
            self.problems.append(Problem("metadata restored", self._recognised(restored), remark=True))

    def _recognised(self, names: Sequence[str]) -> str:
        """Say which cells were known by their contents: by name where they are few."""
        found, all_ = len(names), len(self.manifest.cells)
        told = "had lost nbgrader's metadata and were recognised by their contents"
        if found == all_:
            return f"All {all_} cells {told}; nothing to do."
        return f"{found} of {all_} cells {told}" + (f": {', '.join(names)}." if found <= NAMED else "; nothing to do.")

    def _misplaced_stub(self, wanted: SourceCell) -> Any:
        """Return the last free cell that defines the exercise, if the one that claims to be it does not."""
        claimed = self.found.get(wanted.name)
        if claimed is not None and wanted.name in defined_names(claimed.source):
            return None
        free = [cell for cell in self._free("code") if wanted.name in defined_names(cell.source)]
        return free[-1] if free else None

    def _candidates(self, wanted: SourceCell) -> Iterator[Any]:
        if wanted.is_test:
            names = checked_names(wanted.source)
            yield from (
                cell
                for cell in reversed(list(self._free("code")))
                if names and names & checked_names(cell.source) and self._can_be(cell, wanted)
            )
        elif wanted.is_answer and wanted.cell_type == "markdown":
            yield from self._answers_after_prompt(wanted)
        elif wanted.locked and wanted.cell_type == "code":
            yield from (cell for cell in self._free("code") if self._can_be(cell, wanted) and _same_code(cell, wanted))
        elif wanted.cell_type == "markdown":
            yield from (cell for cell in self._free("markdown") if _alike(cell.source, wanted.source))

    def _answers_after_prompt(self, wanted: SourceCell) -> Iterator[Any]:
        """An answer has no form of its own: it is what stands between its question and the next named cell."""
        before = self.manifest.cells[: self.manifest.cells.index(wanted)]
        prompt = self.found.get(before[-1].name) if before else None
        if prompt is None:
            return
        for cell in self.cells[self._position(prompt) + 1 :]:
            if any(cell is other for other in self.found.values()) or self._is_prompt(cell):
                return
            if cell.cell_type == "markdown":
                yield cell

    def _is_prompt(self, cell: Any) -> bool:
        locked = (wanted for wanted in self.manifest.cells if wanted.locked and wanted.cell_type == "markdown")
        return cell.cell_type == "markdown" and any(_alike(cell.source, wanted.source) for wanted in locked)

    def _free(self, cell_type: str) -> Iterator[Any]:
        taken = {id(cell) for cell in self.found.values()}
        return (cell for cell in self.cells if cell.cell_type == cell_type and id(cell) not in taken)

    def _position(self, cell: Any) -> int:
        return next(i for i, other in enumerate(self.cells) if other is cell)

    def keep_edits(self) -> None:
        """Locked cells get the course's text back; what a student added to the setup stays, in a cell of its own."""
        for place, wanted in enumerate(self.manifest.cells):
            cell = self.found.get(wanted.name)
            if cell is None or not wanted.locked or wanted.grade or wanted.cell_type != "code":
                continue
            if _squeezed(cell.source) != _squeezed(wanted.source):
                self.cells.insert(self._position(cell) + 1, new_code_cell(source=cell.source, id=f"edited-{place:03d}"))
                self.problems.append(
                    Problem(
                        "locked cell edited",
                        "The course's cell was put back; what was in it follows it.",
                        where=wanted.name,
                    )
                )
                cell.source = wanted.source

    def insert_missing(self) -> None:
        """Put back what is nowhere to be found, after the cell that it follows in the chapter."""
        inserted = []
        for place, wanted in enumerate(self.manifest.cells):
            if wanted.name in self.found or (wanted.is_stub and self._defines(wanted.name)):
                continue
            make = new_code_cell if wanted.cell_type == "code" else new_markdown_cell
            cell = make(source=wanted.source, id=f"restored-{place:03d}")
            self.cells.insert(self._place_for(wanted, place), cell)
            self.found[wanted.name] = cell
            inserted.append(wanted.name)
        if inserted:
            self.problems.append(
                Problem(
                    "cells put back", f"Cells of the chapter were missing and were put back: {', '.join(inserted)}."
                )
            )

    def _defines(self, exercise: str) -> list[Any]:
        return [cell for cell in self.cells if cell.cell_type == "code" and exercise in defined_names(cell.source)]

    def _place_for(self, wanted: SourceCell, place: int) -> int:
        """A test goes behind the last cell that defines what it tests; everything else behind its predecessor in the chapter."""
        if wanted.is_test:
            written = [cell for name in checked_names(wanted.source) for cell in self._defines(name)]
            if written:
                return max(map(self._position, written)) + 1
        before = [self.found[cell.name] for cell in self.manifest.cells[:place] if cell.name in self.found]
        return self._position(before[-1]) + 1 if before else 0

    def mark(self) -> None:
        """Write the true metadata."""
        for name, cell in self.found.items():
            cell.metadata["nbgrader"] = self.manifest.by_name[name].metadata()


def _same_code(cell: Any, wanted: SourceCell) -> bool:
    if _squeezed(cell.source) == _squeezed(wanted.source):
        return True
    return imports_check(wanted.source) and imports_check(cell.source)


def _squeezed(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines() if line.strip())


def _alike(a: str, b: str) -> bool:
    a, b = " ".join(a.split()), " ".join(b.split())
    if a == b:
        return True
    shorter, longer = sorted((len(a), len(b)))
    if shorter < ALIKE * longer * 0.8:
        return False
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= ALIKE


def evidence(notebook: Any, names: frozenset[str]) -> frozenset[str]:
    """Return which of these names a notebook bears: as a cell's claim, as a function or class, or as something that it checks."""
    seen: set[str] = set()
    for cell in notebook.cells:
        seen.add(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if cell.cell_type == "code":
            seen |= defined_names(cell.source, imports=False) | checked_names(cell.source)
    return frozenset(seen & names)
