"""How often honest work is named to the lecturer as worth a look: hardly ever."""

from __future__ import annotations

import ast
from pathlib import Path

from autograder.static_analysis.suspicious_code import find_suspicious

PROJECT = Path(__file__).parents[2]


def _alternatives() -> list[tuple[str, str, str]]:
    """Return every right alternative: its name, its text, and the imports that it stands behind."""
    found = []
    for path in sorted((PROJECT / "tests/autograder/checks").glob("alternatives_*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        imports = "\n".join(ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom)))
        found += [
            (node.name, ast.unparse(node), imports)
            for node in body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list
        ]
    return found


def test_of_right_alternatives_one_in_a_hundred_is_named_at_most() -> None:
    """Honest notebooks are asked in ``test_oddities``; a hundred of them count here, for there are few alternatives."""
    answers = {name: find_suspicious([given, text]) for name, text, given in _alternatives()}
    named = {name: told for name, told in answers.items() if told}
    assert len(named) <= 0.01 * (len(answers) + 100), named
