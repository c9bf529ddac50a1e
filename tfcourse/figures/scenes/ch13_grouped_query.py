"""The drawings of chapter 13: shared heads, Llama's layer, a gated network, what is read for a token, and two clocks."""

from __future__ import annotations

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
    narrow = Drawing(350, 440)
    drawing = Drawing(700, 150, narrow=narrow)
    start, below_start = chip(drawing, "x", (30, 112)), chip(narrow, "x", (60, 414))
    here, there = start.right, below_start.top
    for number in (0, 2):
        (norm, _), (name, tone) = steps[number], steps[number + 1]
        x, y = 62 + 160 * number, 330 - 92 * number
        first, second = (
            box(drawing, norm, Rect(x + 18, 22, 104, 34)),
            box(drawing, name, Rect(x + 146, 22, 104, 34), tone=tone),
        )
        plus = operation(drawing, "+", (x + 276, 112))
        arrow(drawing, here, plus.left)
        arrow(drawing, (x, 112), first.left, via=[(x, 39)])
        arrow(drawing, first.right, second.left)
        arrow(drawing, second.right, plus.top, via=[(x + 276, 39)])
        here = plus.right
        under, above = (
            box(narrow, norm, Rect(140, y, 140, 34)),
            box(narrow, name, Rect(140, y - 72, 140, 34), tone=tone),
        )
        plus = operation(narrow, "+", (60, y - 116))
        arrow(narrow, there, plus.bottom)
        arrow(narrow, (60, y + 52), under.bottom, via=[(210, y + 52)])
        arrow(narrow, under.top, above.bottom)
        arrow(narrow, above.top, plus.right, via=[(210, y - 116)])
        there = plus.top
    arrow(drawing, here, (694, 112))
    arrow(narrow, there, (60, 6))
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
