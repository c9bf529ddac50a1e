"""Keep the texts of a chapter's earlier releases, so that notebooks that students have of them show no text of the course as an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.errors import CourseError

# The texts of cells by name; those of cells without a name have an empty one.
Texts = Mapping[str, list[str]]


def earlier_texts_path(root: Path, chapter: str) -> Path:
    """Return the file in the course folder that holds a chapter's earlier texts."""
    return root / "earlier_releases" / f"{chapter}.json"


def earlier_texts(root: Path, chapter: str) -> Texts:
    """Return the texts of a chapter's cells in earlier releases that have changed since; empty if there is none.

    Raises:
        CourseError: if the file is damaged.
    """
    path = earlier_texts_path(root, chapter)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): [str(text) for text in texts] for name, texts in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise CourseError(
            f"the texts of earlier releases of {chapter} cannot be read ({error})",
            where=path,
            do="Put back a copy of it. Without one, remove the file: then notebooks of earlier releases show our old texts as answers.",
        ) from error


def with_replaced_texts(root: Path, chapter: str, replaced: bytes, released: bytes) -> bytes | None:
    """Return the new contents of the file after a release has replaced another, or None if no text of it has changed."""
    texts = {name: list(some) for name, some in earlier_texts(root, chapter).items()}
    present, added = set(_texts(released)), False
    for name, text in _texts(replaced):
        if (name, text) not in present and text not in texts.setdefault(name, []):
            texts[name].append(text)
            added = True
    return (json.dumps(texts, indent=1, ensure_ascii=False) + "\n").encode() if added else None


def _texts(notebook: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a notebook's cells; nothing of a notebook that somebody has damaged."""
    try:
        cells: list[Any] = json.loads(notebook)["cells"]
        pairs = [(c["metadata"].get("nbgrader", {}).get("grade_id", ""), "".join(c["source"])) for c in cells]
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    yield from ((str(name), text) for name, text in pairs if text.strip())
