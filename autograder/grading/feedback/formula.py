r"""Convert formulas to MathML, which browsers render without a library, so that a page with a student's text loads and runs no code.

latex2mathml parses the TeX. It converts hostile TeX to hostile MathML, so the result is rebuilt from an allow-list of elements.

Protects against:

- scripts, links and styles: ``\text{<script>}``, ``\href{javascript:…}``, ``\style``, ``\class``, colours with addresses;
- macros that expand: latex2mathml supports no definitions, and the length of its output is limited;
- exceptions of latex2mathml, and deeply nested formulas: the TeX is shown instead.

Does not protect against:

- wide or high formulas, and formulas with any content
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

# Characters of a formula, and of the MathML for it. The course's own longest has 260.
_LONGEST, _LONGEST_MATHML = 2_000, 40_000
_TAGS = frozenset({
    *("math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt", "mstyle"),
    *("msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"),
})  # fmt: skip
_ATTRIBUTES = frozenset({
    *("accent", "columnalign", "columnlines", "columnspacing", "depth", "displaystyle", "fence", "form", "height", "largeop", "linebreak"),
    *("linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace"),
    *("scriptlevel", "separator", "stretchy", "symmetric", "voffset", "width"),
})  # fmt: skip
_VALUE = re.compile(r"[\w.+%\- ]{1,60}")
# TeX that latex2mathml knows by another name only.
_SYNONYMS = re.compile(r"\\(begin|end)\{aligned\}")


@lru_cache(maxsize=4096)
def formula_html(tex: str, *, display: bool = False) -> str:
    """Convert a TeX formula to HTML.

    Args:
        tex: the formula, without dollar signs.
        display: whether it is a displayed formula.

    Returns:
        MathML, which browsers render and screen readers read; the TeX itself if it cannot be converted.
    """
    plain = " ".join(tex.split())
    try:
        shown = _to_mathml(plain, "block" if display else "inline")
    except Exception:  # the converter says no in many ways, and all of them mean the same
        shown = f'<code class="tex">{html.escape(plain)}</code>'
    return f'<div class="formula">{shown}</div>' if display else shown


def _to_mathml(tex: str, display: str) -> str:
    if len(tex) > _LONGEST:
        raise ValueError("the formula is too long")
    root = convert_to_element(_SYNONYMS.sub(r"\\\1{align*}", tex))
    parts: list[str] = []
    _write_element(root, parts)
    inner = "".join(parts).removeprefix("<math>").removesuffix("</math>")
    if len(inner) > _LONGEST_MATHML:
        raise ValueError("the formula becomes too long")
    return f'<math display="{display}">{inner}</math>'


def _write_element(element: Element, parts: list[str]) -> None:
    """Append an element's markup to ``parts``: an allowed tag with its contents, or only another tag's contents."""
    text = html.unescape(element.text or "")
    if "\\" in text:
        raise ValueError("a command is not known")
    allowed = element.tag in _TAGS
    if allowed:
        marks = (
            f' {name}="{html.escape(value, quote=True)}"'
            for name, value in element.attrib.items()
            if name in _ATTRIBUTES and _VALUE.fullmatch(value)
        )
        parts.append(f"<{element.tag}{''.join(marks)}>")
    parts.append(html.escape(text))
    for child in element:
        _write_element(child, parts)
    if allowed:
        parts.append(f"</{element.tag}>")
