"""MathJax from a Python package, so that formulas need neither a network nor Node.

``sphinx-mathjax-offline`` carries the whole of MathJax 3, 24 MB. Loaded as a Sphinx extension it would copy all of it, with every
ready-made bundle; a page loads one bundle and, on demand, fonts, TeX extensions and the accessibility explorer. Only those are copied.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

PACKAGE = "sphinx-mathjax-offline"
BUNDLE = "mathjax/tex-chtml.js"
"""The bundle that pages load, relative to ``_static``: TeX in, HTML and CSS out, with assistive MathML beside it."""

_WANTED = ("tex-chtml.js", "a11y", "input/mml", "input/mml.js", "input/tex/extensions", "output", "sre", "ui")


def mathjax_source() -> Path:
    """Return the folder of the installed MathJax.

    Raises:
        ModuleNotFoundError: the package that carries it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed: pip install 'tfcourse[book]'", name=PACKAGE)
    return Path(spec.origin).parent / "static" / "mathjax"


def copy_mathjax(static: Path) -> None:
    """Copy what the pages load into a site's ``_static`` folder."""
    source, target = mathjax_source(), static / Path(BUNDLE).parent
    for name in _WANTED:
        item = source / name
        if item.is_dir():
            shutil.copytree(item, target / name, dirs_exist_ok=True)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(item, target / name)
