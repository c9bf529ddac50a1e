"""Read points as a marker types them: digits, with a comma or a point before the decimals."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[0-9]{1,6}(?:[.,][0-9]{1,6})?|[.,][0-9]{1,6}")


def read_points(text: str) -> float | None:
    """Return points, or None if the field is empty.

    ``0,5`` and ``0.5`` are both one half. Nothing else is guessed: a browser's number field drops a comma that its language does not
    expect, and so makes 5 of it.

    Args:
        text: the field's text.

    Raises:
        ValueError: if the text is not a number; the message is for the marker.
    """
    text = text.strip()
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number of points. Write 2, 0.5 or 0,5.")
    return float(text.replace(",", "."))
