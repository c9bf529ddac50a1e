"""Read from notebooks what the second computation needs: what exercises are worth, which rows passed, what a student wrote."""

from __future__ import annotations

import json
from pathlib import Path

VERDICT = "application/vnd.tfcourse.verdict+json"


def exercise_points(path: Path) -> dict[str, float]:
    """Return the points of each exercise and question of a released notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    return {mark["grade_id"].removeprefix("test_"): float(mark["points"]) for mark in marks if mark.get("grade")}


def points_of_rows(course: Path, chapter: str, student: str) -> dict[str, float]:
    """Return what the rows of each exercise gave in a graded notebook."""
    path = course / "autograded" / student / chapter / f"{chapter}.ipynb"
    earned = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if path.is_file() else []:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        for output in cell.get("outputs", []):
            if VERDICT in output.get("data", {}):
                findings = output["data"][VERDICT]["findings"]
                earned[name.removeprefix("test_")] = sum(finding["earned"] for finding in findings)
    return earned


def cell_source(notebook: bytes, name: str) -> str:
    """Return what a student wrote into a cell."""
    cells = json.loads(notebook)["cells"]
    (source,) = [
        "".join(cell["source"]) for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == name
    ]
    return source
