"""Read an exercise's known mistakes from the TOML file beside its check."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from autograder.checking.exercise import BANDS, Misconception
from autograder.errors import CourseError
from autograder.mistakes.source_edits import Edit, EditError, apply_edits

_KEYS = {"name", "class", "read", "told", "edits", "body"}
_TABLES = {"mistake", "equivalent"}
_EQUIVALENT_KEYS = {"line", "before", "after", "reason"}


@dataclass(frozen=True)
class Alteration:
    """The changes to the reference that make a known mistake."""

    edits: tuple[Edit, ...]
    body: str | None = None  # a new body, or None


@dataclass(frozen=True)
class Equivalent:
    """A change of the reference without any effect, which no check can find."""

    line: str  # the changed line, without its margin
    before: str  # the original text in it
    after: str  # the new text
    reason: str  # why it makes no difference, in a few words
    of: str = ""  # the changed definition, if it is not the exercise itself


def _require_keys(table: Mapping[str, Any], required: set[str], allowed: set[str], where: str) -> None:
    missing, unknown = required - set(table), set(table) - allowed
    if missing or unknown:
        raise CourseError(
            "; ".join(
                [f"it lacks the keys {sorted(missing)}"] * bool(missing)
                + [f"it has unknown keys {sorted(unknown)}"] * bool(unknown)
            ),
            where=where,
        )


class MistakeFile(Sequence[Misconception]):
    """The known mistakes of one exercise, which are read and applied on first use.

    Args:
        path: the TOML file: tables ``[[mistake]]`` with ``name``, ``class``, ``read``, ``told``, and ``edits`` or ``body`` or both; and
            tables ``[[equivalent]]``.
        reference: the exercise's reference, which the edits change.
    """

    def __init__(self, path: Path, reference: Callable[..., Any]) -> None:
        self.path = path
        self._reference = reference

    @cached_property
    def _mistakes(self) -> tuple[Misconception, ...]:
        return tuple(self._read_mistake(table) for table in self._tables.get("mistake", []))

    @cached_property
    def _tables(self) -> Mapping[str, Any]:
        try:
            tables = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise CourseError(f"the known mistakes cannot be read: {error}", where=self.path) from error
        if unknown := set(tables) - _TABLES:
            raise CourseError(f"it has unknown tables {sorted(unknown)}", where=self.path)
        return tables

    @cached_property
    def equivalents(self) -> tuple[Equivalent, ...]:
        """The changes of the reference that make no difference."""
        entries = []
        for table in self._tables.get("equivalent", []):
            where = f"{self.path}: equivalent of {table.get('line', 'a line that is not named')!r}"
            _require_keys(table, _EQUIVALENT_KEYS, _EQUIVALENT_KEYS | {"of"}, where)
            if not str(table["reason"]).strip():
                raise CourseError("it has no reason", where=where, do="Say in a few words why it changes nothing.")
            entries.append(Equivalent(**table))
        return tuple(entries)

    def _read_mistake(self, table: Mapping[str, Any]) -> Misconception:
        name = table.get("name", "a mistake without a name")
        where = f"{self.path}: {name}"
        _require_keys(table, {"name", "class", "read", "told"}, _KEYS, where)
        if table["class"] not in BANDS:
            raise CourseError(f"class = {table['class']!r} is none of {', '.join(BANDS)}", where=where)
        if not table.get("edits") and "body" not in table:
            raise CourseError("it has neither edits nor a body", where=where)
        try:
            edits = tuple(Edit(**edit) for edit in table.get("edits", ()))
        except (TypeError, EditError) as error:
            raise CourseError(f"an edit cannot be read: {error}", where=where) from error
        pieces = [
            table.get("body", ""),
            *(text for edit in edits for text in (edit.replace or "", edit.returns, edit.first)),
        ]
        return Misconception(
            name=name,
            explanation=" ".join(table["told"].split()),
            read=table["read"],
            kind=table["class"],
            code=tuple(filter(None, pieces)),
            make=lambda: apply_edits(self._reference, edits, body=table.get("body"), name=name, file=self.path),
        )

    def alteration(self, mistake: Misconception) -> Alteration:
        """Return the changes that make one of these known mistakes."""
        table = self._tables["mistake"][self._mistakes.index(mistake)]
        return Alteration(tuple(Edit(**edit) for edit in table.get("edits", ())), table.get("body"))

    @overload
    def __getitem__(self, index: int) -> Misconception: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Misconception]: ...
    def __getitem__(self, index: int | slice) -> Misconception | Sequence[Misconception]:
        return self._mistakes[index]

    def __len__(self) -> int:
        return len(self._mistakes)

    def __iter__(self) -> Iterator[Misconception]:
        return iter(self._mistakes)
