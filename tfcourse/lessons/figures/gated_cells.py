"""The gated cells of chapter 01: the LSTM's and the GRU's parts, laid out for a page and for a phone."""

from __future__ import annotations

from dataclasses import dataclass

from tfcourse.lessons.figures.boxes import box, operation
from tfcourse.lessons.figures.drawing import SMALL, Drawing
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow


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


LSTM_ON_A_PAGE = _Places(
    width=680,
    body=(72, 608),
    gates=(144, 262, 380, 498),
    gate_width=102,
    show=572,
    notes=("forget gate", "input gate", "what is new", "output gate"),
)
LSTM_ON_A_PHONE = _Places(
    width=350,
    body=(38, 322),
    gates=(76, 140, 204, 268),
    gate_width=57,
    show=299,
    notes=("forget", "input", "new", "output"),
)

# Heights, from the cell's way down to the input's. The gates' products stand at one height.
_CELL, _PRODUCT, _GATES, _INPUT = 58.0, 148.0, 226.0, 300.0


def draw_lstm(at: _Places, narrow: Drawing | None = None) -> Drawing:
    """Draw the LSTM cell with its parts at some places."""
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
    if at is LSTM_ON_A_PHONE:
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


def draw_gru(
    width: float,
    body: tuple[float, float],
    middles: tuple[float, float, float],
    gate_width: float,
    narrow: Drawing | None = None,
) -> Drawing:
    """Draw the cell between the edges of `body`; z, n and r are at `middles`."""
    drawing = Drawing(width, 358, narrow=narrow)
    drawing.rect(Rect(body[0], 22, body[1] - body[0], 302), radius=16, wash=0.03)
    names = ("*z* = σ(·)", "*n* = tanh(·)", "*r* = σ(·)") if narrow else ("*z*", "*n*", "*r*")
    notes = ("update gate", "candidate", "reset gate") if narrow else ("update", "candidate", "reset")
    gates = [
        box(drawing, name, Rect(x - gate_width / 2, _GATES - 24, gate_width, 48), note=note)
        for name, note, x in zip(names, notes, middles, strict=True)
    ]
    _draw_gru_state(drawing, gates, width, body)
    _draw_gru_input(drawing, gates, body)
    arrow(drawing, gates[2].left, gates[1].right)
    return drawing


def _draw_gru_state(drawing: Drawing, gates: list[Rect], width: float, body: tuple[float, float]) -> None:
    """The state's way: kept in the proportion z, and completed by 1 − z of the candidate."""
    update, candidate = gates[0].centre[0], gates[1].centre[0]
    times, plus = (operation(drawing, sign, (x, _CELL), tone="key") for sign, x in (("×", update), ("+", candidate)))
    for start, end in (((2, _CELL), times.left), (times.right, plus.left), (plus.right, (width - 2, _CELL))):
        arrow(drawing, start, end, tone="key", stroke=4)
    _name(drawing, "*h*", body[0], _CELL, before=True)
    _name(drawing, "*h*′", body[1], _CELL)
    arrow(drawing, gates[0].top, times.bottom)
    written = operation(drawing, "×", (candidate, _PRODUCT))
    _dot(drawing, (update, _PRODUCT))
    rest = Rect((update + candidate) / 2 - 22, _PRODUCT - 14, 40, 28)
    arrow(drawing, (update, _PRODUCT), rest.left)
    box(drawing, "1 − ·", rest, size=SMALL)
    arrow(drawing, rest.right, written.left)
    arrow(drawing, gates[1].top, written.bottom)
    arrow(drawing, written.top, plus.bottom)


def _draw_gru_input(drawing: Drawing, gates: list[Rect], body: tuple[float, float]) -> None:
    """The last state and the input reach both gates and the candidate."""
    entry, last = body[0] + 18, gates[-1]
    _dot(drawing, (14, _CELL))
    arrow(drawing, (14, _CELL), last.bottom, via=[(14, _INPUT), (last.centre[0], _INPUT)])
    for gate in gates[:-1]:
        _branch(drawing, (gate.centre[0], _INPUT), gate.bottom)
    arrow(drawing, (entry, 356), (entry, _INPUT), head=False)
    _dot(drawing, (entry, _INPUT))
    drawing.text((entry + 10, 343), "*x*", anchor="start")
