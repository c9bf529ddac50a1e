"""The drawings of chapter 01: the cells of recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass

from tfcourse.figures.boxes import box, chip, operation
from tfcourse.figures.drawing import SMALL, Drawing
from tfcourse.figures.geometry import Point, Rect
from tfcourse.figures.lines import arrow


def lstm_cell() -> Drawing:
    """Draw the LSTM cell: the cell's way straight through it, and the three gates that act on it.

    Returns:
        The drawing, with a layout of its own for a phone.
    """
    return _draw_lstm(_ON_A_PAGE, narrow=_draw_lstm(_ON_A_PHONE))


@dataclass(frozen=True)
class _Places:
    """Where the parts of the LSTM stand; all heights are the same on a page and on a phone."""

    width: float
    body: tuple[float, float]
    """Left and right edge of the cell."""
    gates: tuple[float, float, float, float]
    """The middles of f, i, g and o."""
    gate_width: float
    show: float
    """Where the cell is read out."""
    notes: tuple[str, str, str, str]
    """What stands below f, i, g and o."""


_ON_A_PAGE = _Places(
    width=680,
    body=(72, 608),
    gates=(144, 262, 380, 498),
    gate_width=102,
    show=572,
    notes=("forget gate", "input gate", "what is new", "output gate"),
)
_ON_A_PHONE = _Places(
    width=350,
    body=(38, 322),
    gates=(76, 140, 204, 268),
    gate_width=57,
    show=299,
    notes=("forget", "input", "new", "output"),
)

# Heights, from the cell's way down to the input's. The gates' products stand at one height.
_CELL, _PRODUCT, _GATES, _INPUT = 58.0, 148.0, 226.0, 300.0


def _draw_lstm(at: _Places, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(at.width, 358, narrow=narrow)
    left, right = at.body
    drawing.rect(Rect(left, 22, right - left, 302), radius=16, wash=0.03)
    gates = _draw_gates(drawing, at)
    _draw_input(drawing, at, gates)
    _draw_cell(drawing, at, gates)
    _draw_output(drawing, at, gates)
    return drawing


def _draw_gates(drawing: Drawing, at: _Places) -> list[Rect]:
    """The four that are cut from one product: f, i and o between 0 and 1, g between −1 and 1."""
    names = ("*f* = σ(·)", "*i* = σ(·)", "*g* = tanh(·)", "*o* = σ(·)")
    if at is _ON_A_PHONE:
        names = ("*f*", "*i*", "*g*", "*o*")
    return [
        box(drawing, name, Rect(x - at.gate_width / 2, _GATES - 24, at.gate_width, 48), note=note)
        for name, note, x in zip(names, at.notes, at.gates, strict=True)
    ]


def _draw_input(drawing: Drawing, at: _Places, gates: list[Rect]) -> None:
    """The last state and the input reach all four gates."""
    entry = at.body[0] + 18
    arrow(drawing, (2, _INPUT), (gates[-1].centre[0], gates[-1].bottom[1]), via=[(gates[-1].centre[0], _INPUT)])
    for gate in gates[:-1]:
        _branch(drawing, (gate.centre[0], _INPUT), gate.bottom)
    arrow(drawing, (entry, 356), (entry, _INPUT), head=False)
    _dot(drawing, (entry, _INPUT))
    _name(drawing, "*h*_{t−1}", at.body[0], _INPUT, before=True)
    drawing.text((entry + 10, 343), "*x*_t", anchor="start")


def _draw_cell(drawing: Drawing, at: _Places, gates: list[Rect]) -> None:
    """The cell's way: kept in part, then added to."""
    forget, write, new, _ = (gate.centre[0] for gate in gates)
    middle = (write + new) / 2
    times, plus = (operation(drawing, symbol, (x, _CELL), tone="key") for symbol, x in (("×", forget), ("+", middle)))
    arrow(drawing, (2, _CELL), times.left, tone="key", stroke=4)
    arrow(drawing, times.right, plus.left, tone="key", stroke=4)
    arrow(drawing, plus.right, (at.width - 2, _CELL), tone="key", stroke=4)
    _name(drawing, "*c*_{t−1}", at.body[0], _CELL, before=True)
    _name(drawing, "*c*_t", at.body[1], _CELL)
    arrow(drawing, gates[0].top, times.bottom)
    written = operation(drawing, "×", (middle, _PRODUCT))
    arrow(drawing, gates[1].top, written.left, via=[(write, _PRODUCT)])
    arrow(drawing, gates[2].top, written.right, via=[(new, _PRODUCT)])
    arrow(drawing, written.top, plus.bottom)


def _draw_output(drawing: Drawing, at: _Places, gates: list[Rect]) -> None:
    """The state is what the output gate shows of the cell."""
    shown = operation(drawing, "×", (at.show, _PRODUCT))
    squash = Rect(at.show - 19, 83, 38, 28)
    box(drawing, "tanh", squash, size=SMALL)
    _branch(drawing, (at.show, _CELL), squash.top)
    arrow(drawing, squash.bottom, shown.top)
    arrow(drawing, gates[3].top, shown.left, via=[(gates[3].centre[0], _PRODUCT)])
    arrow(drawing, shown.right, (at.width - 2, _PRODUCT))
    _name(drawing, "*h*_t", at.body[1], _PRODUCT)


def _branch(drawing: Drawing, start: Point, end: Point) -> None:
    _dot(drawing, start)
    arrow(drawing, start, end)


def _dot(drawing: Drawing, at: Point) -> None:
    x, y = at
    drawing.path(f"M{x - 3.5:.5g} {y:.5g}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z", filled=True)


def _name(drawing: Drawing, label: str, edge: float, y: float, *, before: bool = False) -> None:
    """Write what a line carries, outside of the cell and above the line."""
    x = edge - 6 if before else edge + 7
    drawing.text((x, y - 17), label, anchor="end" if before else "start")


LOG = ("1, 1, 2014, 1054", "2, 1, 2014, 1160", "3, 1, 2014, 1404")


def read_line_by_line() -> Drawing:
    """Draw a recurrent network that reads the ferry's log: one line after the other goes into the same small network.

    Returns:
        The drawing, with a layout of its own for a phone.
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
    drawing.text((end[0] - 14, 36), "how many\ntomorrow?", size=SMALL, tone="query")
    arrow(drawing, (end[0] - 14, 88), (end[0] - 14, 58), tone="query")
    drawing.text((left, 186), "one line a day" if narrow else "passengers", size=SMALL - 0, tone="muted")
    return drawing
