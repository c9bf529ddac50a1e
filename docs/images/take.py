"""Take the README's two pictures from a built site and a live verdict: `python docs/images/take.py` after `tfcourse build`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

from tfcourse import check

HERE = Path(__file__).parent
LESSON = HERE.parents[1] / "book" / "_build" / "html" / "chapters" / "04_multi_head" / "lesson.html"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def scaled_dot_product_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Make a common mistake: the empty row is left to the softmax."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def lesson(page: Page) -> None:
    """Photograph the head explorer in its page."""
    page.goto(LESSON.as_uri())
    page.locator("head-explorer").first.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    page.screenshot(path=HERE / "lesson.png")


def verdict(page: Page) -> None:
    """Photograph the verdict on a common mistake."""
    body = check(scaled_dot_product_attention)._repr_html_()
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(f'<meta charset="utf-8"><body style="font:16px/1.5 sans-serif;margin:20px">{body}')
        file.flush()
        page.goto(Path(file.name).as_uri())
        page.locator(".tfc-verdict").screenshot(path=HERE / "verdict.png")


def main() -> int:
    """Take both pictures."""
    if not LESSON.is_file():
        print(f"{LESSON} is missing: run `tfcourse build` first", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        lesson(page)
        verdict(page)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
