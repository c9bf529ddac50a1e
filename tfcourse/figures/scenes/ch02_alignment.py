"""The drawings of chapter 02: a decoder that looks back."""

from __future__ import annotations

from tfcourse.figures.boxes import chip
from tfcourse.figures.drawing import SMALL, Drawing
from tfcourse.figures.lines import curve

SOURCE = ("forty", "-", "five")
TARGET = ("fünf", "und", "vierzig")
# How strongly each German word looks at each English one.
LOOKS = ((0.04, 0.02, 0.30), (0.03, 0.22, 0.03), (0.30, 0.02, 0.02))


def looking_back() -> Drawing:
    """Draw a decoder that looks back at the source before each word that it writes.

    Returns:
        The drawing.
    """
    narrow = _looking(350, left=60, pitch=115)
    return _looking(560, left=120, pitch=160, narrow=narrow)


def _looking(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 190, narrow=narrow)
    written = [chip(drawing, word, (left + pitch * i, 40), tone="query") for i, word in enumerate(TARGET)]
    read = [chip(drawing, word, (left + pitch * i, 142), tone="key") for i, word in enumerate(SOURCE)]
    for i, row in enumerate(LOOKS):
        for j, weight in enumerate(row):
            curve(drawing, written[i].bottom, read[j].top, weight=weight)
    drawing.text((width / 2, 12), "what is written", size=SMALL, tone="muted")
    drawing.text((width / 2, 176), "what was read", size=SMALL, tone="muted")
    return drawing
