"""The drawings of chapter 10: three machines by their masks, spans that are hidden, and the model with its biases."""

from __future__ import annotations

from collections.abc import Sequence

from tfcourse.figures.boxes import box, chip, chip_width, operation
from tfcourse.figures.drawing import SMALL, Drawing, Tone
from tfcourse.figures.geometry import Rect
from tfcourse.figures.lines import arrow
from tfcourse.figures.matrices import mask

# What is read, and what is written.
SOURCE, TARGET = ("six", "thousand", "two"), ("sechs", "tausend", "zwei")

# The lecture's sentence in words of our own, and which of them are hidden.
WORDS = ("The", "train", "to", "Lyon", "leaves", "at", "six", "from", "platform", "two")
HIDDEN = (False, False, True, True, False, False, True, False, False, True)
SENTINELS = ("<X>", "<Y>", "<Z>", "<W>")


def machines() -> Drawing:
    """Draw what may look at what in an encoder, in a decoder, and in both together.

    Returns:
        The drawing: three masks beside each other on a page, below each other on a phone.
    """
    n, m = len(SOURCE), len(TARGET)
    words = (*SOURCE, *TARGET)
    parts = [
        _machine("Encoder alone", "BERT", SOURCE, [[True] * n for _ in range(n)]),
        _machine("Decoder alone", "GPT", words, [[k <= q for k in range(n + m)] for q in range(n + m)]),
        _machine(
            "Encoder and decoder",
            "T5",
            words,
            [[k < n if q < n else k <= q for k in range(n + m)] for q in range(n + m)],
        ),
    ]
    narrow = Drawing(350, 616)
    drawing = Drawing(700, 236, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 4 + 232 * number, 0)
        narrow.place(part, 60, (0, 146, 382)[number])
    return drawing


def _machine(title: str, example: str, words: Sequence[str], allowed: list[list[bool]]) -> Drawing:
    drawing = Drawing(228, 232)
    drawing.text((124, 14), title, bold=True)
    drawing.text((124, 34), example, size=SMALL, tone="muted")
    mask(drawing, allowed, (74, 48), cell=(24, 28), rows=words)
    return drawing


def corruption() -> Drawing:
    """Draw a text, the question that is made of it, and the answer.

    Returns:
        The drawing: three rows of words on a page, each broken in two on a phone.
    """
    source, target = _source_and_target()
    text: list[tuple[str, Tone]] = [
        (word, "query" if gone else "ink") for word, gone in zip(WORDS, HIDDEN, strict=True)
    ]
    rows = [("text", text), ("source", source), ("target", target)]
    narrow = Drawing(350, 330)
    drawing = Drawing(700, 176, narrow=narrow)
    for number, (name, words) in enumerate(rows):
        _row(drawing, name, words, 24 + 58 * number, width=690, left=66)
        _row(narrow, name, words, 20 + 110 * number, width=345, left=8)
    return drawing


def _source_and_target() -> tuple[list[tuple[str, Tone]], list[tuple[str, Tone]]]:
    source: list[tuple[str, Tone]] = []
    target: list[tuple[str, Tone]] = []
    used = 0
    for place, (word, gone) in enumerate(zip(WORDS, HIDDEN, strict=True)):
        if gone and not (place and HIDDEN[place - 1]):
            source.append((SENTINELS[used], "key"))
            target.append((SENTINELS[used], "key"))
            used += 1
        (target if gone else source).append((word, "query" if gone else "ink"))
    target.append((SENTINELS[used], "key"))
    return source, target


def _row(
    drawing: Drawing, name: str, words: Sequence[tuple[str, Tone]], y: float, *, width: float, left: float
) -> None:
    small = width < 400
    if small:
        drawing.text((30, y), name, size=SMALL, tone="muted")
        y += 26
    else:
        drawing.text((30, y), name, size=SMALL, tone="muted")
    x = left
    for word, tone in words:
        w = chip_width(word, SMALL)
        if x + w > width - 4:
            x, y = left, y + 32
        chip(drawing, word, (x + w / 2, y), tone=tone, size=SMALL, height=24)
        x += w + 6


def machine() -> Drawing:
    """Draw T5: two stacks without positions at their inputs, a bias for each of them, and logits from the embedding matrix.

    Returns:
        The drawing: the stacks beside each other on a page, below each other on a phone.
    """
    narrow = Drawing(350, 610)
    narrow.place(_stack("Encoder", decoder=False), 15, 362)
    narrow.place(_stack("Decoder", decoder=True), 15, 0)
    drawing = Drawing(700, 356, narrow=narrow)
    encoder, decoder = (24.0, 60.0), (366.0, 0.0)
    drawing.place(_stack("Encoder", decoder=False), *encoder)
    drawing.place(_stack("Decoder", decoder=True), *decoder)
    arrow(drawing, (290, 114), (480, 220), via=[(346, 114), (346, 220)], tone="key")
    return drawing


def _stack(title: str, *, decoder: bool) -> Drawing:
    drawing = Drawing(320, 350 if decoder else 248)
    x = 190.0
    drawing.text((x, 14), title, bold=True)
    top = 40.0
    if decoder:
        head = box(drawing, "logits", Rect(x - 74, top, 148, 44), tone="key", note="same matrix")
        top += 66
    norm = box(drawing, "final norm", Rect(x - 74, top, 148, 28))
    if decoder:
        arrow(drawing, norm.top, head.bottom)
    names = ["feed-forward", *(["cross-attention"] if decoder else []), "self-attention"]
    above = norm
    for name in names:
        top += 50
        part = box(drawing, name, Rect(x - 74, top, 148, 28), tone="query" if "attention" in name else "ink")
        arrow(drawing, part.top, above.bottom)
        above = part
    bias = operation(drawing, "+", (60, above.y + 14))
    arrow(drawing, bias.right, above.left, tone="key")
    drawing.text((60, above.y - 14), "bias by", size=SMALL, tone="key")
    drawing.text((60, above.y + 42), "position", size=SMALL, tone="key")
    drawing.text((x + 96, above.y - 20), "× L", size=SMALL, tone="muted")
    embedding = box(drawing, "embedding", Rect(x - 74, top + 50, 148, 28), tone="key")
    arrow(drawing, embedding.top, above.bottom)
    return drawing
