"""Tests of definitions: which names a module's statements bind."""

from __future__ import annotations

from pathlib import Path

from autograder.static_analysis.definitions import ModuleSource


def test_an_assignment_to_an_element_or_attribute_binds_no_name() -> None:
    text = "table = {}\nindex = 0\ntable[index] = 1\ntable.size = 2\nfirst, *rest = table\n"
    definitions = ModuleSource(Path("module.py"), text).definitions
    assert {name: node.lineno for name, node in definitions.items()} == {"table": 1, "index": 2, "first": 5, "rest": 5}
