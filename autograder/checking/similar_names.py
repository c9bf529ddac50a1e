"""Recognise misspelled names."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher
from functools import lru_cache

_ALIKE = 0.8
# A name typed from memory may differ more than a mistyped one.
_NEAR = 0.7
_SHORTEST = 4


def is_similar_name(other: str, name: str) -> bool:
    """Return whether one name may have been meant as another: an extension of it, or mostly the same letters.

    Args:
        other: what was written.
        name: what may have been meant.
    """
    if other.startswith("_"):
        return False  # a helper
    if other.casefold() == name.casefold() or other.startswith(name):
        return True
    return _matching_share(other[:100], name) >= _ALIKE


def explain_no_exercise(candidate: object, chapter: Collection[str], others: Collection[str] = ()) -> str:
    """Return the message for an argument of ``check`` that is not an exercise.

    Args:
        candidate: what was given: a function, a class, or a name in its place.
        chapter: the exercises of the chapter that is being worked on; empty if that chapter is not known.
        others: the exercises of other chapters that can be checked.
    """
    kind = type(candidate).__name__
    if not isinstance(candidate, str) and not hasattr(candidate, "__name__"):
        return f"check takes a function or class, not {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    name = candidate if isinstance(candidate, str) else str(candidate.__name__)
    meant = name if name in {*chapter, *others} else find_nearest_name(name, chapter) or find_nearest_name(name, others)
    if isinstance(candidate, str):
        return f"check takes the function or class itself, not its name: check({meant or name})"
    advice = f"did you mean {meant}?" if meant else "an exercise is found by the name of its function or class."
    listed = f" This chapter's exercises: {', '.join(chapter)}" if chapter else ""
    return f"there is no exercise named {name!r}; {advice}{listed}"


def find_nearest_name(name: str, names: Collection[str]) -> str:
    """Return the most similar name, such as ``top_k`` for ``topk_filter``; empty if none is similar."""
    likeness = {other: _similarity(_normalized_name(name), _normalized_name(other)) for other in names}
    best = max(likeness, key=lambda other: likeness[other], default="")
    return best if best and likeness[best] >= _NEAR else ""


def _normalized_name(name: str) -> str:
    return name[:100].replace("_", "").casefold()


def _similarity(one: str, other: str) -> float:
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) >= _SHORTEST and longer.startswith(shorter):
        return _NEAR + (1 - _NEAR) * len(shorter) / len(longer)
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


@lru_cache(maxsize=4096)
def _matching_share(other: str, name: str) -> float:
    return SequenceMatcher(None, other, name, autojunk=False).ratio()
