"""The drawings of chapter 13: shared heads, Llama's layer, a gated network, two clocks, and how a prompt and an answer are read."""

from __future__ import annotations

from itertools import pairwise

from tfcourse.figures.boxes import box, chip, operation
from tfcourse.figures.drawing import SMALL, Drawing, Tone
from tfcourse.figures.geometry import Rect
from tfcourse.figures.lines import arrow

HEADS = 4


def sharing() -> Drawing:
    """Draw which query heads ask which heads of keys: one each, one for two, one for all.

    Returns:
        The drawing: three pictures beside each other on a page, below each other on a phone.
    """
    parts = [
        _groups("multi-head", HEADS),
        _groups("grouped queries", HEADS // 2),
        _groups("multi-query", 1),
    ]
    narrow = Drawing(350, 420)
    drawing = Drawing(700, 150, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 6 + 234 * number, 0)
        narrow.place(part, 65, 138 * number)
    return drawing


def _groups(title: str, shared: int) -> Drawing:
    drawing = Drawing(220, 134)
    drawing.text((110, 14), title, bold=True)
    drawing.text((110, 30), f"G = {shared}", size=SMALL, tone="muted")
    keys = [
        chip(drawing, "k, v", (110 + 52 * (g - (shared - 1) / 2), 62), tone="key", size=SMALL, height=24)
        for g in range(shared)
    ]
    for head in range(HEADS):
        query = chip(drawing, "q", (32 + 52 * head, 116), tone="query", size=SMALL, height=24)
        arrow(drawing, query.top, keys[head // (HEADS // shared)].bottom, tone="query")
    return drawing


def layer() -> Drawing:
    """Draw a layer of Llama: a stream with two sublayers, each behind a norm.

    Returns:
        The drawing: from left to right on a page, from the bottom to the top on a phone.
    """
    steps: list[tuple[str, Tone]] = [
        ("RMS norm", "ink"),
        ("attention", "query"),
        ("RMS norm", "ink"),
        ("SwiGLU", "key"),
    ]
    narrow = Drawing(350, 420)
    drawing = Drawing(704, 146, narrow=narrow)
    here, there = (14.0, 116.0), (60.0, 410.0)  # how far the streams have come
    for number, (name, tone) in enumerate(steps):
        x = 40 + 150 * number + (34 if number > 1 else 0)
        part = box(drawing, name, Rect(x, 30, 116, 34), tone=tone)
        below = box(narrow, name, Rect(130, 356 - 92 * number, 140, 34), tone=tone)
        if number % 2 == 0:
            arrow(drawing, (x - 14, 116), part.left, via=[(x - 14, 47)])
            arrow(
                narrow,
                (60, below.centre[1] + 30),
                (below.centre[0], below.bottom[1]),
                via=[(below.centre[0], below.centre[1] + 30)],
            )
        else:
            arrow(drawing, (x - 34, 47), part.left)
            plus = operation(drawing, "+", (x + 140, 116))
            arrow(drawing, here, plus.left, tone="muted", stroke=3)
            here = plus.right
            arrow(drawing, part.right, plus.top, via=[(x + 140, 47)])
            arrow(narrow, (below.centre[0], below.bottom[1] + 58), below.bottom)
            plus = operation(narrow, "+", (60, below.centre[1]))
            arrow(narrow, there, plus.bottom, tone="muted", stroke=3)
            there = plus.top
            arrow(narrow, below.left, plus.right)
    arrow(drawing, here, (698, 116), tone="muted", stroke=3)
    arrow(narrow, there, (60, 14), tone="muted", stroke=3)
    drawing.text((160, 134), "stream", size=SMALL, tone="muted")
    narrow.text((26, 390), "stream", size=SMALL, tone="muted")
    return drawing


def gate() -> Drawing:
    """Draw the gated network: two maps side by side, one of them bent, their product, and a map back.

    Returns:
        The drawing.
    """
    narrow = Drawing(350, 250)
    drawing = Drawing(700, 130, narrow=narrow)
    x = chip(drawing, "x", (30, 65))
    gates = box(drawing, "gate", Rect(90, 16, 100, 32), tone="query")
    up = box(drawing, "up", Rect(90, 84, 100, 32), tone="key")
    bend = box(drawing, "silu", Rect(240, 16, 80, 32), tone="query")
    product = operation(drawing, "·", (400, 65))
    down = box(drawing, "down", Rect(480, 49, 100, 32))
    for part in (gates, up):
        arrow(drawing, x.right, part.left, via=[(66, 65), (66, part.centre[1])])
    arrow(drawing, gates.right, bend.left)
    arrow(drawing, bend.right, product.top, via=[(400, 32)])
    arrow(drawing, up.right, product.bottom, via=[(400, 100)])
    arrow(drawing, product.right, down.left)
    arrow(drawing, down.right, (640, 65))
    below = chip(narrow, "x", (175, 20))
    left = box(narrow, "gate", Rect(40, 60, 100, 32), tone="query")
    right = box(narrow, "up", Rect(210, 60, 100, 32), tone="key")
    bent = box(narrow, "silu", Rect(50, 116, 80, 32), tone="query")
    times = operation(narrow, "·", (175, 172))
    last = box(narrow, "down", Rect(125, 208, 100, 32))
    for part in (left, right):
        arrow(narrow, below.bottom, part.top, via=[(175, 46), (part.centre[0], 46)])
    arrow(narrow, left.bottom, bent.top)
    arrow(narrow, bent.bottom, times.left, via=[(90, 172)])
    arrow(narrow, right.bottom, times.right, via=[(260, 172)])
    arrow(narrow, times.bottom, last.top)
    return drawing


def clocks() -> Drawing:
    """Draw what happens to one token: bytes on their way from the memory, and sums that wait for them.

    Returns:
        The drawing.
    """
    narrow = Drawing(350, 250)
    drawing = Drawing(700, 150, narrow=narrow)
    memory = box(drawing, "memory", Rect(14, 40, 150, 60), note="weights, caches", tone="key")
    device = box(drawing, "arithmetic", Rect(520, 40, 160, 60), note="two sums a weight", tone="query")
    arrow(drawing, memory.right, device.left, stroke=5, tone="key")
    drawing.text((342, 44), "3.35 · 10^12 bytes a second", size=SMALL, tone="key")
    drawing.text((600, 122), "989 · 10^12 sums a second", size=SMALL, tone="query")
    above = box(narrow, "memory", Rect(90, 14, 170, 60), note="weights, caches", tone="key")
    under = box(narrow, "arithmetic", Rect(90, 150, 170, 60), note="two sums a weight", tone="query")
    arrow(narrow, above.bottom, under.top, stroke=5, tone="key")
    narrow.text((80, 112), "3.35 · 10^12\nbytes a second", size=SMALL, tone="key")
    narrow.text((175, 230), "989 · 10^12 sums a second", size=SMALL, tone="query")
    return drawing


def prefill() -> Drawing:
    """Draw how often the weights are read: once for all tokens of a prompt, and once for each token that is written.

    Returns:
        The drawing: two pictures beside each other on a page, below each other on a phone.
    """
    parts = [_reading("prefill: one reading", 4, 1), _reading("decode: a reading per token", 4, 4)]
    narrow = Drawing(350, 330)
    drawing = Drawing(700, 160, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 10 + 350 * number, 0)
        narrow.place(part, 10, 168 * number)
    return drawing


def _reading(title: str, tokens: int, readings: int) -> Drawing:
    """Tokens in a row, and below them the weights as often as they are read."""
    drawing = Drawing(330, 156)
    drawing.text((165, 14), title, bold=True)
    row = [chip(drawing, f"x_{t + 1}", (48 + 78 * t, 48), tone="query", size=SMALL, height=26) for t in range(tokens)]
    width = 306 if readings == 1 else 70
    for t in range(readings):
        weights = box(drawing, "weights", Rect(12 + 78 * t, 100, width, 36), tone="key", size=SMALL)
        for token in row if readings == 1 else [row[t]]:
            arrow(drawing, (token.centre[0], weights.top[1]), token.bottom, tone="key")
    if readings > 1:
        for before, after in pairwise(row):
            arrow(drawing, before.right, after.left, tone="query")
    return drawing
