"""Checks of chapter 05: positions, given and learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.sections import HEADINGS
from tfcourse import positions

CHAPTER = "05_transformer"


# -------------------------------------------------------------------------------------------------------- sinusoids


def table(draw: Draw) -> Case:
    """A table of positions: at least three pairs of columns, so that a wavelength in the middle is seen."""
    length, pairs = draw.sizes(2, low=3)
    return Case({"length": length, "d_model": 2 * pairs})


def far(draw: Draw) -> Case:
    """A table so long that the angles of its last rows are large."""
    return Case({"length": 40 + int(draw.integers(0, 10)), "d_model": 6})


def table_elsewhere(draw: Draw) -> Case:
    """A table that is wanted on another device."""
    return table(draw).with_arguments(device="meta")


def growing_table(draw: Draw, factor: int) -> Case:
    """More positions, and more columns."""
    return Case({"length": 6 * factor, "d_model": 8 * factor})


def odd_width(draw: Draw) -> Case:
    """A sine without its cosine."""
    return Case({"length": 4, "d_model": 7})


Device = torch.device | str | None


def _angles(length: int, d_model: int, device: Device, first: int = 0) -> Tensor:
    """The angle of every position and pair, (T, D / 2)."""
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd")
    position = torch.arange(first, first + length, device=device, dtype=torch.float64)
    return position[:, None] * _speeds(d_model, device)


def _speeds(d_model: int, device: Device) -> Tensor:
    return 10_000.0 ** -(torch.arange(0, d_model, 2, device=device, dtype=torch.float64) / d_model)


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    return torch.stack([even, odd], -1).flatten(1).float()


@misconception("halves in the place of pairs", read="sinusoids")
def in_halves(length: int, d_model: int, device: Device = None) -> Tensor:
    """All sines stand in the first half of the columns and all cosines in the second. Some code does it like that, but the formula
    lets them alternate: the sine of a pair in column 2i, its cosine right beside it in column 2i + 1.
    """
    angles = _angles(length, d_model, device)
    return torch.cat([angles.sin(), angles.cos()], -1).float()


@misconception("sines and cosines exchanged", read="sinusoids")
def exchanged(length: int, d_model: int, device: Device = None) -> Tensor:
    """The cosine comes first and the sine second. At position 0 the even columns are sin 0 = 0 and the odd ones cos 0 = 1."""
    angles = _angles(length, d_model, device)
    return _interleaved(angles.cos(), angles.sin())


@misconception("the number of the column in place of 2i", read="sinusoids")
def twice_the_column(length: int, d_model: int, device: Device = None) -> Tensor:
    """The exponent counts twice: the even numbers 0, 2, 4 … are doubled once more. They are the 2i of the formula already, so the
    wavelengths grow with the square of what they should.
    """
    angles = _angles(length, d_model, device)
    speeds = _speeds(d_model, device)
    angles = angles / speeds * speeds**2
    return _interleaved(angles.sin(), angles.cos())


@misconception("i in the place of 2i", read="sinusoids")
def half_the_exponent(length: int, d_model: int, device: Device = None) -> Tensor:
    """The exponent is i / D, half of what it should be: it is 2i / D, so the wavelengths grow almost to 10000 · 2π and not to its root."""
    angles = _angles(length, d_model, device)
    speeds = _speeds(d_model, device)
    angles = angles / speeds * speeds.sqrt()
    return _interleaved(angles.sin(), angles.cos())


@misconception("sine and cosine of two angles", read="sinusoids")
def own_angle_for_every_column(length: int, d_model: int, device: Device = None) -> Tensor:
    """Every column has a wavelength of its own, so that a sine and the cosine beside it no longer belong to one angle. A pair is the
    hand of one clock: only then is moving on by k places the same rotation everywhere.
    """
    if d_model % 2:
        raise ValueError(d_model)
    columns = torch.arange(d_model, device=device, dtype=torch.float64)
    angles = torch.arange(length, device=device, dtype=torch.float64)[:, None] * 10_000.0 ** -(columns / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()


@misconception("wavelengths run backwards", read="sinusoids")
def multiplied(length: int, d_model: int, device: Device = None) -> Tensor:
    """The position is multiplied by 10000^(2i/D) where it should be divided: the later columns turn faster and faster, in place of more
    and more slowly, and neighbours look unrelated.
    """
    speeds = _speeds(d_model, device)
    angles = _angles(length, d_model, device) / speeds / speeds
    return _interleaved(angles.sin(), angles.cos())


@misconception("positions counted from one", read="sinusoids")
def from_one(length: int, d_model: int, device: Device = None) -> Tensor:
    """The first position is given the number 1. Positions are counted from 0, so that the first row is 0, 1, 0, 1 and so on."""
    angles = _angles(length, d_model, device, first=1)
    return _interleaved(angles.sin(), angles.cos())


@misconception("width counted in pairs", read="sinusoids")
def last_reaches_ten_thousand(length: int, d_model: int, device: Device = None) -> Tensor:
    """The exponents are spread so that the last is exactly 1. The formula divides 2i by D, and the largest 2i is D - 2: the last
    wavelength stays a little below 10000 · 2π.
    """
    _angles(length, d_model, device)
    pairs = torch.arange(d_model // 2, device=device, dtype=torch.float64)
    speeds = 10_000.0 ** -(pairs / max(d_model // 2 - 1, 1))
    angles = torch.arange(length, device=device, dtype=torch.float64)[:, None] * speeds
    return _interleaved(angles.sin(), angles.cos())


@misconception("turned on its side", read="shapes-05")
def on_its_side(length: int, d_model: int, device: Device = None) -> Tensor:
    """The table has one row a column. One row a position is wanted, (T, D), so that it can be added to a sequence."""
    return positions.sinusoidal_positions(length, d_model, device).T


@misconception("in double precision", read="sinusoids")
def left_in_double(length: int, d_model: int, device: Device = None) -> Tensor:
    """The numbers are right, but they are left in float64. To compute the angles so is wise; what leaves the function is float32."""
    angles = _angles(length, d_model, device)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


@misconception("made on the CPU", read="sinusoids")
def made_on_the_cpu(length: int, d_model: int, device: Device = None) -> Tensor:
    """The table is made on the default device, whatever the argument says: on a GPU it meets embeddings that live elsewhere."""
    return positions.sinusoidal_positions(length, d_model)


@misconception("position by position", read="sinusoids")
def position_by_position(length: int, d_model: int, device: Device = None) -> Tensor:
    """The numbers are right, but a Python loop goes from position to position. A column of positions times a row of speeds gives all
    angles at once.
    """
    _angles(length, d_model, device)
    speeds = _speeds(d_model, device)
    rows = [torch.stack([(t * speeds).sin(), (t * speeds).cos()], -1).flatten().float() for t in range(length)]
    return torch.stack(rows)


@misconception("odd width accepted", read="sinusoids")
def odd_accepted(length: int, d_model: int, device: Device = None) -> Tensor:
    """An odd width is rounded or cut silently, and the sum with the embeddings fails later, or worse. Every sine needs its cosine: raise a
    ValueError that names the width.
    """
    even = d_model + d_model % 2
    return positions.sinusoidal_positions(length, even, device)[:, :d_model]


SINUSOIDAL_POSITIONS = Exercise(
    reference=positions.sinusoidal_positions,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, table, far),
        look.values(
            2, table, table, title="Sines in the even columns, their cosines beside them, at the right speeds."
        ),
        look.values(0.5, far, name="far", title="Far positions are right, too."),
        look.device(0.5, table_elsewhere),
        look.vectorised(0.5, growing_table, axis="positions or columns"),
        look.refuses(0.5, table, odd_width, title="A width that is odd is a ValueError."),
    ),
    misconceptions=(
        in_halves,
        exchanged,
        twice_the_column,
        half_the_exponent,
        own_angle_for_every_column,
        multiplied,
        from_one,
        last_reaches_ten_thousand,
        on_its_side,
        left_in_double,
        made_on_the_cpu,
        position_by_position,
        odd_accepted,
    ),
)


# ---------------------------------------------------------------------------------------------------- added to a sequence


def placed(draw: Draw) -> Case:
    """A sequence, and a table that is longer."""
    b, t, d, more = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "positions": draw.normal(t + more, d)})


def exactly(draw: Draw) -> Case:
    """A table with as many rows as there are examples and positions: which of the two axes is meant goes unseen by the shapes."""
    t, d = draw.sizes(2, low=3)
    return Case({"x": draw.normal(t, t, d), "positions": draw.normal(t, d)})


def piece(draw: Draw) -> Case:
    """A sequence that begins further back; the last row of the table is its last."""
    b, t, d, start = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "positions": draw.normal(start + t, d), "start": start})


def more_placed(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(3 * factor, 4 * factor, 6), "positions": draw.normal(9 * factor, 6), "start": 2})


def too_long(draw: Draw) -> Case:
    """The table ends one place too early."""
    case = piece(draw)
    return case.with_arguments(positions=case.arguments["positions"][:-1])


def before_the_start(draw: Draw) -> Case:
    """A place before the first."""
    return placed(draw).with_arguments(start=-1)


def too_narrow(draw: Draw) -> Case:
    """A table of one column, which would be added to every column without a word."""
    case = placed(draw)
    return case.with_arguments(positions=case.arguments["positions"][:, :1])


def single_precision_table(draw: Draw) -> Case:
    """A sequence in half precision, and a table in single precision, as sinusoids are made."""
    case = placed(draw).to(torch.bfloat16)
    return case.with_arguments(positions=case.arguments["positions"].float())


def _rows(x: Tensor, positions: Tensor, start: int) -> Tensor:
    """The rows for the places of x, or an error."""
    if x.shape[-1] != positions.shape[-1] or start < 0 or start + x.shape[1] > len(positions):
        raise ValueError(f"{tuple(x.shape)} and {tuple(positions.shape)} at {start} do not fit")
    return positions[start : start + x.shape[1]].to(x.dtype)


@misconception("one row for every example", read="positions")
def along_the_batch(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Example number b gets row b of the table, at all its places. It is the place in the sequence that counts, the axis T: all examples
    get the same rows.
    """
    _rows(x, positions, start)
    rows = positions[torch.arange(start, start + len(x), device=x.device) % len(positions)]
    return x + rows[:, None].to(x.dtype)


@misconception("start ignored", read="learned-positions")
def start_ignored(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The rows are taken from the beginning of the table, whatever start says. A sequence that comes in pieces would have its first place
    again and again.
    """
    return x + _rows(x, positions, start) * 0 + positions[: x.shape[1]].to(x.dtype)


@misconception("last rows of the table", read="learned-positions")
def from_the_end(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The last rows of the table are added. The first place has the first row; where the table is longer, its rest is not used."""
    _rows(x, positions, start)
    return x + positions[len(positions) - x.shape[1] :].to(x.dtype)


@misconception("start counted from one", read="learned-positions")
def start_from_one(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The rows are shifted by one, as if the first place had the number 1. Places are counted from 0."""
    _rows(x, positions, start)
    places = torch.arange(start + 1, start + 1 + x.shape[1], device=x.device)
    return x + positions[places % len(positions)].to(x.dtype)


@misconception("multiplied", read="positions")
def multiplied_in(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The vectors are multiplied by their positions. They are added: position 0 of the sinusoids would wipe out half of the columns."""
    return x * _rows(x, positions, start)


@misconception("side by side", read="positions")
def side_by_side(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The positions are put beside the vectors, which makes the model twice as wide. They are added, and the width remains."""
    return torch.cat([x, _rows(x, positions, start).expand_as(x)], -1)


@misconception("scaled by the width", read="positions")
def scaled_sum(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The vectors are multiplied by sqrt(D) here. That is done to embeddings, once, where they are looked up; this function only adds."""
    return x * math.sqrt(x.shape[-1]) + _rows(x, positions, start)


@misconception("cut off from learning", read="learned-positions")
def cut_off(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The table is detached (or read through .data), so no gradient reaches it: learned positions would stay as they were drawn."""
    return x + _rows(x, positions, start).detach()


@misconception("changes its input", read="positions")
def added_in_place(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The positions are added in place (+=): the caller's vectors are changed, too, and a second call adds them twice."""
    x += _rows(x, positions, start)
    return x


@misconception("single precision takes over", read="positions")
def promoted(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """A sum of half and single precision is single precision: a table in float32 changes the dtype of the whole model behind it. Bring the
    rows to the dtype of x first.
    """
    _rows(x, positions, start)
    return x + positions[start : start + x.shape[1]]


@misconception("place by place", read="positions")
def place_by_place(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """The numbers are right, but a Python loop goes from place to place (or from example to example). Broadcasting adds a table (T, D) to
    all examples at once.
    """
    rows = _rows(x, positions, start)
    return torch.stack([x[:, t] + rows[t] for t in range(x.shape[1])], 1)


@misconception("begins again at the end", read="learned-positions")
def begins_again(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Where the table ends, its rows are used a second time (or its last one again and again), and nobody is told. A place that was never
    learned is a mistake of the caller: raise a ValueError.
    """
    if x.shape[-1] != positions.shape[-1]:
        raise ValueError(tuple(positions.shape))
    places = torch.arange(start, start + x.shape[1], device=x.device) % len(positions)
    return x + positions[places].to(x.dtype)


@misconception("a narrow table broadcast", read="learned-positions")
def narrow_broadcast(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """A table of a single column is added to every column without a word: that is what broadcasting does. Compare the widths and raise a
    ValueError.
    """
    if start < 0 or start + x.shape[1] > len(positions):
        raise ValueError(start)
    return x + positions[start : start + x.shape[1]].to(x.dtype)


ADD_POSITIONS = Exercise(
    reference=positions.add_positions,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, placed, single_precision_table),
        look.values(1, placed, exactly, title="Every place gets its own row, the same one in every example."),
        look.values(0.5, piece, name="start", title="A sequence may begin further back."),
        look.gradients(
            0.5, piece, wrt=("x", "positions"), title="Gradients flow back to the vectors and to the table."
        ),
        look.unmutated(0.5, placed),
        look.half_precision(0.5, placed),
        look.device(0.5, piece),
        look.vectorised(0.5, more_placed, axis="examples or places"),
        look.refuses(
            0.5,
            piece,
            too_long,
            before_the_start,
            too_narrow,
            title="A place that the table does not have, or another width, is a ValueError.",
        ),
    ),
    misconceptions=(
        along_the_batch,
        start_ignored,
        from_the_end,
        start_from_one,
        multiplied_in,
        side_by_side,
        scaled_sum,
        cut_off,
        added_in_place,
        promoted,
        place_by_place,
        begins_again,
        narrow_broadcast,
    ),
)
