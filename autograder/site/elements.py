"""Interactive figures: a custom element of a page, and the script and the style sheet that make it work.

A lesson's output holds an element such as ``<head-explorer>`` with its data and a readable table inside. The files for it lie in a static
folder under the element's name, ``head-explorer.js`` and ``head-explorer.css``, and only pages that have the element load them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ELEMENT = re.compile(r"<([a-z][a-z0-9]*(?:-[a-z0-9]+)+)[\s>]")


def element_files(body: str, static: Iterable[Path]) -> list[str]:
    """Return the names of the static files that a page's custom elements need.

    Args:
        body: the page's HTML.
        static: the static folders; an element without files there needs none.
    """
    names = sorted(set(_ELEMENT.findall(body)))
    candidates = [f"{name}.{suffix}" for name in names for suffix in ("css", "js")]
    return [name for name in candidates if any((folder / name).is_file() for folder in static)]
