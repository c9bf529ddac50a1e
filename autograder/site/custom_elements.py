"""Interactive figures: a custom element of a page, and the scripts and style sheets that make it work.

A lesson's output holds an element such as ``<head-explorer>`` with its data and a readable table inside. The files for it lie in a static
folder under the element's name, ``head-explorer.js`` and ``head-explorer.css``. What it shares with other elements lies under the last
word of that name, ``explorer.js`` and ``explorer.css``, and is loaded first. Only pages that have the element load its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ELEMENT = re.compile(r"<([a-z][a-z0-9]*(?:-[a-z0-9]+)+)[\s>]")


def element_files(body: str, static: Iterable[Path]) -> list[str]:
    """Return the names of the static files that a page's custom elements need, in the order in which they are to be loaded.

    Args:
        body: the page's HTML.
        static: the static folders; an element without files there needs none.
    """
    elements = sorted(set(_ELEMENT.findall(body)))
    shared = sorted({name.rsplit("-", 1)[-1] for name in elements})
    candidates = [f"{name}.{suffix}" for name in (*shared, *elements) for suffix in ("css", "js")]
    folders = list(static)
    return [name for name in candidates if any((folder / name).is_file() for folder in folders)]
