"""What a finished run leaves in a course, as one comparable value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook


def written(root: Path) -> dict[str, Any]:
    """Return every gradebook row about students, every byte of results and feedback, and the cells of autograded notebooks."""
    return _gradebook_rows(root) | _files(root) | _autograded_cells(root)


def _gradebook_rows(root: Path) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "tfcourse") as gradebook:
        for student in gradebook.students:
            rows[student.id] = (student.first_name, student.last_name, student.email)
            for submission in student.submissions:
                rows[student.id, "submission"] = (submission.assignment.name, submission.timestamp)
                (notebook,) = submission.notebooks
                rows[student.id, "notebook"] = (notebook.name, notebook.late_submission_penalty)
                for grade in notebook.grades:
                    rows[student.id, "grade", grade.name] = (
                        *(grade.auto_score, grade.manual_score, grade.extra_credit),
                        *(bool(grade.needs_manual_grade), grade.max_score),
                    )
                for comment in notebook.comments:
                    rows[student.id, "comment", comment.name] = (comment.auto_comment, comment.manual_comment)
    return rows


def _files(root: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else "folder"
        for folder in ("results", "feedback")
        for path in sorted((root / folder).rglob("*"))
    }


def _autograded_cells(root: Path) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for path in sorted((root / "autograded").rglob("*.ipynb")):
        try:
            content = json.loads(path.read_bytes())["cells"]
        except ValueError:
            content = []
        cells[str(path.relative_to(root))] = [(cell["source"], cell.get("outputs")) for cell in content]
    return cells
