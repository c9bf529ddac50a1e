"""Index which contents hold which lines of secrets, so that a search for leaks reads each content once.

An entry depends only on the content and the searched lines. Each search decides again what is public and who receives a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.release.secret_texts import Secrets
from autograder.course.release.text_extraction import Content

PARTS_INDEX = Path(".cache", "leaks", "parts.json")
"""Where a project keeps the index of its own files."""

# A site with its downloads has about 700 contents.
_MOST = 5000


class PartsIndex:
    """The parts of secrets in contents, by the digests of the contents.

    Args:
        key: a hash of all searched lines.
        entries: the entries so far.
    """

    def __init__(self, key: str, entries: Mapping[str, Iterable[str]]) -> None:
        self._key = key
        # In the order of their last use: the least recently used entry goes first.
        self._entries = {digest: frozenset(parts) for digest, parts in entries.items()}

    @classmethod
    def read(cls, store: Path | None, secrets: Secrets) -> PartsIndex:
        """Read an index from a file; return an empty one if the file is missing or belongs to other secrets."""
        key = hashlib.sha256("\n".join(sorted(secrets.all_parts)).encode("utf-8", "surrogatepass")).hexdigest()
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            if store is not None and (table := json.loads(store.read_text(encoding="utf-8")))["key"] == key:
                return cls(key, table["entries"])
        return cls(key, {})

    def parts_in(self, content: Content) -> frozenset[str] | None:
        """Return the parts in a content, or None if it is not in the index."""
        parts = self._entries.pop(content.digest, None)
        if parts is not None:
            self._entries[content.digest] = parts
        return parts

    def add(self, content: Content, parts: Set[str]) -> None:
        """Add the parts in a content."""
        self._entries[content.digest] = frozenset(parts)

    def write(self, store: Path | None) -> None:
        """Write the index to a file, if there is one, without the least recently used contents."""
        if store is None:
            return
        newest = list(self._entries.items())[-_MOST:]
        table = {"key": self._key, "entries": {digest: sorted(parts) for digest, parts in newest}}
        # A read-only folder is no error: the next search reads everything again.
        with suppress(OSError):
            write_atomically(store, json.dumps(table).encode(), durable=False)
