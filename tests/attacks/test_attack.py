"""The register is complete, every attack can be told, and what stock nbgrader did is on record."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re

from IPython.core.inputtransformer2 import TransformerManager

from .attack import FAMILIES, attacks, recorded, told
from .ground import exercises_of
from .table import PAGE, page_with_table


def test_every_attack_can_be_told_apart_and_does_something_to_what_there_is() -> None:
    found = attacks()
    assert len({attack.name for attack in found}) == len({attack.mark for attack in found}) == len(found)
    assert {attack.family for attack in found} == set(FAMILIES)
    for attack in found:
        assert re.fullmatch(r"[A-Z].*\.", attack.story, re.DOTALL), attack.name
        assert attack.wants, attack.name
        texts = [text for text in (*attack.cells, *attack.bodies.values(), attack.last) if text]
        assert texts or attack.edit, attack.name
        for text in texts:
            ast.parse(TransformerManager().transform_cell(text))
        assert attack.bodies.keys() | set(attack.solved) <= set(exercises_of(attack.family)), attack.name
        assert not attack.bodies.keys() & set(attack.solved), attack.name
        named = re.findall(r"\bautograder(?:\.\w+)+|(?<=from )autograder[\w.]*(?= import)", "\n".join(texts))
        assert all(map(exists, named)), f"{attack.name}: an attack on a module that is gone proves nothing: {named}"


def exists(name: str) -> bool:
    """Check that a dotted name is a module of the grader, or something in one."""
    parent, _, last = name.rpartition(".")
    try:
        found = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        found = False
    return found or hasattr(importlib.import_module(parent), last)


def test_every_attack_was_run_under_stock_nbgrader_which_is_taken_in_by_many() -> None:
    harmless = [attack.name for attack in attacks() if not attack.unsafe]
    assert list(recorded()) == harmless, "run python -m tests.attacks.record_stock"
    assert sum(told(seen) != "no points" for seen in recorded().values()) > len(harmless) / 3


def test_the_page_of_attacks_has_the_current_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_table(page), "run python -m tests.attacks.table"
