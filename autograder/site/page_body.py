"""Examine a page's HTML: alternative texts of its images, and the files that its interactive figures need.

Matplotlib figures that reach a page as image files get the file's path for an alternative text, and accessibility checkers accept
any text at all. So the site looks for itself: a picture without words, or with a path for words, is a warning, and warnings are errors.

A lesson's output holds an element such as ``<head-explorer>`` with its data and a readable table inside. The files for it lie in a static
folder under the element's name, ``head-explorer.js`` and ``head-explorer.css``. What it shares with other elements lies under the last
word of that name, ``explorer.js`` and ``explorer.css``, and is loaded first. Only pages that have the element load its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

_PATH = re.compile(r"^\S*[\\/]\S*$|^\S+\.(png|jpe?g|gif|svg|webp)$", re.IGNORECASE)


class _ImageChecker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "img":
            self._examine_element(f"<img src={(attributes.get('src') or '')[:80]!r}>", attributes.get("alt"))
        elif tag == "svg" and attributes.get("role") == "img" and "aria-labelledby" not in attributes:
            self._examine_element("<svg role='img'>", attributes.get("aria-label"))

    def _examine_element(self, element: str, text: str | None) -> None:
        if not (text or "").strip():
            self.faults.append(f"{element} has no alternative text")
        elif _PATH.match((text or "").strip()):
            self.faults.append(f"{element} has a file path for an alternative text: {text!r}")


def image_faults(html: str) -> list[str]:
    """Return the faults of alternative texts in a piece of HTML, a sentence per image.

    Returns:
        One entry for each ``<img>`` whose ``alt``, and each ``<svg role="img">`` whose ``aria-label``, is missing, empty or a file
        path. An SVG without that role is decoration, or is named by the element around it.
    """
    pictures = _ImageChecker()
    pictures.feed(html)
    pictures.close()
    return pictures.faults


_ELEMENT = re.compile(r"<([a-z][a-z0-9]*(?:-[a-z0-9]+)+)[\s>]")


def element_files(body: str, static: Iterable[Path]) -> list[str]:
    """Return the static files that a page's custom elements need, in loading order."""
    elements = sorted(set(_ELEMENT.findall(body)))
    shared = sorted({name.rsplit("-", 1)[-1] for name in elements})
    candidates = [f"{name}.{suffix}" for name in (*shared, *elements) for suffix in ("css", "js")]
    folders = list(static)
    return [name for name in candidates if any((folder / name).is_file() for folder in folders)]
