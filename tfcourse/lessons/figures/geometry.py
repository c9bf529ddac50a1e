"""Where a part of a drawing lies, and the points at which arrows leave and reach it."""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A rectangle in the coordinates of its drawing: pixels, x to the right and y downwards."""

    x: float
    """Left edge."""
    y: float
    """Upper edge."""
    width: float
    height: float

    @property
    def centre(self) -> Point:
        """The middle."""
        return self.at(0.5, 0.5)

    @property
    def top(self) -> Point:
        """The middle of the upper edge."""
        return self.at(0.5, 0.0)

    @property
    def bottom(self) -> Point:
        """The middle of the lower edge."""
        return self.at(0.5, 1.0)

    @property
    def left(self) -> Point:
        """The middle of the left edge."""
        return self.at(0.0, 0.5)

    @property
    def right(self) -> Point:
        """The middle of the right edge."""
        return self.at(1.0, 0.5)

    def at(self, across: float, down: float) -> Point:
        """The point at these fractions of the width, from the left, and of the height, from above."""
        return (self.x + across * self.width, self.y + down * self.height)


@dataclass(frozen=True)
class Grid(Rect):
    """A rectangle of equal cells, such as a matrix or a mask."""

    rows: int
    """Number of rows."""
    columns: int
    """Number of columns."""

    def cell(self, row: int, column: int) -> Rect:
        """One cell; rows and columns count from 0."""
        width, height = self.width / self.columns, self.height / self.rows
        return Rect(self.x + column * width, self.y + row * height, width, height)

    def row(self, row: int) -> Rect:
        """A whole row."""
        cell = self.cell(row, 0)
        return Rect(self.x, cell.y, self.width, cell.height)

    def column(self, column: int) -> Rect:
        """A whole column."""
        cell = self.cell(0, column)
        return Rect(cell.x, self.y, cell.width, self.height)
