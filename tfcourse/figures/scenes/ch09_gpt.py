"""The drawings of chapter 09: a product of next tokens, lessons of one pass, the block and the model, masks with a cache."""

from __future__ import annotations

from collections.abc import Sequence

from tfcourse.figures.boxes import box, chip, chip_width, operation
from tfcourse.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.figures.geometry import Rect
from tfcourse.figures.lines import arrow, bracket
from tfcourse.figures.matrices import mask

# The lecture's sentence.
SENTENCE = ("Learning", "deep", "learning", "is", "fun")

# Tokens that were read before, and a chunk of new ones.
OLD, NEW = ("six", "thousand,", "two"), ("hundred", "and")


def product() -> Drawing:
    """Draw a sentence as a product: each word, given those before it.

    Returns:
        The drawing: a row for each word.
    """
    return _product(700, TEXT, narrow=_product(350, SMALL))


def _product(width: float, size: float, *, narrow: Drawing | None = None) -> Drawing:
    step, widest = 40, max(chip_width(word, size) for word in SENTENCE)
    drawing = Drawing(width, 14 + step * len(SENTENCE), narrow=narrow)
    gap = (width - 24 - sum(chip_width(word, size) for word in SENTENCE) - (60 if narrow is None else 150)) / 4
    gap = min(10, max(3, gap))
    for row in range(len(SENTENCE)):
        x, y = 8.0, 26.0 + step * row
        for place, word in enumerate(SENTENCE[: row + 1]):
            w = chip_width(word, size)
            chip(drawing, word, (x + w / 2, y), tone="query" if place == row else "key", size=size, height=24)
            x += w + gap
        if narrow is not None:
            before = " ".join(SENTENCE[:row])
            drawing.text(
                (width - 12, y), f"p({SENTENCE[row]} | {before})" if before else f"p({SENTENCE[row]})", anchor="end"
            )
    assert widest < width
    return drawing


def lessons() -> Drawing:
    """Draw what one pass over a text teaches a decoder, and what it teaches a masked encoder.

    Returns:
        The drawing: the two beside each other on a page, below each other on a phone.
    """
    words = ("[BOS]", "six", "thousand,", "[EOS]")
    decoder = _lessons("Decoder: every next token", words[:-1], words[1:])
    encoder = _lessons("Encoder: the hidden token", ("six", "[MASK]", "two"), ("", "thousand,", ""))
    narrow = Drawing(350, 356)
    narrow.place(decoder, 15, 0)
    narrow.place(encoder, 15, 182)
    drawing = Drawing(700, 172, narrow=narrow)
    drawing.place(decoder, 15, 0)
    drawing.place(encoder, 365, 0)
    return drawing


def _lessons(title: str, read: Sequence[str], asked: Sequence[str]) -> Drawing:
    drawing = Drawing(320, 172)
    drawing.text((160, 14), title, bold=True)
    box(drawing, "model", Rect(30, 80, 260, 32))
    for place, (word, target) in enumerate(zip(read, asked, strict=True)):
        x = 72.0 + 88 * place
        chip(drawing, word, (x, 148), tone="key" if word != "[MASK]" else "muted", size=SMALL)
        arrow(drawing, (x, 132), (x, 114), tone="muted")
        if target:
            arrow(drawing, (x, 79), (x, 62), tone="query")
            chip(drawing, target, (x, 46), tone="query", size=SMALL)
    return drawing


def machine() -> Drawing:
    """Draw GPT: embeddings, blocks, norm and the embedding matrix again; and what is in a block.

    Returns:
        The drawing: the model and its block beside each other on a page, below each other on a phone.
    """
    narrow = Drawing(350, 760)
    narrow.place(_model(), 30, 0)
    narrow.place(_block(), 15, 368)
    drawing = Drawing(700, 384, narrow=narrow)
    drawing.place(_model(), 20, 8)
    drawing.place(_block(), 366, 0)
    return drawing


def _model() -> Drawing:
    drawing = Drawing(290, 360)
    drawing.text((150, 12), "GPT", bold=True)
    rows: list[tuple[str, str, Tone, float]] = [
        ("token embedding", "its matrix again, no bias", "key", 54),
        ("final norm", "", "ink", 112),
        ("block L", "", "query", 164),
        ("block 1", "", "query", 220),
        ("+", "", "ink", 268),
    ]
    drawing.text((150, 30), "logits  (B, T, V)", size=SMALL, tone="muted")
    places = []
    for label, note, tone, y in rows:
        if label == "+":
            places.append(operation(drawing, "+", (150, y)))
        else:
            places.append(box(drawing, label, Rect(40, y - 14, 220, 44 if note else 28), tone=tone, note=note))
    arrow(drawing, places[1].top, places[0].bottom)
    arrow(drawing, places[2].top, places[1].bottom)
    arrow(drawing, places[3].top, places[2].bottom, dashed=True)
    arrow(drawing, places[4].top, places[3].bottom)
    left = box(drawing, "token embedding", Rect(0, 310, 134, 28), tone="key", size=SMALL)
    right = box(drawing, "position embedding", Rect(142, 310, 148, 28), tone="key", size=SMALL)
    arrow(drawing, left.top, (places[4].x, 268), via=[(left.top[0], 268)])
    arrow(drawing, right.top, (places[4].x + places[4].width, 268), via=[(right.top[0], 268)])
    drawing.text((67, 350), "tokens", size=SMALL, tone="muted")
    drawing.text((216, 350), "places", size=SMALL, tone="muted")
    return drawing


def _block() -> Drawing:
    drawing = Drawing(320, 384)
    drawing.text((150, 12), "A block", bold=True)
    drawing.rect(Rect(8, 28, 308, 326), tone="query", dashed=True)
    x, side = 130.0, 22.0
    top = operation(drawing, "+", (x, 62))
    think = box(drawing, "up, GELU, down", Rect(36, 92, 188, 28))
    norm2 = box(drawing, "feed-forward norm", Rect(44, 140, 172, 28))
    middle = operation(drawing, "+", (x, 206))
    attention = box(drawing, "attention", Rect(44, 236, 172, 28), tone="query")
    norm1 = box(drawing, "attention norm", Rect(44, 284, 172, 28))
    arrow(drawing, top.top, (x, 30))
    arrow(drawing, think.top, top.bottom)
    arrow(drawing, norm2.top, think.bottom)
    arrow(drawing, middle.top, norm2.bottom)
    arrow(drawing, attention.top, middle.bottom)
    arrow(drawing, norm1.top, attention.bottom)
    arrow(drawing, (x, 362), norm1.bottom)
    arrow(drawing, (x, 182), top.left, via=[(side, 182), (side, 62)], tone="muted")
    arrow(drawing, (x, 334), middle.left, via=[(side, 334), (side, 206)], tone="muted")
    chip(drawing, "keys, values", (258, 206), tone="key", size=SMALL)
    arrow(drawing, (258, 222), attention.right, via=[(258, 250)], tone="key")
    drawing.text((258, 180), "the cache", size=SMALL, tone="muted")
    drawing.text((x, 370), "x", size=SMALL, tone="muted")
    return drawing


def corners() -> Drawing:
    """Draw the mask of new tokens behind old ones: its diagonal ends in the lower right corner, not in the upper left.

    Returns:
        The drawing: right and wrong beside each other on a page, below each other on a phone.
    """
    right = _corner("Right: it ends in the lower right", behind=len(OLD))
    wrong = _corner("Wrong: it begins in the upper left", behind=0)
    narrow = Drawing(350, 372)
    narrow.place(right, 15, 0)
    narrow.place(wrong, 15, 190)
    drawing = Drawing(700, 182, narrow=narrow)
    drawing.place(right, 15, 0)
    drawing.place(wrong, 365, 0)
    return drawing


def _corner(title: str, *, behind: int) -> Drawing:
    drawing = Drawing(320, 182)
    drawing.text((160, 14), title, bold=True)
    keys, cell = (*OLD, *NEW), 40.0
    allowed = [[key <= behind + query for key in range(len(keys))] for query in range(len(NEW))]
    mask(drawing, allowed, (100, 74), cell=(cell, 34), rows=NEW)
    for number, word in enumerate(keys):
        x, shift = 100 + cell * (number + 0.5), 0 if number % 2 else -16
        drawing.text((x, 62 + shift), word, size=SMALL, tone="key" if number < len(OLD) else "query")
    bracket(drawing, Rect(100, 74, cell * len(OLD) - 2, 68), "kept")
    bracket(drawing, Rect(102 + cell * len(OLD), 74, cell * len(NEW) - 2, 68), "new")
    return drawing
