"""No folder of tests has more statements than its row of the table in ``tests/README.md`` allows: what comes in pushes something out."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGETS = {
    folder: int(budget.replace(",", ""))
    for folder, budget in re.findall(
        r"^\| `(tests[\w/]*)` \|.*\| ([\d,]+) \|$", (ROOT / "tests" / "README.md").read_text("utf-8"), re.M
    )
}


def statements() -> Counter[str]:
    """Return the number of statements in each folder of the table; a file counts in the innermost folder that has a row."""
    counts: Counter[str] = Counter()
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        folders = (parent.relative_to(ROOT).as_posix() for parent in path.parents)
        counts[next(name for name in folders if name in BUDGETS)] += sum(
            isinstance(n, ast.stmt) for n in ast.walk(tree)
        )
    return counts


def test_no_folder_of_tests_is_larger_than_its_budget() -> None:
    counts = statements()
    assert set(counts) == set(BUDGETS), "every row is a folder of tests"
    assert {name: count for name, count in counts.items() if count > BUDGETS[name]} == {}
