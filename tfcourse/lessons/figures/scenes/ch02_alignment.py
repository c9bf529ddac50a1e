"""The drawings of chapter 02: a decoder that looks back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow, curve
from tfcourse.lessons.figures.matrices import mask

SOURCE = ("forty-", "##five")
TARGET = ("fünf", "##und", "##vierzig")
# How strongly each German token looks at each English one.
LOOKS = ((0.04, 0.30), (0.06, 0.06), (0.30, 0.04))


def looking_back() -> Drawing:
    """Draw a decoder that looks back at the source before each word that it writes.

    Returns:
        The drawing.
    """
    narrow = _looking(350, left=60, pitch=115)
    return _looking(560, left=120, pitch=160, narrow=narrow)


def _looking(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 190, narrow=narrow)
    written = [chip(drawing, word, (left + pitch * i, 40), tone="query") for i, word in enumerate(TARGET)]
    read = [chip(drawing, word, (left + pitch * (i + 0.5), 142), tone="key") for i, word in enumerate(SOURCE)]
    for i, row in enumerate(LOOKS):
        for j, weight in enumerate(row):
            curve(drawing, written[i].bottom, read[j].top, weight=weight)
    drawing.text((width / 2, 12), "what is written", size=SMALL, tone="muted")
    drawing.text((width / 2, 176), "what was read", size=SMALL, tone="muted")
    return drawing


# The example of the text: scores whose softmax is 1/10, 8/10, 1/10.
WORDS, SCORES, WEIGHTS = ("forty-", "##five", "end"), ("0", "ln 8", "0"), (0.1, 0.8, 0.1)
NOTES = ("(10, 0)", "(0, 10)", "(0, 0)")


def soft_lookup() -> Drawing:
    """Draw the three steps of attention: score each annotation, make weights of the scores, blend.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _lookup(560, left=160, pitch=120, narrow=_lookup(350, left=92, pitch=92))


def _lookup(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 332, narrow=narrow)
    xs = [left + pitch * i for i in range(3)]
    query = box(drawing, "query *s*", Rect(xs[1] - 44, 6, 88, 32), tone="query")
    total = operation(drawing, "+", (xs[1], 266), tone="key")
    for x, word, note, score, share in zip(xs, WORDS, NOTES, SCORES, WEIGHTS, strict=True):
        key = box(drawing, word, Rect(x - 40, 78, 80, 46), tone="key", note=note)
        curve(drawing, query.bottom, key.top, weight=0.03, tone="query")
        scored = box(drawing, score, Rect(x - 28, 148, 56, 28), size=SMALL)
        arrow(drawing, key.bottom, scored.top)
        weight = drawing.rect(Rect(x - 28, 200, 56, 28), radius=4, fill=weight_colour(share))
        drawing.text(weight.centre, f"{share}", size=SMALL)
        arrow(drawing, scored.bottom, weight.top)
        curve(drawing, weight.bottom, total.top, weight=0.4 * share)
    for y, name in ((162, "score"), (214, "weigh"), (266, "blend")):
        drawing.text((6, y), name, size=SMALL, anchor="start", tone="muted")
    context = box(drawing, "context (1, 8)", Rect(xs[1] - 62, 298, 124, 30), size=SMALL, tone="key")
    arrow(drawing, total.bottom, context.top)
    return drawing


# What each score does to the query, to the key, and to both; and a remark.
SCORE_PANELS = {
    "content": ("*s*", "*h*", "cosine", "ignores lengths"),
    "additive": ("*s* *W*_q", "*h* *W*_k", "tanh(+) · *v*", "a small network"),
    "location": ("*s* *W*", "", "entry *j*", "never sees *h*"),
    "general": ("*s* *W*", "*h*", "product", "a learned matrix"),
    "dot": ("*s*", "*h*", "product", "no parameters"),
    "scaled dot": ("*s*", "*h*", "product / √*D*", "no parameters"),
}


def six_scores() -> Drawing:
    """Draw the six scores beside each other: what is done to the query, to the key, and to both.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _scores(680, columns=3, narrow=_scores(350, columns=2))


def _scores(width: float, *, columns: int, narrow: Drawing | None = None) -> Drawing:
    height = 186
    drawing = Drawing(width, height * (6 // columns), narrow=narrow)
    for n, (name, (query, key, joined, remark)) in enumerate(SCORE_PANELS.items()):
        x, y = (n % columns + 0.5) * width / columns, height * (n // columns)
        drawing.text((x, y + 14), name, bold=True)
        drawing.text((x, y + 166), remark, size=SMALL, tone="muted")
        top = box(drawing, joined, Rect(x - 62, y + 34, 124, 34), size=SMALL)
        left = box(drawing, query, Rect(x - 76, y + 108, 68, 34), tone="query", size=SMALL)
        right = box(drawing, key or "*h*", Rect(x + 8, y + 108, 68, 34), tone="key", size=SMALL, dashed=not key)
        arrow(drawing, left.top, (left.centre[0], top.bottom[1]))
        if key:
            arrow(drawing, right.top, (right.centre[0], top.bottom[1]))
    return drawing


# What becomes of exponentials 1, 8, 1 and, in the padding, 1 and 1.
SOFTMAX_ROWS = {
    "softmax without a mask": ("1/12", "8/12", "1/12", "1/12", "1/12"),
    "masked softmax": ("1/10", "8/10", "1/10", "0", "0"),
    "zeroed after the softmax": ("1/12", "8/12", "1/12", "0", "0"),
}


def masked_weights() -> Drawing:
    """Draw the weights of the text's example without a mask, with one, and with one that comes too late.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _masked(520, left=75, cell=74, narrow=_masked(350, left=10, cell=66))


def _masked(width: float, *, left: float, cell: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 294, narrow=narrow)
    for i, word in enumerate(("forty-", "##five", "end", "pad", "pad")):
        drawing.text((left + (i + 0.5) * cell, 12), word, size=SMALL, tone="muted" if word == "pad" else "ink")
    drawing.text((left, 36), "mask", size=SMALL, anchor="start", tone="muted")
    mask(drawing, [[True, True, True, False, False]], (left, 48), cell=(cell, 28))
    for n, (name, entries) in enumerate(SOFTMAX_ROWS.items()):
        y = 104 + 68 * n
        drawing.text((left, y), name, size=SMALL, anchor="start", tone="muted")
        for i, entry in enumerate(entries):
            where = Rect(left + i * cell, y + 12, cell, 30)
            drawing.rect(where, radius=0, fill=weight_colour(float(Fraction(entry))))
            drawing.text(where.centre, entry, size=SMALL)
    return drawing


def decoder_step() -> Drawing:
    """Draw one step of Bahdanau's decoder: the old state asks, and the context enters the cell and the output.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = _step(350, (32, 148, 262), 64)
    return _step(640, (60, 300, 500), 100, narrow=narrow)


def _step(width: float, xs: tuple[float, float, float], wide: float, narrow: Drawing | None = None) -> Drawing:
    """Draw the step with the old state, the cell and the output at `xs`."""
    drawing = Drawing(width, 330, narrow=narrow)
    parts: tuple[tuple[str, float, float, Tone], ...] = (
        ("*s*_{t−1}", xs[0], 56, "query"),
        ("GRU", xs[1], wide, "ink"),
        ("*W*_{out}", xs[2], wide, "ink"),
    )
    state, cell, out = (
        box(drawing, label, Rect(x - side / 2, 100, side, 40), tone=tone, size=SMALL) for label, x, side, tone in parts
    )
    token = chip(drawing, "*y*_{t−1}", (xs[1], 40), size=SMALL)
    arrow(drawing, state.right, cell.left)
    arrow(drawing, cell.right, out.left)
    drawing.text(((cell.right[0] + out.x) / 2, 106), "*s*_t", size=SMALL)
    arrow(drawing, token.bottom, cell.top)
    arrow(drawing, token.right, out.top, via=[(xs[2], 40)])
    arrow(drawing, out.right, (width - 4, 120))
    drawing.text((width - 4, 104 if narrow else 84), "logits", size=SMALL, anchor="end")
    attend = box(drawing, "score, weigh, blend", Rect(xs[1] - 100, 196, 146, 34), tone="key", size=SMALL)
    arrow(drawing, state.bottom, attend.left, via=[(xs[0], 213)], tone="query")
    _context(drawing, attend, cell, out)
    for i in range(4):
        note = box(drawing, f"*h*_{i + 1}", Rect(attend.x - 12 + 44 * i, 270, 38, 30), tone="key", size=SMALL)
        arrow(drawing, note.top, (note.centre[0], 230))
    drawing.text((attend.centre[0], 318), "annotations", size=SMALL, tone="muted")
    return drawing


def _context(drawing: Drawing, attend: Rect, cell: Rect, out: Rect) -> None:
    """The context goes to the cell and to the output."""
    entry = cell.centre[0]
    arrow(drawing, (entry, attend.y), cell.bottom, tone="key")
    drawing.text((entry + 8, 168), "*c*_t", size=SMALL, anchor="start")
    arrow(drawing, attend.right, out.bottom, via=[(out.centre[0], attend.centre[1])], tone="key")


def looks_next_door() -> Drawing:
    """Draw where the second `##hundert` comes from, and where the additive score looks most.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _next_door(560, left=70, pitch=105, narrow=_next_door(350, left=36, pitch=70))


def _next_door(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 178, narrow=narrow)
    words = ("seven", "hundred", "and", "thirty-", "##five")
    read = [
        chip(drawing, word, (left + pitch * i, 126), size=SMALL, tone="key" if i < 2 else "ink")
        for i, word in enumerate(words)
    ]
    written = chip(drawing, "##hundert", (left + pitch, 24), tone="query", size=SMALL)
    curve(drawing, written.bottom, read[0].top, weight=0.5)
    drawing.path(f"M{written.bottom[0]} {written.bottom[1]}L{read[1].top[0]} {read[1].top[1]}", dashed=True)
    drawing.text((left + pitch + 12, 78), "its true partner", size=SMALL, anchor="start", tone="muted")
    drawing.text((width / 2, 162), "thick: where the additive score looks", size=SMALL, tone="muted")
    return drawing


# The order of day, month and year; ISO 8601 has year, month, day.
ORDERS = {
    "Germany": ("day", "month", "year"),
    "United States": ("month", "day", "year"),
    "Hungary": ("year", "month", "day"),
}
DIGITS = {"year": 4, "month": 2, "day": 2}


def date_orders() -> Drawing:
    """Draw how the parts of a date in three countries move into the order of ISO 8601.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 480)
    for i, place in enumerate(ORDERS):
        _date(narrow, place, (175, 160.0 * i))
    drawing = Drawing(680, 160, narrow=narrow)
    for i, place in enumerate(ORDERS):
        _date(drawing, place, (114 + 226.0 * i, 0))
    return drawing


def _date(drawing: Drawing, place: str, top: Point) -> None:
    """Draw the parts of a date in their order, and below them in that of ISO 8601."""
    x, y = top
    parts, iso = ORDERS[place], ("year", "month", "day")
    read = {
        part: chip(drawing, part, (x + 68 * (i - 1), y + 44), size=SMALL, tone="key") for i, part in enumerate(parts)
    }
    for i, part in enumerate(iso):
        written = chip(drawing, part, (x + 68 * (i - 1), y + 122), size=SMALL, tone="query")
        curve(drawing, read[part].bottom, written.top, weight=0.05 * DIGITS[part])
    drawing.text((x, y + 14), f"{place}: {_crossings(parts)} crossings", size=SMALL, tone="muted")


def _crossings(parts: Sequence[str]) -> int:
    """Return how many pairs of digits change their order on the way to ISO 8601."""
    iso = ("year", "month", "day")
    pairs = [(one, other) for n, one in enumerate(parts) for other in parts[n + 1 :]]
    return sum(DIGITS[one] * DIGITS[other] for one, other in pairs if iso.index(one) > iso.index(other))


# Invented weights of four words, of which some are closed.
CLOSED = {
    "all places open": ("0.80", "0.15", "0.05", "0.00"),
    "strongest closed": ("", "0.75", "0.25", "0.00"),
    "all closed": ("", "", "", ""),
}


def closed_places() -> Drawing:
    """Draw weights with all places open, with the strongest closed, and with none open.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _weight_rows(560, CLOSED, left=170, narrow=_weight_rows(350, CLOSED, left=7))


def _weight_rows(
    width: float, rows: Mapping[str, Sequence[str]], *, left: float, cell: float = 84, narrow: Drawing | None = None
) -> Drawing:
    """Draw rows of weights below their words; an empty entry is a place that is closed."""
    pitch, first = (56, 34) if narrow else (68, 52)
    drawing = Drawing(width, first + pitch * len(rows) - 10, narrow=narrow)
    for i, word in enumerate(("seven", "hundred", "and", "five")):
        drawing.text((left + (i + 0.5) * cell, 12), word, size=SMALL)
    for n, (name, entries) in enumerate(rows.items()):
        y = first + pitch * n
        if narrow:
            drawing.text((left - 12, y + 17), name, size=SMALL, anchor="end", tone="muted")
        else:
            drawing.text((left, y - 12), name, size=SMALL, anchor="start", tone="muted")
        for i, entry in enumerate(entries):
            where = Rect(left + i * cell, y, cell, 34)
            tone: Tone = "ink" if entry else "muted"
            drawing.rect(where, radius=0, fill=weight_colour(float(entry or 0)), tone=tone, dashed=not entry)
            drawing.text(where.centre, entry or "×", size=SMALL, tone=tone)
    return drawing
