"""Implement the directive ``{course-cards}``: a card per chapter with a drawing, its duration and its outcome.

Its lines say what is built, ``01: A recurrent network …``. All else comes from the chapters.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.errors import CourseError
from autograder.site.front_page.facts import ChapterSize, chapter_size, round_to_hours
from autograder.site.page_parts.closed_chapters import site_chapters
from tfcourse.lessons.figures.boxes import chips
from tfcourse.lessons.figures.colours import weight_colour
from tfcourse.lessons.figures.drawing import Drawing, Tone
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arc, arrow, curve
from tfcourse.lessons.figures.matrices import mask

_LINE = re.compile(r"^(\d\d): (.+)$")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


class CourseCards(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{course-cards}``: the cards of the chapters."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the cards as raw HTML."""
        env = self.state.document.settings.env
        course, shown = load_chapters(Path(env.srcdir)), site_chapters(Path(env.srcdir), env.config.tfcourse_chapters)
        for chapter in shown:
            env.note_dependency(str(chapter.path))
            env.note_dependency(str(chapter.lesson))
        up = "../" * str(env.docname).count("/")
        try:
            built = parse_card_texts("\n".join(self.content), [chapter.number for chapter in course])
        except CourseError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", cards_html(shown, built, lambda document: f"{up}{document}.html"), format="html")]


def parse_card_texts(text: str, numbers: list[str]) -> dict[str, str]:
    """Parse the card texts: for each chapter, what the reader will have built.

    Args:
        text: one line per chapter; a line that begins with white space continues the previous line.

    Raises:
        CourseError: if the lines do not match the chapters in their order.
    """
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    entries = [(match[1], match[2]) for line in lines if (match := _LINE.match(line))]
    if len(entries) != len(lines) or [number for number, _ in entries] != numbers:
        raise CourseError(
            f"the cards have lines for {[number for number, _ in entries]}, the course has the chapters {numbers}",
            do="Write one line for each chapter: “01: what its reader will have built”.",
        )
    return dict(entries)


def cards_html(course: list[Chapter], built: Mapping[str, str], link: Callable[[str], str]) -> str:
    """Return the cards as an ordered HTML list."""
    cards = [_card_html(chapter, built[chapter.number], link) for chapter in course]
    # One style sheet is enough for all drawings of the page.
    return '<ol class="tfc-cards">' + cards[0] + "".join(_STYLE.sub("", card) for card in cards[1:]) + "</ol>"


def _card_html(chapter: Chapter, built: str, link: Callable[[str], str]) -> str:
    number = chapter.number
    drawing = card_drawing(number).to_html(alt=f"Drawing for chapter {number}")
    lesson = link(f"chapters/{chapter.name}/lesson")
    return (
        f'<li class="tfc-card"><div class="tfc-card-drawing" aria-hidden="true">{drawing}</div><div>'
        f'<h3 class="tfc-card-title"><span class="tfc-number">{number}</span> <a href="{lesson}">{escape(chapter.title)}</a></h3>'
        f'<p class="tfc-card-built">{escape(built)}</p>'
        f'<p class="tfc-card-effort">{_effort_text(chapter_size(chapter))}</p></div></li>'
    )


def _effort_text(size: ChapterSize) -> str:
    reading = 5 * round(size.reading / 5)
    exercises = f"{size.exercises} exercises" if size.exercises != 1 else "one exercise"
    solving = round_to_hours(size.solving)
    return f"{reading} min to read · {exercises}, {solving} {'hours' if solving > 1 else 'hour'}"


WIDTH, HEIGHT = 144.0, 84.0


def card_drawing(number: str) -> Drawing:
    """Return the drawing of a chapter's card.

    Raises:
        KeyError: if the chapter has no drawing.
    """
    drawing = Drawing(WIDTH, HEIGHT)
    _DRAW[number](drawing)
    return drawing


def _draw_cells(drawing: Drawing, x: float, y: float, shades: list[float], size: float = 14) -> list[Rect]:
    """Draw a row of cells, each as dark as its weight, and return their rectangles."""
    cells = [Rect(x + i * size, y, size, size) for i in range(len(shades))]
    for cell, shade in zip(cells, shades, strict=True):
        drawing.rect(cell, tone="key", radius=2, stroke=1, fill=weight_colour(shade))
    return cells


def _draw_unrolled(drawing: Drawing) -> None:
    """Draw three steps of a recurrent network."""
    steps = [Rect(12 + 44 * i, 28, 30, 28) for i in range(3)]
    for before, after in itertools.pairwise(steps):
        arrow(drawing, before.right, after.left, tone="key")
    for step in steps:
        drawing.rect(step, tone="key", wash=0.2)
        arrow(drawing, (step.centre[0], 78), step.bottom)
        arrow(drawing, step.top, (step.centre[0], 6))


def _draw_alignment(drawing: Drawing) -> None:
    """Draw four source words, four target words, and the attention between them."""
    tops = [(18 + 36 * i, 18.0) for i in range(4)]
    bottoms = [(18 + 36 * i, 66.0) for i in range(4)]
    for source, target, weight in ((0, 1, 0.22), (1, 0, 0.3), (2, 2, 0.28), (3, 3, 0.3), (2, 3, 0.05)):
        curve(drawing, bottoms[target], tops[source], weight=weight)
    for at in tops:
        drawing.circle(at, 7, tone="key", fill="currentColor")
    for at in bottoms:
        drawing.circle(at, 7, tone="query", fill="currentColor")


def _draw_weights(drawing: Drawing) -> None:
    """Draw one row of attention weights: a query, its keys, and the blend."""
    drawing.circle((18, 42), 8, tone="query", fill="currentColor")
    for i, weight in enumerate((0.08, 0.62, 0.2, 0.1)):
        y = 12 + 20 * i
        curve_end = (66.0, float(y))
        drawing.path(f"M26 42C46 42 46 {y} 66 {y}", tone="key", stroke=1.2 + 9 * weight, opacity=min(1, 0.4 + weight))
        drawing.rect(Rect(curve_end[0], y - 7, 12, 14), tone="key", wash=1, radius=3)
        drawing.rect(Rect(84, y - 6, 56 * weight, 12), tone="key", wash=0.55, radius=2, stroke=0)


def _draw_heads(drawing: Drawing) -> None:
    """Draw three heads next to each other, each with its own weights."""
    for head, focus in enumerate((0, 1, 2)):
        rows = [[1.0 if j == max(0, i - focus) else 0.12 if j <= i else 0.0 for j in range(4)] for i in range(4)]
        for i, row in enumerate(rows):
            _draw_cells(drawing, 6 + 46 * head, 20 + 10 * i, row, size=10)


def _draw_stacks(drawing: Drawing) -> None:
    """Draw the encoder's stack, the decoder's, and the memory between them."""
    for x, tone in ((16.0, "key"), (90.0, "query")):
        colour: Tone = "key" if tone == "key" else "query"
        for i in range(3):
            drawing.rect(Rect(x, 54 - 22 * i, 38, 17), tone=colour, wash=0.18, radius=4)
        arrow(drawing, (x + 19, 83), (x + 19, 71))
    arrow(drawing, (54, 18), (90, 62), via=[(72, 18), (72, 62)], tone="key")


def _draw_tokens(drawing: Drawing) -> None:
    """Draw one word, and the tokens into which it is cut."""
    drawing.text((72, 16), "unbelievable", size=13)
    chips(drawing, ["un", "believ", "able"], (72, 56), tones=["ink", "key", "ink"], gap=5, size=13)
    for x in (28, 72, 118):
        arrow(drawing, (x, 25), (x, 40), tone="muted", stroke=1.2)


def _draw_cutoff(drawing: Drawing) -> None:
    """Draw a sorted distribution, and the sampler's cutoff."""
    for i, share in enumerate((0.92, 0.7, 0.44, 0.26, 0.17, 0.1, 0.07)):
        survives = i < 3
        where = Rect(10 + 18 * i, 76 - 66 * share, 13, 66 * share)
        drawing.rect(where, tone="key" if survives else "muted", wash=0.8 if survives else 0.25, radius=2, stroke=0)
    drawing.path("M62 6L62 80", tone="query", stroke=2, dashed=True)


def _draw_masked_token(drawing: Drawing) -> None:
    """Draw a sentence with a masked token, which is predicted from both sides."""
    xs = [16.0, 44.0, 72.0, 100.0, 128.0]
    for x, weight in ((16.0, 0.06), (44.0, 0.26), (100.0, 0.34), (128.0, 0.12)):
        arc(drawing, (72, 50), (x, 50), weight=weight, rise=0.55 * abs(x - 72))
    for x in xs:
        where = Rect(x - 11, 52, 22, 22)
        drawing.rect(where, tone="query" if x == 72 else "ink", wash=0.0 if x == 72 else 0.12, dashed=x == 72, radius=5)
    drawing.text((72, 63), "?", size=15, tone="query", bold=True)


def _draw_causal_mask(drawing: Drawing) -> None:
    """Draw the causal mask."""
    mask(drawing, [[j <= i for j in range(5)] for i in range(5)], (36, 6), cell=(14.4, 14.4))


def _draw_spans(drawing: Drawing) -> None:
    """Draw a text with two spans, and how each shrinks to a sentinel."""
    shades = [0.1, 0.1, 0.9, 0.9, 0.1, 0.1, 0.9, 0.1, 0.1]
    above = _draw_cells(drawing, 9, 12, shades)
    below = _draw_cells(drawing, 16, 58, [0.1, 0.1, 0.0, 0.1, 0.1, 0.0, 0.1, 0.1])
    for span, target in (((2, 4), 2), ((6, 7), 5)):
        start, stop, end = above[span[0]].x, above[span[1] - 1].x + 14, below[target]
        drawing.path(
            f"M{start} 26L{end.x} 58L{end.x + 14} 58L{stop} 26Z", tone="query", stroke=1.4, filled=True, opacity=0.3
        )
        drawing.rect(end, tone="query", wash=1, radius=2)


def _draw_patches(drawing: Drawing) -> None:
    """Draw an image cut into patches, and the patches as a sequence."""
    shades = [[0.15, 0.15, 0.5], [0.3, 0.9, 0.6], [0.7, 0.8, 0.3]]
    for i, row in enumerate(shades):
        _draw_cells(drawing, 49.5, 6 + 15 * i, row, size=15)
    arrow(drawing, (72, 53), (72, 64), tone="muted", stroke=1.2)
    for i, shade in enumerate(value for row in shades for value in row):
        _draw_cells(drawing, 5 + 15 * i, 68, [shade], size=12)


def _draw_rotations(drawing: Drawing) -> None:
    """Draw a vector, turned by an angle for each position."""
    centre = (72.0, 42.0)
    drawing.circle(centre, 36, tone="muted", stroke=1.2)
    for position in range(5):
        angle = math.radians(-15 - 38 * position)
        end = (centre[0] + 34 * math.cos(angle), centre[1] + 34 * math.sin(angle))
        arrow(drawing, centre, end, tone="query" if position == 4 else "key", stroke=1.4 + 0.3 * position)


def _draw_groups(drawing: Drawing) -> None:
    """Draw eight query heads that share two pairs of keys and values."""
    for x in (38.0, 106.0):
        key = Rect(x - 15, 8, 30, 20)
        drawing.rect(key, tone="key", wash=0.8, radius=4)
        for i in range(4):
            at = (x - 25.5 + 17 * i, 68.0)
            curve(drawing, (at[0], 62), (key.centre[0], 28), weight=0.05)
            drawing.circle(at, 6, tone="query", fill="currentColor")


_DRAW: dict[str, Callable[[Drawing], None]] = {
    "01": _draw_unrolled,
    "02": _draw_alignment,
    "03": _draw_weights,
    "04": _draw_heads,
    "05": _draw_stacks,
    "06": _draw_tokens,
    "07": _draw_cutoff,
    "08": _draw_masked_token,
    "09": _draw_causal_mask,
    "10": _draw_spans,
    "11": _draw_patches,
    "12": _draw_rotations,
    "13": _draw_groups,
}
