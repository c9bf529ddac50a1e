"""What connects the parts of a drawing: arrows, the front page's arcs, and brackets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect

_HEAD = 8.0  # length of an arrow's head
_CORNER = 9.0  # radius of a bend


def arrow(
    drawing: Drawing,
    start: Point,
    end: Point,
    *,
    via: Sequence[Point] = (),
    tone: Tone = "ink",
    stroke: float = 1.6,
    head: bool = True,
    dashed: bool = False,
) -> None:
    """Draw an arrow; its bends are rounded.

    Args:
        drawing: to draw on.
        start: where it begins.
        end: where its tip is.
        via: the corners between.
        tone: its colour.
        stroke: width of the line in pixels.
        head: whether it has a head; a plain line has none.
        dashed: whether it is dashed.
    """
    points = [start, *via, end]
    points[0] = _towards(
        start, points[1], max(0.0, stroke / 2 - 0.8)
    )  # the round end of a thick line begins at `start`
    tip = _towards(points[-1], points[-2], _HEAD - 2) if head else points[-1]
    commands = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], [*points[2:], None], strict=False):
        if after is None:
            break
        radius = min(_CORNER, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        commands.append(
            f"L{_pair(_towards(corner, before, radius))}Q{_pair(corner)} {_pair(_towards(corner, after, radius))}"
        )
    drawing.path("".join([*commands, f"L{_pair(tip)}"]), tone=tone, stroke=stroke, dashed=dashed)
    if head:
        _draw_head(drawing, points[-2], points[-1], tone, stroke)


def arc(
    drawing: Drawing,
    start: Point,
    end: Point,
    *,
    weight: float = 0.25,
    rise: float | None = None,
    tone: Tone = "key",
) -> None:
    """Draw an arc from one word to another, above both, as thick as the attention weight.

    Args:
        drawing: to draw on.
        start: the middle of the upper edge of the word that asks.
        end: the same of the word that it attends to.
        weight: from 0 to 1.
        rise: how far the arc rises above the higher end, in pixels; it grows with the distance unless given.
        tone: its colour.
    """
    (x1, y1), (x2, y2) = start, end
    rise = 14 + 0.3 * abs(x2 - x1) if rise is None else rise
    top = min(y1, y2) - rise / 0.75  # a cubic curve reaches three quarters of the way to its handles
    commands = f"M{_pair(start)}C{_pair((x1, top))} {_pair((x2, top))} {_pair(end)}"
    drawing.path(commands, tone=tone, stroke=1.2 + 16 * weight, opacity=min(1.0, 0.4 + weight))


def curve(drawing: Drawing, start: Point, end: Point, *, weight: float = 0.25, tone: Tone = "key") -> None:
    """Draw a curve from a word in one row to a word in another, as thick as the attention weight.

    Args:
        drawing: to draw on.
        start: where it leaves, upright.
        end: where it arrives, upright.
        weight: from 0 to 1.
        tone: its colour.
    """
    middle = (start[1] + end[1]) / 2
    commands = f"M{_pair(start)}C{_pair((start[0], middle))} {_pair((end[0], middle))} {_pair(end)}"
    drawing.path(commands, tone=tone, stroke=1.2 + 16 * weight, opacity=min(1.0, 0.4 + weight))


def bracket(
    drawing: Drawing,
    part: Rect,
    label: str,
    *,
    side: Literal["top", "bottom", "left", "right"] = "bottom",
    gap: float = 8,
    tone: Tone = "muted",
    size: float = SMALL,
) -> None:
    """Draw a square bracket along one side of a part, with a label behind it.

    Args:
        drawing: to draw on.
        part: what the bracket spans.
        label: what it says.
        side: of the part.
        gap: between the part and the bracket, in pixels.
        tone: its colour.
        size: font size of the label.
    """
    depth = 6.0
    away = {"top": (0, -1), "bottom": (0, 1), "left": (-1, 0), "right": (1, 0)}[side]
    corners: dict[str, tuple[Point, Point]] = {
        "top": (part.at(0, 0), part.at(1, 0)),
        "bottom": (part.at(0, 1), part.at(1, 1)),
        "left": (part.at(0, 0), part.at(0, 1)),
        "right": (part.at(1, 0), part.at(1, 1)),
    }
    ends = corners[side]
    near = [(x + gap * away[0], y + gap * away[1]) for x, y in ends]
    far = [(x + (gap + depth) * away[0], y + (gap + depth) * away[1]) for x, y in ends]
    drawing.path("M" + "L".join(map(_pair, (near[0], far[0], far[1], near[1]))), tone=tone, stroke=1.2)
    x, y = (far[0][0] + far[1][0]) / 2, (far[0][1] + far[1][1]) / 2
    if side in ("top", "bottom"):
        drawing.text((x, y + away[1] * (4 + size * 0.6)), label, size=size, tone=tone)
    else:
        drawing.text((x + away[0] * 6, y), label, size=size, tone=tone, anchor="end" if side == "left" else "start")


def _draw_head(drawing: Drawing, before: Point, tip: Point, tone: Tone, stroke: float) -> None:
    # Its own triangle and no SVG marker: markers need identifiers, and identifiers are the page's.
    base = _towards(tip, before, _HEAD)
    length = math.dist(before, tip)
    across = ((tip[1] - before[1]) / length, (before[0] - tip[0]) / length)
    half = 3.2 + stroke / 2
    sides = [(base[0] + sign * half * across[0], base[1] + sign * half * across[1]) for sign in (1, -1)]
    drawing.path(f"M{_pair(tip)}L{_pair(sides[0])}L{_pair(sides[1])}Z", tone=tone, filled=True)


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point at a distance from `start` on the way to `end`."""
    share = distance / math.dist(start, end)
    return (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))


def _pair(point: Point) -> str:
    return " ".join(f"{round(value, 2) + 0.0:.10g}" for value in point)
