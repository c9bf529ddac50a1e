"""The drawings of chapter 13: shared heads, a layer, its attention and its network, and what a GPU reads and computes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow

HEADS = 4

# One step of Llama 3 8B after 8,192 tokens of one text on an H100: what is read, what is computed, and how long each takes.
STEP_GB, BYTES_MS = 16.1, 4.8
STEP_GFLOP, FLOP_MS = 19.3, 0.02


def sharing() -> Drawing:
    """Draw which query heads share keys and values: one each, one for two, one for all.

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
    narrow = Drawing(350, 432)
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
    drawing.text((170, 134), "residual stream", size=SMALL, tone="muted")
    narrow.text((74, 420), "residual stream", size=SMALL, tone="muted", anchor="start")
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


def whole_llama() -> Drawing:
    """Draw the model: an embedding, layers that share rotations and have a cache each, a norm, and an output matrix.

    Returns:
        The drawing: from left to right on a page, from the top to the bottom on a phone.
    """
    narrow = Drawing(350, 424)
    drawing = Drawing(700, 188, narrow=narrow)
    names = ("embedding", "layer 0", "layer 1", "layer *L* − 1", "RMS norm", "output")
    notes = ("*V* × *D*", "", "", "", "", "*D* × *V*")
    edges = (40, 160, 264, 392, 518, 624)
    widths = (94, 78, 78, 100, 84, 72)
    parts = [
        box(drawing, name, Rect(x, 66, width, 44), note=note, size=SMALL, tone="query" if 0 < n < 4 else "ink")
        for n, (name, note, x, width) in enumerate(zip(names, notes, edges, widths, strict=True))
    ]
    arrow(drawing, (6, 88), parts[0].left)
    for before, after in pairwise(parts):
        if before is not parts[2]:
            arrow(drawing, before.right, after.left, tone="muted", stroke=3)
    drawing.text((367, 88), "…")
    drawing.text((20, 72), "ids", size=SMALL, tone="muted")
    turns = box(drawing, "rotations", Rect(252, 8, 102, 28), tone="query", size=SMALL)
    for number, part in enumerate(parts[1:4]):
        straight = part is parts[2]
        side = turns.bottom if straight else turns.left if number == 0 else turns.right
        arrow(drawing, side, part.top, via=[] if straight else [(part.centre[0], 22)], tone="query")
        row = _cache_row(drawing, (part.centre[0] - 35, 146), 14)
        arrow(drawing, part.bottom, row.top, tone="key")
    drawing.text((92, 158), "caches", size=SMALL, tone="key")
    _narrow_llama(narrow, names, notes)
    return drawing


def _narrow_llama(drawing: Drawing, names: Sequence[str], notes: Sequence[str]) -> None:
    tops = (24, 94, 154, 238, 302, 362)
    tones: tuple[Tone, ...] = ("ink", "query", "query", "query", "ink", "ink")
    parts = [
        box(drawing, name, Rect(112, y, 116, 44 if note else 36), note=note, size=SMALL, tone=tone)
        for name, note, y, tone in zip(names, notes, tops, tones, strict=True)
    ]
    arrow(drawing, (170, 4), parts[0].top)
    for before, after in pairwise(parts):
        if before is not parts[2]:
            arrow(drawing, before.bottom, after.top, tone="muted", stroke=3)
    drawing.text((170, 214), "⋮")
    turns = box(drawing, "rotations", Rect(4, 158, 84, 28), tone="query", size=SMALL)
    for number, part in enumerate(parts[1:4]):
        straight = part is parts[2]
        side = turns.right if straight else turns.top if number == 0 else turns.bottom
        arrow(drawing, side, part.left, via=[] if straight else [(46, part.centre[1])], tone="query")
        row = _cache_row(drawing, (262, part.centre[1] - 12), 16)
        arrow(drawing, part.right, row.left, tone="key")
    drawing.text((302, 76), "caches", size=SMALL, tone="key")


def step_times() -> Drawing:
    """Draw one step of generation on a GPU: how long it reads and how long it computes.

    Returns:
        The drawing: memory and arithmetic, and a bar for each on a scale of 5 ms.
    """
    narrow = Drawing(350, 330)
    drawing = Drawing(700, 186, narrow=narrow)
    memory = box(drawing, "memory", Rect(8, 12, 128, 60), note="weights, caches", tone="key")
    device = box(drawing, "arithmetic", Rect(306, 12, 158, 60), note="989 · 10^{12} FLOP/s", tone="query")
    arrow(drawing, memory.right, device.left, stroke=5, tone="key")
    drawing.text((219, 22), "3.35 · 10^{12} bytes/s", size=SMALL, tone="key")
    above = box(narrow, "memory", Rect(20, 10, 158, 60), note="weights, caches", tone="key")
    under = box(narrow, "arithmetic", Rect(20, 122, 158, 60), note="989 · 10^{12} FLOP/s", tone="query")
    arrow(narrow, above.bottom, under.top, stroke=5, tone="key")
    narrow.text((112, 97), "3.35 · 10^{12} bytes/s", size=SMALL, tone="key", anchor="start")
    _bars(drawing, (190.0, 100.0), 72.0)
    _bars(narrow, (134.0, 214.0), 40.0)
    return drawing


def _bars(drawing: Drawing, corner: Point, millisecond: float) -> None:
    """Two bars below each other, and their axis from 0 to 5 ms."""
    (x, y), height = corner, 20.0
    rows: tuple[tuple[str, float, Tone], ...] = (
        (f"read {STEP_GB} GB", BYTES_MS, "key"),
        (f"{STEP_GFLOP} GFLOP", FLOP_MS, "query"),
    )
    for number, (label, milliseconds, tone) in enumerate(rows):
        top = y + 30 * number
        drawing.text((x - 8, top + height / 2), label, size=SMALL, anchor="end")
        bar = Rect(x, top, max(milliseconds * millisecond, 1.5), height)
        drawing.rect(bar, tone=tone, radius=0, stroke=0, wash=0.35 if milliseconds > 2.5 else 1)
        beyond = bar.right[0] + 8 if milliseconds < 2.5 else bar.x + 52
        drawing.text(
            (beyond, bar.centre[1]), f"{milliseconds} ms", size=SMALL, anchor="start" if milliseconds < 2.5 else "end"
        )
    axis = y + 62
    drawing.path(f"M{x} {axis}h{5 * millisecond}", stroke=1)
    for tick in range(6):
        drawing.path(f"M{x + tick * millisecond} {axis}v4", stroke=1)
        drawing.text((x + tick * millisecond, axis + 14), f"{tick}" if tick < 5 else "5 ms", size=SMALL, tone="muted")


def stacked_queries() -> Drawing:
    """Draw how the queries of a group are stacked, so that one product with their shared keys gives all of their scores.

    Returns:
        The drawing: four query heads of two rows, two key/value heads, from left to right.
    """
    narrow = Drawing(350, 250)
    drawing = Drawing(700, 250, narrow=narrow)
    _stack_of_queries(drawing, cell=17, columns=(86, 252, 382, 522), names=True)
    _stack_of_queries(narrow, cell=12, columns=(12, 98, 170, 258), names=False)
    return drawing


def _stack_of_queries(drawing: Drawing, *, cell: int, columns: Sequence[float], names: bool) -> None:
    """Two groups of query heads below each other; `columns` are the left edges of queries, stacks, keys and scores."""
    heads, stacks, keys, scores = columns
    titles = ("*q*\n(*T*, *D*_h)", "stack\n(*R*·*T*, *D*_h)", "*k*^⊤\n(*D*_h, *S*)", "scores\n(*R*·*T*, *S*)")
    for left, title, wide in zip(columns, titles, (4, 4, 5, 5), strict=True):
        drawing.text((left + wide * cell / 2, 22), title, size=SMALL)
    for group in range(2):
        top = 60 + 98 * group
        middle = top + 2 * cell + 6
        for member in range(2):
            wash = (0.45, 0.15)[member]
            y = top + member * (2 * cell + 12)
            _cells(drawing, (heads, y), (2, 4), cell, "query", wash)
            _cells(drawing, (stacks, top + 6 + member * 2 * cell), (2, 4), cell, "query", wash)
            _cells(drawing, (scores, top + 6 + member * 2 * cell), (2, 5), cell, "query", wash)
            if names:
                drawing.text((heads - 44, y + cell), f"head {2 * group + member}", size=SMALL, tone="query")
                row = top + 6 + member * 2 * cell + cell
                drawing.text((scores + 5 * cell + 40, row), f"head {2 * group + member}", size=SMALL, tone="query")
        _cells(drawing, (keys, top + 6), (4, 5), cell, "key", 0.3)
        arrow(drawing, (heads + 4 * cell + 6, middle), (stacks - 6, middle), tone="muted")
        drawing.text(((stacks + 4 * cell + keys) / 2, middle), "×")
        drawing.text(((keys + 5 * cell + scores) / 2, middle), "=")


def _cells(drawing: Drawing, corner: Point, shape: tuple[int, int], cell: float, tone: Tone, wash: float) -> None:
    """A matrix without numbers."""
    for row in range(shape[0]):
        for column in range(shape[1]):
            where = Rect(corner[0] + column * cell, corner[1] + row * cell, cell, cell)
            drawing.rect(where, tone=tone, radius=1, wash=wash, stroke=0.8)


def cached_attention() -> Drawing:
    """Draw Llama's attention for one new token: three maps, two rotations, and a cache to which keys and values are appended.

    Returns:
        The drawing: from left to right on a page, from the top to the bottom on a phone.
    """
    narrow = Drawing(350, 432)
    drawing = Drawing(704, 232, narrow=narrow)
    x = chip(drawing, "x", (22, 121), tone="query")
    maps = [
        box(drawing, f"{name}_proj".replace("_", "\\_"), Rect(70, 26 + 80 * n, 80, 30)) for n, name in enumerate("qkv")
    ]
    for part in maps:
        arrow(drawing, x.right, part.left, via=[] if part is maps[1] else [(50, 121), (50, part.centre[1])])
    turns = [box(drawing, "rotate", Rect(184, 26 + 80 * n, 80, 30), tone="query") for n in range(2)]
    for part, turn in zip(maps, turns, strict=False):
        arrow(drawing, part.right, turn.left)
    rows = [_cache_row(drawing, (320, 109 + 80 * n), 24) for n in range(2)]
    drawing.text((380, 86), "cache: *P* old, 1 new", size=SMALL, tone="key")
    drawing.text((380, 147), "keys, rotated", size=SMALL, tone="key")
    drawing.text((380, 220), "values", size=SMALL, tone="key")
    arrow(drawing, turns[1].right, rows[0].left)
    arrow(drawing, maps[2].right, rows[1].left)
    attend = box(drawing, "attention", Rect(478, 91, 108, 60), note="*H* share *G*", tone="query")
    arrow(drawing, turns[0].right, attend.top, via=[(532, 41)])
    arrow(drawing, rows[0].right, attend.left, tone="key")
    arrow(drawing, rows[1].right, attend.bottom, via=[(532, 201)], tone="key")
    out = box(drawing, "o\\_proj", Rect(606, 106, 70, 30))
    arrow(drawing, attend.right, out.left)
    arrow(drawing, out.right, (700, 121))
    _narrow_cached_attention(narrow)
    return drawing


def _narrow_cached_attention(drawing: Drawing) -> None:
    x = chip(drawing, "x", (175, 18), tone="query")
    middles = (56, 175, 294)
    maps = [
        box(drawing, f"{name}\\_proj", Rect(middle - 42, 56, 84, 30))
        for name, middle in zip("qkv", middles, strict=True)
    ]
    for part in maps:
        arrow(drawing, x.bottom, part.top, via=[] if part is maps[1] else [(175, 44), (part.centre[0], 44)])
    turns = [box(drawing, "rotate", Rect(middle - 42, 112, 84, 30), tone="query") for middle in middles[:2]]
    for part, turn in zip(maps, turns, strict=False):
        arrow(drawing, part.bottom, turn.top)
    rows = [_cache_row(drawing, (middle - 50, 182), 20) for middle in middles[1:]]
    arrow(drawing, turns[1].bottom, rows[0].top)
    arrow(drawing, maps[2].bottom, rows[1].top)
    drawing.text((175, 222), "keys, rotated", size=SMALL, tone="key")
    drawing.text((294, 222), "values", size=SMALL, tone="key")
    drawing.text((56, 194), "cache", size=SMALL, tone="key")
    attend = box(drawing, "attention", Rect(105, 272, 140, 60), note="*H* share *G*", tone="query")
    arrow(drawing, turns[0].bottom, (105, 302), via=[(20, 160), (20, 302)])
    arrow(drawing, (175, 234), attend.top, tone="key")
    arrow(drawing, (294, 234), attend.right, via=[(294, 302)], tone="key")
    out = box(drawing, "o\\_proj", Rect(133, 362, 84, 30))
    arrow(drawing, attend.bottom, out.top)
    arrow(drawing, out.bottom, (175, 424))


def _cache_row(drawing: Drawing, corner: Point, cell: float) -> Rect:
    """Four cells that were there and a new one, which is solid."""
    for n in range(5):
        where = Rect(corner[0] + n * cell, corner[1], cell, 24)
        drawing.rect(where, tone="key", radius=2, wash=1 if n == 4 else 0.15, stroke=1)
    return Rect(corner[0], corner[1], 5 * cell, 24)


def prefill() -> Drawing:
    """Draw how often the weights are read: once for all tokens of a prompt, and once for each token that is written.

    Returns:
        The drawing: two pictures beside each other on a page, below each other on a phone.
    """
    parts = [_reading("prefill: weights read once", 4, 1), _reading("decode: once per token", 4, 4)]
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


# A prompt's continuation as a small model drafts it, and what the large model would rather say in place of the last word.
DRAFT, CORRECTION = ("Lyon", "leaves", "at", "ten"), "six"


def speculation() -> Drawing:
    """Draw speculative decoding: a small model drafts, and the large one checks all words of the draft in one pass.

    Returns:
        The drawing: three rows.
    """
    narrow = Drawing(350, 218)
    drawing = Drawing(700, 176, narrow=narrow)
    _speculation(drawing, first=278, step=110, rows=(22, 88, 154))
    _speculation(narrow, first=48, step=84, rows=(46, 108, 170))
    for on, anchor, notes in (
        (drawing, "start", ((8, 22), (8, 154))),
        (narrow, "middle", ((175, 16), (175, 202))),
    ):
        on.text(notes[0], "small model drafts, word by word", size=SMALL, tone="muted", anchor=anchor)  # type: ignore[arg-type]
        on.text(notes[1], "three accepted, one replaced", size=SMALL, tone="muted", anchor=anchor)  # type: ignore[arg-type]
    return drawing


def _speculation(drawing: Drawing, *, first: float, step: float, rows: Sequence[float]) -> None:
    middles = [first + step * n for n in range(len(DRAFT))]
    drafted = [chip(drawing, word, (x, rows[0]), size=SMALL, height=26) for word, x in zip(DRAFT, middles, strict=True)]
    for before, after in pairwise(drafted):
        arrow(drawing, before.right, after.left, tone="muted")
    where = Rect(middles[0] - 34, rows[1] - 16, middles[-1] - middles[0] + 68, 32)
    weights = box(drawing, "large model checks all in one pass", where, tone="key", size=SMALL)
    for word, said in zip(drafted, (*DRAFT[:-1], CORRECTION), strict=True):
        x = word.centre[0]
        arrow(drawing, word.bottom, (x, weights.top[1]))
        tone: Tone = "query" if said == CORRECTION else "key"
        checked = chip(drawing, said, (x, rows[2]), tone=tone, size=SMALL, height=26)
        arrow(drawing, (x, weights.bottom[1]), checked.top, tone="key")


# The pages that hold two texts, in order, and how many of their places are in use. Page 3 belongs to both.
PAGE_SIZE, PAGES = 4, 8
PAGE_TABLES: dict[str, tuple[tuple[int, int], ...]] = {"A": ((3, 4), (1, 4), (5, 2)), "B": ((3, 4), (6, 3))}


def paged_cache() -> Drawing:
    """Draw a paged cache: each text has a table of page numbers, and two texts share the page of their common beginning.

    Returns:
        The drawing: tables above, memory below; on a phone without arrows.
    """
    narrow = Drawing(350, 312)
    drawing = Drawing(700, 190, narrow=narrow)
    memory: dict[int, Point] = {page: (30 + 82 * page, 132) for page in range(PAGES)}
    _pages_of_texts(drawing, {"A": (30, 32), "B": (440, 32)}, memory, arrows=True)
    small: dict[int, Point] = {page: (14 + 82 * (page % 4), 202 + 62 * (page // 4)) for page in range(PAGES)}
    _pages_of_texts(narrow, {"A": (14, 32), "B": (14, 112)}, small, arrows=False)
    narrow.text((175, 184), "memory, in pages of 4 tokens", size=SMALL)
    return drawing


def _pages_of_texts(drawing: Drawing, texts: dict[str, Point], memory: dict[int, Point], *, arrows: bool) -> None:
    owners = {page: [name for name, table in PAGE_TABLES.items() if page in dict(table)] for page in range(PAGES)}
    filled = {page: used for table in PAGE_TABLES.values() for page, used in table}
    for page, corner in memory.items():
        tone: Tone = {"A": "query", "B": "key"}.get("".join(owners[page]), "ink")  # type: ignore[assignment]
        _page(drawing, corner, filled.get(page, 0), tone)
        drawing.text((corner[0] + 36, corner[1] + 38), f"page {page}", size=SMALL, tone="muted")
    for name, (x, y) in texts.items():
        tokens = sum(used for _, used in PAGE_TABLES[name])
        drawing.text((x, y - 18), f"text {name}, {tokens} tokens", size=SMALL, bold=True, anchor="start")
        for number, (page, used) in enumerate(PAGE_TABLES[name]):
            corner = (x + 82 * number, y)
            shared: Tone = "ink" if len(owners[page]) > 1 else "query" if name == "A" else "key"
            _page(drawing, corner, used, shared)
            if arrows:
                target = (memory[page][0] + (22 if name == "A" else 50), memory[page][1])
                arrow(drawing, (corner[0] + 36, corner[1] + 24), target, tone="muted")
            else:
                drawing.text((corner[0] + 36, corner[1] + 38), f"page {page}", size=SMALL, tone="muted")


def _page(drawing: Drawing, corner: Point, used: int, tone: Tone) -> None:
    for n in range(PAGE_SIZE):
        where = Rect(corner[0] + 18 * n, corner[1], 18, 24)
        drawing.rect(where, tone=tone if n < used else "muted", radius=2, wash=0.4 if n < used else 0, stroke=0.8)
