"""Formulas as small drawings: a feedback page loads nothing, so nothing on it can typeset TeX."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

_SIZE = 20.0
_VERBS = {1: "M", 2: "L", 3: "Q", 4: "C"}
_POINTS = {1: 1, 2: 1, 3: 2, 4: 3}
_CLOSE = 79
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)")
_BARE_FRACTION = re.compile(r"\\frac\s*(\w)\s*(\w)")
# TeX that matplotlib's typesetter knows by another name.
_SYNONYMS = {
    r"\lVert": r"\Vert",
    r"\rVert": r"\Vert",
    r"\lvert": r"\vert",
    r"\rvert": r"\vert",
    r"\tfrac": r"\frac",
    r"\dfrac": r"\frac",
    r"\bm": r"\mathbf",
    r"\boldsymbol": r"\mathbf",
    r"\displaystyle": "",
    r"\|": r"\Vert",
    r"\le": r"\leq",
    r"\ge": r"\geq",
    r"\ne": r"\neq",
}


@lru_cache(maxsize=4096)
def formula(tex: str, *, display: bool = False) -> str:
    """Return a formula as HTML.

    Args:
        tex: the formula, without dollar signs.
        display: whether it stands on a line of its own.

    Returns:
        An inline SVG in the colour of the text around it, readable to screen readers by its TeX; the TeX itself where it cannot be drawn.
    """
    plain = " ".join(tex.split())
    try:
        drawn = _draw(plain)
    except Exception:  # the typesetter says no in many ways, and all of them mean the same
        shown = f'<code class="tex">{html.escape(plain)}</code>'
    else:
        shown = drawn
    return f'<div class="formula">{shown}</div>' if display else shown


def _draw(tex: str) -> str:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    known = _COMMAND.sub(lambda match: _SYNONYMS.get(match[0], match[0]), tex)
    known = _BARE_FRACTION.sub(r"\\frac{\1}{\2}", known)
    text = f"${known}$"
    font: Any = FontProperties(size=_SIZE, math_fontfamily="cm")
    maker = TextToPath()
    vertices, codes = maker.get_text_path(font, text, ismath=True)
    width, height, descent = maker.get_text_width_height_descent(text, font, ismath=True)
    path = _path(vertices, codes, _SIZE / maker.FONT_SCALE)
    em = 1 / _SIZE
    box = f"0 {-(height - descent) - 1:.1f} {width:.1f} {height + 2:.1f}"
    style = f"width:{width * em:.2f}em;height:{(height + 2) * em:.2f}em;vertical-align:{-(descent + 1) * em:.2f}em"
    label = html.escape(tex, quote=True)
    return f'<svg class="math" role="img" aria-label="{label}" viewBox="{box}" style="{style}"><path d="{path}"/></svg>'


def _path(vertices: Any, codes: Any, scale: float) -> str:
    parts: list[str] = []
    i = 0
    while i < len(codes):
        code = int(codes[i])
        if code == _CLOSE:
            parts.append("Z")
            i += 1
            continue
        count = _POINTS[code]
        points = " ".join(f"{x * scale:.2f} {-y * scale:.2f}" for x, y in vertices[i : i + count])
        parts.append(_VERBS[code] + points)
        i += count
    return "".join(parts)
