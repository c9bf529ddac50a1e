"""The whole Transformer as a map, each part a link to its section of lesson 05."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tfcourse.lessons.figures.boxes import box, operation
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arrow


class _Part(NamedTuple):
    label: str
    link: str


SELF_ATTENTION = _Part("Self-attention", "#encoder-layer")
CAUSAL_ATTENTION = _Part("Causal\nself-attention", "#decoder-layer")
CROSS_ATTENTION = _Part("Cross-attention", "#decoder-layer")
FEED_FORWARD = _Part("Feed-forward", "#feed-forward")
IN_TRAINING = (
    _Part("Label smoothing", "#label-smoothing"),
    _Part("Dropout", "#dropout"),
    _Part("Warm-up", "#warm-up"),
    _Part("Averaging", "#averaging"),
)


def draw_map() -> Drawing:
    """Draw the Transformer from top to bottom, the encoder to the left and the decoder to the right.

    Returns:
        The drawing, with a separate layout for a phone. Each part links to its section of the lesson.
    """
    return _draw_map(_ON_A_PAGE, narrow=_draw_map(_ON_A_PHONE))


@dataclass(frozen=True)
class _Places:
    """The measures that differ between a page and a phone; heights are the same."""

    width: float
    encoder: float
    """The middle of the encoder's column."""
    decoder: float
    """The middle of the decoder's column."""
    box: float
    """Width of a box."""
    margin: float
    """From a box to the edge of its layer, where the residual connection passes."""
    size: float
    """Font size."""
    break_titles: bool
    """Whether the titles of layers take two lines."""


_ON_A_PAGE = _Places(width=640, encoder=155, decoder=485, box=190, margin=40, size=TEXT, break_titles=False)
_ON_A_PHONE = _Places(width=350, encoder=84, decoder=266, box=118, margin=24, size=SMALL, break_titles=True)

# Heights: the layers begin, their first sublayer begins, and the next one does so many pixels below.
_LAYERS, _FIRST, _PITCH = 188.0, 242.0, 136.0


def _draw_map(at: _Places, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(at.width, 812, narrow=narrow)
    drawing.text((at.encoder, 21), "*two hundred*\n*and three*", size=at.size, tone="muted")
    drawing.text((at.decoder, 12), "*zweihundert…*", size=at.size, tone="muted")
    shift = _box(drawing, at, at.decoder, 42, _Part("Shift right", "#shift-right"))
    arrow(drawing, (at.decoder, 24), shift.top)
    for x, above in ((at.encoder, (at.encoder, 46)), (at.decoder, shift.bottom)):
        embedding = _box(drawing, at, x, 90, _Part("Embedding", "#weight-tying"))
        positions = _box(drawing, at, x, 138, _Part("+ Positions", "#positions"))
        arrow(drawing, above, embedding.top)
        arrow(drawing, embedding.bottom, positions.top)
        arrow(drawing, positions.bottom, (x, _FIRST))
    encoder = _draw_layer(
        drawing, at, at.encoder, -1, "Encoder layer", "#encoder-layer", [SELF_ATTENTION, FEED_FORWARD]
    )
    sublayers = [CAUSAL_ATTENTION, CROSS_ATTENTION, FEED_FORWARD]
    decoder = _draw_layer(drawing, at, at.decoder, 1, "Decoder layer", "#decoder-layer", sublayers)
    _draw_memory(drawing, at, encoder, decoder)
    _draw_output(drawing, at, decoder)
    _draw_training(drawing, at)
    return drawing


def _draw_layer(
    drawing: Drawing, at: _Places, x: float, side: int, name: str, link: str, sublayers: list[_Part]
) -> Rect:
    """A layer: each sublayer's output is added to its input, which passes at the side, and then normed."""
    width = at.box + 2 * at.margin - 4
    layer = Rect(x - width / 2, _LAYERS, width, _FIRST - _LAYERS + _PITCH * len(sublayers) - 4)
    drawing.rect(layer, radius=14, wash=0.03)
    with drawing.link(link, says=f"{name}, L of them"):
        title = name.replace(" ", "\n") if at.break_titles else name
        drawing.text((layer.x + 12, _LAYERS + 22), title, size=SMALL, anchor="start", bold=True)
    drawing.text((layer.right[0] - 12, _LAYERS + 22), "× *L*", anchor="end", size=at.size)
    for i, part in enumerate(sublayers):
        y = _FIRST + _PITCH * i
        function = _box(drawing, at, x, y, part, height=42)
        with drawing.link("#residual", says="+, a residual connection"):
            plus = operation(drawing, "+", (x, y + 66), radius=10)
        norm = _box(drawing, at, x, y + 86, _Part("Layer norm", "#layer-norm"), height=26)
        arrow(drawing, function.bottom, plus.top)
        arrow(drawing, plus.bottom, norm.top, head=False)
        past = x + side * (at.box / 2 + at.margin / 2 - 2)
        arrow(drawing, (x, y - 12), plus.left if side < 0 else plus.right, via=[(past, y - 12), (past, y + 66)])
        if i:
            arrow(drawing, (x, y - _PITCH + 112), function.top)  # from the norm above
    return layer


def _draw_memory(drawing: Drawing, at: _Places, encoder: Rect, decoder: Rect) -> None:
    """The encoder's output serves every decoder layer as keys and values."""
    between = (encoder.right[0] + decoder.left[0]) / 2
    below, cross = encoder.bottom[1] + 22, _FIRST + _PITCH + 21
    start = (at.encoder, encoder.bottom[1] - 20)
    end = (at.decoder - at.box / 2, cross)
    arrow(drawing, start, end, via=[(at.encoder, below), (between, below), (between, cross)], tone="key", stroke=3)
    drawing.text((at.encoder + 10, below + 14), "memory", size=SMALL, anchor="start", tone="key")


def _draw_output(drawing: Drawing, at: _Places, decoder: Rect) -> None:
    """Logits, and what becomes of them: a loss in training, a translation in use."""
    y = decoder.bottom[1] + 18
    linear = _box(drawing, at, at.decoder, y, _Part("Linear *W*_E^⊤", "#weight-tying"))
    loss = _box(drawing, at, at.decoder, y + 60, _Part("Cross-entropy", "#cross-entropy"))
    search = _box(drawing, at, at.decoder, y + 108, _Part("Beam search", "#decoding"))
    arrow(drawing, (at.decoder, decoder.bottom[1] - 20), linear.top)
    arrow(drawing, linear.bottom, loss.top)
    past, split = at.decoder + at.box / 2 + at.margin - 6, linear.bottom[1] + 12
    arrow(drawing, (at.decoder, split), search.right, via=[(past, split), (past, search.centre[1])])


def _draw_training(drawing: Drawing, at: _Places) -> None:
    """The parts that make deep stacks learn are beside the machine, not in it."""
    top = _FIRST + 2 * _PITCH + 70
    width = at.box + 2 * at.margin - 4
    drawing.rect(Rect(at.encoder - width / 2, top, width, 36 + 40 * len(IN_TRAINING)), radius=14, dashed=True)
    drawing.text((at.encoder - width / 2 + 14, top + 18), "In training", size=SMALL, anchor="start", bold=True)
    for i, part in enumerate(IN_TRAINING):
        _box(drawing, at, at.encoder, top + 34 + 40 * i, part, height=30)


def _box(drawing: Drawing, at: _Places, x: float, y: float, part: _Part, height: float = 32) -> Rect:
    return box(drawing, part.label, Rect(x - at.box / 2, y, at.box, height), size=at.size, link=part.link)
