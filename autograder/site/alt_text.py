"""Every picture says in words what it shows.

Matplotlib figures that reach a page as image files get the file's path for an alternative text, and accessibility checkers accept
any text at all. So the site looks for itself: a picture without words, or with a path for words, is a warning, and warnings are errors.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

_PATH = re.compile(r"^\S*[\\/]\S*$|^\S+\.(png|jpe?g|gif|svg|webp)$", re.IGNORECASE)


class _Pictures(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "img":
            self._examine(f"<img src={(attributes.get('src') or '')[:80]!r}>", attributes.get("alt"))
        elif tag == "svg" and attributes.get("role") == "img" and "aria-labelledby" not in attributes:
            self._examine("<svg role='img'>", attributes.get("aria-label"))

    def _examine(self, element: str, text: str | None) -> None:
        if not (text or "").strip():
            self.faults.append(f"{element} has no alternative text")
        elif _PATH.match((text or "").strip()):
            self.faults.append(f"{element} has a file path for an alternative text: {text!r}")


def picture_faults(html: str) -> list[str]:
    """Return what is wrong with the alternative texts of a piece of HTML, a sentence a picture.

    Args:
        html: a page or a part of one.

    Returns:
        One entry for each ``<img>`` whose ``alt``, and each ``<svg role="img">`` whose ``aria-label``, is missing, empty or a file
        path. An SVG without that role is decoration, or is named by the element around it.
    """
    pictures = _Pictures()
    pictures.feed(html)
    pictures.close()
    return pictures.faults
