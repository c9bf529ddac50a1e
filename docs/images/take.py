"""Take the README's pictures: `python docs/images/take.py` after `make demo`, which builds the site and grades a sample class.

Beside the pictures it writes `shown.json`, the text behind each of them. A test compares that with today's.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from autograder.checking.verdict import Verdict
from tfcourse import check

if TYPE_CHECKING:
    from playwright.sync_api import Page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "book" / "_build" / "html"
LESSON = "chapters/07_decoding/lesson"
TEMPLATE = ROOT / "autograder" / "grading" / "reports" / "templates" / "class_report.html"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def scaled_dot_product_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Make a common mistake: the empty row is left to the softmax."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def texts() -> dict[str, list[str]]:
    """Return the text that each picture shows, as it is today."""
    intro = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    lesson = (ROOT / f"{LESSON}.md").read_text(encoding="utf-8")
    cell = re.search(r"^sampler_explorer\((.*?)^```", lesson, re.MULTILINE | re.DOTALL)
    assert cell, f"{LESSON} has no sampler explorer"
    template = re.sub(
        r"<style>.*?</style>|<[^>]*>|{%.*?%}|{#.*?#}", "\n", TEMPLATE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return {
        "front_page": _lines(intro.partition("=== Mask after the softmax")[0]),
        "lesson": _lines(cell[1]),
        "verdict": _verdict_lines(check(scaled_dot_product_attention)),
        "report": [line.strip() for line in _lines(template)],
    }


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _verdict_lines(verdict: Verdict) -> list[str]:
    rows = [f"{finding.mark} {finding.title} {finding.earned:g}/{finding.points:g}" for finding in verdict.findings]
    return rows + [diagnosis.explanation for diagnosis in verdict.diagnoses]


def front_page(page: Page) -> None:
    """Photograph the top of the front page."""
    page.goto((SITE / "book" / "intro.html").as_uri())
    page.wait_for_timeout(500)
    page.screenshot(path=HERE / "front_page.png")


def lesson(page: Page) -> None:
    """Photograph the sampler explorer in its lesson."""
    page.goto((SITE / f"{LESSON}.html").as_uri())
    page.wait_for_timeout(500)
    page.locator("sampler-explorer .explorer-figure").first.evaluate("figure => window.scrollTo(0, figure.offsetTop)")
    top = page.locator("sampler-explorer .explorer-figure").first.evaluate(
        "figure => figure.getBoundingClientRect().top"
    )
    page.evaluate("distance => window.scrollBy(0, distance)", top - 80)
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / "lesson.png")


def verdict(page: Page) -> None:
    """Photograph the verdict on a common mistake."""
    body = check(scaled_dot_product_attention)._repr_html_()
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(f'<meta charset="utf-8"><body style="font:16px/1.5 sans-serif;margin:20px">{body}')
        file.flush()
        page.goto(Path(file.name).as_uri())
        page.locator(".tfc-verdict").screenshot(path=HERE / "verdict.png")


def report(page: Page, file: Path) -> None:
    """Photograph the top of the class report."""
    page.goto(file.as_uri())
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / "report.png")


def main() -> int:
    """Take all pictures, and note what they show."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--course", type=Path, default=ROOT / "demo", help="the graded sample class")
    file = (parser.parse_args().course / "report.html").resolve()
    missing = [path for path in (SITE / "book" / "intro.html", file) if not path.is_file()]
    if missing:
        print(f"{missing[0]} is missing: run `make demo` first", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        front_page(page)
        lesson(page)
        verdict(page)
        report(page, file)
        browser.close()
    (HERE / "shown.json").write_text(json.dumps(texts(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
