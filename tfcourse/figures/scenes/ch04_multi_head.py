"""The drawings of chapter 04: several looks at one sentence."""

from __future__ import annotations

from tfcourse.figures.boxes import chip
from tfcourse.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.figures.lines import arc

WORDS = ("the", "aunt", "near", "the", "boys", "says", "she", "sees", "them")
# For each head its name, who asks, and who is asked.
HEADS = (("who acts?", 5, 1), ("for whom does it stand?", 8, 4))


def two_looks() -> Drawing:
    """Draw two heads that look at the same sentence for different reasons.

    Returns:
        The drawing, with a layout of its own for a phone.
    """
    return _looks(640, pitch=68, size=TEXT, narrow=_looks(350, pitch=38.5, size=11.5))


def _looks(width: float, *, pitch: float, size: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 224, narrow=narrow)
    left = (width - pitch * (len(WORDS) - 1)) / 2
    for row, (name, asks, asked) in enumerate(HEADS):
        y = 88 + 112 * row
        for i, word in enumerate(WORDS):
            tone: Tone = "query" if i == asks else "key" if i == asked else "ink"
            if tone == "ink":
                drawing.text((left + pitch * i, y), word, size=size)
            else:
                chip(drawing, word, (left + pitch * i, y), tone=tone, size=size, height=26)
        arc(drawing, (left + pitch * asks, y - 15), (left + pitch * asked, y - 15), weight=0.35, rise=34)
        drawing.text((4, y - 62), f"head {row + 1}: {name}", size=SMALL, anchor="start", tone="muted")
    return drawing
