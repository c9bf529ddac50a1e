"""What an attack is, and the register of all of them: one source for the tests and for the table in docs/attacks.md."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

# In the order of the table; the modules of `families` have the same names, with underscores.
FAMILIES = (
    "patched libraries",
    "forged outputs",
    "kernel internals",
    "object tricks",
    "shortcuts",
    "forbidden functions",
    "reading",
    "network",
    "files",
    "processes",
    "resources",
    "poisoning",
    "wire",
    "privileges",
)
RECORD = Path(__file__).parent / "stock.json"


@dataclass(frozen=True)
class Attack:
    """A submission that tries something it must not.

    The cells may use what :data:`tests.attacks.ground.PREAMBLE` defines: the places and ports worth attacking, and ``won(…)``, by which
    an attack says that it got through.

    Attributes:
        name: its short name, unique among all.
        story: what it tries, in one sentence.
        wants: what it would gain, as a phrase.
        cells: cells put below the notebook's first one.
        bodies: what is written into the cells of exercises; the others stay stubs.
        last: a cell put at the end of the notebook.
        edit: what is done to the notebook itself, before it is handed in.
        solved: exercises that are solved by honest work; their points are the only ones it may get, and it must get them.
        due: points that its functions earn honestly, such as those for a right shape; more is a gain.
        home: what it tries to have said on its student's feedback page; nothing of the page may hold that text.
        limit: whether nothing but a limit ends it; the student must then be told of that limit.
        unsafe: why it must not be run where nothing holds it; empty if it does no harm outside its folder.
        family: the family; set by :func:`attacks`.
    """

    name: str
    story: str
    wants: str
    cells: tuple[str, ...] = ()
    bodies: Mapping[str, str] = field(default_factory=dict)
    last: str = ""
    edit: Callable[[Any], None] | None = None
    solved: tuple[str, ...] = ()
    due: float = 0.0
    home: str = ""
    limit: bool = False
    unsafe: str = ""
    family: str = ""

    @property
    def mark(self) -> str:
        """A word that everything the attack leaves behind carries; short enough for the name of a process."""
        return "k" + hashlib.sha256(self.name.encode()).hexdigest()[:10]

    @property
    def stock(self) -> str:
        """What was observed when stock nbgrader graded it."""
        return f"not run: {self.unsafe}" if self.unsafe else told(recorded()[self.name])


def code(text: str) -> str:
    """Return the source of a cell that was written down indented."""
    return dedent(text).strip() + "\n"


@cache
def attacks() -> tuple[Attack, ...]:
    """Return all attacks, family by family."""
    found = []
    for family in FAMILIES:
        module = importlib.import_module(f"{__package__}.families.{family.replace(' ', '_')}")
        found += [_of(family, attack) for attack in module.ATTACKS]
    return tuple(found)


def _of(family: str, attack: Attack) -> Attack:
    return Attack(**{**vars(attack), "family": family})


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return what ``record_stock`` wrote down, by the attacks' names."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))["attacks"]
    return found


def told(observed: Mapping[str, Any]) -> str:
    """Return an observation as a phrase for the table: points, what got out, what happened to the others."""
    parts = [observed["points"]] if observed["points"] != "no points" else []
    parts += observed["traces"]
    parts += [observed["others"]] if observed["others"] else []
    return "; ".join(parts) or "no points"
