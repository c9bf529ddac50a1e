"""The drawings of chapter 07: what lies between a model and its text, and the tree of texts that a search goes through."""

from __future__ import annotations

from tfcourse.figures.boxes import box, chip
from tfcourse.figures.drawing import SMALL, Drawing, Tone
from tfcourse.figures.geometry import Point, Rect
from tfcourse.figures.lines import arrow

# Shares of seven tokens: as the model gives them, behind a temperature, and behind a filter.
STAGES = (
    ("model", (0.40, 0.22, 0.14, 0.10, 0.07, 0.04, 0.03)),
    ("temperature", (0.27, 0.20, 0.16, 0.13, 0.11, 0.08, 0.05)),
    ("filter", (0.36, 0.26, 0.21, 0.17, 0.0, 0.0, 0.0)),
)


def one_step() -> Drawing:
    """Draw one step of writing: text, model, samplers, and one token that is drawn.

    Returns:
        The drawing: left to right on a page, from top to bottom on a phone.
    """
    narrow = Drawing(350, 560)
    box(narrow, "text so far", Rect(100, 8, 150, 36))
    arrow(narrow, (175, 44), (175, 64))
    for i, (name, shares) in enumerate(STAGES):
        top = 66 + 132 * i
        _draw_stage(narrow, name, shares, Rect(75, top, 200, 108), first=i == 0)
        arrow(narrow, (175, top + 108), (175, top + 130))
    drawn = chip(narrow, "one token, drawn", (175, 478), tone="query")
    _draw_way_back(narrow, [drawn.bottom, (175, 520), (320, 520), (320, 26)], (252, 26))
    narrow.text((175, 540), "behind the text, and again", size=SMALL, tone="muted")

    drawing = Drawing(700, 236, narrow=narrow)
    text = box(drawing, "text\nso far", Rect(4, 62, 84, 56))
    before: Point = text.right
    for i, (name, shares) in enumerate(STAGES):
        stage = Rect(112 + 158 * i, 36, 136, 108)
        arrow(drawing, before, stage.left)
        _draw_stage(drawing, name, shares, stage, first=i == 0)
        before = stage.right
    token = chip(drawing, "one token", (642, 90), tone="query")
    arrow(drawing, before, token.left)
    _draw_way_back(drawing, [token.bottom, (642, 186), (46, 186)], text.bottom)
    drawing.text((344, 204), "the token goes behind the text, and the model is asked again", size=SMALL, tone="muted")
    drawing.text((344, 16), "the model gives numbers; all else is ours to decide", size=SMALL, tone="muted")
    return drawing


def _draw_stage(drawing: Drawing, name: str, shares: tuple[float, ...], where: Rect, *, first: bool) -> None:
    """Bars of seven tokens in a box; those that are excluded are marks on the ground."""
    tone: Tone = "key" if first else "ink"
    drawing.rect(where, tone=tone, wash=0.06)
    ground, width = where.y + where.height - 14, (where.width - 24) / len(shares)
    for i, share in enumerate(shares):
        height = max(2.0, 150 * share)
        drawing.rect(
            Rect(where.x + 12 + i * width, ground - height, width - 4, height),
            tone="key",
            radius=1,
            wash=0.75 if share else 0.3,
            stroke=0,
        )
    drawing.text((where.x + where.width - 10, where.y + 16), name, size=SMALL, anchor="end", bold=True)


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
        The drawing, with a layout of its own for a phone.
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
