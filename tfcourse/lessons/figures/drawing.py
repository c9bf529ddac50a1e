"""A drawing of a machine as inline SVG: text as text, the page's ink and colours, and the same bytes on every run.

A `Drawing` is a canvas with a few primitives. The parts to draw with are in `boxes`, `matrices` and `lines`.
"""

from __future__ import annotations

import copy
import html
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from xml.etree import ElementTree as ET

from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.markup import write

Tone = Literal["ink", "muted", "key", "query"]
"""Who is speaking: the page's ink, its quieter ink, indigo for keys and values, burnt orange for the query."""

TEXT = 15.0
"""Font size of labels in pixels, and the smallest that a heading of a part should have."""

SMALL = 13.0
"""Font size of notes and numbers in pixels. Nothing is set smaller but subscripts."""

# Below this share of its size a drawing is not scaled: it scrolls sideways in its own box.
_SMALLEST_SCALE = 0.85

# Where the site's style sheet is missing, in a student's notebook, lines take shades that read on white and on black, and
# coloured text takes the ink. The theme puts a light box under HTML outputs of its dark pages; a drawing wants the page.
_SHEET = """
html[data-theme=dark] .bd-content div.cell_output .text_html:has(.tfcourse-drawing) {
  background-color: transparent; color: inherit; padding: 0; }
.tfcourse-drawing { container-type: inline-size; margin: 0.5rem 0; overflow-x: auto; }
.tfcourse-drawing svg { display: block; height: auto; margin: 0 auto; max-width: 100%; }
.tfcourse-drawing text { fill: currentColor; font-variant-numeric: tabular-nums; }
.tfcourse-drawing .tfd-muted { color: var(--pst-color-text-muted, inherit); }
.tfcourse-drawing .tfd-key { color: var(--tfc-key, #5468ea); }
.tfcourse-drawing .tfd-query { color: var(--tfc-query, #c2551b); }
.tfcourse-drawing text.tfd-key { color: var(--tfc-key, inherit); }
.tfcourse-drawing text.tfd-query { color: var(--tfc-query, inherit); }
.tfcourse-drawing text.tfd-on { color: var(--pst-color-background, #fff); }
.tfcourse-drawing a { color: var(--pst-color-link, inherit); text-decoration: none; }
.tfcourse-drawing a:is(:hover, :focus-visible) { color: var(--pst-color-link-hover, inherit); }
.tfcourse-drawing a:is(:hover, :focus-visible) text { text-decoration: underline; }
.tfcourse-drawing a:is(:hover, :focus-visible) :is(rect, circle) { stroke-opacity: 1; stroke-width: 2.5; }
"""


class Drawing:
    """A canvas of fixed size to which parts are added.

    Args:
        width: in pixels. The article of a page is about 700 wide; a drawing that is wider is scaled down.
        height: in pixels.
        narrow: the same thing laid out for a phone, at most 350 pixels wide. Without one, a drawing that would become
            too small to read scrolls sideways in its own box.
    """

    def __init__(self, width: float, height: float, *, narrow: Drawing | None = None) -> None:
        self.width = width
        self.height = height
        self.narrow = narrow
        self._root = ET.Element("g")
        self._open = [self._root]

    @property
    def frame(self) -> Rect:
        """The whole canvas."""
        return Rect(0, 0, self.width, self.height)

    def rect(
        self,
        where: Rect,
        *,
        tone: Tone = "ink",
        radius: float = 8,
        fill: str = "none",
        wash: float = 0,
        stroke: float = 1.2,
        dashed: bool = False,
    ) -> Rect:
        """Draw a rectangle and return it.

        Args:
            where: its place.
            tone: its colour.
            radius: of its corners, in pixels.
            fill: a CSS colour such as one from `weight_colour`.
            wash: fill it with its tone instead, this opaque, from 0 to 1.
            stroke: width of its outline in pixels, 0 for none.
            dashed: whether the outline is dashed.
        """
        style = {"rx": _number(radius)} | ({"fill": "currentColor", "fill-opacity": _number(wash)} if wash else {})
        style = {"fill": fill} | style
        if stroke:
            style |= {"stroke": "currentColor", "stroke-width": _number(stroke)}
            style |= {"stroke-opacity": "0.55"} if tone == "ink" and stroke < 2 else {}
        if dashed:
            style["stroke-dasharray"] = "5 4"
        size = {"x": where.x, "y": where.y, "width": where.width, "height": where.height}
        self._add("rect", tone, {name: _number(value) for name, value in size.items()} | style)
        return where

    def path(
        self,
        commands: str,
        *,
        tone: Tone = "ink",
        stroke: float = 1.6,
        opacity: float = 1.0,
        filled: bool = False,
        dashed: bool = False,
    ) -> None:
        """Draw a path.

        Args:
            commands: the path in SVG's language, `M10 20L30 40`.
            tone: its colour.
            stroke: width of the line in pixels; not used where `filled`.
            opacity: from 0 to 1.
            filled: fill the path instead of drawing its line.
            dashed: whether the line is dashed.
        """
        style = {"d": commands, "fill": "currentColor" if filled else "none"}
        if not filled:
            style |= {"stroke": "currentColor", "stroke-width": _number(stroke), "stroke-linecap": "round"}
        if dashed:
            style["stroke-dasharray"] = "5 4"
        if opacity != 1.0:
            style["opacity"] = _number(opacity)
        self._add("path", tone, style)

    def circle(
        self, centre: Point, radius: float, *, tone: Tone = "ink", fill: str = "none", stroke: float = 1.4
    ) -> Rect:
        """Draw a circle and return the square around it."""
        place = {"cx": _number(centre[0]), "cy": _number(centre[1]), "r": _number(radius)}
        self._add("circle", tone, place | {"fill": fill, "stroke": "currentColor", "stroke-width": _number(stroke)})
        return Rect(centre[0] - radius, centre[1] - radius, 2 * radius, 2 * radius)

    def text(
        self,
        at: Point,
        label: str,
        *,
        size: float = TEXT,
        anchor: Literal["start", "middle", "end"] = "middle",
        tone: Tone | Literal["on"] = "ink",
        bold: bool = False,
    ) -> None:
        """Write a label, whose lines are centred vertically at a point.

        Args:
            at: the point at which the label has the end that `anchor` names.
            label: the text, with the marks of `markup`; a newline begins another line.
            size: font size in pixels.
            anchor: the start, the middle or the end of the label.
            tone: its colour; `on` is the page's ground, for text on a solid colour.
            bold: whether it is bold.
        """
        lines = label.split("\n")
        for i, line in enumerate(lines):
            baseline = at[1] + 0.35 * size + (i - (len(lines) - 1) / 2) * 1.25 * size
            style = {"x": _number(at[0]), "y": _number(baseline), "font-size": _number(size), "text-anchor": anchor}
            if bold:
                style["font-weight"] = "650"
            write(self._add("text", tone, style), line, size)

    @contextmanager
    def link(self, target: str, *, says: str) -> Iterator[None]:
        """Make a link of all that is drawn inside a `with` block.

        Args:
            target: where it leads, such as `#residual`, the label of a section on the same page.
            says: what a screen reader reads out in place of the part's own text, which it should contain.
        """
        self._open.append(self._add("a", "ink", {"href": target, "aria-label": says}))
        try:
            yield
        finally:
            self._open.pop()

    def place(self, other: Drawing, x: float, y: float) -> Rect:
        """Put a copy of another drawing on this one, its upper left corner at a point; return the place it takes."""
        group = copy.deepcopy(other._root)
        group.set("transform", f"translate({_number(x)} {_number(y)})")
        self._open[-1].append(group)
        return Rect(x, y, other.width, other.height)

    @property
    def links(self) -> list[str]:
        """The targets of all links, in order."""
        return [element.attrib["href"] for element in self._root.iter("a")]

    def to_html(self, *, alt: str) -> str:
        """Return the drawing as a piece of HTML for a page or for the output of a notebook cell.

        Args:
            alt: what the drawing shows, for whoever cannot see it. One or two sentences, not the caption again.

        Returns:
            A `<div>` with one `<svg role="img">`, and a second one where the drawing has a `narrow` layout, of which only
            one is shown. A drawing with links is a group instead of an image, so that its links can be reached.

        Raises:
            ValueError: if `alt` is blank.
        """
        if not alt.strip():
            raise ValueError("a drawing needs a description for readers who cannot see it: pass alt='...'")
        if self.narrow is None:
            least = _SMALLEST_SCALE * self.width
            # Whoever uses a keyboard scrolls what has the focus; a drawing that fits a phone never scrolls.
            reach = ' tabindex="0" role="group" aria-label="Drawing, wider than a phone"' if least > 350 else ""
            body, look = self._svg(alt, f"min-width:{least:.0f}px;"), ""
        else:
            reach, least = "", round(_SMALLEST_SCALE * self.width)
            body = f'<div class="tfd-wide">{self._svg(alt)}</div><div class="tfd-narrow">{self.narrow._svg(alt)}</div>'
            # Class names with the bound in them: the sheet of one drawing may not choose the layout of another.
            body = body.replace('"tfd-wide"', f'"tfd-wide-{least}"').replace('"tfd-narrow"', f'"tfd-narrow-{least}"')
            look = f".tfd-narrow-{least} {{ display: none; }}\n@container (max-width: {least}px) {{ "
            look += f".tfd-narrow-{least} {{ display: block; }} .tfd-wide-{least} {{ display: none; }} }}\n"
        return f'<div class="tfcourse-drawing"{reach}><style>{_SHEET}{look}</style>{body}</div>'

    def _svg(self, alt: str, look: str = "") -> str:
        body = ET.tostring(self._root, encoding="unicode")
        # Hidden from screen readers, the picture's text is not read out word by word behind its description.
        role = "group" if self.links else "img"
        return (
            f'<svg class="tfcourse-figure" role="{role}" aria-label="{html.escape(alt)}" xmlns="http://www.w3.org/2000/svg"'
            f' viewBox="0 0 {_number(self.width)} {_number(self.height)}" style="{look}width:{_number(self.width)}px">'
            f"{body}</svg>"
        )

    def _add(self, tag: str, tone: str, attributes: dict[str, str]) -> ET.Element:
        tinted = {} if tone == "ink" else {"class": f"tfd-{tone}"}
        return ET.SubElement(self._open[-1], tag, tinted | attributes)


def _number(value: float) -> str:
    """A length as short as it can be written; two decimals are finer than any screen."""
    return f"{round(value, 2) + 0.0:.10g}"
