"""Print decks with Chromium: the slides alone, and a handout with two slides a page and their notes."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from autograder.errors import CourseError

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SCRIPTS = re.compile(r"<script>\s*var revealjsConfig.*?</script>", re.S)
_REVEAL = '<div class="reveal">'
_SECONDS = 120
KINDS = ("slides", "handout")


def find_chromium() -> str:
    """Return the path of Chromium.

    Raises:
        CourseError: if it is not installed.
    """
    path = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if path is None:
        raise CourseError(
            "there is no Chromium here, which prints slides",
            do="Install it (apt-get install chromium), or open a deck in a browser, add ?print-pdf to its address and print it.",
        )
    return path


def print_decks(folder: Path, names: Sequence[str], chromium: str, progress: Callable[[str], None]) -> list[Path]:
    """Print decks to ``03-slides.pdf`` and ``03-handout.pdf`` beside them; those newer than their deck stay.

    Raises:
        CourseError: if Chromium fails.
    """
    written = []
    for name in names:
        page = folder / f"{name}.html"
        for kind in KINDS:
            target = folder / f"{name}-{kind}.pdf"
            written.append(target)
            if target.is_file() and target.stat().st_mtime >= page.stat().st_mtime:
                continue
            progress(f"slides: {target.name}")
            draft = folder / f"{name}-{kind}.print.html"
            draft.write_text(printed_page(page.read_text(encoding="utf-8"), kind), encoding="utf-8")
            try:
                _print(draft, target, chromium)
            finally:
                draft.unlink()
    return written


def printed_page(page: str, kind: str) -> str:
    """Return a deck's page as one that is printed: its slides one below the other, and without reveal.js."""
    page = _SCRIPTS.sub("", page).replace("<body>", f'<body class="printed {kind}">')
    head, _, rest = page.partition('<div class="slides" role="main">')
    body, end, tail = rest.partition("\n    </div>")
    slides = re.findall(r"<section\b(?:(?!<section\b).)*?</section>", body, re.S)
    sheets = "".join(
        f'<div class="sheet">{slide}{_notes(slide) if kind == "handout" else ""}</div>' for slide in slides
    )
    return f'{head.replace(_REVEAL, "<div>")}<div role="main">{sheets}{end}{tail}'


def _notes(slide: str) -> str:
    match = re.search(r'<aside class="[^"]*\bnotes\b[^"]*">(.*?)</aside>', slide, re.S)
    return f'<div class="printed-notes">{match[1]}</div>' if match else ""


def _print(page: Path, target: Path, chromium: str) -> None:
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={profile}",
        ]
        options += ["--virtual-time-budget=20000", f"--print-to-pdf={target}", page.as_uri()]
        try:
            done = subprocess.run([chromium, *options], capture_output=True, text=True, timeout=_SECONDS, check=False)
            fault = "" if target.is_file() and done.returncode == 0 else done.stderr[-500:]
        except subprocess.TimeoutExpired:
            fault = f"it took more than {_SECONDS} seconds"
    if fault:
        raise CourseError(f"Chromium did not print the slides: {fault}", where=page)
