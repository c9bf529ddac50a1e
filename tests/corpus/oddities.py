"""What honest students put beside the exercises: settings of PyTorch, habits of Colab, names, scratch work, cells that break off.

Each oddity is a right notebook with one of them in it, and says what it loses: nothing, but for those under which the work is really
broken. Those say why; whoever runs the notebook from top to bottom sees it too. How solutions themselves are written is in
``oddities_in_solutions``.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .material import Work, code

# One with a mask, gradients and a name that PyTorch has as well, one without tensors among its inputs, one of whole numbers, a class.
EXERCISES = ("scaled_dot_product_attention", "causal_mask", "attention_cost", "FeedForward")
FUNCTIONS = EXERCISES[:-1]
EVERYTHING = ("everything",)
Loss = Mapping[str, tuple[str, ...]]
Place = Callable[[Work, str], None]


@dataclass(frozen=True)
class Oddity:
    """A right notebook with an oddity in it.

    Attributes:
        name: the oddity in a few words.
        make: puts it into a right notebook.
        lost: the aspects that fail, by exercise; all others pass.
        told: the kinds of the problems that are named; they cost nothing by themselves.
        why: why the loss is just.
        exercise: the one exercise whose cell is another, if it is no more than that.
    """

    name: str
    make: Callable[[Work], None]
    lost: Loss = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    why: str = ""
    exercise: str = ""


CELLS: list[Oddity] = []


# ------------------------------------------------------------------------------------------------- cells of one's own


def top(work: Work, source: str) -> None:
    """Put a cell above all others."""
    work.cells.insert(0, code(source))


def first(work: Work, source: str) -> None:
    """Put a cell below the first code cell."""
    work.cells.insert(work.at("setup") + 1, code(source))


def tests(work: Work, source: str) -> None:
    """Put a cell before every test cell."""
    for name in EXERCISES:
        work.cells.insert(work.at(f"test_{name}"), code(source))


def last(work: Work, source: str) -> None:
    """Put a cell below all others."""
    work.cells.append(code(source))


PLACES: dict[Place, str] = {top: "at the top", first: "first", tests: "before every test", last: "at the end"}


def cell(
    name: str,
    source: str,
    *places: Place,
    lost: Loss | None = None,
    told: Iterable[str] = (),
    why: str = "",
) -> None:
    """Enter a cell that students add, once for each place: by default below the first code cell, and before every test."""
    text = plain(source)
    for place in places or (first, tests):

        def make(work: Work, place: Place = place) -> None:
            place(work, text)

        CELLS.append(Oddity(f"{name}, {PLACES[place]}", make, lost or {}, frozenset(told), why))


def indented(source: str, spaces: int = 4) -> str:
    """Return code further to the right."""
    return textwrap.indent(source, " " * spaces)


def plain(source: str) -> str:
    """Return code as it stands in a cell."""
    return textwrap.dedent(source).strip("\n")


def table(file: str) -> dict[str, list[dict[str, Any]]]:
    """Return the oddities in the TOML file beside a module, by the function that enters them."""
    found: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(file).with_suffix(".toml").read_text(encoding="utf-8"))
    for row in (row for rows in found.values() for row in rows if "lost" in row):
        lost = row["lost"]
        row["lost"] = (
            tuple(lost) if isinstance(lost, list) else {name: tuple(aspects) for name, aspects in lost.items()}
        )
    return found


for _row in table(__file__)["cell"]:
    cell(_row.pop("name"), _row.pop("source"), *[globals()[place] for place in _row.pop("places", ())], **_row)


for _star in ("from torch import *", "from numpy import *", "%pylab inline"):
    cell(
        f"star: {_star}",
        _star,
        lost={"scaled_dot_product_attention": EVERYTHING},
        why="any() of this solution is no longer Python's, and the other one does not take a generator",
    )
