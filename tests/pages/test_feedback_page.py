"""A feedback page in a student's hands: what follows from one mistake is told once, and tables stack on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.checking.verdict import VERDICT_MIME, Diagnosis, Finding, Verdict
from autograder.grading.feedback.exporter import FeedbackExporter

pytestmark = pytest.mark.browser

CHAPTER = "03_scaled_dot_product"
SCALE = Diagnosis("no scale", "The scores are not divided.", "why-scale", "Why divide by the root")
WEIGHTS = "def masked_attention_weights(q, k):\n    return softmax(q @ k.mT)"
OUTPUT = "def scaled_dot_product_attention(q, k, v):\n    return masked_attention_weights(q, k) @ v"


def _exercise(source: str) -> list[Any]:
    name = source.split("(")[0].removeprefix("def ")
    findings = (
        Finding("values", "The weights come from scaled scores.", 6, False, "at [0, 1]: 0.71, expected 0.52", SCALE),
        Finding("loop", "There is no Python loop.", 2, True, "as it should be"),
    )
    data = {VERDICT_MIME: Verdict(name, CHAPTER, findings).to_dict()}
    mark = {"schema_version": 3, "locked": False, "task": False, "points": 8.0, "score": 2.0}
    stub = {**mark, "grade_id": name, "grade": False, "solution": True}
    test = {**mark, "grade_id": f"test_{name}", "grade": True, "solution": False}
    return [
        new_markdown_cell(f"## The function {name}"),
        new_code_cell(source, metadata={"nbgrader": stub}),
        new_code_cell("check()", metadata={"nbgrader": test}, outputs=[new_output("execute_result", data)]),
    ]


@pytest.fixture
def feedback(tmp_path: Path) -> Path:
    """The page of a student whose second exercise fails because the first one does."""
    notebook = new_notebook(cells=[*_exercise(WEIGHTS), *_exercise(OUTPUT)])
    about = {"assignment": CHAPTER, "student": "ada", "score": 4.0, "max_score": 16.0, "late_penalty": 0.0}
    exporter = FeedbackExporter(default_preprocessors=[])
    html, _ = exporter.from_notebook_node(notebook, {"nbgrader": about})
    (tmp_path / "feedback.html").write_text(html, encoding="utf-8")
    return tmp_path / "feedback.html"


def test_what_follows_from_one_mistake_is_told_once(page: Any, feedback: Path) -> None:
    page.goto(feedback.as_uri())
    assert page.get_by_text(SCALE.explanation).count() == 1
    assert page.locator(".reading li").count() == 1
    assert page.locator(".overview tbody tr").nth(1).inner_text().endswith("follows from masked_attention_weights")
    page.locator("#test_scaled_dot_product_attention .callout a").click()
    assert page.url.endswith("#test_masked_attention_weights")


def test_tables_stack_on_a_phone(page: Any, feedback: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(feedback.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for table in (".overview", ".tfc-verdict[open]"):
        row = page.locator(f"{table} tbody tr").first
        tops = [cell.bounding_box()["y"] for cell in row.locator("th, td").all() if cell.is_visible()]
        assert len(tops) == 3
        assert tops == sorted(set(tops)), "cells stand beside each other"
