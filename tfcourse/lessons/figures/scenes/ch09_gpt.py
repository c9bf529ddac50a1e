"""The drawings of chapter 09: a product of tokens, targets of a pass, the block and the model, a cache, masks, prompts."""

from __future__ import annotations

from collections.abc import Sequence

from tfcourse.lessons.figures.boxes import box, chip, chip_width, operation
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow, bracket
from tfcourse.lessons.figures.matrices import mask

# A name and the token that ends it.
SENTENCE = ("six", "thousand,", "two", "hundred", "[EOS]")

# Tokens that were read before, and a chunk of new ones.
OLD, NEW = ("six", "thousand,", "two"), ("hundred", "and")

# What a decoder reads, and a name with a gap and the token that fills it.
READ, GAPPED, HIDDEN = ("[BOS]", "six", "thousand"), ("six", "[MASK]", "two", "hundred"), "thousand,"

# Solved examples of a task, and a query with its answer in two lines.
SOLVED, ASKED, ANSWER = (("41", "forty-one"), ("700", "seven hundred")), "6200", ("six thousand,", "two hundred")


def product() -> Drawing:
    """Draw a text as a product: each token, given those before it.

    Returns:
        The drawing: a row for each token; on a phone the probability is below its row.
    """
    narrow, drawing = Drawing(350, 8 + 52 * len(SENTENCE)), Drawing(700, 14 + 40 * len(SENTENCE))
    drawing.narrow = narrow
    for row, token in enumerate(SENTENCE):
        before = " ".join(SENTENCE[:row])
        probability = f"p({token} | {before})" if before else f"p({token})"
        _row(drawing, row, (8, 26 + 40 * row), TEXT)
        _row(narrow, row, (8, 18 + 52 * row), SMALL)
        drawing.text((692, 26 + 40 * row), probability, anchor="end")
        narrow.text((342, 43 + 52 * row), probability, size=SMALL, anchor="end", tone="muted")
    return drawing


def _row(drawing: Drawing, row: int, at: Point, size: float) -> None:
    x, y = at
    for position, word in enumerate(SENTENCE[: row + 1]):
        width = chip_width(word, size)
        chip(drawing, word, (x + width / 2, y), tone="query" if position == row else "key", size=size, height=24)
        x += width + 6


def lessons() -> Drawing:
    """Draw the targets that one pass has for a decoder, and for a masked encoder.

    Returns:
        The drawing: the two beside each other on a page, below each other on a phone.
    """
    decoder = _lessons("Decoder: every next token", READ, (*READ[1:], "[EOS]"))
    encoder = _lessons(
        "Encoder: the hidden token", GAPPED, tuple(HIDDEN if word == "[MASK]" else "" for word in GAPPED)
    )
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
    step = 264 / len(read)
    for position, (word, target) in enumerate(zip(read, asked, strict=True)):
        x = 28 + step * (position + 0.5)
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
    parts = []
    for label, note, tone, y in rows:
        if label == "+":
            parts.append(operation(drawing, "+", (150, y)))
        else:
            parts.append(box(drawing, label, Rect(40, y - 14, 220, 44 if note else 28), tone=tone, note=note))
    arrow(drawing, parts[1].top, parts[0].bottom)
    arrow(drawing, parts[2].top, parts[1].bottom)
    arrow(drawing, parts[3].top, parts[2].bottom, dashed=True)
    arrow(drawing, parts[4].top, parts[3].bottom)
    left = box(drawing, "token embedding", Rect(0, 310, 134, 28), tone="key", size=SMALL)
    right = box(drawing, "position embedding", Rect(142, 310, 148, 28), tone="key", size=SMALL)
    arrow(drawing, left.top, (parts[4].x, 268), via=[(left.top[0], 268)])
    arrow(drawing, right.top, (parts[4].x + parts[4].width, 268), via=[(right.top[0], 268)])
    drawing.text((67, 350), "tokens", size=SMALL, tone="muted")
    drawing.text((216, 350), "positions", size=SMALL, tone="muted")
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


def moving_cache() -> Drawing:
    """Draw three steps of writing with a cache: one new token each, the keys and values of the others kept.

    Returns:
        The drawing: a row for each step on a page, the steps below each other on a phone.
    """
    narrow, drawing = Drawing(350, 330), Drawing(700, 190)
    drawing.narrow = narrow
    for step in range(1, len(OLD) + 1):
        y = 34 + 58 * (step - 1)
        drawing.text((8, y), f"step {step}", anchor="start", bold=True)
        _cached_step(drawing, step, (70, y), 440)
        drawing.text((692, y), f"cache after it: {step}", size=SMALL, tone="muted", anchor="end")
        y = 18 + 108 * (step - 1)
        narrow.text((8, y), f"step {step}", anchor="start", bold=True)
        narrow.text((342, y), f"cache after it: {step}", size=SMALL, tone="muted", anchor="end")
        _cached_step(narrow, step, (8, y + 40), 240)
    return drawing


def _cached_step(drawing: Drawing, step: int, at: Point, end: float) -> None:
    x, y = at
    for position, word in enumerate(OLD[:step]):
        width, last = chip_width(word, SMALL), position == step - 1
        part = chip(drawing, word, (x + width / 2, y), tone="query" if last else "key", size=SMALL)
        if not last:
            drawing.text((x + width / 2, y + 24), "k, v", size=SMALL, tone="key")
        x += width + 8
    target = (*OLD, *NEW)[step]
    there = chip(drawing, target, (end + chip_width(target, SMALL) / 2, y), size=SMALL)
    arrow(drawing, part.right, there.left, tone="query")


def prompts() -> Drawing:
    """Draw four ways to pose a task: prompts without examples, with one and with several, and fine-tuning.

    Returns:
        The drawing: four columns on a page, below each other on a phone.
    """
    examples = [f"{number} → {name}" for number, name in SOLVED]
    prompted = [("zero-shot", []), ("one-shot", examples[:1]), ("few-shot", [*examples, "…"])]
    parts = [_prompt(title, ["Write as words.", *lines, f"{ASKED} →"]) for title, lines in prompted]
    parts.append(_tuning([*examples, "…"]))
    narrow, drawing = Drawing(350, 4 * 244), Drawing(700, 238)
    drawing.narrow = narrow
    for number, part in enumerate(parts):
        drawing.place(part, 4 + 174 * number, 0)
        narrow.place(part, 90, 244 * number)
    return drawing


def _prompt(title: str, lines: Sequence[str]) -> Drawing:
    drawing = Drawing(170, 236)
    drawing.text((85, 14), title, bold=True)
    _answered(drawing, lines)
    return drawing


def _answered(drawing: Drawing, lines: Sequence[str], *, model: str = "model, as it is", width: float = 166) -> None:
    top = 136 - 19.0 * len(lines)
    drawing.rect(Rect(2, top, width, 19 * len(lines) + 6), tone="key", wash=0.13)
    for number, line in enumerate(lines):
        drawing.text((10, top + 14 + 19 * number), line, size=SMALL, anchor="start")
    arrow(drawing, (2 + width / 2, 142), (2 + width / 2, 156))
    box(drawing, model, Rect(10, 158, 150, 26), size=SMALL)
    arrow(drawing, (85, 184), (85, 198), tone="query")
    for number, line in enumerate(ANSWER):
        drawing.text((85, 208 + 16 * number), line, size=SMALL, tone="query")


def _tuning(lines: Sequence[str]) -> Drawing:
    drawing = Drawing(170, 236)
    drawing.text((85, 14), "fine-tuning", bold=True)
    drawing.rect(Rect(2, 26, 166, 19 * len(lines) + 6), tone="muted", dashed=True)
    for number, line in enumerate(lines):
        drawing.text((10, 40 + 19 * number), line, size=SMALL, anchor="start", tone="muted")
    arrow(drawing, (138, 32 + 19 * len(lines)), (138, 156), tone="muted", dashed=True)
    drawing.text((132, 103), "training", size=SMALL, tone="muted", anchor="end")
    _answered(drawing, [f"{ASKED} →"], model="changed weights", width=110)
    return drawing


def corners() -> Drawing:
    """Draw the mask of new tokens after old ones: its diagonal ends in the lower right corner, not in the upper left.

    Returns:
        The drawing: right and wrong beside each other on a page, below each other on a phone.
    """
    right = _corner("Right: it ends in the lower right", cached=len(OLD))
    wrong = _corner("Wrong: it begins in the upper left", cached=0)
    narrow = Drawing(350, 372)
    narrow.place(right, 15, 0)
    narrow.place(wrong, 15, 190)
    drawing = Drawing(700, 182, narrow=narrow)
    drawing.place(right, 15, 0)
    drawing.place(wrong, 365, 0)
    return drawing


def _corner(title: str, *, cached: int) -> Drawing:
    drawing = Drawing(320, 182)
    drawing.text((160, 14), title, bold=True)
    keys, cell = (*OLD, *NEW), 40.0
    allowed = [[key <= cached + query for key in range(len(keys))] for query in range(len(NEW))]
    mask(drawing, allowed, (100, 74), cell=(cell, 34), rows=NEW)
    for number, word in enumerate(keys):
        x, shift = 100 + cell * (number + 0.5), 0 if number % 2 else -16
        drawing.text((x, 62 + shift), word, size=SMALL, tone="key" if number < len(OLD) else "query")
    bracket(drawing, Rect(100, 74, cell * len(OLD) - 2, 68), "kept")
    bracket(drawing, Rect(102 + cell * len(OLD), 74, cell * len(NEW) - 2, 68), "new")
    return drawing
