"""Keep the texts of a chapter's earlier releases, so that they are not taken for students' answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.errors import CourseError

# The texts of cells by name; those of cells without a name have an empty one.
Texts = Mapping[str, list[str]]


def earlier_texts_path(root: Path, chapter: str) -> Path:
    """Return the path of the file with a chapter's earlier texts."""
    return root / "earlier_releases" / f"{chapter}.json"


def read_earlier_texts(root: Path, chapter: str) -> Texts:
    """Return the texts of a chapter's cells in earlier releases that have changed since, by cell name.

    Raises:
        CourseError: if the file is damaged.
    """
    path = earlier_texts_path(root, chapter)
    try:
        texts_by_name = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): [str(text) for text in texts] for name, texts in texts_by_name.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise CourseError(
            f"the texts of earlier releases of {chapter} cannot be read ({error})",
            where=path,
            do="Put back a copy of it. Without one, remove the file: then notebooks of earlier releases show our old texts as answers.",
        ) from error


def add_replaced_texts(root: Path, chapter: str, replaced: bytes, released: bytes) -> bytes | None:
    """Return the file's new contents after a new release; None if no text has changed."""
    texts = {name: list(some) for name, some in read_earlier_texts(root, chapter).items()}
    present, added = set(_named_texts(released)), False
    for name, text in _named_texts(replaced):
        if (name, text) not in present and text not in texts.setdefault(name, []):
            texts[name].append(text)
            added = True
    return (json.dumps(texts, indent=1, ensure_ascii=False) + "\n").encode() if added else None


def _named_texts(notebook: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a notebook's cells; nothing for a damaged notebook."""
    try:
        cells: list[Any] = json.loads(notebook)["cells"]
        pairs = [(c["metadata"].get("nbgrader", {}).get("grade_id", ""), "".join(c["source"])) for c in cells]
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    yield from ((str(name), text) for name, text in pairs if text.strip())
