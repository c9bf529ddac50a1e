r"""Short labels with italics, subscripts and superscripts: `*Q* *K*^⊤`, `*h*_{t−1}`, `1 / √*D*_h`.

`*…*` is italic, `_x` and `_{…}` are set lower, `^x` and `^{…}` higher; a backslash takes the next character as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

SMALLER = 0.72
"""Size of subscripts and superscripts, as a share of the text's."""

# Widths in hundredths of the font size, of DejaVu Sans: the widest of the fonts in the site's list, so that a label
# which fits by this table fits in all of them.
_WIDTHS = {
    character: width
    for width, characters in {
        32: " ,.IJijl'·",
        36: "-/:;\\f|",
        42: '!()[]rt"',
        52: "*_`sz",
        57: "?Lc",
        62: "FPTYaekovxyè",
        64: "$0123456789EKSbdghnpqu{}éêèßüσΣ√",
        70: "ABCRVXZ",
        76: "DGHNU",
        80: "&OQw",
        84: "#+<=>M^~−×→⊙±",
        98: "%m@W",
    }.items()
    for character in characters
}


@dataclass(frozen=True)
class Run:
    """A piece of a label that is set in one way."""

    text: str
    level: int = 0
    """1 is set higher and smaller, −1 lower and smaller."""
    italic: bool = False


def parse(label: str) -> list[Run]:
    """Split a label into its runs.

    Args:
        label: text with the marks that the module describes.

    Returns:
        The runs in order; none is empty.

    Raises:
        ValueError: if a brace or an asterisk is opened and not closed, or the label ends in a mark.
    """
    runs: list[Run] = []
    italic, level, braced = False, 0, False
    characters = _characters(label)
    for character, marked in characters:
        if marked and character == "*":
            italic = not italic
        elif marked and character in "_^":
            if level:
                raise ValueError(f"a subscript or superscript inside another in {label!r}")
            level = -1 if character == "_" else 1
        elif marked and character == "{":
            braced = True
        elif marked and character == "}":
            level, braced = 0, False
        else:
            _append(runs, Run(character, level, italic))
            level = level if braced else 0
    if italic or level or braced:
        raise ValueError(f"something is opened and not closed in {label!r}")
    return runs


def _characters(label: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it is a mark; braces are marks only around a subscript or superscript."""
    depth, before = 0, ""
    i = 0
    while i < len(label):
        character = label[i]
        if character == "\\" and i + 1 < len(label):
            i += 1
            yield label[i], False
        elif character == "{" and before in ("_", "^"):
            depth += 1
            yield character, True
        elif character == "}" and depth:
            depth -= 1
            yield character, True
        else:
            yield character, character in "*_^"
        before = character if character != "\\" else ""
        i += 1


def _append(runs: list[Run], run: Run) -> None:
    if runs and (runs[-1].level, runs[-1].italic) == (run.level, run.italic):
        run = Run(runs.pop().text + run.text, run.level, run.italic)
    runs.append(run)


def text_width(label: str, size: float, *, bold: bool = False) -> float:
    """Return how many pixels wide a label is at most, set at `size` pixels in one of the fonts of the site's list."""
    hundredths = 0.0
    for run in parse(label):
        scale = SMALLER if run.level else 1.0
        hundredths += scale * sum(_WIDTHS.get(character, 84) for character in run.text)
    return hundredths / 100 * size * (1.1 if bold else 1.0)


def write(element: ET.Element, label: str, size: float) -> None:
    """Write a label into a `<text>` element, as text and `<tspan>`s.

    Args:
        element: the `<text>`.
        label: what to write.
        size: its font size in pixels, by which subscripts are lowered.
    """
    last: ET.Element | None = None
    lifted = 0.0
    for run in parse(label):
        lift = {0: 0.0, 1: 0.36, -1: -0.2}[run.level] * size
        if not run.level and not run.italic and lift == lifted and last is None:
            element.text = (element.text or "") + run.text
            continue
        # `baseline-shift` is not known to every browser; `dy` is, and moves everything after it as well.
        style = {"dy": f"{lifted - lift:.4g}"} if lift != lifted else {}
        if run.level:
            style["font-size"] = f"{SMALLER * size:.4g}"
        if run.italic:
            style["font-style"] = "italic"
        last = ET.SubElement(element, "tspan", style)
        last.text = run.text
        lifted = lift
