"""Matrices with their numbers, vectors, and masks as grids."""

from __future__ import annotations

from collections.abc import Sequence

from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Grid, Rect

Entry = float | str


def matrix(
    drawing: Drawing,
    values: Sequence[Sequence[Entry]],
    corner: tuple[float, float],
    *,
    cell: tuple[float, float] = (40, 30),
    form: str = ".2f",
    name: str = "",
    shape: str = "",
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    tone: Tone = "ink",
    shaded: bool = False,
) -> Grid:
    """Draw a matrix with its numbers.

    Args:
        drawing: to draw on.
        values: the rows. Numbers are written by `form`, or plainly where all of them are whole; text is written as it is.
        corner: upper left corner of the first cell.
        cell: width and height of a cell, in pixels.
        form: how numbers are written.
        name: the matrix's letter, above it.
        shape: its shape, below it.
        rows: labels to the left of the rows.
        columns: labels above the columns.
        tone: the colour of its outline and its name.
        shaded: colour each cell by its value, an attention weight, with `weight_colour`.

    Returns:
        The place of its cells.

    Raises:
        ValueError: if rows differ in length, or a shaded value is no weight.
    """
    grid = _grid(values, corner, cell)
    drawing.rect(grid, tone=tone, radius=5, stroke=0, wash=0 if shaded else 0.06)
    written = _written(values, form)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            place = grid.cell(i, j)
            if shaded:
                drawing.rect(place, radius=0, stroke=0, fill=weight_colour(float(value)))
            drawing.text(place.centre, written[i][j], size=SMALL + 1)
    _draw_lattice(drawing, grid, tone)
    _label_sides(drawing, grid, rows, columns)
    x, y = grid.top
    if name:
        drawing.text((x, y - (34 if columns else 15)), name, size=TEXT + 2, tone=tone, bold=True)
    if shape:
        drawing.text((grid.bottom[0], grid.bottom[1] + 15), shape, size=SMALL, tone="muted")
    return grid


def vector(
    drawing: Drawing,
    values: Sequence[Entry],
    corner: tuple[float, float],
    *,
    column: bool = False,
    cell: tuple[float, float] = (40, 30),
    name: str = "",
    tone: Tone = "ink",
    shaded: bool = False,
) -> Grid:
    """Draw a vector: a matrix of one row, or of one column.

    Args:
        drawing: to draw on.
        values: its numbers.
        corner: upper left corner of the first cell.
        column: whether it stands upright.
        cell: width and height of a cell, in pixels.
        name: its letter, above it.
        tone: the colour of its outline and its name.
        shaded: colour each cell by its value, an attention weight.

    Returns:
        The place of its cells.
    """
    rows = [[value] for value in values] if column else [list(values)]
    return matrix(drawing, rows, corner, cell=cell, name=name, tone=tone, shaded=shaded)


def mask(
    drawing: Drawing,
    allowed: Sequence[Sequence[bool]],
    corner: tuple[float, float],
    *,
    cell: tuple[float, float] = (24, 24),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    query: int | None = None,
) -> Grid:
    """Draw a mask: a filled cell is True, the query may attend to the key; a cross is False.

    Args:
        drawing: to draw on.
        allowed: one row for each query, one column for each key.
        corner: upper left corner of the first cell.
        cell: width and height of a cell, in pixels.
        rows: labels to the left of the rows.
        columns: labels above the columns.
        query: a row to frame in the query's colour.

    Returns:
        The place of its cells.

    Raises:
        ValueError: if rows differ in length.
    """
    grid = _grid(allowed, corner, cell)
    for i, row in enumerate(allowed):
        for j, may in enumerate(row):
            place = grid.cell(i, j)
            if may:
                drawing.rect(place, radius=0, stroke=0, fill=weight_colour(0.75))
            else:
                (x, y), arm = place.centre, 0.15 * min(cell)
                left, right, top, bottom = x - arm, x + arm, y - arm, y + arm
                cross = f"M{left:.4g} {top:.4g}L{right:.4g} {bottom:.4g}M{left:.4g} {bottom:.4g}L{right:.4g} {top:.4g}"
                drawing.path(cross, tone="muted", stroke=1.2)
    _draw_lattice(drawing, grid, "ink")
    _label_sides(drawing, grid, rows, columns)
    if query is not None:
        frame(drawing, grid.row(query), tone="query")
    return grid


def frame(drawing: Drawing, where: Rect, *, tone: Tone = "ink") -> None:
    """Frame a row, a column or a cell to which a caption points.

    Args:
        drawing: to draw on.
        where: its place.
        tone: its colour.
    """
    drawing.rect(where, tone=tone, radius=4, stroke=2.6)


def _grid(values: Sequence[Sequence[object]], corner: tuple[float, float], cell: tuple[float, float]) -> Grid:
    lengths = {len(row) for row in values}
    if len(lengths) != 1:
        raise ValueError(f"the rows of a matrix are equally long and there is at least one, not {sorted(lengths)}")
    (columns,) = lengths
    return Grid(*corner, columns * cell[0], len(values) * cell[1], len(values), columns)


def _draw_lattice(drawing: Drawing, grid: Grid, tone: Tone) -> None:
    inner = [(grid.column(j).at(0, 0), grid.column(j).at(0, 1)) for j in range(1, grid.columns)]
    inner += [(grid.row(i).at(0, 0), grid.row(i).at(1, 0)) for i in range(1, grid.rows)]
    if inner:
        lines = "".join(f"M{x1:.5g} {y1:.5g}L{x2:.5g} {y2:.5g}" for (x1, y1), (x2, y2) in inner)
        drawing.path(lines, tone=tone, stroke=1, opacity=0.25)
    drawing.rect(grid, tone=tone, radius=4, stroke=1.4)


def _label_sides(drawing: Drawing, grid: Grid, rows: Sequence[str], columns: Sequence[str]) -> None:
    for i, label in enumerate(rows):
        x, y = grid.row(i).left
        drawing.text((x - 8, y), label, size=SMALL, anchor="end", tone="muted")
    for j, label in enumerate(columns):
        x, y = grid.column(j).top
        drawing.text((x, y - 11), label, size=SMALL, tone="muted")


def _written(values: Sequence[Sequence[Entry]], form: str) -> list[list[str]]:
    # Numbers of a tensor in single precision are whole but for its rounding.
    whole = all(isinstance(value, str) or abs(value - round(value)) < 1e-5 for row in values for value in row)
    form = ".0f" if whole else form
    return [[v if isinstance(v, str) else format(v, form).replace("-", "−") for v in row] for row in values]
