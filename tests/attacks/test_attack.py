"""The register is complete, every attack can be told, and what stock nbgrader did is on record."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from .attack import FAMILIES, attacks, in_family, recorded, rows, told
from .ground import exercises_of
from .table import PAGE, page_with_table


def test_there_are_enough_attacks_and_each_has_a_name_of_its_own() -> None:
    names = [attack.name for attack in attacks()]
    assert len(names) >= 48
    assert len(set(names)) == len(names)
    assert len({attack.mark for attack in attacks()}) == len(names)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_attacks(family: str) -> None:
    assert len(in_family(family)) >= 3


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_an_attack_says_in_one_sentence_what_it_tries(attack) -> None:
    assert attack.story.endswith(".")
    assert attack.story[0].isupper()
    assert attack.wants
    assert not attack.wants.endswith(".")
    assert not attack.unsafe.endswith(".")


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_the_grader_has_the_modules_that_an_attack_names(attack) -> None:
    text = "\n".join([*attack.cells, *attack.bodies.values(), attack.last or ""])
    named = {*re.findall(r"\bautograder(?:\.\w+)+", text), *re.findall(r"from (autograder[\w.]*) import", text)}
    assert [name for name in named if not exists(name)] == [], "an attack on a module that is gone proves nothing"


def exists(name: str) -> bool:
    """Check that a dotted name is a module of the grader, or something in one."""
    parent, _, last = name.rpartition(".")
    try:
        found = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        found = False
    return found or hasattr(importlib.import_module(parent), last)


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_an_attack_does_something_that_a_notebook_understands(attack) -> None:
    texts = [*attack.cells, *attack.bodies.values(), *([attack.last] if attack.last else [])]
    assert texts or attack.edit
    for text in texts:
        ast.parse(TransformerManager().transform_cell(text))
    assert attack.bodies.keys() | set(attack.solved) <= set(exercises_of(attack.family))
    assert not attack.bodies.keys() & set(attack.solved)


def test_every_attack_was_run_under_stock_nbgrader_or_says_why_not() -> None:
    harmless = [attack.name for attack in attacks() if not attack.unsafe]
    assert list(recorded()) == harmless, "run python -m tests.attacks.record_stock"


def test_stock_nbgrader_is_taken_in_by_many_of_them() -> None:
    gains = [name for name, seen in recorded().items() if told(seen) != "no points"]
    assert len(gains) >= 40
    assert sum(seen["points"] == "full marks" for seen in recorded().values()) >= 10


def test_the_table_has_a_row_for_every_attack() -> None:
    table = rows()
    assert [row["name"] for row in table] == [attack.name for attack in attacks()]
    assert all(row[column] for row in table for column in ("family", "name", "story", "wants", "stock"))


def test_the_page_of_attacks_has_the_current_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_table(page), "run python -m tests.attacks.table"
