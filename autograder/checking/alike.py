"""Names that are one name with a slip of the finger."""

from __future__ import annotations

from difflib import SequenceMatcher

_ALIKE = 0.8


def alike(other: str, name: str) -> bool:
    """Return whether one name may have been meant as another: it goes on where that ends, or most of its letters are the same.

    Args:
        other: what was written.
        name: what may have been meant.
    """
    if other.casefold() == name.casefold() or other.startswith(name):
        return True
    return SequenceMatcher(None, other[:100], name, autojunk=False).ratio() >= _ALIKE
