"""Implement the directive ``{hero}``: the attention weights of a trained layer's heads as arcs over a sentence.

The weights come from a head explorer in a lesson, so they belong to the model that the lesson has trained. All states, one per head and
word, are drawn here; ``hero-explorer.js`` shows the state that the reader selects. Without it the first of them is shown.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from autograder.errors import CourseError
from tfcourse.lessons.figures.markup import text_width

_SIZE = 19.0
_FLOOR = 150.0
_DATA = re.compile(r"<head-explorer\b[^>]*><script[^>]*>(.*?)</script>", re.DOTALL)


class hero(nodes.General, nodes.Element):  # type: ignore[misc] # noqa: N801 - docutils names nodes so
    """A placeholder node, replaced by the figure when the lesson's outputs are available."""


class Hero(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{hero}``, with arcs for the heads of a lesson's trained layer.

    Its argument is the lesson's document; ``caption`` begins the caption of the lesson's figure, ``head`` and ``word`` say which
    head, counted from 1, and which word show first. Its content is the caption on this page.
    """

    has_content = True
    required_arguments = 1
    option_spec = {  # noqa: RUF012 - docutils reads it from the class
        "caption": directives.unchanged_required,
        "head": directives.positive_int,
        "word": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return a placeholder node with the caption inside."""
        env = self.state.document.settings.env
        env.note_dependency(str(Path(env.srcdir) / f"{self.arguments[0]}.md"))
        node = hero(lesson=self.arguments[0], **self.options)
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


@dataclass(frozen=True)
class Heads:
    """The attention weights of a layer's heads on a sentence."""

    tokens: list[str]  # the sentence
    weights: list[list[list[float]]]  # attention weights by head, query and key


def parse_heads(markup: str, caption: str) -> Heads | None:
    """Return the heads of an explorer whose caption begins with ``caption``; None for any other figure."""
    match = _DATA.search(markup)
    if match is None:
        return None
    data: dict[str, Any] = json.loads(match[1])
    if not data["caption"].startswith(caption):
        return None
    (layer,) = data["weights"]
    return Heads(data["queries"], layer)


def resolve_hero(document: nodes.document, lesson: nodes.document) -> None:
    """Replace the placeholder nodes by their figures.

    Raises:
        CourseError: if the lesson has no such figure.
    """
    for node in list(document.findall(hero)):
        outputs = (parse_heads(raw.astext(), node["caption"]) for raw in lesson.findall(nodes.raw))
        heads = next((heads for heads in outputs if heads), None)
        if heads is None:
            raise CourseError(
                f"{node['lesson']} shows no heads under a caption that begins {node['caption']!r}",
                do="Give the directive {hero} the caption of a head explorer.",
            )
        start = (int(node["head"]) - 1, heads.tokens.index(node["word"]))
        figure, end = (
            f'<hero-explorer class="explorer"><figure class="tfc-hero-figure">{hero_svg(heads, start)}',
            "</figure></hero-explorer>",
        )
        caption = nodes.container("", *node.children, classes=["tfc-hero-caption"])
        node.replace_self([nodes.raw("", figure, format="html"), caption, nodes.raw("", end, format="html")])


def hero_svg(heads: Heads, start: tuple[int, int]) -> str:
    """Return an SVG of the sentence with a group of arcs for each head and word; only ``start`` is shown."""
    widths = [text_width(token, _SIZE, bold=True) + 22 for token in heads.tokens]
    lefts = [6 + sum(widths[:i]) + 8 * i for i in range(len(widths))]
    middles = [x + width / 2 for x, width in zip(lefts, widths, strict=True)]
    total = lefts[-1] + widths[-1] + 6
    states = "".join(
        _state_svg(heads, head, query, middles, shown=(head, query) == start)
        for head in range(len(heads.weights))
        for query in range(len(heads.tokens))
    )
    chips = "".join(
        f'<g class="tfc-hero-word" data-word="{i}" aria-label="{escape(token)}">'
        f'<rect class="tfc-chip" x="{lefts[i]:.1f}" y="{_FLOOR + 4}" width="{widths[i]:.1f}" height="34" rx="8"/>'
        f'<text class="tfc-word" x="{middles[i]:.1f}" y="{_FLOOR + 27}">{escape(token)}</text></g>'
        for i, token in enumerate(heads.tokens)
    )
    sentence = escape(" ".join(heads.tokens))
    head, query = start
    return (
        f'<svg class="tfc-hero" viewBox="0 0 {total:.0f} {_FLOOR + 68:.0f}" role="img" data-head="{head}" data-word="{query}" '
        f'data-heads="{len(heads.weights)}" aria-label="The sentence: {sentence}. {escape(_describe_state(heads, head, query))}">'
        f"{states}{chips}</svg>"
    )


def _state_svg(heads: Heads, head: int, query: int, middles: list[float], *, shown: bool) -> str:
    weights = heads.weights[head][query]
    arcs, numbers = [], []
    # Thin arcs first, so that the thick one is drawn over them.
    for key in sorted(range(query + 1), key=lambda key: weights[key]):
        weight, middle = weights[key], middles[key]
        if key != query and weight >= 0.01:
            rise = 24 + (_FLOOR - 30) * (abs(middles[query] - middle) / (middles[-1] - middles[0])) ** 0.7
            top = _FLOOR - rise / 0.75
            arcs.append(
                f'<path d="M{middles[query]:.0f} {_FLOOR:.0f}C{middles[query]:.0f} {top:.0f} {middle:.0f} {top:.0f} {middle:.0f} '
                f'{_FLOOR:.0f}" stroke-width="{1.2 + 13 * weight:.1f}" stroke-opacity="{min(1.0, 0.35 + weight):.2f}"/>'
            )
        numbers.append(f'<text class="tfc-weight" x="{middle:.0f}" y="{_FLOOR + 60:.0f}">{weight:.2f}</text>')
    hidden = "" if shown else ' style="display:none"'
    return (
        f'<g data-state="{head}-{query}" data-said="{escape(_describe_state(heads, head, query))}"{hidden}>'
        f'<g class="tfc-arcs">{"".join(arcs)}</g>{"".join(numbers)}</g>'
    )


def _describe_state(heads: Heads, head: int, query: int) -> str:
    """Describe a state in a sentence: the two words with the largest weights."""
    weights, tokens = heads.weights[head][query], heads.tokens
    most = sorted(range(query + 1), key=lambda key: -weights[key])[:2]
    shares = " and ".join(f"{100 * weights[key]:.0f} % to “{tokens[key]}”" for key in most)
    return f"Head {head + 1}: “{tokens[query]}” attends {shares}."
