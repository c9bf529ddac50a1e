"""The drawings of chapter 12: rotated vectors, offsets, biases, where positions enter, pairs of columns, and what training has shown."""

from __future__ import annotations

import math

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arc, arrow
from tfcourse.lessons.figures.matrices import matrix

TONES: tuple[Tone, Tone] = ("query", "key")
QUERY, KEY = (2.0, 0.0), (2.0, 1.0)
FREQUENCY = math.pi / 6
"""The query, the key and the frequency that the lesson works out by hand."""
SENTENCE = ("Ana", "watered", "the", "dry", "fern")


def hands() -> Drawing:
    """Draw the lesson's query and key at two pairs of positions, rotated to where the rotation takes them.

    Returns:
        The drawing: two dials beside each other on a page, below each other on a phone.
    """
    parts = [_dial("positions 3 and 1", 3, 1), _dial("positions 7 and 5", 7, 5)]
    narrow = Drawing(350, 484)
    drawing = Drawing(700, 238, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 30 + 340 * number, 0)
        narrow.place(part, 25, 244 * number)
    return drawing


def _dial(title: str, query: int, key: int) -> Drawing:
    drawing = Drawing(300, 236)
    centre, radius = (150.0, 134.0), 78.0
    drawing.text((150, 14), title, bold=True)
    drawing.circle(centre, radius, tone="muted")
    longest = max(math.hypot(*QUERY), math.hypot(*KEY))
    angles = []
    for position, (x, y), tone, name in ((query, QUERY, "query", "query"), (key, KEY, "key", "key")):
        angle = math.atan2(y, x) + position * FREQUENCY
        length = 0.95 * radius * math.hypot(x, y) / longest
        arrow(drawing, centre, _point(centre, length, angle), tone=tone, stroke=2.6)  # type: ignore[arg-type]
        drawing.text(_point(centre, 1.27 * radius, angle), name, size=SMALL, tone=tone)  # type: ignore[arg-type]
        angles.append(angle)
    _sector(drawing, centre, 30, angles[1], angles[0])
    middle = (angles[0] + angles[1]) / 2
    drawing.text(_point(centre, 47, middle), f"{math.degrees(angles[0] - angles[1]):.0f}\u00b0", size=SMALL)
    return drawing


def _point(centre: tuple[float, float], radius: float, angle: float) -> tuple[float, float]:
    """The point of a circle at an angle in radians, counterclockwise from the right."""
    return centre[0] + radius * math.cos(angle), centre[1] - radius * math.sin(angle)


def _sector(drawing: Drawing, centre: tuple[float, float], radius: float, start: float, end: float) -> None:
    """Draw an arc of a circle, counterclockwise from one angle to another."""
    (x1, y1), (x2, y2) = _point(centre, radius, start), _point(centre, radius, end)
    large = int(end - start > math.pi)
    drawing.path(f"M{x1:.1f} {y1:.1f}A{radius} {radius} 0 {large} 0 {x2:.1f} {y2:.1f}", stroke=2.2)


def biases() -> Drawing:
    """Draw what ALiBi adds to the scores of five words, for the two steepest of eight heads.

    Returns:
        The drawing: two tables beside each other on a page, below each other on a phone.
    """
    narrow = Drawing(350, 452)
    drawing = Drawing(700, 222, narrow=narrow)
    for number, slope in enumerate((0.5, 0.25)):
        part = Drawing(340, 222)
        rows = [
            [f"{slope * (j - i) + 0.0:g}".replace("-", "\u2212") if j <= i else "" for j in range(len(SENTENCE))]
            for i in range(len(SENTENCE))
        ]
        part.text((205, 12), f"slope 1/{1 / slope:g}", bold=True)
        matrix(part, rows, (72, 56), cell=(53, 30), rows=SENTENCE, columns=SENTENCE, tone="key")
        drawing.place(part, 350 * number, 0)
        narrow.place(part, 0, 230 * number)
    return drawing


def dials() -> Drawing:
    """Draw which angles each of eight pairs has reached at a distance of 63.

    Returns:
        The drawing: eight dials in a row on a page, in two rows on a phone.
    """
    narrow = Drawing(350, 240)
    drawing = Drawing(700, 122, narrow=narrow)
    for pair in range(8):
        part = Drawing(86, 120)
        centre, radius = (43.0, 50.0), 32.0
        covered = 63 * 10_000.0 ** (-pair / 8)
        part.circle(centre, radius, tone="muted")
        if covered >= 2 * math.pi:
            part.circle(centre, radius, tone="key", stroke=5)
        else:
            tip = _point(centre, radius, covered)
            large = int(covered > math.pi)
            part.path(
                f"M{centre[0] + radius} {centre[1]}A{radius} {radius} 0 {large} 0 {tip[0]:.1f} {tip[1]:.1f}",
                tone="key",
                stroke=5,
            )
        part.text(centre, f"{pair}", bold=True)
        turns = covered / (2 * math.pi)
        part.text((43, 106), f"{turns:.1f} turns" if turns >= 1 else f"{360 * turns:.0f}\u00b0", size=SMALL)
        drawing.place(part, 6 + 86 * pair, 0)
        narrow.place(part, 3 + 86 * (pair % 4), 120 * (pair // 4))
    return drawing


def offsets() -> Drawing:
    """Draw the offsets between the words of a sentence, clipped at two.

    Returns:
        The drawing.
    """
    clip = 2
    rows = [[max(-clip, min(clip, j - i)) for j in range(len(SENTENCE))] for i in range(len(SENTENCE))]
    narrow = Drawing(350, 200)
    drawing = Drawing(700, 200, narrow=narrow)
    matrix(drawing, rows, (270, 40), cell=(64, 28), rows=SENTENCE, columns=SENTENCE, tone="key")
    matrix(narrow, rows, (86, 40), cell=(50, 28), rows=SENTENCE, columns=[word[:5] for word in SENTENCE], tone="key")
    return drawing


def entrances() -> Drawing:
    """Draw where each kind of positions enters a layer of attention.

    Returns:
        The drawing: five boxes in a row with what enters them, in a column on a phone.
    """
    steps = [
        ("embedding", "sinusoids,\nlearned rows"),
        ("queries, keys", "RoPE"),
        ("scores", "Shaw's vectors,\nT5's buckets, ALiBi"),
        ("weights", ""),
        ("output", "Shaw's vectors"),
    ]
    narrow = Drawing(350, 340)
    drawing = Drawing(700, 150, narrow=narrow)
    before = lower = None
    for number, (name, enters) in enumerate(steps):
        part = box(drawing, name, Rect(6 + 140 * number, 100, 126, 34), tone="query" if enters else "ink")
        below = box(narrow, name, Rect(14, 10 + 66 * number, 130, 34), tone="query" if enters else "ink")
        if before is not None and lower is not None:
            arrow(drawing, before.right, part.left)
            arrow(narrow, lower.bottom, below.top)
        if enters:
            drawing.text((part.centre[0], 34), enters, size=SMALL, tone="key")
            arrow(drawing, (part.centre[0], 60), part.top, tone="key")
            narrow.text((250, below.centre[1]), enters, size=SMALL, tone="key")
            arrow(narrow, (180, below.centre[1]), below.right, tone="key")
        before, lower = part, below
    return drawing


def layer() -> Drawing:
    """Draw attention whose queries and keys are rotated between their projections and the scores.

    Returns:
        The drawing: from left to right on a page, from the top down on a phone.
    """
    narrow = Drawing(350, 300)
    drawing = Drawing(700, 176, narrow=narrow)

    x = chip(drawing, "*x*", (24, 86))
    query, key, value = (
        box(drawing, f"*W*_{name.upper()}", Rect(86, 12 + 58 * row, 90, 32)) for row, name in enumerate("qkv")
    )
    for part in (query, key, value):
        via = [] if part is key else [(60, x.centre[1]), (60, part.centre[1])]
        arrow(drawing, x.right, part.left, via=via)
    turns = [
        box(drawing, "rotate", Rect(210, part.y, 120, 32), tone=tone)
        for part, tone in zip((query, key), TONES, strict=True)
    ]
    scores = box(drawing, "scores, softmax", Rect(378, 41, 130, 32))
    for part, turn in zip((query, key), turns, strict=True):
        arrow(drawing, part.right, turn.left)
        arrow(drawing, turn.right, scores.left, via=[(354, turn.centre[1]), (354, scores.centre[1])])
    read = operation(drawing, "\u00b7", (548, value.centre[1]))
    arrow(drawing, scores.right, read.top, via=[(548, scores.centre[1])], tone="key")
    arrow(drawing, value.right, read.left)
    arrow(drawing, read.right, box(drawing, "*W*_O", Rect(596, value.y, 90, 32)).left)

    x = chip(narrow, "*x*", (175, 18))
    query, key, value = (
        box(narrow, f"*W*_{name.upper()}", Rect(8 + 117 * column, 66, 100, 32)) for column, name in enumerate("qkv")
    )
    for part in (query, key, value):
        arrow(narrow, x.bottom, part.top, via=[] if part is key else [(175, 49), (part.centre[0], 49)])
    turns = [
        box(narrow, "rotate", Rect(part.x - 4, 124, 108, 32), tone=tone, size=SMALL)
        for part, tone in zip((query, key), TONES, strict=True)
    ]
    scores = box(narrow, "scores, softmax", Rect(50, 186, 134, 32))
    for part, turn in zip((query, key), turns, strict=True):
        arrow(narrow, part.bottom, turn.top)
        arrow(narrow, turn.bottom, (turn.centre[0], scores.y))
    read = operation(narrow, "\u00b7", (value.centre[0], 202))
    arrow(narrow, scores.right, read.left, tone="key")
    arrow(narrow, value.bottom, read.top)
    arrow(narrow, read.bottom, box(narrow, "*W*_O", Rect(value.x, 250, 100, 32)).top)
    return drawing


def pairings() -> Drawing:
    """Draw which of eight columns make a pair in both layouts.

    Returns:
        The drawing: two rows of columns with arcs between partners.
    """
    narrow = Drawing(350, 250)
    drawing = Drawing(700, 130, narrow=narrow)
    for number, (name, pairs) in enumerate(
        (("interleaved", [(2 * j, 2 * j + 1) for j in range(4)]), ("half-split", [(j, j + 4) for j in range(4)]))
    ):
        part = Drawing(330, 122)
        part.text((165, 112), name, bold=True)
        middles = []
        for column in range(8):
            x = 25 + 40 * column
            chip(
                part,
                f"{column}",
                (x, 76),
                tone="key" if column in {a for a, _ in pairs} else "ink",
                size=SMALL,
                height=24,
            )
            middles.append((x, 62))
        for a, b in pairs:
            arc(part, middles[a], middles[b], weight=0.08, rise=min(50, 14 + 12 * (b - a)))
        drawing.place(part, 10 + 350 * number, 0)
        narrow.place(part, 10, 126 * number)
    return drawing


def stretches() -> Drawing:
    """Draw the positions of the training text, of a text four times as long, and of the same text interpolated.

    Returns:
        The drawing.
    """
    narrow = Drawing(350, 190)
    drawing = Drawing(700, 190, narrow=narrow)
    for canvas, left, step in ((drawing, 190.0, 30.0), (narrow, 96.0, 15.4)):
        window = 4 * step
        for row, (name, gap, count) in enumerate(
            (("trained", step, 4), ("longer text", step, 16), ("interpolated", step / 4, 16))
        ):
            y = 34.0 + 56 * row
            canvas.text((left - 14, y), name, size=SMALL, anchor="end")
            canvas.rect(Rect(left - 4, y - 16, window, 32), tone="key", wash=0.12, stroke=0)
            for mark in range(count):
                x = left + gap * mark
                tone = "key" if gap * mark < window else "query"
                canvas.path(f"M{x:.1f} {y - 10}v20", tone=tone, stroke=2)  # type: ignore[arg-type]
        canvas.text((left - 4, 180), "shaded: range of the training text", size=SMALL, tone="key", anchor="start")
    return drawing


def patches() -> Drawing:
    """Draw which pairs of a head are rotated by the row of a patch, and which by its column.

    Returns:
        The drawing: a grid of patches and the columns of a head.
    """
    narrow = Drawing(350, 268)
    drawing = Drawing(700, 136, narrow=narrow)
    for canvas, (left, top), (start, base) in ((drawing, (60, 8), (330, 62)), (narrow, (96, 8), (28, 190))):
        for row in range(3):
            for column in range(4):
                here = (row, column) == (1, 2)
                where = Rect(left + 46 * column, top + 40 * row, 42, 36)
                canvas.rect(where, tone="key" if here else "ink", wash=0.13 if here else 0, radius=4)
                canvas.text(where.centre, f"{row}, {column}", size=SMALL, bold=here)
        middles = []
        for column in range(8):
            x = start + 42 * column
            chip(canvas, f"{column}", (x, base + 24), tone="query" if column < 4 else "key", size=SMALL, height=24)
            middles.append((x, base + 10))
        for pair in range(4):
            tone = TONES[pair // 2]
            arc(canvas, middles[2 * pair], middles[2 * pair + 1], weight=0.08, rise=26, tone=tone)
        canvas.text((start + 63, base + 58), "by the row, 1", size=SMALL, tone="query")
        canvas.text((start + 231, base + 58), "by the column, 2", size=SMALL, tone="key")
    return drawing
