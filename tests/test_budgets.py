"""No folder of tests, and no room, has more statements than its row of a table allows: what comes in pushes something out."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tools import draw_packages
from tools.import_graph import modules, room_of

ROOT = Path(__file__).parents[1]
BUDGETS = {
    folder: int(budget.replace(",", ""))
    for folder, budget in re.findall(
        r"^\| `(tests[\w/]*)` \|.*\| ([\d,]+) \|$", (ROOT / "tests" / "README.md").read_text("utf-8"), re.M
    )
}


def statements_in(path: Path) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(path.read_text("utf-8"))))


def statements() -> Counter[str]:
    """Return the number of statements in each folder of the table; a file counts in the innermost folder that has a row."""
    counts: Counter[str] = Counter()
    for path in (ROOT / "tests").rglob("*.py"):
        folders = (parent.relative_to(ROOT).as_posix() for parent in path.parents)
        counts[next(name for name in folders if name in BUDGETS)] += statements_in(path)
    return counts


def test_no_folder_of_tests_is_larger_than_its_budget() -> None:
    counts = statements()
    assert set(counts) == set(BUDGETS), "every row is a folder of tests"
    assert {name: count for name, count in counts.items() if count > BUDGETS[name]} == {}


def test_no_room_is_larger_than_its_budget() -> None:
    budgets, counts = {room: int(text.replace(",", "")) for room, text in draw_packages.budgets().items()}, Counter()
    for name, path in modules().items():
        if not name.startswith(("tfcourse", "autograder.checks.ch")) and (room := room_of(name)):
            counts[room] += statements_in(path)
    assert {room: count for room, count in counts.items() if count > budgets.get(room, 0)} == {}
