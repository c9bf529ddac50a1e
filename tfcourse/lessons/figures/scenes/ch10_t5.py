"""The drawings of chapter 10: three architectures by their masks, hidden spans, offsets, and the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from tfcourse.lessons.figures.boxes import box, chip, chip_width, operation
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arrow
from tfcourse.lessons.figures.matrices import mask, matrix
from tfcourse.t5 import relative_position_bucket

# What is read, and what is written.
SOURCE, TARGET = ("train", "at", "six"), ("Zug", "um", "sechs")

# The lecture's sentence in words of our own, and which of them are hidden.
WORDS = ("The", "train", "to", "Lyon", "leaves", "at", "six", "from", "platform", "two")
HIDDEN = (False, False, True, True, False, False, True, False, False, True)
# `<0>` is short for the token `<extra_id_0>` of T5.
SENTINELS = ("<0>", "<1>", "<2>", "<3>")

OFFSET_WORDS = WORDS[:5]

# What T5 is asked, behind the prefix that names the task, and what it should answer.
TASKS = (
    ("translate English to German:", "The train leaves.", "Der Zug fährt ab."),
    ("cola sentence:", "The train leaves six at.", "unacceptable"),
    ("stsb sentence1: The train leaves.", "sentence2: It departs.", "3.8"),
)


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
    narrow = Drawing(350, 690)
    drawing = Drawing(700, 248, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, (0, 164, 432)[number], 0)
        narrow.place(part, (94, 40, 40)[number], (0, 176, 440)[number])
    return drawing


def _machine(title: str, example: str, words: Sequence[str], allowed: list[list[bool]]) -> Drawing:
    drawing = Drawing(52 + 35 * len(words), 76 + 28 * len(words))
    middle = 50 + 35 * len(words) / 2
    drawing.text((middle, 14), title, bold=True)
    drawing.text((middle, 34), example, size=SMALL, tone="muted")
    mask(drawing, allowed, (50, 72), cell=(35, 28), rows=words, columns=words)
    return drawing


def tasks() -> Drawing:
    """Draw three tasks for one model: texts with a prefix go in, texts come out.

    Returns:
        The drawing: from left to right on a page, from the top down on a phone.
    """
    narrow = Drawing(350, 360)
    drawing = Drawing(700, 196, narrow=narrow)
    model = box(drawing, "T5", Rect(404, 4, 76, 188), tone="key")
    below = box(narrow, "T5", Rect(4, 198, 342, 40), tone="key")
    for row, (prefix, text, answer) in enumerate(TASKS):
        asked = box(drawing, prefix, Rect(4, 4 + 66 * row, 356, 56), note=text)
        said = chip(drawing, answer, (604, asked.centre[1]), tone="query")
        arrow(drawing, asked.right, (model.x, asked.centre[1]))
        arrow(drawing, (model.x + model.width, asked.centre[1]), said.left)
        box(narrow, prefix, Rect(4, 4 + 60 * row, 342, 52), note=text)
        chip(narrow, answer, (175, 274 + 34 * row), tone="query")
    arrow(narrow, (175, 178), below.top)
    arrow(narrow, below.bottom, (175, 258))
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
    narrow = Drawing(350, 312)
    drawing = Drawing(700, 176, narrow=narrow)
    for number, (name, words) in enumerate(rows):
        _row(drawing, name, words, 24 + 58 * number, width=690, left=66)
        _row(narrow, name, words, 20 + 104 * number, width=345, left=8)
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


def offsets_and_buckets() -> Drawing:
    """Draw the offsets between the first words of the text, and the buckets that they fall into.

    Returns:
        The drawing: two matrices, the offsets and the buckets.
    """
    narrow = Drawing(350, 476)
    drawing = Drawing(700, 232, narrow=narrow)
    offsets, buckets = _offsets_of(len(OFFSET_WORDS))
    for number, (name, values) in enumerate((("offset", offsets), ("bucket", buckets))):
        for on, corner in ((drawing, (76 + 350 * number, 60)), (narrow, (80, 60 + 238 * number))):
            matrix(on, values, corner, cell=(48, 32), name=name, rows=OFFSET_WORDS, columns=OFFSET_WORDS)
    return drawing


def _offsets_of(length: int) -> tuple[list[list[int]], list[list[int]]]:
    """For each pair of a query (row) and a key (column), the offset and its bucket, looking both ways."""
    positions = torch.arange(length)
    offset = positions - positions[:, None]
    return offset.tolist(), relative_position_bucket(offset, bidirectional=True).tolist()


def machine() -> Drawing:
    """Draw T5: two stacks of pre-norm layers on a residual stream, a bias that all layers of a stack share, and the memory between them.

    Returns:
        The drawing: the stacks beside each other on a page, below each other on a phone.
    """
    decoder, encoder = _stack(decoder=True), _stack(decoder=False)
    narrow = Drawing(350, 948)
    narrow.place(decoder, 13, 0)
    narrow.place(encoder, 13, _HEIGHTS[True] + 24)
    drawing = Drawing(700, _HEIGHTS[True], narrow=narrow)
    lower = _HEIGHTS[True] - _HEIGHTS[False]
    drawing.place(encoder, 4, lower)
    drawing.place(decoder, 372, 0)
    leaves, cross = lower + _FINAL + 15, _HEIGHTS[True] - _FOOT - _BLOCK - 75
    arrow(drawing, (224, leaves), (376, cross), via=[(344, leaves), (344, cross)], tone="key", head=False)
    return drawing


# Heights: of the embedding and what lies below a layer, of a sublayer, and of a stack, the decoder's being True.
_FOOT, _BLOCK, _FINAL = 62.0, 100.0, 40.0
_HEIGHTS = {True: 538.0, False: 386.0}


def _stack(*, decoder: bool) -> Drawing:
    """A stack, from the embedding at the bottom up; the encoder's residual stream is at the left, the decoder's at the right."""
    height = _HEIGHTS[decoder]
    drawing = Drawing(324, height)

    def at(x: float) -> float:
        return 324 - x if decoder else x

    def wide(label: str, top: float, tone: Tone = "ink", note: str = "") -> Rect:
        return box(drawing, label, Rect(104 if decoder else 4, top, 216, 44 if note else 30), tone=tone, note=note)

    main = at(34)
    names = ["self-attention", *(["cross-attention"] if decoder else []), "feed-forward"]
    drawing.text((at(112), 14), "Decoder" if decoder else "Encoder", bold=True)
    final = wide("final RMS norm", (_FINAL + 52) if decoder else _FINAL)
    embedding = wide("embedding", height - 34, tone="key")
    top = height - _FOOT - _BLOCK * len(names) - 26
    drawing.rect(Rect(104 if decoder else 4, top, 216, height - _FOOT + 4 - top), radius=14, wash=0.03)
    drawing.text((at(136), top + 16), f"{'decoder' if decoder else 'encoder'} layer × *L*", size=SMALL, tone="muted")
    below = embedding.y
    for number, name in enumerate(names):
        below = _sublayer(drawing, name, main, at(135), height - _FOOT - _BLOCK * number, below)
    arrow(drawing, (main, below), (main, final.bottom[1]))
    if decoder:
        logits = wide("logits", 34, tone="key", note="the embedding matrix, × *D*^{−1/2}")
        arrow(drawing, (main, final.y), (main, logits.bottom[1]))
    _beside(drawing, at, height - _FOOT - 75, "position\nbias, shared\nby all layers")
    if decoder:
        _beside(drawing, at, height - _FOOT - _BLOCK - 75, "memory")
    return drawing


def _beside(drawing: Drawing, at: Callable[[float], float], y: float, label: str) -> None:
    """What reaches a sublayer from outside its layer."""
    lines = label.count("\n") + 1
    drawing.text((at(276), y - 16 - 8 * (lines - 1)), label, size=SMALL, tone="key")
    arrow(drawing, (at(320), y), (at(208), y), tone="key")


def _sublayer(drawing: Drawing, name: str, main: float, middle: float, y: float, below: float) -> float:
    """A norm, a function, and the sum with the residual stream, which comes up from `below`; return where the sum ends."""
    norm = box(drawing, "RMS norm", Rect(middle - 73, y - 46, 146, 26), size=SMALL)
    tone: Tone = "query" if "attention" in name else "ink"
    function = box(drawing, name, Rect(middle - 73, y - 90, 146, 30), tone=tone)
    plus = operation(drawing, "+", (main, y - 75), radius=10)
    arrow(drawing, (main, below), plus.bottom)
    arrow(drawing, (main, y - 8), norm.bottom, via=[(middle, y - 8)])
    arrow(drawing, norm.top, function.bottom)
    if main < middle:
        arrow(drawing, function.left, plus.right)
    else:
        arrow(drawing, function.right, plus.left)
    return plus.top[1]
