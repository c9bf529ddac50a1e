"""Boxes that stand for layers, chips that stand for words, and circles that stand for operations."""

from __future__ import annotations

from contextlib import nullcontext

from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.markup import parse, text_width


def box(
    drawing: Drawing,
    label: str,
    where: Rect,
    *,
    tone: Tone = "ink",
    size: float = TEXT,
    note: str = "",
    link: str = "",
    dashed: bool = False,
) -> Rect:
    """Draw a box with a label in it.

    Args:
        drawing: to draw on.
        label: its name, with the marks of `markup`; a newline begins another line.
        where: its place.
        tone: `key` and `query` tint it.
        size: font size of the label.
        note: a smaller line below the label.
        link: where a click leads, such as `#residual`.
        dashed: whether its outline is dashed.

    Returns:
        Its place.

    Raises:
        ValueError: if the label is too wide for the box.
    """
    for line, used in [*((line, size) for line in label.split("\n")), (note, SMALL)]:
        if (needed := text_width(line, used)) > where.width - 6:
            raise ValueError(f"{line!r} needs {needed:.0f} pixels, and its box is {where.width:.0f} wide")
    words = "".join(run.text for run in parse(f"{label} {note}".replace("\n", " "))).strip()
    with drawing.link(link, says=words) if link else nullcontext():
        drawing.rect(where, tone=tone, wash=0.06 if tone == "ink" else 0.13, dashed=dashed)
        x, y = where.centre
        lines = label.count("\n") + 1
        drawing.text((x, y - 0.68 * SMALL if note else y), label, size=size)
        if note:
            drawing.text((x, y + 0.6 * size * lines), note, size=SMALL, tone="muted")
    return where


def chip(
    drawing: Drawing,
    word: str,
    at: Point,
    *,
    tone: Tone = "ink",
    size: float = TEXT,
    height: float = 28,
) -> Rect:
    """Draw a word on a chip that is as wide as the word.

    Args:
        drawing: to draw on.
        word: what it says.
        at: its centre.
        tone: `query` is the word that asks and `key` a word that it attends to, both solid; `muted` is a masked word.
        size: font size of the word.
        height: of the chip, in pixels.

    Returns:
        Its place.
    """
    width = chip_width(word, size)
    where = Rect(at[0] - width / 2, at[1] - height / 2, width, height)
    if tone in ("key", "query"):
        drawing.rect(where, tone=tone, wash=1)
        drawing.text(at, word, size=size, tone="on", bold=True)
    else:
        drawing.rect(where, tone=tone, dashed=tone == "muted", wash=0.06 if tone == "ink" else 0)
        drawing.text(at, word, size=size, tone=tone)
    return where


def chip_width(word: str, size: float = TEXT) -> float:
    """Return how wide the chip of a word is, in pixels."""
    return round(text_width(word, size, bold=True) + 12)


def chips(
    drawing: Drawing, words: list[str], centre: Point, *, tones: list[Tone], gap: float = 6, size: float = TEXT
) -> list[Rect]:
    """Draw the chips of a sentence in a row.

    Args:
        drawing: to draw on.
        words: the sentence.
        centre: the middle of the row.
        tones: one for each word.
        gap: between two chips, in pixels.
        size: font size of the words.

    Returns:
        Their places, in order.
    """
    widths = [chip_width(word, size) for word in words]
    left = centre[0] - (sum(widths) + gap * (len(words) - 1)) / 2
    placed = []
    for word, width, tone in zip(words, widths, tones, strict=True):
        placed.append(chip(drawing, word, (left + width / 2, centre[1]), tone=tone, size=size))
        left += width + gap
    return placed


def operation(drawing: Drawing, symbol: str, at: Point, *, radius: float = 14, tone: Tone = "ink") -> Rect:
    """Draw an operation, such as `+` or `×`, as a circle with its symbol; return the square around it."""
    where = drawing.circle(at, radius, tone=tone)
    drawing.text(at, symbol, size=1.2 * radius, tone=tone)
    return where
