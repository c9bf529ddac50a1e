"""Names that are one name with a slip of the finger."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import lru_cache

_ALIKE = 0.8


def similar(other: str, name: str) -> bool:
    """Return whether one name may have been meant as another: it goes on where that ends, or most of its letters are the same.

    Args:
        other: what was written.
        name: what may have been meant.
    """
    if other.casefold() == name.casefold() or other.startswith(name):
        return True
    return _share(other[:100], name) >= _ALIKE


@lru_cache(maxsize=4096)
def _share(other: str, name: str) -> float:
    return SequenceMatcher(None, other, name, autojunk=False).ratio()
