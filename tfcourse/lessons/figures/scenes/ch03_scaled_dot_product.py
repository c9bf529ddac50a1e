"""The drawings of chapter 03: attention as a product of matrices, and who may look at whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tfcourse.lessons.figures.boxes import chip
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Grid, Point
from tfcourse.lessons.figures.lines import arc, arrow, bracket, curve
from tfcourse.lessons.figures.matrices import frame, mask, matrix

Matrix = Sequence[Sequence[float]]

READINGS = ("wind", "swell", "glass", "haze")
PAGES = ("gale", "breeze", "calm")
KEEPERS = ("Carrow\nHead", "the\nisland")

ENGLISH = ("the", "fern", "is", "dry")
GERMAN = ("der", "Farn", "ist", "dürr")


def attention_in_matrices(queries: Matrix, keys: Matrix, values: Matrix) -> Drawing:
    """Draw scores, softmax and blend as matrices, each result where its row and its column meet.

    Args:
        queries: (T, Dh), in units of ln 2; they are integers in the lesson.
        keys: (S, Dh), of which the readings and the pages are named as in the lesson.
        values: (S, Dv).

    Returns:
        The drawing: left to right on a page, from top to bottom on a phone.
    """
    steps = _Steps.of(queries, keys, values)
    narrow = Drawing(350, 668)
    _draw_scores(narrow, steps, (60, 194))
    weights = _draw_blend(narrow, steps, (60, 526), rows=KEEPERS)
    x, _ = weights.top
    arrow(narrow, (x, 354), (x, 492))
    narrow.text((x - 12, 423), "2. Weigh:\nsoftmax of\neach row", size=SMALL, anchor="end", tone="muted")

    drawing = Drawing(700, 338, narrow=narrow)
    scores = _draw_scores(drawing, steps, (60, 194))
    weights = _draw_blend(drawing, steps, (452, 194))
    (x, y), (end, _) = scores.right, weights.left
    arrow(drawing, (x + 12, y), (end - 12, y))
    drawing.text(((x + end) / 2, y - 17), "2. Weigh:", size=SMALL, tone="muted")
    drawing.text(((x + end) / 2, y + 27), "softmax of\neach row", size=SMALL, tone="muted")
    return drawing


def three_uses() -> Drawing:
    """Draw self-, cross- and causal attention beside each other: queries, keys and the mask.

    Returns:
        The drawing: three panels beside each other on a page, below each other on a phone.
    """
    panels = [
        _use("Self-attention", ENGLISH, ENGLISH, "A sentence asks itself."),
        _use("Cross-attention", ENGLISH[:3], GERMAN, "A sentence asks another one."),
        _use("Causal self-attention", ENGLISH, ENGLISH, "No word asks ahead.", causal=True),
    ]
    narrow = Drawing(350, 3 * 312 - 20)
    drawing = Drawing(700, 290, narrow=narrow)
    for i, panel in enumerate(panels):
        drawing.place(panel, i * (700 - panel.width) / 2, 0)
        narrow.place(panel, 54, 312 * i)
    return drawing


def _use(title: str, queries: Sequence[str], keys: Sequence[str], says: str, *, causal: bool = False) -> Drawing:
    """One panel: the third word of the queries asks, above; all queries and all keys as a mask, below."""
    asker, pitch, left = 2, 46, 42
    crossed = queries != keys
    drawing = Drawing(228, 286)
    middle = left + pitch * len(keys) / 2
    drawing.text((middle, 12), title, bold=True)
    allowed = [[j <= i or not causal for j in range(len(keys))] for i in range(len(queries))]

    def place(j: int, y: float) -> Point:
        return (left + pitch * (j + 0.5), y)

    if crossed:
        tops = [
            chip(drawing, word, place(i, 46), tone="query" if i == asker else "ink", size=SMALL)
            for i, word in enumerate(queries)
        ]
    for j in range(len(keys)):
        end = place(j, 122)
        if crossed:
            curve(drawing, tops[asker].bottom, (end[0], end[1] - 14), weight=0.14)
        elif allowed[asker][j] and j != asker:
            arc(drawing, (place(asker, 0)[0], 108), (end[0], 108), weight=0.14, rise=16 + 0.4 * pitch * abs(asker - j))
    for j, word in enumerate(keys):
        asks = not crossed and j == asker
        tone: Tone = "query" if asks else "key" if allowed[asker][j] else "muted"
        chip(drawing, word, place(j, 122), tone=tone, size=SMALL)
    mask(drawing, allowed, (left, 148), cell=(pitch, 26), rows=queries, query=asker)
    drawing.text((middle, 274), says, size=SMALL, tone="muted")
    return drawing


@dataclass(frozen=True)
class _Steps:
    queries: Matrix
    keys: Matrix
    values: Matrix
    scores: Matrix  # in units of ln 2
    weights: Matrix
    outputs: Matrix

    @classmethod
    def of(cls, queries: Matrix, keys: Matrix, values: Matrix) -> _Steps:
        # Plain Python, so that the drawing stands in a student's notebook before the exercises are solved.
        root = math.sqrt(len(keys[0]))
        scores = [[_dot(q, k) / root for k in keys] for q in queries]
        powers = [[2**score for score in row] for row in scores]
        weights = [[power / sum(row) for power in row] for row in powers]
        outputs = [[_dot(row, column) for column in zip(*values, strict=True)] for row in weights]
        return cls(queries, keys, values, scores, weights, outputs)


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _draw_scores(drawing: Drawing, steps: _Steps, corner: Point) -> Grid:
    """Queries, keys above and to the right of them, and the scores where they meet."""
    keys = list(zip(*steps.keys, strict=True))
    y = corner[1]
    asking = matrix(drawing, steps.queries, corner, cell=(32, 42), name="*Q*", rows=KEEPERS, tone="query")
    right = asking.right[0] + 14
    asked = matrix(
        drawing,
        keys,
        (right, y - 32 - 28 * len(keys)),
        cell=(46, 28),
        name="*K*^⊤",
        rows=READINGS,
        columns=PAGES,
        tone="key",
    )
    scores = matrix(drawing, steps.scores, (right, y), cell=(46, 42), form=".1f")
    drawing.text((asking.centre[0], asking.bottom[1] + 15), "× ln 2", size=SMALL, tone="muted")
    drawing.text((scores.centre[0], scores.bottom[1] + 15), "× ln 2", size=SMALL, tone="muted")
    _show_product(drawing, asking, asked, scores)
    whole = Grid(asking.x, scores.y, scores.at(1, 0)[0] - asking.x, scores.height + 24, 1, 1)
    bracket(drawing, whole, "1. Score: *Q* *K*^⊤ / √*D*_h")
    return scores


def _draw_blend(drawing: Drawing, steps: _Steps, corner: Point, rows: Sequence[str] = ()) -> Grid:
    """Weights, values above and to the right of them, and the outputs where they meet."""
    y = corner[1]
    weights = matrix(drawing, steps.weights, corner, cell=(44, 42), name="*A*", rows=rows, shaded=True)
    right = weights.right[0] + 14
    values = matrix(
        drawing,
        steps.values,
        (right, y - 32 - 28 * len(steps.values)),
        cell=(50, 28),
        form=".1f",
        name="*V*",
        rows=PAGES,
        columns=("waves", "view"),
        tone="key",
    )
    outputs = matrix(drawing, steps.outputs, (right, y), cell=(50, 42), form=".1f")
    _show_product(drawing, weights, values, outputs)
    whole = Grid(weights.x, outputs.y, outputs.at(1, 0)[0] - weights.x, outputs.height + 24, 1, 1)
    bracket(drawing, whole, "3. Blend: *O* = *A* *V*")
    return weights


def _show_product(drawing: Drawing, left: Grid, upper: Grid, result: Grid) -> None:
    """Frame the first row and the first column, and the number that they make."""
    frame(drawing, left.row(0), tone="query")
    frame(drawing, upper.column(0), tone="key")
    frame(drawing, result.cell(0, 0))


def lookup_in_a_book() -> Drawing:
    """Draw a query that asks three pages: each answers to the degree that its key fits, and the answers are blended.

    Returns:
        The drawing.
    """
    narrow = _lookup(350, left=64, pitch=110)
    return _lookup(560, left=130, pitch=150, narrow=narrow)


def _lookup(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 222, narrow=narrow)
    middle = left + pitch
    query = chip(drawing, "tonight’s readings", (middle, 20), tone="query")
    answer = chip(drawing, "3.0 m", (middle, 202), tone="query")
    for i, (page, weight, height) in enumerate(zip(PAGES, (4 / 7, 2 / 7, 1 / 7), ("4.2", "2.1", "0.0"), strict=True)):
        x = left + pitch * i
        key = chip(drawing, page, (x, 96), tone="key")
        curve(drawing, query.bottom, key.top, weight=0.6 * weight)
        value = chip(drawing, f"{height} m", (x, 136))
        curve(drawing, value.bottom, answer.top, weight=0.6 * weight)
        drawing.text((key.right[0] + 6, 96), f"{weight:.2f}", size=SMALL, anchor="start", tone="muted")
    return drawing


def shapes_at_carrow_head() -> Drawing:
    """Draw every matrix of one attention with as many cells as it has numbers in the lesson's example.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 402)
    rows = (
        ("*X*_Q", 2, "*W*_Q", 4, "*Q*", "query"),
        ("*X*_{KV}", 3, "*W*_K", 4, "*K*", "key"),
        ("*X*_{KV}", 3, "*W*_V", 2, "*V*", "key"),
    )
    results = []
    for i, (source, length, weight, width, name, tone) in enumerate(rows):
        middle = 72 + 132.0 * i
        asks: Tone = "query" if tone == "query" else "key"
        _cells(drawing, source, (12, middle), (length, 6), asks)
        _cells(drawing, weight, (124, middle), (6, width), "ink")
        drawing.text((110, middle), "·")
        drawing.text((194, middle), "=")
        results.append(_cells(drawing, name, (208, middle), (length, width), asks))
    queries, keys, values = results
    weights = _cells(drawing, "*A*", (302, 138), (2, 3), "ink")
    arrow(
        drawing,
        (queries.right[0] + 6, queries.right[1]),
        (296, 130),
        via=[(280, queries.right[1]), (280, 130)],
        tone="query",
    )
    arrow(drawing, (keys.right[0] + 6, keys.right[1]), (296, 146), via=[(280, keys.right[1]), (280, 146)], tone="key")
    outputs = _cells(drawing, "*O*", (309, 336), (2, 2), "ink")
    arrow(drawing, (weights.centre[0], weights.bottom[1] + 22), (weights.centre[0], outputs.y - 22))
    arrow(drawing, (values.right[0] + 6, values.right[1]), (outputs.x - 6, values.right[1]), tone="key")
    return drawing


def _cells(drawing: Drawing, name: str, left: Point, shape: tuple[int, int], tone: Tone) -> Grid:
    """A matrix without numbers, its letter above and its shape below."""
    side = 14.0
    empty = [[""] * shape[1] for _ in range(shape[0])]
    grid = matrix(drawing, empty, (left[0], left[1] - side * shape[0] / 2), cell=(side, side), tone=tone)
    x, y = grid.top
    drawing.text((x, y - 10), name, size=SMALL, tone=tone)
    drawing.text((x, grid.bottom[1] + 11), f"({shape[0]}, {shape[1]})", size=SMALL, tone="muted")
    return grid


def online_softmax() -> Drawing:
    """Draw the running sums of the online softmax over two tiles of pages, and how the second one corrects them.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 232)
    tiles = (
        (86, "tile 1", (("calm", "0"), ("breeze", "ln 2")), ("ln 2", "1.5", "2.1")),
        (254, "tile 2", (("gale", "2 ln 2"),), ("2 ln 2", "1.75", "5.25")),
    )
    for x, title, pages, (largest, total, blend) in tiles:
        drawing.text((x, 12), title, size=SMALL, bold=True)
        for i, (page, score) in enumerate(pages):
            at = x + 72 * (i - (len(pages) - 1) / 2)
            chip(drawing, page, (at, 42), tone="key", size=SMALL)
            drawing.text((at, 70), score, size=SMALL, tone="muted")
            arrow(drawing, (at, 82), (at, 110))
        drawing.rect(Grid(x - 52, 110, 104, 84, 1, 1), wash=0.06)
        for line, text in enumerate((f"*m* = {largest}", f"ℓ = {total}", f"*u* = {blend}")):
            drawing.text((x, 130 + 22 * line), text, size=SMALL)
    arrow(drawing, (138, 152), (202, 152), tone="query", stroke=2.6)
    drawing.text((170, 134), "× ½", tone="query")
    arrow(drawing, (306, 152), (346, 152))
    drawing.text((374, 152), "3.0", bold=True)
    drawing.text((374, 134), "*u* / ℓ", size=SMALL, tone="muted")
    drawing.text((170, 216), "a larger score corrects the old sums", size=SMALL, tone="query")
    return drawing


def number_formats() -> Drawing:
    """Draw the bits of three number formats: sign, exponent and fraction.

    Returns:
        The drawing.
    """
    drawing = Drawing(360, 226)
    cell, left = 10.5, 12.0
    formats = (
        ("float32", 8, 23, "up to 3.4 · 10^{38}"),
        ("float16", 5, 10, "up to 65,504"),
        ("bfloat16", 8, 7, "up to 3.4 · 10^{38}"),
    )
    for i, (name, exponent, fraction, most) in enumerate(formats):
        y = 40 + 62.0 * i
        drawing.text((left, y - 16), name, size=SMALL, anchor="start", bold=True)
        drawing.text((348, y - 16), most, size=SMALL, anchor="end", tone="muted")
        for bit in range(1 + exponent + fraction):
            tone: Tone = "ink" if bit == 0 else "query" if bit <= exponent else "key"
            drawing.rect(Grid(left + cell * bit, y, cell, 22, 1, 1), tone=tone, radius=0, wash=0.25)
    for x, text, tone in (
        (12.0, "sign", "ink"),
        (70.0, "exponent: range", "query"),
        (214.0, "fraction: precision", "key"),
    ):
        named: Tone = "ink" if tone == "ink" else "query" if tone == "query" else "key"
        drawing.text((x, 212), text, size=SMALL, anchor="start", tone=named)
    return drawing
