"""The drawings of chapter 01: the cells of recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tfcourse.lessons.figures.boxes import box, chip
from tfcourse.lessons.figures.drawing import SMALL, Drawing, Tone
from tfcourse.lessons.figures.gated_cells import LSTM_ON_A_PAGE, LSTM_ON_A_PHONE, draw_gru, draw_lstm
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow, bracket
from tfcourse.lessons.figures.steps import draw_steps


def lstm_cell() -> Drawing:
    """Draw the LSTM cell: the cell's way straight through it, and the three gates that act on it.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return draw_lstm(LSTM_ON_A_PAGE, narrow=draw_lstm(LSTM_ON_A_PHONE))


def gru_cell() -> Drawing:
    """Draw the GRU cell: the state's way through it, and the two gates that act on it.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = draw_gru(350, (38, 312), (82, 168, 262), 74)
    return draw_gru(620, (72, 548), (150, 300, 460), 118, narrow=narrow)


LOG = ("1, 1, 2014, 1054", "2, 1, 2014, 1160", "3, 1, 2014, 1404")


def read_line_by_line() -> Drawing:
    """Draw a recurrent network that reads the ferry's log: one line after the other goes into the same small network.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _reading(640, left=96, pitch=172, wide=104, narrow=_reading(350, left=44, pitch=98, wide=62))


def _reading(width: float, *, left: float, pitch: float, wide: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 196, narrow=narrow)
    before: Point = (left - wide / 2 - 28, 92)
    for i, line in enumerate(LOG):
        x = left + pitch * i
        cell = box(drawing, "network", Rect(x - wide / 2, 72, wide, 40), tone="key", size=SMALL)
        arrow(drawing, before, cell.left)
        chip(drawing, line if narrow else line.split(", ")[-1], (x, 158), size=SMALL)
        arrow(drawing, (x, 143), cell.bottom)
        drawing.text((cell.right[0] + 18, 76), f"*h*_{i + 1}", size=SMALL, tone="muted")
        before = cell.right
    end = (left + pitch * (len(LOG) - 1) + wide / 2 + 40, 92)
    arrow(drawing, before, end)
    # Beyond the name of the last state, which the arrow would otherwise overprint.
    drawing.text((end[0] - 2, 36), "how many\ntomorrow?", size=SMALL, tone="query")
    arrow(drawing, (end[0] - 2, 88), (end[0] - 2, 58), tone="query")
    drawing.text((left, 186), "one line per day" if narrow else "passengers", size=SMALL, tone="muted")
    return drawing


def window_model() -> Drawing:
    """Draw the language model with a window of four characters, and the sizes of its layers.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _window(520, pitch=44, narrow=_window(350, pitch=31))


def _window(width: float, *, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 352, narrow=narrow)
    middle = width / 2 + 1.2 * pitch
    xs = [middle + (i - 1.5) * pitch for i in range(4)]
    for i, character in enumerate("thei"):
        chip(drawing, character, (xs[0] - (5.2 - i - 0.4 * (i == 3)) * pitch + 0.4 * pitch, 300), tone="muted")
    for x, character in zip(xs, "ndex", strict=True):
        read = chip(drawing, character, (x, 300), tone="key")
        vector = drawing.rect(Rect(x - 10, 222, 20, 40), wash=0.06, radius=4)
        arrow(drawing, read.top, vector.bottom)
        arrow(drawing, vector.top, (x, 192))
    drawing.text((xs[-1] + pitch, 300), "?", tone="query", bold=True)
    drawing.text((xs[0] - 22, 242), "embeddings,\n12 each", size=SMALL, anchor="end", tone="muted")
    drawing.text((middle, 338), "window, *N* = 4", size=SMALL, tone="muted")
    drawing.text((xs[0] - 3.4 * pitch, 338), "never seen", size=SMALL, tone="muted")
    joined = box(drawing, "*x*: 48 numbers", Rect(middle - 76, 160, 152, 30), size=SMALL)
    hidden = box(drawing, "tanh, 64", Rect(middle - 50, 96, 100, 34))
    logits = box(drawing, "logits *y*, 29", Rect(middle - 64, 30, 128, 36), tone="query")
    arrow(drawing, joined.top, hidden.bottom)
    arrow(drawing, hidden.top, logits.bottom)
    side = middle - 90
    arrow(drawing, (joined.x, 175), (logits.x, 48), via=[(side, 175), (side, 48)])
    drawing.text((side - 8, 112), "direct\nconnections *W*", size=SMALL, anchor="end", tone="muted")
    drawing.text((middle, 14), "which of 29 characters is next?", size=SMALL, tone="query")
    return drawing


def unrolled_network() -> Drawing:
    """Draw a recurrent network twice: with its loop, and unrolled through three steps.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 380)
    _folded(narrow, (140, 96))
    _unrolled(narrow, [82, 174, 266], 276)
    drawing = Drawing(640, 200, narrow=narrow)
    _folded(drawing, (70, 90))
    drawing.text((160, 90), "=", size=24)
    _unrolled(drawing, [290, 410, 530], 90)
    return drawing


def _folded(drawing: Drawing, at: Point) -> None:
    x, y = at
    (cell,) = draw_steps(drawing, [x], y, inputs={0: "*x*_t"}, outputs={})
    arrow(drawing, cell.right, cell.top, via=[(x + 52, y), (x + 52, y - 48), (x, y - 48)])
    drawing.text((x + 60, y - 24), "*h*_t", size=SMALL, anchor="start")


def _unrolled(drawing: Drawing, xs: Sequence[float], y: float) -> None:
    cells = draw_steps(drawing, xs, y, inputs={i: f"*x*_{i + 1}" for i in range(3)}, outputs={})
    gap = cells[1].x - cells[0].right[0]
    arrow(drawing, (cells[0].x - gap, y), cells[0].left)
    arrow(drawing, cells[-1].right, (cells[-1].right[0] + gap, y))
    for i, x in enumerate([cells[0].x - gap, *(cell.right[0] for cell in cells)]):
        drawing.text((x + gap / 2 - 2, y - 16), f"*h*_{i}", size=SMALL)
    span = Rect(cells[0].x, y - 17, cells[-1].right[0] - cells[0].x, 34)
    bracket(drawing, span, "the same *W*_{ih}, *W*_{hh} and biases", side="top", gap=22)


# Number of steps, steps with an input, steps with an output.
ARRANGEMENTS = {
    "(a)\nplain": (1, (0,), (0,)),
    "(b)\none to many": (3, (0,), (0, 1, 2)),
    "(c)\nmany to one": (3, (0, 1, 2), (2,)),
    "(d) encoder–\ndecoder": (4, (0, 1), (2, 3)),
    "(e)\nsynced": (3, (0, 1, 2), (0, 1, 2)),
}


def five_configurations() -> Drawing:
    """Draw the five ways to read and write with one cell: which steps have an input, and which an output.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 436)
    _panels(narrow, list(ARRANGEMENTS)[:3], (6, 10), pitch=36, gap=6)
    _panels(narrow, list(ARRANGEMENTS)[3:], (36, 210), pitch=36, gap=26)
    _legend(narrow, 36, 420)
    drawing = Drawing(680, 232, narrow=narrow)
    _panels(drawing, list(ARRANGEMENTS), (8, 10), pitch=38, gap=24)
    _legend(drawing, 200, 214)
    return drawing


def _panels(drawing: Drawing, names: Sequence[str], corner: Point, *, pitch: float, gap: float) -> None:
    left, top = corner
    for name in names:
        steps, inputs, outputs = ARRANGEMENTS[name]
        width = max(84.0, steps * pitch)
        xs = [left + width / 2 + (i - (steps - 1) / 2) * pitch for i in range(steps)]
        drawing.text((left + width / 2, top + 16), name, size=SMALL)
        states = [drawing.rect(Rect(x - 12, top + 98, 24, 24), tone="key", wash=0.3, radius=5) for x in xs]
        for i, state in enumerate(states):
            if i:
                arrow(drawing, states[i - 1].right, state.left)
            if i in inputs:
                arrow(drawing, drawing.rect(Rect(xs[i] - 12, top + 150, 24, 24), radius=5).top, state.bottom)
            if i in outputs:
                word = drawing.rect(Rect(xs[i] - 12, top + 46, 24, 24), tone="query", wash=0.3, radius=5)
                arrow(drawing, state.top, word.bottom)
        left += width + gap


def _legend(drawing: Drawing, left: float, y: float) -> None:
    drawing.rect(Rect(left, y - 8, 16, 16), radius=4)
    drawing.rect(Rect(left + 92, y - 8, 16, 16), radius=4, tone="key", wash=0.3)
    drawing.rect(Rect(left + 184, y - 8, 16, 16), radius=4, tone="query", wash=0.3)
    for i, label in enumerate(("input", "state", "output")):
        drawing.text((left + 92 * i + 24, y), label, size=SMALL, anchor="start")


def encoder_decoder() -> Drawing:
    """Draw an encoder and a decoder that share nothing but one context, for a string that is reversed.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 470)
    _translator(narrow, (80, 150, 220), 70, (295, 152), (74, 144, 214, 284), 350)
    drawing = Drawing(680, 196, narrow=narrow)
    _translator(drawing, (48, 118, 188), 96, (295, 96), (404, 478, 552, 626), 96)
    return drawing


def _translator(
    drawing: Drawing, read: Sequence[float], y: float, context: Point, write: Sequence[float], below: float
) -> None:
    """Draw the encoder at height `y`, the context, and the decoder at height `below`."""
    encoder = draw_steps(drawing, read, y, inputs=dict(enumerate("abc")), outputs={})
    heard, said = ["BOS", "c", "b", "a"], ["c", "b", "a", "EOS"]
    decoder = draw_steps(drawing, write, below, inputs=dict(enumerate(heard)), outputs=dict(enumerate(said)))
    neck = box(drawing, "*h*, *c*", Rect(context[0] - 28, context[1] - 22, 56, 44), tone="key")
    drawing.text((read[1], y - 42), "encoder", size=SMALL, tone="muted")
    start, end = encoder[-1].right, decoder[0].left
    if y == below:
        arrow(drawing, start, neck.left, tone="key", stroke=4)
        arrow(drawing, neck.right, end, tone="key", stroke=4)
        drawing.text((write[1] + 37, y - 88), "decoder", size=SMALL, tone="muted")
        drawing.text((neck.centre[0], neck.y - 24), "context:\n2*D* numbers", size=SMALL, tone="muted")
    else:
        arrow(
            drawing,
            start,
            neck.left,
            via=[(start[0] + 14, start[1]), (start[0] + 14, neck.centre[1])],
            tone="key",
            stroke=4,
        )
        turn = [(neck.centre[0], 214), (22, 214), (22, end[1])]
        arrow(drawing, neck.bottom, end, via=turn, tone="key", stroke=4)
        drawing.text((write[1] + 35, 246), "decoder", size=SMALL, tone="muted")
        drawing.text((neck.x - 24, neck.y + 38), "context:\n2*D* numbers", size=SMALL, tone="muted", anchor="end")


def teacher_forcing() -> Drawing:
    """Draw a decoder that is given the true tokens, as in training, and one that reads what it has written.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 464)
    _decoder(narrow, (56, 166, 276), 134, forced=True)
    _decoder(narrow, (56, 166, 276), 362, forced=False)
    drawing = Drawing(680, 236, narrow=narrow)
    _decoder(drawing, (56, 160, 264), 134, forced=True)
    _decoder(drawing, (416, 520, 624), 134, forced=False)
    return drawing


def _decoder(drawing: Drawing, xs: Sequence[float], y: float, *, forced: bool) -> None:
    """Draw three steps of a decoder that should write c, b, a and writes d at the second."""
    said = ["c", "d", "a"] if forced else ["c", "d", "e"]
    heard = ["BOS", "c", "b"] if forced else ["BOS", *said[:2]]
    title = "training: reads the true token" if forced else "writing: reads its own token"
    drawing.text((xs[1], y - 112), title, size=SMALL)
    drawing.text((xs[1], y - 88), "target: c b a", size=SMALL, tone="muted")
    cells = draw_steps(drawing, xs, y, inputs=dict(enumerate(heard)), outputs=dict(enumerate(said)))
    if not forced:
        for here, after in pairwise(cells):
            x = (here.right[0] + after.x) / 2
            corners = [(x, y - 58), (x, y + 58)]
            arrow(drawing, (here.centre[0] + 13, y - 58), (after.centre[0] - 13, y + 58), via=corners, tone="query")
    drawing.text(
        (xs[1], y + 88),
        "*b* is given, although *d* was written" if forced else "the next step builds on *d*",
        size=SMALL,
        tone="muted",
    )


def stacked_and_bidirectional() -> Drawing:
    """Draw a stack of two layers, and a network that reads from both ends.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    narrow = Drawing(350, 490)
    _stack(narrow, (65, 175, 285), 0)
    _both_directions(narrow, (65, 175, 285), 246)
    drawing = Drawing(680, 240, narrow=narrow)
    _stack(drawing, (50, 150, 250), 0)
    _both_directions(drawing, (400, 512, 624), 0)
    return drawing


def _stack(drawing: Drawing, xs: Sequence[float], top: float) -> None:
    """Draw two layers: the states of the lower one are the inputs of the upper one."""
    drawing.text((xs[1], top + 12), "stacked", size=SMALL, tone="muted")
    lower = draw_steps(
        drawing, xs, top + 156, inputs={i: f"*x*_{i + 1}" for i in range(3)}, outputs={}, label="lower", side=(56, 34)
    )
    upper = draw_steps(drawing, xs, top + 90, inputs={}, outputs={}, label="upper", side=(56, 34))
    for below, above in zip(lower, upper, strict=True):
        arrow(drawing, below.top, above.bottom)
        arrow(drawing, above.top, (above.top[0], top + 36))


def _both_directions(drawing: Drawing, xs: Sequence[float], top: float) -> None:
    """Draw a forward and a backward network whose states are laid side by side."""
    drawing.text((xs[1], top + 12), "bidirectional: states of width 2*D*", size=SMALL, tone="muted")
    ahead = [box(drawing, "→", Rect(x - 44, top + 139, 40, 34), tone="key") for x in xs]
    back = [box(drawing, "←", Rect(x + 4, top + 73, 40, 34), tone="query") for x in xs]
    for i, x in enumerate(xs):
        word = chip(drawing, f"*x*_{i + 1}", (x, top + 214), size=SMALL, height=24)
        for cell in (ahead[i], back[i]):
            arrow(drawing, (cell.centre[0], word.y - 12), cell.bottom)
            arrow(drawing, cell.top, (cell.centre[0], top + 48))
        drawing.path(f"M{x - 24} {word.y - 12}L{x + 24} {word.y - 12}M{x} {word.y - 12}L{x} {word.y}")
        drawing.rect(Rect(x - 44, top + 28, 44, 20), tone="key", wash=0.3, radius=3)
        drawing.rect(Rect(x, top + 28, 44, 20), tone="query", wash=0.3, radius=3)
    for (first, second), (left, right) in zip(pairwise(ahead), pairwise(back), strict=True):
        arrow(drawing, first.right, second.left)
        arrow(drawing, right.left, left.right)


def corpus_in_blocks() -> Drawing:
    """Draw eleven tokens, cut into blocks of three inputs, and the targets of each block.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _blocks(600, left=110, cell=42, narrow=_blocks(350, left=10, cell=30))


def _blocks(width: float, *, left: float, cell: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 206, narrow=narrow)
    rows: tuple[tuple[str, float, range, Tone], ...] = (
        ("corpus", 30, range(11), "ink"),
        ("inputs", 92, range(9), "key"),
        ("targets", 150, range(1, 10), "query"),
    )
    for name, y, tokens, tone in rows:
        if narrow:
            drawing.text((left - 10, y + 14), name, size=SMALL, anchor="end", tone="muted")
        else:
            drawing.text((left, y - 10), name, size=SMALL, anchor="start", tone="muted")
        for column, token in enumerate(tokens):  # the targets of a block stand under its inputs
            gap = 0 if name == "corpus" else 5 * (column // 3)
            where = Rect(left + cell * column + gap + 1, y, cell - 2, 28)
            drawing.rect(where, tone="muted" if token == 10 else tone, wash=0.1, radius=4, dashed=token == 10)
            drawing.text(where.centre, str(token), size=SMALL)
    drawing.text((left + 1.5 * cell, 194), "one block", size=SMALL, tone="muted")
    drawing.text((left + 11 * cell, 74), "left over", size=SMALL, anchor="end", tone="muted")
    return drawing


def gradient_on_its_way() -> Drawing:
    """Draw a gradient that goes back through four states and is multiplied by the same weight at each step.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _way_back(600, left=60, pitch=124, narrow=_way_back(350, left=30, pitch=72))


def _way_back(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 204, narrow=narrow)
    names = ["*h*_1", "*h*_2", "*h*_3", "*h*_4", "loss"]
    xs = [left + pitch * i for i in range(5)]
    states = [box(drawing, name, Rect(x - 22, 26, 44, 34), tone="key") for name, x in zip(names, xs, strict=True)]
    for before, after in pairwise(states):
        arrow(drawing, before.right, after.left)
    drawing.text((width / 2, 12), "forward: one step after the other", size=SMALL, tone="muted")
    for y, weight in ((104, 0.5), (158, 2.0)):
        for i, x in enumerate(xs[:4]):
            size = weight ** (3 - i)
            drawing.text((x, y), f"{size:g}", size=SMALL, tone="query")
            if i < 3:
                arrow(drawing, (xs[i + 1] - 22, y), (x + 22, y), tone="query", stroke=1.2 + min(size, 4.0))
        drawing.text((xs[4] + 4, y), f"weight\n{weight:g}", size=SMALL, tone="muted")
    drawing.text((width / 2, 192), "backward: size of the gradient", size=SMALL, tone="muted")
    return drawing


def all_states_kept() -> Drawing:
    """Draw an encoder whose states are all kept, and a decoder that could look at each of them.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _kept(560, (70, 170, 270), 440, narrow=_kept(350, (44, 124, 204), 300))


def _kept(width: float, xs: tuple[float, float, float], at: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 196, narrow=narrow)
    cells = draw_steps(drawing, xs, 116, inputs=dict(enumerate("abc")), outputs={})
    decoder = box(drawing, "decoder", Rect(at - 38, 99, 76, 34), tone="query", size=SMALL)
    for i, cell in enumerate(cells):
        state = box(drawing, f"*h*_{i + 1}", Rect(cell.x, 48, 44, 28), tone="key", size=SMALL)
        arrow(drawing, cell.top, state.bottom)
        rise = 12 + 12 * i
        side = at + 12 - 12 * i
        arrow(
            drawing,
            (side, decoder.y),
            state.top,
            via=[(side, rise), (state.centre[0], rise)],
            tone="query",
            dashed=True,
        )
    arrow(drawing, cells[-1].right, decoder.left)
    return drawing
