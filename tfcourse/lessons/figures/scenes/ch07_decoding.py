"""The drawings of chapter 07: one step of writing, the tree of texts, one cut per family of filters, and a typical pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tfcourse.lessons.figures.boxes import box, chip
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow

# One step: logits of five tokens, after a temperature of 2, after a filter that keeps three, and the probabilities of that.
_LOGITS = (3.2, 2.4, 1.6, -1.0, -2.2)
_KEPT = 3
_STAGES = ("logits", "temperature 2", "top-k 3", "softmax")


def one_step() -> Drawing:
    """Draw one step of writing: text, logits, samplers, softmax, and one token that is drawn.

    Returns:
        The drawing: left to right on a page, from top to bottom on a phone.
    """
    narrow = Drawing(350, 640)
    box(narrow, "text so far", Rect(100, 8, 150, 36))
    arrow(narrow, (175, 44), (175, 66))
    for i in range(len(_STAGES)):
        top = 68 + 124 * i
        _draw_stage(narrow, i, Rect(85, top, 180, 100))
        arrow(narrow, (175, top + 100), (175, top + 122))
    token = chip(narrow, "one token", (175, 582), tone="query")
    _draw_way_back(narrow, [token.right, (320, 582), (320, 26)], (252, 26))
    narrow.text((175, 622), "appended to the text, and again", size=SMALL, tone="muted")

    drawing = Drawing(760, 220, narrow=narrow)
    text = box(drawing, "text\nso far", Rect(4, 62, 70, 56))
    before: Point = text.right
    for i in range(len(_STAGES)):
        stage = Rect(98 + 140 * i, 36, 118, 108)
        arrow(drawing, before, stage.left)
        _draw_stage(drawing, i, stage)
        before = stage.right
    token = chip(drawing, "one token", (708, 90), tone="query")
    arrow(drawing, before, token.left)
    _draw_way_back(drawing, [token.bottom, (708, 176), (39, 176)], text.bottom)
    drawing.text(
        (374, 196), "the token is appended to the text, and the model is called again", size=SMALL, tone="muted"
    )
    drawing.text((157, 16), "the model", size=SMALL, tone="muted")
    drawing.text((437, 16), "ours to decide", size=SMALL, tone="muted")
    return drawing


def _draw_stage(drawing: Drawing, stage: int, where: Rect) -> None:
    """Bars of five tokens in a box: logits around a zero line, or probabilities; a cross for an excluded token."""
    tone: Tone = "key" if stage == 0 else "ink"
    drawing.rect(where, tone=tone, wash=0.06)
    drawing.text((where.x + where.width / 2, where.y + 14), _STAGES[stage], size=SMALL, bold=True)
    logits = [z / (1 if stage == 0 else 2) for z in _LOGITS]
    exponentials = [math.exp(z) for z in logits[:_KEPT]]
    last = stage == len(_STAGES) - 1
    heights = [70 * e / sum(exponentials) for e in exponentials] if last else [11 * z for z in logits]
    zero = where.y + where.height - (14 if last else 36)
    width = (where.width - 24) / len(_LOGITS)
    drawing.path(f"M{where.x + 8} {zero}L{where.x + where.width - 8} {zero}", tone="muted", stroke=1)
    for i in range(len(_LOGITS)):
        x = where.x + 12 + i * width
        if stage >= 2 and i >= _KEPT:
            drawing.text((x + width / 2 - 2, zero - 8), "×" if not last else "0", size=SMALL, tone="muted")
            continue
        height = heights[i]
        bar = Rect(x, zero - max(height, 0), width - 4, abs(height))
        drawing.rect(bar, tone="key", radius=1, wash=0.75, stroke=0)


def _draw_way_back(drawing: Drawing, points: list[Point], end: Point) -> None:
    arrow(drawing, points[0], end, via=points[1:], tone="query")


# Where the nodes of the tree stand: text, place of its parent, probability of the step, and the probability of a text that has ended.
_NODES = (
    ("start", None, "", (0, 1)),
    ("A", 0, "0.5", (1, 0)),
    ("B", 0, "0.2", (1, 2)),
    ("C", 0, "0.2", (1, 3)),
    ("∎", 0, "0.1", (1, 4)),
    ("B", 1, "0.4", (2, 0)),
    ("C", 1, "0.3", (2, 1)),
    ("∎", 1, "0.2", (2, 2)),
    ("C", 5, "0.4", (3, 0)),
    ("B", 6, "0.6", (3, 1)),
    ("∎", 8, "0.6", (4, 0)),
    ("∎", 9, "0.6", (4, 1)),
)
_GREEDY, _BETTER, _BEST = (1, 5, 8, 10), (6, 9, 11), (4, 7)
_TOTALS = {10: "0.048", 11: "0.054", 7: "0.10", 4: "0.10"}


def search_tree() -> Drawing:
    """Draw the tree of texts of the lecture's table, with the greedy way and the better ones.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = _tree(350, pitch=70, left=26, row=58, size=SMALL)
    return _tree(640, pitch=130, left=50, row=58, size=15, narrow=narrow)


def _tree(
    width: float, *, pitch: float, left: float, row: float, size: float, narrow: Drawing | None = None
) -> Drawing:
    drawing = Drawing(width, 300, narrow=narrow)
    places: list[Rect] = []
    for i, (token, parent, share, (column, line)) in enumerate(_NODES):
        at = (left + pitch * column, 28 + row * line)
        tone: Tone = "query" if i in _GREEDY else "key" if i in (*_BETTER, *_BEST) else "ink"
        places.append(chip(drawing, token, at, tone=tone, size=size))
        if parent is None:
            continue
        start, end = places[parent].right, places[i].left
        bend = start[0] + 0.3 * (end[0] - start[0])
        arrow(drawing, start, end, via=[] if start[1] == end[1] else [(bend, start[1]), (bend, end[1])], tone=tone)
        drawing.text((end[0] - 16, end[1] - 11), share, size=SMALL - 1, tone="muted")
        if i in _TOTALS:
            drawing.text(
                (places[i].right[0] + 6, at[1] + (24 if narrow is None else 0)),
                _TOTALS[i],
                size=SMALL,
                anchor="start" if narrow else "middle",
                bold=True,
            )
    return drawing


Family = Literal["rank", "mass", "threshold", "entropy"]
# The lesson's six tokens, and which of them a filter of each family keeps.
_P = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
_CUTS: dict[Family, tuple[str, tuple[int, ...]]] = {
    "rank": ("top-k 3", (0, 1, 2)),
    "mass": ("top-p 0.85", (0, 1, 2, 3)),
    "threshold": ("min-p 0.5", (0, 1)),
    "entropy": ("typical 0.3", (1, 2)),
}
FAMILY_ALTS: dict[Family, str] = {
    "rank": "Six bars, 0.40 to 0.04, with an upright line after the third. After the cut: 0.5, 0.312 and 0.188; three tokens have 0.",
    "mass": "Six bars for the running sums 0.40, 0.65, 0.80, 0.90, 0.96 and 1.00, with a line at 0.85, which the fourth crosses. "
    "After the cut: 0.444, 0.278, 0.167 and 0.111; two tokens have 0.",
    "threshold": "Six bars, 0.40 to 0.04, with a level line at 0.20. After the cut: 0.615 and 0.385; four tokens have 0.",
    "entropy": "Six bars of surprisal, 0.92 to 3.22 nats, with a level line at the entropy, 1.53. After the cut: the second token "
    "has 0.625 and the third 0.375; the first and the last three have 0.",
}


def cut_by_rank() -> Drawing:
    """Draw what a filter keeps that cuts by rank: the three largest of six probabilities."""
    return _cut("rank")


def cut_by_mass() -> Drawing:
    """Draw what a filter keeps that cuts by mass: the tokens until a running sum crosses 0.85."""
    return _cut("mass")


def cut_by_threshold() -> Drawing:
    """Draw what a filter keeps that cuts by threshold: the tokens with half the probability of the best."""
    return _cut("threshold")


def cut_by_entropy() -> Drawing:
    """Draw what a filter keeps that cuts by entropy: the two tokens whose surprisal is nearest to the entropy."""
    return _cut("entropy")


def _cut(family: Family) -> Drawing:
    """Panels side by side on a page, one below the other on a phone: what a filter compares with, and the probabilities after it."""
    narrow = Drawing(350, 400)
    _draw_cut(narrow, family, Rect(8, 4, 334, 180))
    _draw_after(narrow, family, Rect(8, 204, 334, 180))
    drawing = Drawing(700, 200, narrow=narrow)
    _draw_cut(drawing, family, Rect(4, 6, 320, 184))
    arrow(drawing, (330, 98), (368, 98))
    _draw_after(drawing, family, Rect(374, 6, 320, 184))
    return drawing


def _draw_cut(drawing: Drawing, family: Family, where: Rect) -> None:
    entropy = -sum(p * math.log(p) for p in _P)
    values: Sequence[float] = _P
    title, line, label = "before: probability", None, ""
    if family == "mass":
        values = [sum(_P[: i + 1]) for i in range(len(_P))]
        title, line, label = "before: running sum", 0.85, "0.85"
    elif family == "threshold":
        line, label = 0.2, "0.5 · max"
    elif family == "entropy":
        values = [-math.log(p) for p in _P]
        title, line, label = "before: surprisal, in nats", entropy, f"H = {entropy:.2f}"
    _draw_bars(drawing, where, title, values, _CUTS[family][1])
    ground, height, left, width = _frame(where)
    if line is not None:
        y = ground - height * line / max(values)
        drawing.path(f"M{left} {y}L{left + 6 * width} {y}", tone="query", stroke=1.6, dashed=True)
        drawing.text((left + 6 * width + 4, y), label, size=SMALL, anchor="start", tone="query")
    else:
        x = left + 3 * width - 3
        drawing.path(f"M{x} {ground + 4}L{x} {ground - height}", tone="query", stroke=1.6, dashed=True)
        drawing.text((x + 6, ground - height + 8), "k = 3", size=SMALL, anchor="start", tone="query")


def _draw_after(drawing: Drawing, family: Family, where: Rect) -> None:
    name, kept = _CUTS[family]
    total = sum(_P[i] for i in kept)
    values = [_P[i] / total if i in kept else 0.0 for i in range(len(_P))]
    _draw_bars(drawing, where, f"after {name}", values, kept, ".3g")


def _frame(where: Rect) -> tuple[float, float, float, float]:
    """The ground, the largest height, the left end and the distance of a panel's bars."""
    return where.y + where.height - 40, where.height - 76, where.x + 12, (where.width - 92) / len(_P)


def _draw_bars(
    drawing: Drawing, where: Rect, title: str, values: Sequence[float], kept: Sequence[int], form: str = ".2f"
) -> None:
    drawing.rect(where, wash=0.03)
    drawing.text((where.x + 12, where.y + 15), title, size=SMALL, anchor="start", bold=True)
    ground, height, left, width = _frame(where)
    for i, value in enumerate(values):
        x, tall = left + i * width, height * value / max(values)
        drawing.rect(
            Rect(x, ground - tall, width - 6, tall), tone="key", radius=1, wash=0.75 if i in kept else 0.2, stroke=0
        )
        middle = x + (width - 6) / 2
        drawing.text((middle, ground + 12), "ABCDEF"[i], size=SMALL)
        drawing.text((middle, ground + 28), f"{value:{form}}" if value else "0", size=SMALL - 1)


_PIPELINE = (
    ("penalties", "DRY"),
    ("cheap cut", "top-k"),
    ("filter", "top-p, min-p"),
    ("XTC", ""),
    ("temperature", ""),
)


def pipeline() -> Drawing:
    """Draw the usual order of samplers, from the logits to a token.

    Returns:
        The drawing: left to right on a page, from top to bottom on a phone.
    """
    narrow = Drawing(350, 470)
    narrow.text((175, 14), "logits", size=SMALL, tone="muted")
    arrow(narrow, (175, 24), (175, 42))
    for i, (label, note) in enumerate(_PIPELINE):
        box(narrow, label, Rect(95, 44 + 76 * i, 160, 52), tone="key", note=note)
        arrow(narrow, (175, 96 + 76 * i), (175, 118 + 76 * i))
    chip(narrow, "softmax, draw", (175, 438), tone="query")
    drawing = Drawing(760, 90, narrow=narrow)
    drawing.text((24, 42), "logits", size=SMALL, tone="muted")
    before: Point = (46, 42)
    for i, (label, note) in enumerate(_PIPELINE):
        place = box(drawing, label, Rect(64 + 120 * i, 14, 102, 56), tone="key", size=14, note=note)
        arrow(drawing, before, place.left)
        before = place.right
    token = chip(drawing, "draw", (716, 42), tone="query")
    arrow(drawing, before, token.left)
    return drawing
