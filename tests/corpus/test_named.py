"""How often honest work is named to the lecturer as worth a look: hardly ever."""

from __future__ import annotations

import ast
from pathlib import Path

from autograder.static_analysis.suspicious_code import find_suspicious

from .material import CHAPTER, Work, notebook, source_cells
from .oddities import CELLS, EXERCISES
from .oddities_in_solutions import SOLUTIONS

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


def test_of_right_alternatives_and_honest_notebooks_one_in_a_hundred_is_named_at_most() -> None:
    answers = {f"alternative {name}": find_suspicious([given, text]) for name, text, given in _alternatives()}
    setup = notebook(source_cells(CHAPTER, EXERCISES))
    for oddity in (*CELLS, *SOLUTIONS):
        if "worth a look" not in oddity.told:  # those reach for a thread, a program, Python's own insides, and say so
            work = Work.done(setup)
            oddity.make(work)
            code = [cell for cell in work.cells if cell["cell_type"] == "code"]
            locked = [bool(cell["metadata"].get("nbgrader", {}).get("locked")) for cell in code]
            texts = ["".join(cell["source"]) for cell in code]
            own = [text for text, given in zip(texts, locked, strict=True) if not given]
            answers[f"notebook {oddity.name}"] = find_suspicious(own)
    honest = [name for name in answers if name.startswith("notebook")]
    assert len(honest) >= 100
    named = {name: told for name, told in answers.items() if told}
    assert not [name for name in named if name.startswith("notebook")]
    # A hundred notebooks of all that there are, so that many easy ones do not hide the alternatives.
    assert len(named) <= 0.01 * (len(answers) - len(honest) + 100), named
