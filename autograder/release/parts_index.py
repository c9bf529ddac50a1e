"""Keep which lines of secrets stand in which contents, so that a search for leaks need not read again what it has read.

An entry depends on a content and on the lines that are searched for, and on nothing else: what is public, and who receives a file, is
looked at each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from autograder.atomic_files import write_atomically
from autograder.release.text_extraction import Content

PARTS_INDEX = Path(".cache", "leaks", "parts.json")
"""Where a project keeps the index of its own files."""

# A site with its downloads has some 700 contents.
_MOST = 5000


class _Parts(Protocol):
    @property
    def all_parts(self) -> Set[str]: ...


class PartsIndex:
    """The parts of secrets in contents, by the digests of the contents.

    Args:
        key: a hash of everything that is searched for.
        entries: what is known already.
    """

    def __init__(self, key: str, entries: Mapping[str, Iterable[str]]) -> None:
        self._key = key
        # In the order of their last use: what was not used for long goes first.
        self._entries = {digest: frozenset(parts) for digest, parts in entries.items()}

    @classmethod
    def read(cls, store: Path | None, secrets: _Parts) -> PartsIndex:
        """Return the index in a file; an empty one if there is none, or if it was made for other secrets."""
        key = hashlib.sha256("\n".join(sorted(secrets.all_parts)).encode("utf-8", "surrogatepass")).hexdigest()
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            table = json.loads((store or Path()).read_text(encoding="utf-8")) if store else {}
            if table["key"] == key:
                return cls(key, table["entries"])
        return cls(key, {})

    def parts_in(self, content: Content) -> frozenset[str] | None:
        """Return the parts in a content, or None if it has not been read yet."""
        parts = self._entries.pop(content.digest, None)
        if parts is not None:
            self._entries[content.digest] = parts
        return parts

    def add(self, content: Content, parts: Set[str]) -> None:
        """Note the parts in a content."""
        self._entries[content.digest] = frozenset(parts)

    def write(self, store: Path | None) -> None:
        """Write the index, if there is a file for it, without the contents that have not been seen for long."""
        if store is None:
            return
        newest = list(self._entries.items())[-_MOST:]
        table = {"key": self._key, "entries": {digest: sorted(parts) for digest, parts in newest}}
        # A folder that cannot be written is no obstacle: everything is searched again.
        with suppress(OSError):
            write_atomically(store, json.dumps(table).encode(), durable=False)
