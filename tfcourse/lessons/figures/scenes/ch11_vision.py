"""The drawings of chapter 11: images as patches, rows of tables as tokens, attention on grids and maps, and two kinds of input at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Grid, Point, Rect
from tfcourse.lessons.figures.lines import arrow, bracket
from tfcourse.lessons.figures.matrices import frame, matrix

# A digit of 8 x 8 pixels: ink from 0 to 1. Its patch number 2 is looked at.
DIGIT = (
    (0.0, 0.0, 0.5, 0.9, 0.9, 0.4, 0.0, 0.0),
    (0.0, 0.3, 0.9, 0.4, 0.6, 0.9, 0.0, 0.0),
    (0.0, 0.0, 0.1, 0.0, 0.6, 0.8, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.6, 1.0, 0.4, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.3, 0.7, 0.9, 0.1, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.1, 0.9, 0.4, 0.0),
    (0.0, 0.4, 0.5, 0.2, 0.5, 0.9, 0.2, 0.0),
    (0.0, 0.1, 0.7, 1.0, 0.9, 0.4, 0.0, 0.0),
)
SHOWN = (0, 1)

# Windows: side of the grid, side of a window, shift, and a place that asks.
SIDE, WINDOW, SHIFT, ASKS = 8, 4, 2, (3, 0)
# Axial attention: the position that asks, and a distant one of which it hears in the second layer.
AXIAL_ASKS, AXIAL_FAR = (2, 5), (6, 1)

# A map with an edge, the weights of a convolution, which are also the exponentials of the prior, and two places.
MAP = (
    (0, 0, 0, 0, 0, 2, 2, 2),
    (0, 0, 0, 0, 0, 2, 2, 2),
    (0, 0, 0, 0, 2, 2, 2, 2),
    (0, 0, 0, 1, 2, 2, 2, 2),
    (0, 0, 0, 2, 2, 2, 2, 2),
)
FIXED = ((1 / 16, 2 / 16, 1 / 16), (2 / 16, 4 / 16, 2 / 16), (1 / 16, 2 / 16, 1 / 16))
FLAT, EDGE = (1, 1), (2, 4)

# Objects and predictions as centre, width and height in shares of the picture; the costs are those of `matching_cost` with the
# probabilities of disc and square that stand behind each prediction.
OBJECTS = ((0.32, 0.35, 0.28, 0.28), (0.67, 0.65, 0.30, 0.30))
PREDICTIONS = (
    (0.24, 0.28, 0.34, 0.30),  # 0.60, 0.10
    (0.33, 0.37, 0.30, 0.28),  # 0.90, 0.05
    (0.76, 0.24, 0.22, 0.20),  # 0.10, 0.20
    (0.66, 0.68, 0.34, 0.34),  # 0.05, 0.80
    (0.24, 0.80, 0.26, 0.20),  # 0.20, 0.10
)
COSTS = ((-0.08, 5.34), (-2.27, 4.20), (4.34, 4.04), (4.97, -1.66), (3.87, 4.50))
MATCHED = {1: 0, 3: 1}

# A row of a table: columns, values, and what a category is in its own column and in the embedding.
COLUMNS = (("age", "0.4"), ("income", "−1.2"), ("city", "Lyon"), ("job", "cook"))
LOOKED_UP = ((1, 0), (0, 3))

# The axes of an image that is cut: what they count, how many there are, and where the permute puts them.
AXES = (("*C*", 1, 4), ("*H*_g", 4, 0), ("*P*", 2, 2), ("*W*_g", 4, 1), ("*P*", 2, 3))


def patches() -> Drawing:
    """Draw how a Vision Transformer reads: patches, flattened and projected, a class token, positions, layers, and a head.

    Returns:
        The drawing: tokens of six places on a page, of five on a phone.
    """
    narrow = Drawing(350, 600)
    _cut_up(narrow, (16, 28), (188, 28))
    flat = _flattened(narrow, (20, 185), 26)
    project = box(narrow, "projection", Rect(206, 178, 116, 40))
    arrow(narrow, (136, 84), (180, 84))
    arrow(narrow, (245, 148), flat.top, via=[(245, 164), (flat.centre[0], 164)])
    arrow(narrow, flat.right, project.left)
    _read_patches(narrow, ("class", "1", "2", "…", "16"), left=98, pitch=56, top=312, start=project.bottom, turn=282)

    drawing = Drawing(700, 520, narrow=narrow)
    _cut_up(drawing, (14, 28), (186, 28))
    flat = _flattened(drawing, (366, 70), 28)
    project = box(drawing, "projection", Rect(534, 64, 120, 40))
    arrow(drawing, (134, 84), (178, 84))
    arrow(drawing, (308, 84), (358, 84))
    arrow(drawing, flat.right, project.left)
    words = ("class", "1", "2", "3", "…", "16")
    _read_patches(drawing, words, left=136, pitch=102, top=222, start=project.bottom, turn=186)
    return drawing


def _cut_up(drawing: Drawing, picture: Point, cut: Point) -> None:
    """The picture, and beside it its patches with room between them."""
    drawing.text((picture[0] + 56, picture[1] - 14), "8 × 8 pixels", size=SMALL, tone="muted")
    drawing.text((cut[0] + 57, cut[1] - 14), "16 patches", size=SMALL, tone="muted")
    whole = _pixels(drawing, DIGIT, picture, 14)
    drawing.rect(whole, radius=4, stroke=1.4)
    for row in range(4):
        for column in range(4):
            values = [line[2 * column : 2 * column + 2] for line in DIGIT[2 * row : 2 * row + 2]]
            part = _pixels(drawing, values, (cut[0] + 30 * column, cut[1] + 30 * row), 12)
            drawing.rect(part, radius=2, stroke=1.2)
            if (row, column) == SHOWN:
                frame(drawing, part, tone="query")


def _pixels(drawing: Drawing, values: Sequence[Sequence[float]], corner: Point, cell: float) -> Grid:
    grid = Grid(*corner, cell * len(values[0]), cell * len(values), len(values), len(values[0]))
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value:
                drawing.rect(grid.cell(row, column), radius=0, stroke=0, fill=weight_colour(value))
    return grid


def _flattened(drawing: Drawing, corner: Point, cell: float) -> Grid:
    """The numbers of the patch that is looked at, in a row."""
    row, column = SHOWN
    values = [value for line in DIGIT[2 * row : 2 * row + 2] for value in line[2 * column : 2 * column + 2]]
    grid = _pixels(drawing, [values], corner, cell)
    lines = "".join(f"M{grid.x + cell * i:g} {grid.y:g}v{cell:g}" for i in (1, 2, 3))
    drawing.path(lines, tone="query", stroke=1, opacity=0.5)
    drawing.rect(grid, radius=4, tone="query", stroke=2.2)
    drawing.text((grid.centre[0], grid.bottom[1] + 16), "*P* · *P* · *C* numbers", size=SMALL, tone="muted")
    return grid


def _read_patches(
    drawing: Drawing, words: Sequence[str], *, left: float, pitch: float, top: float, start: Point, turn: float
) -> None:
    """Tokens with their positions, the layers, and the head on the first place."""
    xs = [left + pitch * place for place in range(len(words))]
    wide = pitch - 10
    for y, label in ((top + 14, "tokens"), (top + 62, "positions")):
        drawing.text((4, y), label, size=SMALL, anchor="start", tone="muted")
    shown = 4 * SHOWN[0] + SHOWN[1] + 1
    arrow(drawing, start, (xs[shown], top), via=[(start[0], turn), (xs[shown], turn)] if start[0] != xs[shown] else [])
    across = Rect(xs[0] - wide / 2, top + 106, xs[-1] - xs[0] + wide, 44)
    for place, (x, word) in enumerate(zip(xs, words, strict=True)):
        if word == "…":
            for y in (top + 14, top + 62, top + 190):
                drawing.text((x, y), "…", tone="muted")
            continue
        tone: Tone = "query" if place in (0, shown) else "ink"
        box(drawing, word, Rect(x - wide / 2, top, wide, 28), tone=tone, size=SMALL)
        drawing.text((x, top + 38), "+", size=SMALL)
        position = box(drawing, f"*p*_{{{0 if word == 'class' else word}}}", Rect(x - wide / 2, top + 48, wide, 28))
        arrow(drawing, position.bottom, (x, across.y))
        arrow(drawing, (x, across.bottom[1]), (x, top + 176))
        if place:
            drawing.rect(Rect(x - wide / 2, top + 178, wide, 26), wash=0.06)
    box(drawing, "encoder layers × *L*", across, tone="key")
    first = drawing.rect(Rect(xs[0] - wide / 2, top + 178, wide, 26), tone="query", wash=0.13)
    head = box(drawing, "head", Rect(xs[0] - 34, top + 232, 68, 34))
    arrow(drawing, first.bottom, head.top)
    arrow(drawing, head.right, (xs[0] + 74, head.centre[1]))
    chip(drawing, "3", (xs[0] + 88, head.centre[1]), tone="query")


def cutting() -> Drawing:
    """Draw the axes of an image that is cut into patches, and the order into which they are brought.

    Returns:
        The drawing, which fits a phone.
    """
    drawing = Drawing(350, 246)
    for place, (name, count, goes) in enumerate(AXES):
        tone: Tone = "query" if goes < 2 else "key"
        above, below = (
            box(drawing, name, Rect(2 + 70 * at, y, 66, 46), note=f"{count}", tone=tone)
            for at, y in ((place, 26), (goes, 136))
        )
        arrow(drawing, above.bottom, below.top, tone=tone)
    drawing.text((175, 12), "after the reshape", size=SMALL, tone="muted")
    bracket(drawing, Rect(2, 136, 136, 46), "which patch", side="bottom", tone="query")
    bracket(drawing, Rect(142, 136, 206, 46), "its numbers", side="bottom", tone="key")
    return drawing


def windows() -> Drawing:
    """Draw windows on a grid, shifted windows, and shifted windows on the rolled grid: which positions one position may attend to.

    Returns:
        The drawing: three grids beside each other on a page, below each other on a phone.
    """
    parts = [
        _windowed("Windows", shift=0, rolled=False),
        _windowed("Shifted", shift=SHIFT, rolled=False),
        _windowed("Shifted and rolled", shift=SHIFT, rolled=True),
    ]
    narrow = Drawing(350, 842)
    drawing = Drawing(700, 276, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 12 + 234 * number, 0)
        narrow.place(part, 71, 262 * number)
    arrow(drawing, (457, 134), (477, 134), tone="muted")
    arrow(narrow, (175, 504), (175, 522), tone="muted")
    for on, x, y, next_line in ((drawing, 200.0, 262.0, False), (narrow, 71.0, 800.0, True)):
        on.rect(Rect(x, y - 8, 16, 16), tone="query", radius=3, stroke=0, wash=1)
        on.text((x + 24, y), "query", size=SMALL, anchor="start")
        x, y = (x, y + 26) if next_line else (x + 74, y)
        on.circle((x + 8, y), 3.5, tone="query", fill="currentColor", stroke=0)
        on.text(
            (x + 24, y),
            "its keys" if next_line else "its keys: same window, same colour",
            size=SMALL,
            anchor="start",
        )
    return drawing


def _windowed(title: str, *, shift: int, rolled: bool, cell: float = 26) -> Drawing:
    drawing = Drawing(SIDE * cell, SIDE * cell + 34)
    drawing.text((drawing.width / 2, 12), title, bold=True)
    grid = Grid(0.0, 30.0, SIDE * cell, SIDE * cell, SIDE, SIDE)
    looks: dict[tuple[bool, bool], tuple[Tone, float]] = {
        (True, False): ("key", 0.3),
        (False, True): ("query", 0.25),
        (True, True): ("ink", 0.3),
    }

    def group(row: int, column: int) -> tuple[int, int, bool, bool]:
        over = (row < shift, column < shift)
        at = ((row - shift) % SIDE // WINDOW, (column - shift) % SIDE // WINDOW)
        return (*at, *over)

    for row in range(SIDE):
        for column in range(SIDE):
            place = grid.cell((row - shift) % SIDE, (column - shift) % SIDE) if rolled else grid.cell(row, column)
            if (row, column) == ASKS:
                drawing.rect(place, tone="query", radius=0, stroke=0, wash=1)
                continue
            if look := looks.get((row < shift, column < shift)):
                drawing.rect(place, tone=look[0], radius=0, stroke=0, wash=look[1])
            if group(row, column) == group(*ASKS):
                drawing.circle(place.centre, 3.5, tone="query", fill="currentColor", stroke=0)
    inner = "".join(f"M{cell * i:g} 30v{SIDE * cell:g}M0 {30 + cell * i:g}h{SIDE * cell:g}" for i in range(1, SIDE))
    drawing.path(inner, stroke=1, opacity=0.25)
    cuts = range(WINDOW, SIDE, WINDOW) if rolled or not shift else range(shift, SIDE, WINDOW)
    # A line has round ends, which would look out of the frame.
    long = SIDE * cell - 4
    lines = "".join(f"M{cell * i:g} 32v{long:g}M2 {30 + cell * i:g}h{long:g}" for i in cuts)
    drawing.path(lines, stroke=2.4)
    drawing.rect(Rect(1.2, 31.2, SIDE * cell - 2.4, SIDE * cell - 2.4), radius=3, stroke=2.4)
    return drawing


def axial() -> Drawing:
    """Draw axial attention: the column in one layer, the row in the next, and the way that information takes through both.

    Returns:
        The drawing: three grids beside each other on a page, below each other on a phone.
    """
    row, column = AXIAL_ASKS
    parts = [
        _lined("First layer: column", [(i, column) for i in range(SIDE)]),
        _lined("Second layer: row", [(row, j) for j in range(SIDE)]),
        _lined("Both", [AXIAL_FAR, (row, AXIAL_FAR[1])], path=True),
    ]
    narrow = Drawing(350, 806)
    drawing = Drawing(700, 276, narrow=narrow)
    for number, part in enumerate(parts):
        drawing.place(part, 12 + 234 * number, 0)
        narrow.place(part, 71, 256 * number)
    for on, x, y in ((drawing, 200.0, 262.0), (narrow, 86.0, 788.0)):
        on.rect(Rect(x, y - 8, 16, 16), tone="query", radius=3, stroke=0, wash=1)
        on.text((x + 24, y), "query", size=SMALL, anchor="start")
        on.circle((x + 82, y), 3.5, tone="query", fill="currentColor", stroke=0)
        on.text((x + 98, y), "its keys", size=SMALL, anchor="start")
    return drawing


def _lined(title: str, asked: Sequence[tuple[int, int]], *, path: bool = False, cell: float = 26) -> Drawing:
    """A grid in which one position asks some others; with a path, an arrow leads from the first of them through the second."""
    drawing = Drawing(SIDE * cell, SIDE * cell + 34)
    drawing.text((drawing.width / 2, 12), title, bold=True)
    grid = Grid(0.0, 30.0, SIDE * cell, SIDE * cell, SIDE, SIDE)
    inner = "".join(
        f"M{cell * i:g} 32v{SIDE * cell - 4:g}M2 {30 + cell * i:g}h{SIDE * cell - 4:g}" for i in range(1, SIDE)
    )
    drawing.path(inner, stroke=1, opacity=0.25)
    drawing.rect(grid.cell(*AXIAL_ASKS), tone="query", radius=0, stroke=0, wash=1)
    for place in asked:
        if place != AXIAL_ASKS:
            if not path:
                drawing.rect(grid.cell(*place), tone="query", radius=0, stroke=0, wash=0.13)
            drawing.circle(grid.cell(*place).centre, 3.5, tone="query", fill="currentColor", stroke=0)
    if path:
        first, second, asks = (grid.cell(*place).centre for place in (*asked, AXIAL_ASKS))
        arrow(drawing, (first[0], first[1] - 8), (second[0], second[1] + 8), tone="key", stroke=2.2)
        arrow(drawing, (second[0] + 8, second[1]), (asks[0] - cell / 2 - 1, asks[1]), tone="key", stroke=2.2)
    drawing.rect(Rect(1.2, 31.2, SIDE * cell - 2.4, SIDE * cell - 2.4), radius=3, stroke=2.4)
    return drawing


def local_relation() -> Drawing:
    """Draw the weights of a convolution and of a local relation at two places: fixed ones, and ones made from likeness and a prior.

    Returns:
        The drawing: the map beside the weights on a page, above them on a phone.
    """
    narrow = Drawing(350, 556)
    _edge(narrow, (35, 8), 35)
    _relations(narrow, left=86, pitch=132, top=228, cell=(38, 28), label_right=76)
    drawing = Drawing(700, 308, narrow=narrow)
    _edge(drawing, (12, 56), 37)
    _relations(drawing, left=406, pitch=156, top=34, cell=(44, 30), label_right=390)
    return drawing


def _edge(drawing: Drawing, corner: Point, cell: float) -> None:
    """The map, with the neighbourhoods of the two places."""
    grid = _pixels(drawing, [[0.3 * value for value in line] for line in MAP], corner, cell)
    for row, line in enumerate(MAP):
        for column, value in enumerate(line):
            where, asks = grid.cell(row, column), (row, column) in (FLAT, EDGE)
            drawing.rect(where, tone="query" if asks else "ink", radius=0, stroke=0.6, wash=1 if asks else 0)
            drawing.text(where.centre, str(value), size=SMALL, tone="on" if asks else "ink", bold=asks)
    drawing.rect(grid, radius=4, stroke=1.4)
    for row, column in (FLAT, EDGE):
        first = grid.cell(row - 1, column - 1)
        frame(drawing, Rect(first.x, first.y, 3 * cell, 3 * cell), tone="query")


def _relations(
    drawing: Drawing, *, left: float, pitch: float, top: float, cell: tuple[float, float], label_right: float
) -> None:
    below = top + 3 * cell[1] + 58
    middle = left + (pitch + 3 * cell[0]) / 2
    for number, (title, place) in enumerate((("on the flat", FLAT), ("at the edge", EDGE))):
        x = left + pitch * number
        drawing.text((x + 1.5 * cell[0], top - 16), title, bold=True)
        matrix(drawing, FIXED, (x, top), cell=cell, shaded=True)
        matrix(drawing, _weights(*place), (x, below), cell=cell, tone="query", shaded=True)
    drawing.text((label_right, top + 1.5 * cell[1]), "convo-\nlution", size=SMALL, anchor="end", tone="muted")
    drawing.text((label_right, below + 1.5 * cell[1]), "local\nrelation", size=SMALL, anchor="end", tone="query")
    drawing.text((middle, top + 3 * cell[1] + 18), "learned, the same everywhere", size=SMALL, tone="muted")
    drawing.text((middle, below + 3 * cell[1] + 22), "softmax of  −(*q* − *k*)^2 + prior", size=SMALL)


def _weights(row: int, column: int) -> list[list[float]]:
    """The weights of a local relation whose queries and keys are the numbers of the map."""
    query = MAP[row][column]
    likes = [
        [FIXED[1 + dy][1 + dx] * math.exp(-((query - MAP[row + dy][column + dx]) ** 2)) for dx in (-1, 0, 1)]
        for dy in (-1, 0, 1)
    ]
    total = sum(map(sum, likes))
    return [[value / total for value in line] for line in likes]


def attention_on_a_map() -> Drawing:
    """Draw attention between convolutions: three 1 x 1 convolutions, weights of all places, a fourth, and a factor that begins at 0.

    Returns:
        The drawing: from left to right on a page, from the top down on a phone.
    """
    drawing = Drawing(700, 262, narrow=_attention_on_a_phone())
    _stack(drawing, (18, 86))
    drawing.text((52, 180), "*C* × *H*_g × *W*_g", size=SMALL, tone="muted")
    drawing.text((52, 66), "*x*", tone="ink")
    arrow(drawing, (90, 121), (118, 121), head=False)
    places: list[tuple[str, Tone, float]] = [("*q*", "query", 30), ("*k*", "key", 96), ("*v*", "key", 176)]
    query, key, value = (box(drawing, name, Rect(150, y, 78, 50), tone=tone, note="1 × 1") for name, tone, y in places)
    for part in (query, key, value):
        arrow(
            drawing,
            (118, 121),
            part.left,
            via=[] if part is key else [(118, part.centre[1])],
        )
    weights = _every_place(drawing, (296, 40), 16)
    drawing.text((weights.centre[0], 20), "softmax", size=SMALL, tone="muted")
    drawing.text((weights.centre[0], 154), "*N* × *N* weights", size=SMALL, tone="muted")
    arrow(drawing, query.right, (weights.x, query.centre[1]), tone="query")
    arrow(drawing, key.right, (weights.x, key.centre[1]), tone="key")
    product = operation(drawing, "·", (448, 121))
    arrow(drawing, weights.right, product.top, via=[(448, weights.right[1])])
    arrow(drawing, value.right, product.bottom, via=[(448, value.centre[1])], tone="key")
    out = box(drawing, "*o*", Rect(490, 96, 66, 50), note="1 × 1")
    times = operation(drawing, "×", (596, 121))
    gamma = chip(drawing, "γ", (596, 58), tone="query")
    drawing.text((596, 32), "starts at 0", size=SMALL, tone="query")
    plus = operation(drawing, "+", (650, 121))
    arrow(drawing, product.right, out.left)
    arrow(drawing, out.right, times.left)
    arrow(drawing, gamma.bottom, times.top, tone="query")
    arrow(drawing, times.right, plus.left)
    arrow(drawing, plus.right, (696, 121))
    arrow(drawing, (118, 121), plus.bottom, via=[(118, 246), (650, 246)], tone="muted")
    return drawing


def _attention_on_a_phone() -> Drawing:
    drawing = Drawing(350, 520)
    _stack(drawing, (141, 8))
    drawing.text((226, 44), "*C* × *H*_g × *W*_g", size=SMALL, anchor="start", tone="muted")
    drawing.text((122, 44), "*x*")
    arrow(drawing, (175, 80), (175, 102), head=False)
    places: list[tuple[str, Tone, float]] = [("*q*", "query", 88), ("*k*", "key", 175), ("*v*", "key", 290)]
    query, key, value = (
        box(drawing, name, Rect(x - 37, 124, 74, 50), tone=tone, note="1 × 1") for name, tone, x in places
    )
    for part in (query, key, value):
        arrow(drawing, (175, 102), part.top, via=[] if part is key else [(part.centre[0], 102)])
    weights = _every_place(drawing, (83, 206), 16)
    drawing.text((weights.centre[0], 318), "*N* × *N* weights", size=SMALL, tone="muted")
    arrow(drawing, query.bottom, (query.centre[0], weights.y), tone="query")
    arrow(drawing, key.bottom, (key.centre[0], weights.y), tone="key")
    product = operation(drawing, "·", (236, 254))
    arrow(drawing, weights.right, product.left)
    arrow(drawing, value.bottom, product.right, via=[(290, 254)], tone="key")
    out = box(drawing, "*o*", Rect(203, 294, 66, 50), note="1 × 1")
    times = operation(drawing, "×", (236, 384))
    gamma = chip(drawing, "γ", (290, 384), tone="query")
    drawing.text((290, 410), "starts at 0", size=SMALL, tone="query")
    plus = operation(drawing, "+", (236, 446))
    arrow(drawing, product.bottom, out.top)
    arrow(drawing, out.bottom, times.top)
    arrow(drawing, gamma.left, times.right, tone="query")
    arrow(drawing, times.bottom, plus.top)
    arrow(drawing, plus.bottom, (236, 504))
    arrow(drawing, (175, 102), plus.left, via=[(22, 102), (22, 446)], tone="muted")
    return drawing


def _stack(drawing: Drawing, corner: Point) -> None:
    """The channels of a map of features, one behind the other."""
    for depth in (2, 1):
        # What stands behind shows an edge only: a drawing knows no ground that could cover the rest.
        x, y = corner[0] + 8 * depth, corner[1] + 14 - 7 * depth
        drawing.path(f"M{x:g} {y + 5:g}v-5h52v52h-5", tone="key", stroke=1.2)
    front = Grid(corner[0], corner[1] + 14, 52, 52, 4, 4)
    for row in range(4):
        for column in range(4):
            shade = 0.25 + 0.6 * math.sin(1.3 * row + 0.4) ** 2 * math.cos(0.8 * column - 0.6) ** 2
            drawing.rect(front.cell(row, column), radius=0, stroke=0, fill=weight_colour(shade))
    drawing.rect(front, tone="key", radius=4)


def _every_place(drawing: Drawing, corner: Point, cell: float) -> Grid:
    """Weights of six places that look at six."""
    values = [
        [math.exp(-((row - column) ** 2) / 2) + 0.5 * ((3 * row + column) % 5 == 1) for column in range(6)]
        for row in range(6)
    ]
    rows = [[value / max(line) * 0.9 for value in line] for line in values]
    grid = _pixels(drawing, rows, corner, cell)
    inner = "".join(
        f"M{grid.x + cell * i:g} {grid.y:g}v{grid.height:g}M{grid.x:g} {grid.y + cell * i:g}h{grid.width:g}"
        for i in range(1, 6)
    )
    drawing.path(inner, stroke=1, opacity=0.25)
    drawing.rect(grid, radius=4, stroke=1.4)
    return grid


def interpolation() -> Drawing:
    """Draw how learned positions are stretched: the class row set aside, the others as a grid, a larger grid, and rows again.

    Returns:
        The drawing: from left to right on a page, in two rows on a phone.
    """
    narrow = Drawing(350, 500)
    small = _table(narrow, (44, 42), 4, 9)
    narrow.text((small.centre[0], 222), "1 + 16 rows", size=SMALL, tone="muted")
    grid = _places(narrow, (194, 74), 4, 28)
    narrow.text((grid.centre[0], 56), "4 × 4", size=SMALL, tone="muted")
    large = _places(narrow, (178, 292), 6, 24)
    narrow.text((large.centre[0], 454), "6 × 6", size=SMALL, tone="muted")
    longer = _table(narrow, (44, 292), 6, 4.5)
    narrow.text((longer.centre[0], 486), "1 + 36 rows", size=SMALL, tone="muted")
    arrow(narrow, (small.right[0] + 6, grid.centre[1]), (grid.x - 6, grid.centre[1]))
    arrow(narrow, (grid.centre[0], grid.bottom[1] + 6), (grid.centre[0], large.y - 6))
    narrow.text((grid.centre[0] + 12, 240), "bicubic", size=SMALL, anchor="start")
    arrow(narrow, (large.x - 6, large.centre[1]), (longer.right[0] + 6, large.centre[1]))
    arrow(narrow, (40, 48), (40, 298), via=[(16, 48), (16, 298)], tone="query")
    narrow.text((24, 250), "class row", size=SMALL, anchor="start", tone="query")
    narrow.text((24, 268), "untouched", size=SMALL, anchor="start", tone="query")

    drawing = Drawing(700, 280, narrow=narrow)
    small = _table(drawing, (24, 44), 4, 11)
    drawing.text((small.centre[0], 260), "1 + 16 rows", size=SMALL, tone="muted")
    grid = _places(drawing, (164, 90), 4, 28)
    drawing.text((grid.centre[0], 260), "4 × 4", size=SMALL, tone="muted")
    large = _places(drawing, (388, 74), 6, 24)
    drawing.text((large.centre[0], 260), "6 × 6", size=SMALL, tone="muted")
    longer = _table(drawing, (616, 44), 6, 5)
    drawing.text((longer.centre[0], 260), "1 + 36 rows", size=SMALL, tone="muted")
    for start, end in ((small, grid), (grid, large), (large, longer)):
        arrow(drawing, (start.right[0] + 8, grid.centre[1]), (end.x - 8, grid.centre[1]))
    drawing.text(((grid.right[0] + large.x) / 2, grid.centre[1] - 16), "bicubic", size=SMALL)
    arrow(drawing, (small.right[0] + 6, 50), (longer.x - 6, 50), tone="query")
    drawing.text((348, 32), "class row, untouched", size=SMALL, tone="query")
    return drawing


def _table(drawing: Drawing, corner: Point, side: int, height: float) -> Rect:
    """A table of positions: the class row above, with a gap, and a row for each place."""
    x, y = corner
    drawing.rect(Rect(x, y, 60, 12), tone="query", radius=2, stroke=0, wash=0.85)
    rows = Rect(x, y + 18, 60, height * side * side)
    for place in range(side * side):
        shade = _place_shade(place // side, place % side, side)
        drawing.rect(Rect(x, rows.y + height * place, 60, height), radius=0, stroke=0, fill=weight_colour(shade))
    drawing.rect(rows, radius=2)
    return rows


def _places(drawing: Drawing, corner: Point, side: int, cell: float) -> Grid:
    values = [[_place_shade(row, column, side) for column in range(side)] for row in range(side)]
    grid = _pixels(drawing, values, corner, cell)
    inner = "".join(
        f"M{grid.x + cell * i:g} {grid.y:g}v{grid.height:g}M{grid.x:g} {grid.y + cell * i:g}h{grid.width:g}"
        for i in range(1, side)
    )
    drawing.path(inner, stroke=1, opacity=0.25)
    drawing.rect(grid, radius=4, stroke=1.4)
    return grid


def _place_shade(row: int, column: int, side: int) -> float:
    """A smooth pattern on a square, read in the middle of a place."""
    down, across = (row + 0.5) / side, (column + 0.5) / side
    return 0.08 + 0.9 * math.exp(-5 * ((down - 0.3) ** 2 + (across - 0.65) ** 2))


def detr() -> Drawing:
    """Draw DETR: convolutions, an encoder, object queries that are decoded in parallel, and a kind and a box for each of them.

    Returns:
        The drawing: the encoder above the decoder; on a phone both run from the top down.
    """
    drawing = Drawing(700, 326, narrow=_detr_on_a_phone())
    image = _objects(drawing, (8, 22), 100)
    convolutions = box(drawing, "CNN", Rect(132, 50, 62, 44))
    _stack(drawing, (218, 32))
    drawing.text((250, 116), "*H*_g × *W*_g", size=SMALL, tone="muted")
    tokens = _strip(drawing, Rect(334, 27, 16, 90), 6)
    drawing.text((tokens.centre[0], 14), "*S* tokens", size=SMALL, tone="muted")
    plus = operation(drawing, "+", (388, 72), radius=12)
    drawing.text((388, 122), "positions", size=SMALL, tone="muted")
    arrow(drawing, (388, 110), plus.bottom, tone="muted")
    encoder = box(drawing, "encoder", Rect(434, 46, 92, 52), tone="key", note="× *L*")
    memory = _strip(drawing, Rect(566, 27, 16, 90), 6, tone="key")
    drawing.text((memory.centre[0], 14), "memory", size=SMALL, tone="key")
    arrow(drawing, (image.right[0] + 3, 72), convolutions.left)
    arrow(drawing, convolutions.right, (214, 72))
    arrow(drawing, (290, 72), (tokens.x - 4, 72))
    arrow(drawing, (tokens.right[0] + 3, 72), plus.left)
    arrow(drawing, plus.right, encoder.left)
    arrow(drawing, encoder.right, (memory.x - 4, 72))

    queries = _strip(drawing, Rect(44, 188, 20, 100), 5, tone="query")
    drawing.text((queries.centre[0], 172), "object queries", size=SMALL, tone="query")
    drawing.text((queries.centre[0], 304), "*N*, learned", size=SMALL, tone="muted")
    drawing.rect(Rect(112, 186, 404, 104), tone="muted", dashed=True)
    drawing.text((314, 304), "decoder × *L*", size=SMALL, tone="muted")
    own, cross, think = (box(drawing, label, Rect(x, 212, width, 52), tone=tone) for label, x, width, tone in _DECODER)
    arrow(drawing, (queries.right[0] + 3, 238), own.left)
    arrow(drawing, own.right, cross.left)
    arrow(drawing, cross.right, think.left)
    arrow(drawing, (574, 121), cross.top, via=[(574, 152), (cross.centre[0], 152)], tone="key", stroke=2)
    drawing.text((470, 168), "keys, values", size=SMALL, tone="key")
    heads = box(drawing, "heads", Rect(534, 212, 72, 52), note="kind, box")
    arrow(drawing, think.right, heads.left)
    arrow(drawing, heads.right, (618, 238))
    _answers(drawing, (658, 186), 26)
    return drawing


# The parts of a decoder layer: name, left edge, width, and colour.
_DECODER: tuple[tuple[str, float, float, Tone], ...] = (
    ("self-\nattention", 126, 104, "query"),
    ("cross-\nattention", 258, 104, "query"),
    ("feed-\nforward", 390, 104, "ink"),
)


def _detr_on_a_phone() -> Drawing:
    drawing = Drawing(350, 640)
    image = _objects(drawing, (12, 12), 90)
    convolutions = box(drawing, "CNN", Rect(132, 35, 62, 44))
    _stack(drawing, (224, 17))
    drawing.text((238, 99), "*H*_g × *W*_g", size=SMALL, anchor="end", tone="muted")
    arrow(drawing, (image.right[0] + 3, 57), convolutions.left)
    arrow(drawing, convolutions.right, (220, 57))
    tokens = _strip(drawing, Rect(196, 118, 108, 16), 6)
    drawing.text((184, 126), "*S* tokens", size=SMALL, anchor="end", tone="muted")
    arrow(drawing, (250, 86), (250, tokens.y - 4))
    plus = operation(drawing, "+", (250, 164), radius=12)
    drawing.text((184, 164), "positions", size=SMALL, anchor="end", tone="muted")
    arrow(drawing, (190, 164), plus.left, tone="muted")
    arrow(drawing, (250, tokens.bottom[1] + 3), plus.top)
    encoder = box(drawing, "encoder × *L*", Rect(190, 194, 120, 38), tone="key")
    arrow(drawing, plus.bottom, encoder.top)
    memory = _strip(drawing, Rect(196, 256, 108, 16), 6, tone="key")
    drawing.text((184, 264), "memory", size=SMALL, anchor="end", tone="key")
    arrow(drawing, encoder.bottom, (250, memory.y - 4))

    queries = _strip(drawing, Rect(37, 318, 100, 20), 5, tone="query")
    drawing.text((queries.centre[0], 302), "*N* object queries", size=SMALL, tone="query")
    drawing.rect(Rect(12, 362, 150, 176), tone="muted", dashed=True)
    drawing.text((172, 508), "decoder × *L*", size=SMALL, anchor="start", tone="muted")
    own, cross, think = (
        box(drawing, label.replace("\n", ""), Rect(24, y, 126, 36), tone=tone)
        for (label, _, _, tone), y in zip(_DECODER, (374, 432, 490), strict=True)
    )
    arrow(drawing, (queries.centre[0], queries.bottom[1] + 3), own.top)
    arrow(drawing, own.bottom, cross.top)
    arrow(drawing, cross.bottom, think.top)
    arrow(drawing, (250, memory.bottom[1] + 4), cross.right, via=[(250, 450)], tone="key", stroke=2)
    drawing.text((258, 380), "keys,\nvalues", size=SMALL, anchor="start", tone="key")
    heads = box(drawing, "heads", Rect(46, 558, 82, 52), note="kind, box")
    arrow(drawing, think.bottom, heads.top)
    arrow(drawing, heads.right, (208, 584))
    _answers(drawing, (250, 540), 22)
    return drawing


def _objects(drawing: Drawing, corner: Point, side: float) -> Rect:
    """The image with its two objects, as in the drawing of the matching."""
    frame_ = drawing.rect(Rect(*corner, side, side), radius=4)
    disc, square = (
        Rect(corner[0] + side * (x - width / 2), corner[1] + side * (y - height / 2), side * width, side * height)
        for x, y, width, height in OBJECTS
    )
    drawing.circle(disc.centre, disc.width / 2, tone="key", fill=weight_colour(0.5))
    drawing.rect(square, tone="key", radius=0, stroke=1.4, wash=0.35)
    return frame_


def _strip(drawing: Drawing, where: Rect, count: int, *, tone: Tone = "ink") -> Rect:
    """Some vectors in a row or in a column, whichever way the strip is longer."""
    along = (1, count) if where.width > where.height else (count, 1)
    grid = Grid(where.x, where.y, where.width, where.height, *along)
    for number in range(count):
        drawing.rect(grid.cell(number % along[0], number % along[1]), tone=tone, radius=2, stroke=1.2, wash=0.13)
    return where


def _answers(drawing: Drawing, first: Point, pitch: float) -> None:
    """What the queries answer: the kinds of the matched predictions, and no object for the others."""
    for number in range(len(PREDICTIONS)):
        at = (first[0], first[1] + pitch * number)
        if number in MATCHED:
            chip(drawing, ("disc", "square")[MATCHED[number]], at, tone="key", size=SMALL, height=pitch - 4)
        else:
            chip(drawing, "no object", at, tone="muted", size=SMALL, height=pitch - 4)


def matching() -> Drawing:
    """Draw a picture with two objects and five predicted boxes, what every pair costs, and the cheapest assignment.

    Returns:
        The drawing: from left to right on a page, the picture above the rest on a phone.
    """
    narrow = Drawing(350, 480)
    _scene(narrow, (70, 6), 210)
    _assignment(narrow, (34, 286), cell=(54, 34), target=294)
    drawing = Drawing(700, 250, narrow=narrow)
    _scene(drawing, (10, 20), 214)
    _assignment(drawing, (296, 64), cell=(62, 34), target=632)
    return drawing


def _scene(drawing: Drawing, corner: Point, side: float) -> None:
    drawing.rect(Rect(*corner, side, side), radius=4)

    def place(box_: tuple[float, ...]) -> Rect:
        x, y, width, height = (side * share for share in box_)
        return Rect(corner[0] + x - width / 2, corner[1] + y - height / 2, width, height)

    disc, square = (place(where) for where in OBJECTS)
    drawing.circle(disc.centre, disc.width / 2, tone="key", fill=weight_colour(0.5))
    drawing.rect(square, tone="key", radius=0, stroke=1.4, wash=0.35)
    for number, shares in enumerate(PREDICTIONS):
        where = drawing.rect(place(shares), tone="query", radius=0, stroke=1.6, dashed=True)
        at, away = {1: (where.at(1, 0), (9, -4)), 3: (where.at(1, 1), (9, 2))}.get(number, (where.at(0, 0), (-9, -4)))
        drawing.text((at[0] + away[0], at[1] + away[1]), str(number + 1), size=SMALL, tone="query", bold=True)


def _assignment(drawing: Drawing, corner: Point, *, cell: tuple[float, float], target: float) -> None:
    names = [str(number + 1) for number in range(len(PREDICTIONS))]
    costs = matrix(drawing, COSTS, corner, cell=cell, form=".1f", rows=names, columns=("disc", "square"))
    drawing.text((costs.centre[0], costs.y - 38), "costs", bold=True)
    objects = [
        chip(drawing, name, (target, costs.row(row).centre[1]), tone="key")
        for name, row in (("disc", 0), ("square", 2))
    ]
    nothing = chip(drawing, "no object", (target, costs.row(4).centre[1]), tone="muted", size=SMALL)
    for row in range(costs.rows):
        start = (costs.right[0] + 6, costs.row(row).centre[1])
        if row in MATCHED:
            frame(drawing, costs.cell(row, MATCHED[row]), tone="query")
            end = objects[MATCHED[row]].left
            arrow(drawing, start, (end[0] - 3, end[1]), tone="query", stroke=2.4)
        else:
            arrow(drawing, start, (nothing.x - 3, nothing.centre[1]), tone="muted", dashed=True)


def feature_tokens() -> Drawing:
    """Draw how a row of a table becomes tokens: numbers times vectors, categories as rows of one embedding, a class token in front.

    Returns:
        The drawing.
    """
    narrow = _features(350, left=38, pitch=68)
    return _features(700, left=84, pitch=134, narrow=narrow)


def _features(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 404, narrow=narrow)
    xs = [left + pitch * place for place in range(5)]
    wide = min(pitch - 8, 108)
    small = narrow is None
    top = 342.0
    for place, (x, (name, value)) in enumerate(zip(xs[1:], COLUMNS, strict=True)):
        drawing.text((x, 12), name, size=SMALL, tone="muted")
        cell = drawing.rect(Rect(x - pitch / 2, 26, pitch, 32), radius=0)
        drawing.text(cell.centre, value, size=SMALL if small else TEXT)
        if place < 2:
            label = f"× *w*_{place + 1}\n+ *b*_{place + 1}" if small else f"× *w*_{place + 1} + *b*_{place + 1}"
            part = box(drawing, label, Rect(x - wide / 2, 176, wide, 48), tone="query")
            arrow(drawing, cell.bottom, part.top)
            arrow(drawing, part.bottom, (x, top))
    _look_up(drawing, xs[3], xs[4], top)
    for x, (name, _), shades in zip(
        xs,
        (("class", ""), *COLUMNS),
        ((0.9, 0.3, 0.6, 0.2), (0.3, 0.7, 0.1, 0.5), (0.6, 0.2, 0.9, 0.4), (0.2, 0.8, 0.5, 0.7), (0.5, 0.1, 0.3, 0.9)),
        strict=True,
    ):
        token = _pixels(drawing, [shades], (x - 28, top + 2), 14)
        drawing.rect(
            token, tone="query" if name == "class" else "ink", radius=3, stroke=2.2 if name == "class" else 1.4
        )
        drawing.text(
            (x, top + 34), name, size=SMALL, bold=name == "class", tone="query" if name == "class" else "muted"
        )
    drawing.text((xs[0], top - 14), "learned", size=SMALL, tone="muted")
    return drawing


def _look_up(drawing: Drawing, city: float, job: float, top: float) -> None:
    """One embedding for both categories; each column has the number of rows before its own as an offset."""
    half = 22 if job - city < 100 else 34
    middle = (city + job) / 2
    table = Grid(middle - half / 1.6, 152, 2 * half / 1.6, 110, 5, 1)
    for row in range(5):
        chosen = row in {own + offset for own, offset in LOOKED_UP}
        cell = drawing.rect(table.cell(row, 0), tone="key", radius=0, stroke=0.8, wash=0.45 if chosen else 0.1)
        drawing.text(cell.centre, str(row), size=SMALL)
    if half > 30:
        drawing.text((middle, 134), "one embedding", size=SMALL, tone="key")
    for x, (own, offset), side in ((city, LOOKED_UP[0], "left"), (job, LOOKED_UP[1], "right")):
        asked = box(drawing, f"{own} + {offset}", Rect(x - 28, 88, 56, 28), tone="key", size=SMALL)
        arrow(drawing, (x, 58), asked.top)
        found = table.cell(own + offset, 0)
        end = found.left if side == "left" else found.right
        arrow(drawing, asked.bottom, end, via=[(x, end[1])], tone="key")
        added = box(drawing, f"+ *b*_{3 if side == 'left' else 4}", Rect(x - 28, 294, 56, 28), tone="query", size=SMALL)
        start = table.at(0.3 if side == "left" else 0.7, 1)
        arrow(drawing, start, added.top, via=[(start[0], 276), (x, 276)], tone="key")
        arrow(drawing, added.bottom, (x, top))


def two_streams() -> Drawing:
    """Draw a layer of ViLBERT: text and image attend to each other's input, each with its own weights; then each has its own feed-forward
    network.

    Returns:
        The drawing: the streams from left to right on a page, from the top down on a phone.
    """
    drawing = Drawing(700, 262, narrow=_streams_on_a_phone())
    lanes = (("text", "*T* tokens", 64.0, -1), ("image", "*S* regions", 198.0, 1))
    for name, note, y, side in lanes:
        box(drawing, name, Rect(8, y - 26, 92, 52), note=note)
        cross = box(drawing, "cross-attention", Rect(208, y - 26, 128, 52), size=TEXT)
        norms = [box(drawing, "+ norm", Rect(x, y - 18, 72, 36), size=SMALL) for x in (366, 590)]
        think = box(drawing, "feed-\nforward", Rect(472, y - 26, 88, 52), size=TEXT)
        own = y + side * 12
        arrow(drawing, (100, own), (208, own), tone="query", stroke=2)
        other = next(lane for lane in lanes if lane[0] != name)
        arrow(drawing, (100, other[2] - other[3] * 14), (208, y - side * 14), tone="key", stroke=2)
        arrow(drawing, cross.right, norms[0].left)
        arrow(drawing, norms[0].right, think.left)
        arrow(drawing, think.right, norms[1].left)
        arrow(drawing, norms[1].right, (694, y))
        past = y + side * 48
        edge = y + side * 18
        arrow(
            drawing,
            (54, y + side * 26),
            (402, edge),
            via=[(54, past), (402, past)],
            tone="muted",
        )
        arrow(drawing, (455, y), (626, edge), via=[(455, past), (626, past)], tone="muted")
        drawing.text((154, own + side * 13), "queries", size=SMALL, tone="query")
    drawing.text((178, 131), "keys, values", size=SMALL, anchor="start", tone="key")
    return drawing


def _streams_on_a_phone() -> Drawing:
    drawing = Drawing(350, 528)
    lanes = (("text", "*T* tokens", 98.0, -1), ("image", "*S* regions", 252.0, 1))
    for name, note, x, side in lanes:
        box(drawing, name, Rect(x - 54, 6, 108, 50), note=note)
        cross = box(drawing, "cross-attention", Rect(x - 56, 216, 112, 40), size=SMALL)
        norms = [box(drawing, "+ norm", Rect(x - 40, y, 80, 32), size=SMALL) for y in (284, 436)]
        think = box(drawing, "feed-forward", Rect(x - 56, 364, 112, 40), size=SMALL)
        own = x + side * 24
        arrow(drawing, (own, 56), (own, 216), tone="query", stroke=2)
        other = next(lane for lane in lanes if lane[0] != name)
        arrow(drawing, (other[2] - other[3] * 24, 56), (x - side * 24, 216), tone="key", stroke=2)
        arrow(drawing, cross.bottom, norms[0].top)
        arrow(drawing, norms[0].bottom, think.top)
        arrow(drawing, think.bottom, norms[1].top)
        arrow(drawing, norms[1].bottom, (x, 512))
        past = x + side * 82
        edge = x + side * 40
        arrow(drawing, (x + side * 54, 31), (edge, 300), via=[(past, 31), (past, 300)], tone="muted")
        arrow(drawing, (x, 340), (edge, 452), via=[(past, 340), (past, 452)], tone="muted")
    drawing.text((82, 136), "queries", size=SMALL, anchor="start", tone="query")
    drawing.text((268, 136), "queries", size=SMALL, anchor="end", tone="query")
    drawing.text((175, 194), "keys,\nvalues", size=SMALL, tone="key")
    return drawing
