"""The drawings of chapter 08: gaps, masks, BERT and its heads, and what its family changed."""

from __future__ import annotations

from collections.abc import Sequence

from tfcourse.lessons.figures.boxes import box, chip, chip_width, chips, operation
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Rect
from tfcourse.lessons.figures.lines import arc, arrow
from tfcourse.lessons.figures.matrices import mask

MASK = "[MASK]"

# 6,200 with a gap: the most probable word given both sides, and given the left side alone, with its probability.
GAPPED = ("six", MASK, "two", "hundred")
BOTH_SIDES = ("thousand,", 1.0)
LEFT_ONLY = ("hundred", 0.99)
GAP = 1

# A token that was chosen, and what the model may read in its place.
NAME = ("six", "thousand,", "two", "hundred")
CHOSEN = 2
FATES = (("80 %", MASK), ("10 %", "forty-"), ("10 %", "two"))

# A longer name of which three tokens are chosen, one for each of the three fates: what the model reads, and all labels.
READ = ("[CLS]", "six", MASK, "two", "hundred", "ninety", "forty", "[SEP]")
LABELS = ("−100", "−100", "thousand,", "two", "−100", "and", "−100", "−100")
HOW = ("", "", "masked", "unchanged", "", "random", "", "")

# A sentence that a generator has filled, one gap wrongly and one rightly.
FILLED = ("six", "thousand,", "nine", "hundred")
REPLACED = (0, 0, 1, 0)
GENERATOR_GAPS = (1, 2)

# Two ways to write with a model of gaps: the text before each step. No name fits the last text that grows.
GROWN = ((MASK,), ("six", MASK), ("six", "thousand", MASK))
IN_TURN = ((MASK,) * 3, ("six", MASK, MASK), ("six", "hundred", MASK))
GROWN_FITS = (28, 2, 0)
IN_TURN_FITS = (81, 1, 1)

# The tokens beside the masks of the last drawing.
_COUNTED = ("six", "thousand,", "two", "hundred", "and")


def both_sides() -> Drawing:
    """Draw who sees what around a gap: an encoder both sides, a decoder what came before.

    Returns:
        The drawing: the two beside each other on a page, below each other on a phone.
    """
    encoder = _encoder_around()
    decoder = _decoder_before()
    narrow = Drawing(350, 390)
    narrow.place(encoder, 15, 0)
    narrow.place(decoder, 15, 200)
    drawing = Drawing(700, 190, narrow=narrow)
    drawing.place(encoder, 10, 0)
    drawing.place(decoder, 370, 0)
    return drawing


def _encoder_around() -> Drawing:
    """The gap attends to both sides, and its own state answers."""
    drawing = Drawing(320, 190)
    drawing.text((160, 12), "Encoder: both sides", bold=True)
    tones: list[Tone] = ["query" if place == GAP else "key" for place in range(len(GAPPED))]
    placed = chips(drawing, list(GAPPED), (160, 104), tones=tones, gap=16)
    for place, where in enumerate(placed):
        if place != GAP:
            arc(drawing, placed[GAP].top, where.top, weight=0.15, rise=26 + 10 * abs(place - GAP))
    _answer(drawing, placed[GAP], BOTH_SIDES)
    return drawing


def _decoder_before() -> Drawing:
    """The state of the token before the gap answers; a decoder has no mask token, and has not read what follows."""
    drawing = Drawing(320, 190)
    drawing.text((160, 12), "Decoder: the left side", bold=True)
    words = [*GAPPED[:GAP], "?", *GAPPED[GAP + 1 :]]
    tones: list[Tone] = ["query" if place < GAP else "muted" for place in range(len(words))]
    placed = chips(drawing, words, (160, 104), tones=tones, gap=16)
    _answer(drawing, placed[GAP - 1], LEFT_ONLY)
    return drawing


def _answer(drawing: Drawing, asked: Rect, best: tuple[str, float]) -> None:
    """The best word and its probability, below the token whose state gives them."""
    arrow(drawing, asked.bottom, (asked.bottom[0], 146), tone="query")
    word, share = best
    drawing.text((asked.bottom[0], 162), f"{word}  {share:.2f}", tone="query", bold=True)


def three_fates() -> Drawing:
    """Draw what the model reads in place of a chosen token, how often, and that the label stays the same.

    Returns:
        The drawing.
    """
    return _fates(700, left=150, gap=10, label=560, narrow=_fates(350, left=44, gap=5, label=329, size=12))


def _fates(
    width: float, *, left: float, gap: float, label: float, size: float = TEXT, narrow: Drawing | None = None
) -> Drawing:
    drawing = Drawing(width, 226, narrow=narrow)
    ends = [
        ("the text", NAME, 22.0),
        *((share, _with(word), 86.0 + 54 * row) for row, (share, word) in enumerate(FATES)),
    ]
    drawing.text((label, 54), "label", size=SMALL, tone="muted")
    for row, (name, words, y) in enumerate(ends):
        x = left
        if narrow is not None or row:
            drawing.text((left - 8, y), name, size=size, anchor="end", tone="ink" if row else "muted")
        for place, word in enumerate(words):
            tone: Tone = "ink" if place != CHOSEN else "query" if row else "key"
            chip(drawing, word, (x + chip_width(word, size) / 2, y), tone=tone, size=size)
            x += chip_width(word, size) + gap
        if row:
            arrow(drawing, (x + 2, y), (label - chip_width("two", size) / 2 - 4, y), tone="muted", dashed=True)
            chip(drawing, NAME[CHOSEN], (label, y), tone="key", size=size)
    return drawing


def _with(word: str) -> tuple[str, ...]:
    """The name with another word at the chosen place."""
    return (*NAME[:CHOSEN], word, *NAME[CHOSEN + 1 :])


def bert_machine() -> Drawing:
    """Draw BERT: three embeddings that are added, a norm, post-norm layers, a pooler on the first place and a head on the gaps.

    Returns:
        The drawing: seven places on a page, four on a phone.
    """
    narrow = _machine(350, ("[CLS]", "six", MASK, "[SEP]"), left=108, pitch=69, size=SMALL)
    words = ("[CLS]", "six", MASK, "two", "hundred", "[SEP]")
    return _machine(700, words, left=172, pitch=96, size=TEXT, narrow=narrow)


def _machine(
    width: float, words: Sequence[str], *, left: float, pitch: float, size: float, narrow: Drawing | None = None
) -> Drawing:
    drawing = Drawing(width, 656, narrow=narrow)
    xs = [left + i * pitch for i in range(len(words))]
    middle, span = (xs[0] + xs[-1]) / 2, xs[-1] - xs[0] + pitch - 8
    labels = ((20, "tokens"), (72, "token"), (118, "position"), (164, "segment"), (520, "hidden"))
    for y, label in labels:
        drawing.text((6, y), label, size=SMALL, anchor="start", tone="muted")
    for i, (x, word) in enumerate(zip(xs, words, strict=True)):
        tone: Tone = "query" if word == MASK else "ink"
        chip(drawing, word, (x, 20), tone=tone, size=SMALL)
        arrow(drawing, (x, 34), (x, 58))
        for y, label in ((72, "*W*_E"), (118, f"*P*_{i}"), (164, "*S*_0")):
            box(
                drawing,
                label,
                Rect(x - pitch * 0.4, y - 14, pitch * 0.8, 28),
                size=size,
                tone="key" if y == 72 else "ink",
            )
        drawing.text((x, 95), "+", size=SMALL)
        drawing.text((x, 141), "+", size=SMALL)
        arrow(drawing, (x, 178), (x, 204))
    across = Rect(middle - span / 2, 206, span, 32)
    box(drawing, "Layer norm, dropout", across, size=size)
    stack = Rect(middle - span / 2, 262, span, 212)
    drawing.rect(stack, radius=12, wash=0.05)
    _post_norm_layer(drawing, stack, across, size=size)
    for x, word in zip(xs, words, strict=True):
        arrow(drawing, (x, 474), (x, 504))
        drawing.rect(Rect(x - pitch * 0.3, 506, pitch * 0.6, 28), tone="query" if word == MASK else "ink", wash=0.12)
    gap = xs[words.index(MASK)]
    pooler = box(drawing, "Pooler", Rect(xs[0] - pitch * 0.45, 564, pitch * 0.9, 34), size=SMALL)
    head = box(drawing, "Masked LM head", Rect(gap - 62, 564, 124, 34), size=SMALL, tone="query")
    arrow(drawing, (xs[0], 534), pooler.top)
    arrow(drawing, (gap, 534), head.top)
    arrow(drawing, pooler.bottom, (xs[0], 626))
    arrow(drawing, head.bottom, (gap, 626))
    drawing.text((xs[0], 640), "pooled", size=SMALL, tone="muted")
    drawing.text((gap, 640), "*V* logits", size=SMALL, tone="muted")
    return drawing


def _post_norm_layer(drawing: Drawing, stack: Rect, before: Rect, *, size: float) -> None:
    """One encoder layer from top to bottom: each sublayer has a residual connection around it and a norm after the sum."""
    middle = before.bottom[0]
    drawing.text((stack.x + 12, stack.y + 18), "Encoder layer", size=SMALL, anchor="start", bold=True)
    drawing.text((stack.right[0] - 12, stack.y + 18), "× *L*", anchor="end", size=size)
    start = before.bottom
    for name, top in (("Self-attention", 306.0), ("Feed-forward", 392.0)):
        sublayer = box(drawing, name, Rect(middle - 66, top, 132, 28), size=SMALL)
        norm = box(drawing, "Add, layer norm", Rect(middle - 66, top + 40, 132, 28), size=SMALL)
        branch = top - 10
        arrow(drawing, start, sublayer.top)
        arrow(drawing, sublayer.bottom, norm.top)
        around = middle - 92
        arrow(
            drawing,
            (middle, branch),
            (norm.x, norm.y + 14),
            via=[(around, branch), (around, norm.y + 14)],
            tone="muted",
        )
        start = norm.bottom


def only_gaps_count() -> Drawing:
    """Draw labels beside the logits of every position: only the rows of chosen tokens, masked or not, take part in the loss.

    Returns:
        The drawing.
    """
    return _gaps(700, left=200, cell=(38, 30), columns=6, narrow=_gaps(350, left=74, cell=(22, 30), columns=3))


def _gaps(
    width: float, *, left: float, cell: tuple[float, float], columns: int, narrow: Drawing | None = None
) -> Drawing:
    drawing = Drawing(width, 322, narrow=narrow)
    top = 44.0
    right = left + columns * cell[0]
    label_at, how_at = right + 76, right + 164
    for x, title in ((left + columns * cell[0] / 2, "logits"), (label_at, "label"), (how_at, "chosen")):
        drawing.text((x, 16), title, bold=True)
    for row, (word, label, how) in enumerate(zip(READ, LABELS, HOW, strict=True)):
        y = top + row * cell[1] + cell[1] / 2
        tone: Tone = "query" if how else "muted"
        drawing.text((left - 10, y), word, size=SMALL, anchor="end", tone=tone)
        for column in range(columns):
            where = Rect(left + column * cell[0], top + row * cell[1], cell[0], cell[1])
            drawing.rect(where, tone=tone, radius=0, stroke=1, wash=0.25 if how else 0)
        if how:
            arrow(drawing, (right + 6, y), (right + 30, y), tone="query")
            drawing.text((how_at, y), how, size=SMALL, tone="query")
        drawing.text((label_at, y), label, size=SMALL, tone=tone)
    drawing.text((left + columns * cell[0] / 2, top + len(READ) * cell[1] + 20), "(*T*, *V*)", size=SMALL, tone="muted")
    return drawing


def three_heads() -> Drawing:
    """Draw the three heads of fine-tuning on the same hidden states: one class, one tag for each token, a span.

    Returns:
        The drawing: beside each other on a page, below each other on a phone.
    """
    parts = (_classify(), _tag(), _span())
    narrow = Drawing(350, 606)
    drawing = Drawing(700, 196, narrow=narrow)
    for i, part in enumerate(parts):
        drawing.place(part, 6 + 232 * i, 0)
        narrow.place(part, 62, 204 * i)
    return drawing


_TOKENS = ("[CLS]", "six", "…", "[SEP]")


def _hidden(title: str) -> tuple[Drawing, list[float]]:
    drawing = Drawing(226, 196)
    drawing.text((113, 12), title, bold=True)
    xs = [28 + 56.0 * i for i in range(4)]
    for x, word in zip(xs, _TOKENS, strict=True):
        drawing.text((x, 180), word, size=SMALL, tone="muted")
        drawing.rect(Rect(x - 20, 138, 40, 26), wash=0.12)
    return drawing, xs


def _classify() -> Drawing:
    drawing, xs = _hidden("One class")
    pooler = box(drawing, "Pooler", Rect(xs[0] - 26, 94, 66, 28), size=SMALL)
    head = box(drawing, "Linear", Rect(xs[0] - 26, 54, 66, 28), size=SMALL, tone="query")
    arrow(drawing, (xs[0], 138), (xs[0], 122))
    arrow(drawing, (xs[0], pooler.y), (xs[0], 82))
    arrow(drawing, (xs[0], head.y), (xs[0], 42), tone="query")
    drawing.text((xs[0] - 24, 32), "a name? yes", size=SMALL, anchor="start", tone="query")
    return drawing


def _tag() -> Drawing:
    drawing, xs = _hidden("A tag for each token")
    box(drawing, "the same Linear", Rect(8, 80, 210, 30), size=SMALL, tone="query")
    for x, tag in zip(xs, ("–", "1000s", "…", "–"), strict=True):
        arrow(drawing, (x, 138), (x, 110), tone="query")
        arrow(drawing, (x, 80), (x, 56), tone="query")
        drawing.text((x, 42), tag, size=SMALL, tone="query")
    return drawing


def _span() -> Drawing:
    drawing, xs = _hidden("A span")
    box(drawing, "Linear: start and end", Rect(8, 80, 210, 30), size=SMALL, tone="query")
    for x in xs:
        arrow(drawing, (x, 138), (x, 110), tone="query")
    for x, label in ((xs[1], "start"), (xs[2], "end")):
        arrow(drawing, (x, 80), (x, 56), tone="query")
        drawing.text((x, 42), label, size=SMALL, tone="query")
    return drawing


def find_the_replaced() -> Drawing:
    """Draw replaced-token detection: gaps, the tokens that a small generator puts there, and the model's output at every position.

    Returns:
        The drawing.
    """
    return _detection(700, left=262, pitch=112, narrow=_detection(350, left=86, pitch=72, size=SMALL))


def _detection(
    width: float, *, left: float, pitch: float, size: float = TEXT, narrow: Drawing | None = None
) -> Drawing:
    drawing = Drawing(width, 330, narrow=narrow)
    xs = [left + i * pitch for i in range(4)]
    middle, span = (xs[0] + xs[-1]) / 2, xs[-1] - xs[0] + pitch - 16
    rows = ((20, "text"), (74, "gaps"), (188, "filled"), (306, "replaced?"))
    for y, label in rows:
        drawing.text((4, y), label, size=SMALL, anchor="start", tone="muted")
    generator = box(drawing, "Generator, small", Rect(middle - span / 2, 116, span, 32), size=size)
    model = box(drawing, "Discriminator", Rect(middle - span / 2, 230, span, 36), size=size, tone="query")
    for i, x in enumerate(xs):
        gap = i in GENERATOR_GAPS
        chip(drawing, NAME[i], (x, 20), size=SMALL)
        chip(drawing, MASK if gap else NAME[i], (x, 74), tone="query" if gap else "ink", size=SMALL)
        chip(drawing, FILLED[i], (x, 188), tone="key" if gap else "ink", size=SMALL)
        arrow(drawing, (x, 34), (x, 60))
        arrow(drawing, (x, 88), (x, generator.y))
        arrow(drawing, (x, 148), (x, 174))
        arrow(drawing, (x, 202), (x, model.y))
        arrow(drawing, (x, 266), (x, 292), tone="query")
        drawing.text((x, 306), "yes" if REPLACED[i] else "no", tone="query", bold=bool(REPLACED[i]), size=size)
    return drawing


def albert_saves() -> Drawing:
    """Draw ALBERT's two savings: a narrow embedding matrix with a map behind it, and one layer that is used again.

    Returns:
        The drawing: beside each other on a page, below each other on a phone.
    """
    factors, layers = _factors(), _shared()
    narrow = Drawing(350, 520)
    narrow.place(factors, 5, 0)
    narrow.place(layers, 5, 268)
    drawing = Drawing(700, 256, narrow=narrow)
    drawing.place(factors, 0, 0)
    drawing.place(layers, 356, 0)
    return drawing


def _factors() -> Drawing:
    drawing = Drawing(340, 256)
    drawing.text((170, 12), "A narrow table and a map", bold=True)
    drawing.rect(Rect(20, 52, 100, 160), tone="muted", radius=4, wash=0.06)
    drawing.text((70, 132), "(*V*, *D*)", size=SMALL, tone="muted")
    drawing.text((70, 36), "BERT", size=SMALL, tone="muted")
    drawing.text((146, 132), "→", size=TEXT + 3)
    drawing.rect(Rect(176, 52, 24, 160), tone="key", radius=4, wash=0.3)
    drawing.text((188, 36), "(*V*, *E*)", size=SMALL, tone="key")
    operation(drawing, "×", (218, 132), radius=10)
    drawing.rect(Rect(236, 120, 100, 24), tone="key", radius=4, wash=0.3)
    drawing.text((286, 162), "(*E*, *D*)", size=SMALL, tone="key")
    drawing.text((170, 238), "30,000 × 768  →  30,000 × 128 + 128 × 768", size=SMALL, tone="muted")
    return drawing


def _shared() -> Drawing:
    drawing = Drawing(340, 256)
    drawing.text((170, 12), "One layer, used again", bold=True)
    drawing.text((80, 36), "BERT", size=SMALL, tone="muted")
    drawing.text((252, 36), "ALBERT", size=SMALL, tone="key")
    for i in range(3):
        y = 56.0 + 58 * i
        part = box(drawing, f"Layer {i + 1}", Rect(34, y, 92, 32), size=SMALL)
        if i < 2:
            arrow(drawing, part.bottom, (80, y + 58))
    layer = box(drawing, "Layer", Rect(206, 112, 92, 32), size=SMALL, tone="key")
    arrow(drawing, (252, 58), layer.top)
    arrow(drawing, layer.bottom, (252, 204))
    loop = [(252, 176), (324, 176), (324, 84), (256, 84)]
    arrow(drawing, loop[0], loop[3], via=loop[1:3], tone="key", dashed=True)
    drawing.text((252, 224), "*L* times", size=SMALL, tone="key")
    return drawing


def ways_to_write() -> Drawing:
    """Draw two ways of writing with a model of gaps: a gap at the end of a text that grows, and gaps that are filled in turn.

    Returns:
        The drawing: beside each other on a page, below each other on a phone.
    """
    one = _written("The text grows at its end", GROWN, GROWN_FITS)
    other = _written("All gaps at once, filled in turn", IN_TURN, IN_TURN_FITS)
    narrow = Drawing(350, 350)
    narrow.place(one, 2, 0)
    narrow.place(other, 2, 182)
    drawing = Drawing(700, 166, narrow=narrow)
    drawing.place(one, 0, 0)
    drawing.place(other, 354, 0)
    return drawing


def _written(title: str, rows: Sequence[Sequence[str]], fits: Sequence[int]) -> Drawing:
    """The text before each step, and how many names fit it."""
    drawing = Drawing(346, 166)
    drawing.text((4, 12), title, anchor="start", bold=True)
    drawing.text((342, 34), "names that fit", size=12, anchor="end", tone="muted")
    for i, (row, count) in enumerate(zip(rows, fits, strict=True)):
        x, y = 4.0, 60 + 40.0 * i
        for word in ("[CLS]", *row, "[SEP]"):
            tone: Tone = "query" if word == MASK else "key" if word[0] != "[" else "ink"
            chip(drawing, word, (x + chip_width(word, 12) / 2, y), tone=tone, size=12)
            x += chip_width(word, 12) + 4
        drawing.text((342, y), f"{count}", anchor="end", bold=not count)
    return drawing


def reading_and_writing() -> Drawing:
    """Draw the masks of an encoder and a decoder, and how many passes each of them takes.

    Returns:
        The drawing: the two beside each other on a page, below each other on a phone.
    """
    reader = _allowed("Encoder", "one pass for the whole text", causal=False)
    writer = _allowed("Decoder", "one pass for each new token", causal=True)
    narrow = Drawing(350, 486)
    narrow.place(reader, 30, 0)
    narrow.place(writer, 30, 246)
    drawing = Drawing(700, 240, narrow=narrow)
    drawing.place(reader, 30, 0)
    drawing.place(writer, 380, 0)
    return drawing


def _allowed(title: str, says: str, *, causal: bool) -> Drawing:
    drawing = Drawing(290, 240)
    drawing.text((180, 14), title, bold=True)
    n = len(_COUNTED)
    allowed = [[key <= query or not causal for key in range(n)] for query in range(n)]
    mask(drawing, allowed, (110, 38), cell=(28, 28), rows=_COUNTED)
    drawing.text((180, 206), says, size=SMALL, tone="muted")
    return drawing
