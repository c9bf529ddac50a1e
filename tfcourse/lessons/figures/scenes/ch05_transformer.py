"""The drawings of chapter 05: the Transformer and its layers, and what training and decoding do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tfcourse.lessons.figures.boxes import box, chip, operation
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow
from tfcourse.lessons.figures.matrices import mask, matrix
from tfcourse.lessons.figures.transformer_map import draw_map

SOURCE = ("twenty-", "##three", "(end)", "(pad)")
READS = ("(begin)", "drei", "##und", "##zwanzig")
SAYS = ("drei", "##und", "##zwanzig", "(end)")
# The row of the lesson's section on layer norm, and the same row when it is normalised.
ROW = (-1, 1, 1, 7)
NORMALISED = ("−1", "−⅓", "−⅓", "1⅔")


def transformer_map() -> Drawing:
    """Draw the Transformer from top to bottom, the encoder to the left and the decoder to the right.

    Returns:
        The drawing, with a separate layout for a phone. Each part links to its section of the lesson.
    """
    return draw_map()


def two_stacks() -> Drawing:
    """Draw the whole in small: an encoder that reads, a decoder that writes, and the memory between them.

    Returns:
        The drawing.
    """
    drawing = Drawing(350, 232)
    for x, name, text in ((88, "encoder", "two hundred\nand three"), (262, "decoder", "zweihundert…")):
        for layer in range(3):
            box(
                drawing,
                f"{name} layer",
                Rect(x - 66, 36 + 40 * layer, 132, 30),
                size=SMALL,
                tone="key" if x < 100 else "query",
            )
            if layer:
                arrow(drawing, (x, 36 + 40 * layer), (x, 28 + 40 * layer))
        drawing.text((x, 204), text, size=SMALL, tone="muted")
        arrow(drawing, (x, 178), (x, 148))
    for layer in range(3):
        arrow(drawing, (154, 51), (196, 51 + 40 * layer), tone="key")
    drawing.text((262, 8), "…drei", size=SMALL)
    arrow(drawing, (262, 36), (262, 18))
    return drawing


def norms_of_a_batch() -> Drawing:
    """Draw which numbers a layer norm and a batch norm normalise together.

    Returns:
        The drawing: two panels beside each other, and one row normalised by hand below them.
    """
    drawing = Drawing(400, 372)
    for x, title, note in (
        (36, "Layer norm", "one word,\nall its columns"),
        (236, "Batch norm", "one column, all words\nof all sentences"),
    ):
        drawing.text((x + 66, 14), title, bold=True)
        for sentence in range(2):
            rows = [""] * 4
            grid = matrix(drawing, [rows] * 3, (x, 40 + 96 * sentence), cell=(33, 26))
            if x < 200 and sentence == 0:
                drawing.rect(grid.row(1), tone="query", radius=4, stroke=2.6, wash=0.2)
            if x > 200:
                drawing.rect(grid.column(1), tone="query", radius=4, stroke=2.6, wash=0.2)
            drawing.text((x - 8, grid.left[1]), f"{sentence + 1}", size=SMALL, anchor="end", tone="muted")
        drawing.text((x + 66, 240), note, size=SMALL, tone="muted")
    before = matrix(drawing, [[str(number).replace("-", "−") for number in ROW]], (8, 306), cell=(38, 32), tone="query")
    after = matrix(drawing, [list(NORMALISED)], (240, 306), cell=(38, 32), tone="query")
    arrow(drawing, (before.right[0] + 6, before.right[1]), (after.left[0] - 6, after.left[1]))
    drawing.text((200, 300), "− 2", size=SMALL, tone="muted")
    drawing.text((200, 344), "÷ 3", size=SMALL, tone="muted")
    drawing.text((84, 356), "mean 2, deviation 3", size=SMALL, tone="muted")
    drawing.text((316, 356), "mean 0, deviation 1", size=SMALL, tone="muted")
    return drawing


def post_and_pre_norm() -> Drawing:
    """Draw post-norm and pre-norm beside each other: where the norm stands, and what the residual connection passes.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 338)
    for x, title, formula in ((96, "Post-norm", "LN(*x* + *f*(*x*))"), (300, "Pre-norm", "*x* + *f*(LN(*x*))")):
        post = x < 200
        drawing.text((x, 14), title, bold=True)
        drawing.text((x, 42), "*x*")
        heights = {"*f*": 118 if post else 156, "LN": 236 if post else 104, "+": 190 if post else 226}
        plus = operation(drawing, "+", (x, heights["+"]), radius=12)
        parts = {
            name: box(drawing, name, Rect(x - 42, heights[name], 84, 34), tone="key" if name == "*f*" else "ink")
            for name in ("*f*", "LN")
        }
        order = ["*f*"] if post else ["LN", "*f*"]
        arrow(drawing, (x, 54), parts[order[0]].top)
        if not post:
            arrow(drawing, parts["LN"].bottom, parts["*f*"].top)
        arrow(drawing, parts["*f*"].bottom, plus.top)
        # What the residual connection carries is drawn thick, from the input to the last arrow.
        arrow(drawing, (x, 72), plus.left, via=[(x - 66, 72), (x - 66, heights["+"])], tone="query", stroke=3)
        end = (x, 292)
        if post:
            arrow(drawing, plus.bottom, parts["LN"].top, tone="query", stroke=3)
            arrow(drawing, parts["LN"].bottom, end)
        else:
            arrow(drawing, plus.bottom, end, tone="query", stroke=3)
        drawing.text((x, 306), formula)
        note = "the sum is normalised" if post else "the sum passes unchanged"
        drawing.text((x, 330), note, size=SMALL, tone="muted")
    return drawing


def shifted_target() -> Drawing:
    """Draw teacher forcing in the decoder: it reads the target moved one position to the right, and says the next token.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 232)
    pitch, left = 92.0, 66.0
    layer = Rect(14, 92, 376, 44)
    box(drawing, "Decoder, under the causal mask", layer, size=SMALL)
    for t, (read, say) in enumerate(zip(READS, SAYS, strict=True)):
        x = left + pitch * t
        chip(drawing, read, (x, 180), size=SMALL, tone="query" if t == 0 else "ink")
        chip(drawing, say, (x, 48), size=SMALL, tone="key")
        arrow(drawing, (x, 166), (x, 136))
        arrow(drawing, (x, 92), (x, 62))
    drawing.text((14, 14), "is to say: the target", size=SMALL, anchor="start", tone="key")
    drawing.text(
        (14, 216), "reads: (begin), then the target without its last token", size=SMALL, anchor="start", tone="muted"
    )
    return drawing


def three_masks() -> Drawing:
    """Draw the masks of the encoder's, the decoder's and the cross-attention for one padded source.

    Returns:
        The drawing: three panels beside each other on a page, below each other on a phone.
    """
    real = [token != "(pad)" for token in SOURCE]
    panels = [
        _mask_panel("Encoder", SOURCE, "source", [real] * 4, "(*B*, 1, *S*)"),
        _mask_panel("Decoder", READS, "target", [[j <= i for j in range(4)] for i in range(4)], "(*T*, *T*)"),
        _mask_panel("Cross-attention", READS, "source", [real] * 4, "(*B*, 1, *S*)"),
    ]
    narrow = Drawing(350, 3 * 218 - 8)
    drawing = Drawing(690, 212, narrow=narrow)
    for i, panel in enumerate(panels):
        drawing.place(panel, 230 * i, 0)
        narrow.place(panel, 62, 218 * i)
    return drawing


def _mask_panel(
    title: str, queries: Sequence[str], keys: str, allowed: Sequence[Sequence[bool]], shape: str
) -> Drawing:
    """One panel: queries are rows with their words, keys are columns with their positions."""
    drawing = Drawing(226, 212)
    drawing.text((113, 12), title, bold=True)
    positions = [str(position) for position in range(len(allowed[0]))]
    grid = mask(drawing, allowed, (88, 52), cell=(30, 28), rows=queries, columns=positions)
    drawing.text((grid.centre[0], grid.bottom[1] + 16), f"{keys} position", size=SMALL, tone="muted")
    drawing.text((grid.centre[0], grid.bottom[1] + 34), shape, size=SMALL, tone="muted")
    return drawing


def smoothed_target(vocabulary_size: int, epsilon: float) -> Drawing:
    """Draw the target of one position without and with label smoothing, as shares of a bar.

    Args:
        vocabulary_size: V, the number of tokens.
        epsilon: the probability that is spread over all tokens.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 178)
    width, left = 376.0, 12.0
    others = epsilon * (vocabulary_size - 1) / vocabulary_size
    for y, title, right in ((32, "target without smoothing", 1.0), (108, f"smoothed, ε = {epsilon:g}", 1 - others)):
        drawing.text((left, y - 14), title, size=SMALL, anchor="start", tone="muted")
        share = Rect(left, y, width * right, 34)
        drawing.rect(share, tone="key", radius=3, wash=0.25)
        form = "1" if right == 1 else f"{right:.3f}"
        drawing.text(share.centre, f"right token {form}")
        if right < 1:
            rest = Rect(share.right[0], y, width - share.width, 34)
            drawing.rect(rest, tone="query", radius=0, wash=0.25)
            text = f"the {vocabulary_size - 1} others {others:.3f}, each {epsilon / vocabulary_size:.4f}"
            drawing.text((left + width, y + 52), text, size=SMALL, anchor="end", tone="query")
    return drawing


def warm_up_rate() -> Drawing:
    """Draw the learning rate of the paper as the smaller of a rising line and a falling root, which meet at the step w.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 226)
    origin, width, height = (44.0, 196.0), 330.0, 150.0
    peak = width / 4  # the step w stands at a quarter of the axis

    def rising(x: float) -> float:
        return x / peak

    def falling(x: float) -> float:
        return math.sqrt(peak / x)

    def path(xs: Sequence[float], curve: Callable[[float], float]) -> str:
        points = [(origin[0] + x, origin[1] - 0.8 * height * curve(x)) for x in xs]
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    steps = [peak + 4 * i for i in range(int((width - peak) / 4) + 1)]
    drawing.path(path([0, peak], rising), tone="key", stroke=3)
    drawing.path(path(steps, falling), tone="key", stroke=3)
    drawing.path(path([peak, 1.2 * peak], rising), dashed=True, opacity=0.7)
    drawing.path(path([peak * (0.7 + 0.05 * i) for i in range(7)], falling), dashed=True, opacity=0.7)
    arrow(drawing, origin, (origin[0] + width + 16, origin[1]))
    arrow(drawing, origin, (origin[0], origin[1] - height - 22))
    top = (origin[0] + peak, origin[1] - 0.8 * height)
    drawing.path(f"M{top[0]} {top[1]}L{top[0]} {origin[1]}", tone="muted", stroke=1.2, dashed=True)
    drawing.text((top[0], origin[1] + 16), "*w*")
    drawing.text((origin[0] + width, origin[1] + 16), "step *s*", anchor="end", tone="muted")
    drawing.text((origin[0] + 8, 20), "learning rate", size=SMALL, anchor="start", tone="muted")
    drawing.text((origin[0] + 34, origin[1] + 16), "warm-up", size=SMALL, tone="muted")
    drawing.text((top[0] + 26, top[1] - 6), "1 / √(*D* *w*)", size=SMALL, anchor="start")
    drawing.text((origin[0] + 6, origin[1] - 116), "*s* · *w*^{−3/2}", size=SMALL, anchor="start")
    drawing.text((origin[0] + 216, origin[1] - 88), "*s*^{−1/2}", size=SMALL, anchor="start")
    return drawing


Branch = tuple[str, str, float, bool]
"""A node of the beam's tree: what it continues, what it reads, its probability, and whether the beam keeps it."""

BEAM: tuple[tuple[Branch, ...], ...] = (
    (("", "A", 0.5, True), ("", "B", 0.2, True), ("", "C", 0.2, False), ("", "end", 0.1, False)),
    (("A", "AB", 0.20, True), ("A", "AC", 0.15, True), ("A", "A end", 0.10, False), ("B", "B …", 0.05, False)),
    (("AB", "ABC", 0.08, True), ("AB", "AB …", 0.04, False), ("AC", "ACB", 0.09, True), ("AC", "AC …", 0.03, False)),
    (("ABC", "ABC end", 0.048, False), ("ACB", "ACB end", 0.054, True)),
)


def beam_tree() -> Drawing:
    """Draw a beam search of width 2 in the lesson's table as a tree, with what greedy search takes.

    Returns:
        The drawing, with a separate layout for a phone.
    """
    return _tree(640, pitch=136, narrow=_tree(350, pitch=76))


def _tree(width: float, *, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 262, narrow=narrow)
    left = 30.0
    drawing.circle((left - 6, 118), 5)
    ends: dict[str, Point] = {"": (left, 118)}
    for level, branches in enumerate(BEAM):
        x = left + pitch * (level + 0.72)
        drawing.text((x, 14), f"step {level + 1}", size=SMALL, tone="muted")
        for row, (parent, name, probability, kept) in enumerate(branches):
            y = 52 + 58 * row if len(branches) > 2 else 52 + 116 * row
            tone: Tone = "query" if name in ("A", "AB", "ABC", "ABC end") else "ink"
            size = TEXT if narrow is not None else SMALL
            solid: Tone = "key" if kept and tone == "ink" else "query" if tone == "query" else "muted"
            where = chip(drawing, name, (x, y), tone=solid, size=SMALL if len(name) > 4 else size, height=24)
            drawing.text(
                (x, y + 22), f"{probability:.3f}" if level == 3 else f"{probability:.2f}", size=SMALL, tone="muted"
            )
            start = ends[parent]
            arrow(
                drawing,
                start,
                (where.left[0] - 2, y),
                dashed=solid == "muted",
                tone="query" if tone == "query" else "ink",
            )
            if kept or tone == "query":
                ends[name] = (where.right[0] + 2, y)
    return drawing


def descendants() -> Drawing:
    """Draw what came of the two stacks: the encoder alone, the decoder alone, and both.

    Returns:
        The drawing.
    """
    drawing = Drawing(400, 168)
    for x, name, chapter, stacks in (
        (52, "BERT", "chapter 08", ("encoder",)),
        (184, "GPT", "chapter 09", ("decoder",)),
        (326, "T5", "chapter 10", ("encoder", "decoder")),
    ):
        drawing.text((x, 14), name, bold=True)
        width = 84.0 if len(stacks) == 1 else 66.0
        for i, stack in enumerate(stacks):
            middle = x + (i - (len(stacks) - 1) / 2) * (width + 4)
            for layer in range(3):
                part = Rect(middle - width / 2, 34 + 32 * layer, width, 26)
                box(
                    drawing,
                    stack,
                    part,
                    size=SMALL,
                    tone="key" if stack == "encoder" else "query",
                )
        drawing.text((x, 146), chapter, size=SMALL, tone="muted")
    return drawing
