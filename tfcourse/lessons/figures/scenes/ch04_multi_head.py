"""The drawings of chapter 04: several heads at one sentence, how a layer makes them, and what they do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Grid, Point, Rect
from tfcourse.lessons.figures.lines import arc, arrow
from tfcourse.lessons.figures.matrices import frame, mask, matrix

WORDS = ("the", "aunt", "near", "the", "boys", "says", "she", "sees", "them")
# For each head its name, who asks, and who is asked.
HEADS = (("who acts?", 5, 1), ("for whom does it stand?", 8, 4))
# Three words of width 4: the tens digit names the word, the units digit the column.
NUMBERS = [[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]
N_HEADS = 2


def two_looks() -> Drawing:
    """Draw two heads that look at the same sentence for different reasons.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _looks(640, pitch=68, size=TEXT, narrow=_looks(350, pitch=38.5, size=11.5))


def _looks(width: float, *, pitch: float, size: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 224, narrow=narrow)
    left = (width - pitch * (len(WORDS) - 1)) / 2
    for row, (name, asks, asked) in enumerate(HEADS):
        y = 88 + 112 * row
        for i, word in enumerate(WORDS):
            tone: Tone = "query" if i == asks else "key" if i == asked else "ink"
            if tone == "ink":
                drawing.text((left + pitch * i, y), word, size=size)
            else:
                chip(drawing, word, (left + pitch * i, y), tone=tone, size=size, height=26)
        arc(drawing, (left + pitch * asks, y - 15), (left + pitch * asked, y - 15), weight=0.35, rise=34)
        drawing.text((4, y - 62), f"head {row + 1}: {name}", size=SMALL, anchor="start", tone="muted")
    return drawing


def multi_head_layer() -> Drawing:
    """Draw the layer from top to bottom: project, split, attend in each head, merge, project; a shape at every step.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 512)
    columns, middle = (52.0, 152.0, 252.0), 152.0

    def note(y: float, shape: str) -> None:
        drawing.text((392, y), shape, size=SMALL, anchor="end", tone="muted")

    drawing.text((middle, 14), "*x*", size=TEXT + 2)
    note(14, "(*B*, *T*, *D*)")
    for x, letter in zip(columns, "qkv", strict=True):
        tone: Tone = "query" if letter == "q" else "key"
        projection = box(drawing, f"{letter}\\_proj", Rect(x - 42, 56, 84, 32), tone=tone, size=SMALL)
        start = (middle, 26)
        arrow(drawing, start, projection.top, via=[] if x == middle else [(middle, 38), (x, 38)])
        arrow(drawing, projection.bottom, (x, 116))
    note(72, "(*B*, *T*, *D*)")
    box(drawing, "split\\_heads", Rect(10, 116, 284, 30), dashed=True, size=SMALL)
    note(131, "(*B*, *H*, *T*, *D*_h)")
    for head, x in enumerate(columns):
        _draw_head(drawing, head, x)
    note(200, "weights")
    note(220, "(*B*, *H*, *T*, *S*)")
    note(284, "(*B*, *H*, *T*, *D*_h)")
    box(drawing, "merge\\_heads", Rect(10, 328, 284, 30), dashed=True, size=SMALL)
    arrow(drawing, (middle, 358), (middle, 378))
    for head, x in enumerate((100, 152, 204)):
        drawing.rect(Rect(x - 26, 378, 52, 26), radius=0, wash=0.06 + 0.08 * head)
        drawing.text((x, 391), f"head {head + 1}", size=SMALL)
    note(391, "(*B*, *T*, *D*)")
    arrow(drawing, (middle, 404), (middle, 426))
    output = box(drawing, "o\\_proj", Rect(110, 426, 84, 32), size=SMALL)
    arrow(drawing, output.bottom, (middle, 484))
    drawing.text((middle, 498), "output")
    note(498, "(*B*, *T*, *D*)")
    return drawing


def _draw_head(drawing: Drawing, head: int, x: float) -> None:
    """One head: its queries and keys make a matrix of weights, which averages its values."""
    arrow(drawing, (x, 146), (x, 166))
    card = Rect(x - 42, 166, 84, 134)
    drawing.rect(card, wash=0.06 + 0.08 * head)
    drawing.text((x, 182), f"head {head + 1}", size=SMALL, bold=True)
    # Each head has its own weights: who asks whom differs from head to head.
    strongest = [(0, 0, 1, 2), (0, 1, 0, 1), (0, 0, 2, 0)][head]
    rows = [[0.85 if j == key else 0.05 for j in range(4)] for key in strongest]
    weights = matrix(drawing, [["" for _ in row] for row in rows], (x - 26, 194), cell=(13, 13), name="", shape="")
    for i, row in enumerate(rows):
        for j, weight in enumerate(row):
            drawing.rect(weights.cell(i, j), tone="key", radius=0, stroke=0, wash=0.8 * weight)
    drawing.text((x, 264), f"*A*_{head + 1} *V*_{head + 1}")
    drawing.text((x, 286), "*D*_h wide", size=SMALL, tone="muted")
    arrow(drawing, (x, 300), (x, 328))


def split_and_merge() -> Drawing:
    """Draw the split of three words of width 4 into two heads, and beside it what a plain reshape makes of them.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 506)
    size = len(NUMBERS[0]) // N_HEADS
    whole = matrix(drawing, NUMBERS, (132, 48), cell=(36, 28), rows=WORDS[:3], name="*x*")
    drawing.text((342, whole.centre[1] - 9), "(*B*, *T*, *D*)", size=SMALL, tone="muted")
    drawing.text((342, whole.centre[1] + 9), "(1, 3, 4)", size=SMALL, tone="muted")
    tones: tuple[Tone, Tone] = ("key", "query")
    for head, tone in enumerate(tones):
        frame(drawing, Rect(whole.x + 72 * head, whole.y, 72, whole.height), tone=tone)
    by_columns = [[row[size * head : size * (head + 1)] for row in NUMBERS] for head in range(N_HEADS)]
    flat = [number for row in NUMBERS for number in row]
    pairs = [flat[i : i + size] for i in range(0, len(flat), size)]
    by_memory = [pairs[: len(NUMBERS)], pairs[len(NUMBERS) :]]
    for x, heads, title in ((100, by_columns, "split\\_heads"), (310, by_memory, "plain reshape")):
        drawing.text((x, 200), title, bold=True)
        for head, values in enumerate(heads):
            words = [WORDS[values[row][0] // 10 - 1] for row in range(len(values))]
            tone = tones[head] if x == 100 else "muted"
            part = matrix(drawing, values, (x - 36, 244 + 128 * head), cell=(36, 28), rows=words, tone=tone)
            drawing.text((part.centre[0], part.y - 14), f"head {head + 1}", size=SMALL, tone=tone)
    arrow(drawing, (150, 140), (84, 186))
    arrow(drawing, (118, 186), (184, 140))
    drawing.text((176, 172), "merge\\_heads", size=SMALL, anchor="start", tone="muted")
    arrow(drawing, (254, 140), (310, 186), dashed=True)
    drawing.text((100, 476), "both heads see all words", size=SMALL, tone="muted")
    drawing.text((310, 476), "torn apart, and in pairs", size=SMALL, tone="muted")
    drawing.text((205, 496), "(*B*, *H*, *T*, *D*_h) = (1, 2, 3, 2) on both sides", size=SMALL, tone="muted")
    return drawing


def three_sources() -> Drawing:
    """Draw where queries, keys and values come from in self-, causal and cross-attention.

    Returns:
        The drawing: three panels beside each other on a page, below each other on a phone.
    """
    panels = [
        _source("Self-attention", "layer(x)", "(9, 9)"),
        _source("Causal self-attention", "layer(x, mask=…)", "(9, 9)", causal=True),
        _source("Cross-attention", "layer(x, context)", "(10, 9)", crossed=True),
    ]
    narrow = Drawing(350, 3 * 256 - 12)
    drawing = Drawing(690, 246, narrow=narrow)
    for i, panel in enumerate(panels):
        drawing.place(panel, 232 * i, 0)
        narrow.place(panel, 62, 256 * i)
    return drawing


def _source(title: str, call: str, weights: str, *, causal: bool = False, crossed: bool = False) -> Drawing:
    """One panel: the input of the queries on the left, the input of the keys and values on the right, the layer below them."""
    drawing = Drawing(226, 246)
    drawing.text((113, 12), title, bold=True)
    asking = box(drawing, "*x*", Rect(18, 32, 84, 40), tone="query", note="10 French" if crossed else "9 English")
    if crossed:
        asked = box(drawing, "*context*", Rect(124, 32, 84, 40), tone="key", note="9 English")
    layer = Rect(18, 122, 190, 84)
    drawing.rect(layer, wash=0.06)
    for x, name in ((46, "*Q*"), (130, "*K*"), (184, "*V*")):
        drawing.text((x, 136), name, tone="query" if x == 46 else "key")
        if x == 46:
            arrow(drawing, (x, 72), (x, 122), tone="query")
        elif crossed:
            arrow(drawing, (x, asked.bottom[1]), (x, 122), tone="key")
        else:
            start = (76 if x == 130 else 92, asking.bottom[1])
            y = 98 if x == 130 else 86
            arrow(drawing, start, (x, 122), via=[(start[0], y), (x, y)], tone="key")
    drawing.text((28, 164), call.replace("_", "\\_"), size=SMALL, anchor="start")
    drawing.text((28, 188), f"weights {weights}", size=SMALL, anchor="start", tone="muted")
    if causal:
        mask(drawing, [[j <= i for j in range(4)] for i in range(4)], (158, 152), cell=(11, 11))
    arrow(drawing, (113, 206), (113, 226))
    drawing.text((113, 236), "10 outputs" if crossed else "9 outputs", size=SMALL)
    return drawing


def reach_on_a_ring() -> Drawing:
    """Draw how far a word reaches on a ring of pointers: one step after one layer, three after two.

    Returns:
        The drawing: two panels beside each other on a page, below each other on a phone.
    """
    first = _ring("Layer 1: every word looks once", {0: 1, 2: 3}, {0: "0, 1", 2: "2, 3"})
    second = _ring("Layer 2: look two steps down", {0: 2}, {0: "0, 1, 2, 3"})
    narrow = Drawing(350, 530)
    drawing = Drawing(640, 258, narrow=narrow)
    for i, panel in enumerate((first, second)):
        drawing.place(panel, 20 + 320 * i, 0)
        narrow.place(panel, 35, 272 * i)
    return drawing


def _ring(title: str, looks: dict[int, int], holds: dict[int, str]) -> Drawing:
    """A ring of six words, numbered by their distance from the word at the top; some of them look at another."""
    drawing = Drawing(280, 258)
    drawing.text((140, 12), title, bold=True)
    centre, radius, disc = (140.0, 148.0), 78.0, 15.0

    def at(step: int, distance: float = radius) -> Point:
        angle = math.radians(60 * step - 90)
        return (centre[0] + distance * math.cos(angle), centre[1] + distance * math.sin(angle))

    for step in range(6):
        tone: Tone = "query" if step in looks else "key" if step in looks.values() else "ink"
        drawing.circle(at(step), disc, tone=tone)
        drawing.text(at(step), str(step), tone=tone)
        arrow(
            drawing,
            _between(at(step), at(step + 1), disc + 2),
            _between(at(step + 1), at(step), disc + 2),
            tone="muted",
        )
    for asker, asked in looks.items():
        # A look of one step lies on the pointer and covers it, so that both ends touch a word.
        start, end = at(asker), at(asked)
        arrow(drawing, _between(start, end, disc + 2), _between(end, start, disc + 2), tone="query", stroke=2.6)
    for step, text in holds.items():
        x, y = at(step, radius + 24)
        drawing.text(
            (x + (10 if step else 0), y - (8 if step == 0 else -12)), f"holds {text}", size=SMALL, tone="query"
        )
    return drawing


def _between(start: Point, end: Point, distance: float) -> Point:
    share = distance / math.dist(start, end)
    return (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))


def jobs_of_heads(words: Sequence[str], weights: Sequence[Sequence[Sequence[float]]], askers: Sequence[str]) -> Drawing:
    """Draw what each head sees: for some words that ask, the word to which each head gives most weight.

    Args:
        words: the sentence.
        weights: (H, T, S), the attention weights.
        askers: the words that ask, a row each.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 44 + 46 * len(askers))
    grid = Grid(76, 36, 320, 46 * len(askers), len(askers), len(weights))
    for head in range(len(weights)):
        drawing.text((grid.column(head).centre[0], 18), f"head {head + 1}", size=SMALL, bold=True)
    for i, word in enumerate(askers):
        chip(drawing, word, (36, grid.row(i).centre[1]), tone="query", size=SMALL)
        for head, rows in enumerate(weights):
            row = rows[words.index(word)]
            most = max(range(len(row)), key=row.__getitem__)
            cell = grid.cell(i, head)
            drawing.rect(
                Rect(cell.x + 3, cell.y + 3, cell.width - 6, cell.height - 6),
                radius=6,
                stroke=1,
                fill=weight_colour(row[most]),
            )
            x, y = cell.centre
            # A word that occurs twice is told from its double by its number, which counts from 1.
            number = f" ({most + 1})" if words.count(words[most]) > 1 else ""
            drawing.text((x, y - 8), words[most] + number, size=SMALL)
            drawing.text((x, y + 9), f"{row[most]:.2f}", size=SMALL)
    return drawing


def take_a_head_away() -> Drawing:
    """Draw a layer's output as a sum of its heads' contributions: all of them, one removed, one replaced by its mean.

    Returns:
        The drawing: three panels beside each other on a page, below each other on a phone.
    """
    panels = [
        _contributions("all heads", ""),
        _contributions("head 2 removed", "nothing"),
        _contributions("head 2 replaced", "its mean"),
    ]
    narrow = Drawing(350, 3 * 216 - 10)
    drawing = Drawing(690, 206, narrow=narrow)
    for i, panel in enumerate(panels):
        drawing.place(panel, 232 * i, 0)
        narrow.place(panel, 62, 216 * i)
    return drawing


def _contributions(title: str, second: str) -> Drawing:
    """One panel: four contributions and a bias are added up; the second may be missing."""
    drawing = Drawing(226, 206)
    drawing.text((113, 12), title, bold=True)
    total = operation(drawing, "+", (158, 112), radius=14)
    for head in range(4):
        part = Rect(12, 34 + 42 * head, 92, 32)
        absent = head == 1 and second
        box(
            drawing,
            second if absent else f"head {head + 1}",
            part,
            tone="query" if absent else "key",
            dashed=bool(absent),
        )
        if absent != "nothing":
            end = _between(total.centre, part.right, 15)
            arrow(drawing, part.right, end, tone="query" if absent else "key")
    arrow(drawing, (158, 62), total.top)
    drawing.text((158, 50), "*b*_O", tone="muted")
    arrow(drawing, total.right, (204, 112))
    drawing.text((214, 112), "*o*")
    return drawing


def who_notices(patterns: Sequence[tuple[str, Sequence[Sequence[bool]]]]) -> Drawing:
    """Draw which outputs notice a change of which words, for several versions of a layer.

    Args:
        patterns: for each version its name and (T, T) booleans; row `i`, column `j`: output `i` notices word `j`.

    Returns:
        The drawing.
    """
    cell, pitch = 12.0, 128.0
    side = cell * len(patterns[0][1])
    drawing = Drawing(pitch * len(patterns) + 16, side + 92)
    for i, (name, pattern) in enumerate(patterns):
        x = 20 + pitch * i
        drawing.text((x + side / 2, 20), name, size=SMALL, bold=True)
        mask(drawing, pattern, (x, 46), cell=(cell, cell))
    drawing.text((drawing.width / 2, side + 64), "columns: the word that is changed", size=SMALL, tone="muted")
    drawing.text((drawing.width / 2, side + 82), "rows: the output that may notice", size=SMALL, tone="muted")
    return drawing


def two_permutations() -> Drawing:
    """Draw both symmetries of a layer: permuted words permute the outputs, renumbered heads change nothing.

    Returns:
        The drawing: two panels beside each other on a page, below each other on a phone.
    """
    panels = [_permuted("Words permuted", WORDS[:3], summed=False)]
    panels.append(_permuted("Heads renumbered", [f"head {h}" for h in (1, 2, 3)], summed=True))
    narrow = Drawing(350, 2 * 176)
    drawing = Drawing(690, 168, narrow=narrow)
    for i, panel in enumerate(panels):
        drawing.place(panel, 352 * i, 0)
        narrow.place(panel, 6, 180 * i)
    return drawing


def _permuted(title: str, names: Sequence[str], *, summed: bool) -> Drawing:
    """One panel: three rows in order, and beside them the same in another order."""
    drawing = Drawing(338, 168)
    drawing.text((169, 12), title, bold=True)
    for x, order in ((12, (0, 1, 2)), (182, (2, 0, 1))):
        total = operation(drawing, "+", (x + 106, 92), radius=12) if summed else None
        for row, number in enumerate(order):
            part = box(drawing, names[number], Rect(x, 38 + 42 * row, 66, 28), tone="key", size=SMALL)
            if total is not None:
                arrow(drawing, part.right, _between(total.centre, part.right, 13))
            else:
                arrow(drawing, part.right, (x + 104, part.centre[1]))
                drawing.text((x + 118, part.centre[1]), f"*o*_{number + 1}")
        if total is not None:
            arrow(drawing, total.right, (x + 136, 92))
            drawing.text((x + 144, 92), "*o*")
    return drawing
