"""Prepare a lesson's figure for a slide: as large as the slide allows, cut to a part, or uncovered step by step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

_SVG = re.compile(r"<svg\b[^>]*\btfcourse-figure\b.*?</svg>", re.S)
_STYLE = re.compile(r"<style>.*?</style>", re.S)
_BOX = re.compile(r'viewBox="([^"]+)"')
_LOOK = re.compile(r'(<svg\b[^>]*?) style="[^"]*"')
_ALT = re.compile(r'aria-label="[^"]*"')


def slide_figure(markup: str, lesson: str, options: Mapping[str, str]) -> str:
    """Return the HTML of a figure on a slide.

    Args:
        markup: the output of the lesson's cell.
        lesson: address of the lesson's page, to which links in the figure lead.
        options: all are optional.
            ``crop``: the left and right edge of the part to show, in percent; the upper and lower edge may follow.
            ``steps``: positions in percent of the width. From each on, a cover hides the figure until the next step.
            ``down``: the same, from top to bottom.
            ``alt``: a description of the part.

    Raises:
        ValueError: if the output is no figure, or an option is wrong.
    """
    match = _SVG.search(markup)
    if match is None:
        raise ValueError("the output is neither a drawing nor a plot")
    if unknown := options.keys() - {"crop", "steps", "down", "alt"}:
        raise ValueError(f"unknown options {', '.join(sorted(unknown))}")
    svg = _LOOK.sub(r"\1", match[0].replace('href="#', f'href="{lesson}#') if "<a " in match[0] else match[0], count=1)
    x0, y0, width, height = map(float, _BOX.findall(svg)[0].split())
    if "crop" in options:
        if "alt" not in options:
            raise ValueError("a part of a figure needs its own alt")
        start, end, upper, lower = [*_percents(options["crop"]), 0.0, 1.0][:4]
        x0, y0 = x0 + start * width, y0 + upper * height
        width, height = (end - start) * width, (lower - upper) * height
        box = f'viewBox="{x0:g} {y0:g} {width:g} {height:g}"'
        # The inner one cuts: on a slide of other proportions the outer one shows more than its box.
        inner = f'<svg x="{x0:g}" y="{y0:g}" width="{width:g}" height="{height:g}" {box}>'
        opening, _, content = _BOX.sub(box, svg, count=1).partition(">")
        svg = f"{opening}>{inner}{content.removesuffix('</svg>')}</svg></svg>"
    if "alt" in options:
        svg = _ALT.sub(f'aria-label="{escape(options["alt"])}"', svg, count=1)
    covers = [(x0 + cut * width, y0, (1 - cut) * width, height) for cut in _percents(options.get("steps", ""))]
    covers += [(x0, y0 + cut * height, width, (1 - cut) * height) for cut in _percents(options.get("down", ""))]
    curtains = "".join(
        f'<rect class="slide-curtain fragment fade-out" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}"/>'
        for x, y, w, h in covers
    )
    is_drawing = markup.startswith('<div class="tfcourse-drawing"')
    style = _STYLE.search(markup) if is_drawing else None
    kind = "slide-figure tfcourse-drawing" if is_drawing else "slide-figure"
    return f'<div class="{kind}">{style[0] if style else ""}{svg[: -len("</svg>")]}{curtains}</svg></div>'


def _percents(text: str) -> list[float]:
    return [float(number) / 100 for number in text.split()]
