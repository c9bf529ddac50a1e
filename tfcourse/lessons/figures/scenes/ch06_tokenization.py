"""The drawings of chapter 06: how text becomes tokens, and how tokens become vectors. A filled chip is a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfcourse.lessons.figures.boxes import chip, chip_width
from tfcourse.lessons.figures.drawing import SMALL, TEXT, Drawing, Tone
from tfcourse.lessons.figures.geometry import Point, Rect
from tfcourse.lessons.figures.lines import arrow
from tfcourse.lessons.figures.matrices import frame, matrix, vector

# A rare word, as GPT-2 cuts it, with the ids of the tokens.
WORD = (("Bro", 15783), ("b", 65), ("ding", 12083), ("n", 77), ("ag", 363))

SENTENCE = "Feed the dog!  Don't."
WAYS = (
    ("at spaces", ("Feed", "the", "dog!", "Don't.")),
    ("words, punctuation", ("Feed", "the", "dog", "!", "Don", "'", "t", ".")),
    ("GPT-2's rule", ("Feed", "␣the", "␣dog", "!", "␣", "␣Don", "'t", ".")),
)

# Four words after two merges, and the pair that is merged next.
BEFORE = (
    ("2 ×", ("low",)),
    ("1 ×", ("low", "e", "r")),
    ("1 ×", ("n", "e", "w", "e", "s", "t")),
    ("1 ×", ("w", "i", "d", "e", "s", "t")),
)
PAIR = ("e", "s")

# Characters, their bytes, and the characters that stand for the bytes; then GPT-2's tokens.
CHARACTERS = (("é", ("C3", "A9"), ("Ã", "©")), ("東", ("E6", "9D", "B1"), ("æ", "Ŀ", "±")))
BYTE_TOKENS = ((0, 2, "Ã©"), (2, 4, "æĿ"), (4, 5, "±"))

# A word that WordPiece gives up on, piece by piece, and the cut that it does not find.
STUMBLES = ("una", "##ffa", "ble")
EXISTS = ("un", "##affable")

# A line of a program as Mistral's SentencePiece cuts it: a space is a character, and the line end is written as its byte.
LINE = "def greet(names):\n"
LINE_TOKENS = ("▁def", "▁gre", "et", "(", "names", "):", "<0x0A>")

TABLE = ((2, 0, 1), (0, 3, 1), (1, 1, 0), (4, 2, 5), (0, 1, 2))
IDS = (3, 1, 3)


def from_text_to_vectors() -> Drawing:
    """Draw a word, its tokens, their ids, and one row of the embedding matrix for each.

    Returns:
        The drawing.
    """
    narrow = _way(350, left=66, pitch=56)
    return _way(700, left=180, pitch=104, narrow=narrow)


def _way(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 282, narrow=narrow)
    middle = left + 2 * pitch
    drawing.text((middle, 20), "".join(token for token, _ in WORD), size=TEXT + 3, bold=True)
    for i, (token, number) in enumerate(WORD):
        x = left + i * pitch
        arrow(drawing, (middle + 0.24 * (x - middle), 36), (x, 66))
        placed = chip(drawing, token, (x, 82), tone="key")
        arrow(drawing, placed.bottom, (x, 124))
        drawing.text((x, 134), str(number), size=SMALL + (1 if narrow else 0))
        arrow(drawing, (x, 144), (x, 170))
        vector(drawing, [""] * 4, (x - 17, 172), column=True, cell=(34, 20), tone="key")
    labels = ((82, "tokens"), (134, "ids"), (212, "vectors"))
    if narrow:
        for y, label in (20, "text"), *labels:
            drawing.text((12, y), label, anchor="start", tone="muted")
        drawing.text((width - 4, 134), "*V* = 50,257", size=SMALL, anchor="end", tone="muted")
    drawing.text((middle, 270), "one row of the embedding matrix each", size=SMALL, tone="muted")
    return drawing


def three_ways_to_cut() -> Drawing:
    """Draw a sentence with its spaces, cut in three ways.

    Returns:
        The drawing: labels next to the chips on a page, above them on a phone.
    """
    narrow = Drawing(350, 272)
    drawing = Drawing(700, 186, narrow=narrow)
    written = SENTENCE.replace(" ", "␣")
    narrow.text((175, 18), written)
    drawing.text((150, 22), written, anchor="start")
    drawing.text((8, 22), "the text", size=SMALL, anchor="start", tone="muted")
    for row, (name, pieces) in enumerate(WAYS):
        tones: list[Tone] = ["ink"] * len(pieces)
        drawing.text((8, 66 + 48 * row), name, size=SMALL, anchor="start", tone="muted")
        _row(drawing, pieces, (150, 66 + 48 * row), tones=tones, gap=8, size=TEXT)
        narrow.text((4, 58 + 80 * row), name, size=SMALL, anchor="start", tone="muted")
        _row(narrow, pieces, (4, 88 + 80 * row), tones=tones, gap=3, size=SMALL)
    return drawing


def _row(
    drawing: Drawing, words: Sequence[str], at: Point, *, tones: Sequence[Tone], gap: float, size: float
) -> list[Rect]:
    """Chips from left to right."""
    x, placed = at[0], []
    for word, tone in zip(words, tones, strict=True):
        width = chip_width(word, size)
        placed.append(chip(drawing, word, (x + width / 2, at[1]), tone=tone, size=size))
        x += width + gap
    return placed


def one_merge() -> Drawing:
    """Draw one step of byte-pair encoding: four words with their counts before and after a merge.

    Returns:
        The drawing: the two next to each other on a page, below each other on a phone.
    """
    before, after = _words(merged=False), _words(merged=True)
    narrow = Drawing(350, 430)
    narrow.place(before, 30, 0)
    arrow(narrow, (175, 196), (175, 226))
    narrow.text((188, 210), "merge *e s*: 2 times", size=SMALL, anchor="start", tone="muted")
    narrow.place(after, 30, 236)
    drawing = Drawing(700, 194, narrow=narrow)
    drawing.place(before, 0, 0)
    drawing.place(after, 410, 0)
    arrow(drawing, (304, 104), (396, 104))
    drawing.text((350, 86), "merge *e s*", size=SMALL, tone="muted")
    drawing.text((350, 124), "2 times", size=SMALL, tone="muted")
    return drawing


def _words(*, merged: bool) -> Drawing:
    drawing = Drawing(290, 194)
    drawing.text((48, 14), "after" if merged else "before", anchor="start", bold=True)
    for row, (count, symbols) in enumerate(BEFORE):
        y = 50 + 42 * row
        drawing.text((36, y), count, size=SMALL, anchor="end", tone="muted")
        at = [i for i in range(len(symbols) - 1) if symbols[i : i + 2] == PAIR]
        pieces = list(symbols)
        if merged and at:
            pieces[at[0] : at[0] + 2] = ["".join(PAIR)]
        placed = _row(drawing, pieces, (48, y), tones=["ink"] * len(pieces), gap=6, size=TEXT)
        if at:
            first, last = placed[at[0]], placed[at[0] if merged else at[0] + 1]
            frame(drawing, Rect(first.x, first.y, last.x + last.width - first.x, first.height), tone="query")
    return drawing


def bytes_of_text() -> Drawing:
    """Draw two characters, their bytes in UTF-8, the characters that stand for the bytes, and tokens made of them.

    Returns:
        The drawing.
    """
    narrow = _bytes(350, left=92, pitch=56)
    return _bytes(700, left=230, pitch=92, narrow=narrow)


def _bytes(width: float, *, left: float, pitch: float, narrow: Drawing | None = None) -> Drawing:
    drawing = Drawing(width, 254, narrow=narrow)
    rows = ((24, "text"), (90, "bytes"), (150, "named" if narrow is None else "byte characters"), (222, "tokens"))
    for y, label in rows:
        drawing.text((8, y), label, size=SMALL, anchor="start", tone="muted")
    position = 0
    for character, codes, names in CHARACTERS:
        middle = left + (position + (len(codes) - 1) / 2) * pitch
        drawing.text((middle, 22), character, size=TEXT + 5)
        for code, name in zip(codes, names, strict=True):
            x = left + position * pitch
            arrow(drawing, (middle + 0.12 * (x - middle), 38), (x, 76))
            chip(drawing, code, (x, 92))
            arrow(drawing, (x, 106), (x, 134))
            chip(drawing, name, (x, 150))
            position += 1
    for first, last, token in BYTE_TOKENS:
        x = left + (first + last - 1) / 2 * pitch
        for symbol in range(first, last):
            start = left + symbol * pitch
            arrow(drawing, (start, 164), (x + 0.2 * (start - x), 206))
        chip(drawing, token, (x, 222), tone="key")
    return drawing


def longest_piece_stumbles() -> Drawing:
    """Draw how WordPiece takes the longest piece, twice, and then finds nothing, and the cut that it misses.

    Returns:
        The drawing: labels next to the chips on a page, above them on a phone.
    """
    narrow = Drawing(350, 186)
    drawing = Drawing(700, 112, narrow=narrow)
    ways = (("longest first", STUMBLES), ("another cut", EXISTS))
    for row, (name, pieces) in enumerate(ways):
        tones: list[Tone] = ["muted" if row == 0 and piece == STUMBLES[-1] else "key" for piece in pieces]
        for canvas, label, at in (
            (drawing, (8, 30 + 52 * row), (150, 30 + 52 * row)),
            (narrow, (4, 16 + 92 * row), (4, 52 + 92 * row)),
        ):
            canvas.text(label, name, size=SMALL, anchor="start", tone="muted")
            _row(canvas, pieces, at, tones=tones, gap=8, size=TEXT)
            end = at[0] + sum(chip_width(piece) + 8 for piece in pieces)
            if row == 0:
                arrow(canvas, (end + 4, at[1]), (end + 38, at[1]))
                chip(canvas, "[UNK]", (end + 76, at[1]), tone="key")
    return drawing


def segmentation_lattice(text: str, bits: Mapping[str, float], best: Sequence[str]) -> Drawing:
    """Draw all pieces of a vocabulary that occur in a text as edges between the positions of the text, and the best path.

    Args:
        text: at most eight characters.
        bits: the cost of each piece; single characters and longer ones.
        best: the cut to be drawn thick.

    Returns:
        The drawing, in which single characters are straight edges and longer pieces arcs above them.
    """
    narrow = _lattice(350, text, bits, best, size=SMALL)
    return _lattice(700, text, bits, best, size=TEXT, narrow=narrow)


def _lattice(
    width: float,
    text: str,
    bits: Mapping[str, float],
    best: Sequence[str],
    *,
    size: float,
    narrow: Drawing | None = None,
) -> Drawing:
    margin, line = 18.0, 184.0
    pitch = (width - 2 * margin) / len(text)
    drawing = Drawing(width, 236, narrow=narrow)
    chosen, start = set(), 0
    for piece in best:
        chosen.add((start, start + len(piece)))
        start += len(piece)
    edges = [
        (first, last)
        for first in range(len(text))
        for last in range(first + 1, len(text) + 1)
        if text[first:last] in bits
    ]
    for first, last in edges:
        piece, thick = text[first:last], (first, last) in chosen
        tone: Tone = "key" if thick else "ink"
        x1, x2 = margin + first * pitch, margin + last * pitch
        stroke = 4.0 if thick else 1.4
        if last - first == 1:
            arrow(drawing, (x1 + 6, line), (x2 - 6, line), tone=tone, stroke=stroke, head=False)
            drawing.text(((x1 + x2) / 2, line + 20), piece, size=size)
            drawing.text(((x1 + x2) / 2, line + 40), f"{bits[piece]:g}", size=SMALL, tone="muted")
            continue
        rise = 40 * (last - first) - 34
        top = line - rise / 0.75
        commands = f"M{x1:.5g} {line - 7:.5g}C{x1:.5g} {top:.5g} {x2:.5g} {top:.5g} {x2:.5g} {line - 7:.5g}"
        drawing.path(commands, tone=tone, stroke=stroke)
        drawing.text(((x1 + x2) / 2, line - rise + 12), f"{piece}  {bits[piece]:g}", size=size, tone=tone, bold=thick)
    for position in range(len(text) + 1):
        drawing.circle((margin + position * pitch, line), 5, fill="currentColor")
    return drawing


def raw_stream() -> Drawing:
    """Draw a line of text as SentencePiece reads it, as one stream of characters, and the tokens made of it.

    Returns:
        The drawing: labels next to the rows on a page, above them on a phone.
    """
    narrow = _stream(350, left=8, pitch=17.6, size=SMALL, gap=3, above=22)
    return _stream(700, left=110, pitch=22, size=TEXT, gap=8, above=0, narrow=narrow)


def _stream(
    width: float,
    *,
    left: float,
    pitch: float,
    size: float,
    gap: float,
    above: float,
    narrow: Drawing | None = None,
) -> Drawing:
    drawing = Drawing(width, 168 + 3 * above, narrow=narrow)
    rows = [22 + above, 72 + 2 * above, 144 + 2 * above]
    for y, label in zip(rows, ("text", "stream", "tokens"), strict=True):
        away = above + 4 if label == "tokens" and above else -above  # below the chips, where no arrow passes
        drawing.text((8, y + away), label, size=SMALL, anchor="start", tone="muted")
    drawing.text((left, rows[0]), LINE.replace(" ", "␣").replace("\n", "⏎"), size=size, anchor="start")
    stream = "▁" + LINE.replace(" ", "▁").replace("\n", "⏎")
    for i, character in enumerate(stream):
        drawing.text((left + (i + 0.5) * pitch, rows[1]), character, size=size)
    placed = _row(drawing, LINE_TOKENS, (left, rows[2]), tones=["key"] * len(LINE_TOKENS), gap=gap, size=size)
    start = 0
    for token, where in zip(LINE_TOKENS, placed, strict=True):
        length = 1 if token.startswith("<") else len(token)
        arrow(drawing, (left + (start + length / 2) * pitch, rows[1] + 14), (where.centre[0], where.y - 2))
        start += length
    return drawing


def embedding_lookup_in_matrices() -> Drawing:
    """Draw the lookup of three ids twice: as rows that are taken, and as a product with one-hot rows.

    Returns:
        The drawing: the two next to each other on a page, below each other on a phone.
    """
    rows, product = _taken(), _product()
    narrow = Drawing(350, 640)
    narrow.place(rows, 10, 0)
    narrow.place(product, 0, 294)
    drawing = Drawing(700, 342, narrow=narrow)
    drawing.place(rows, 0, 0)
    drawing.place(product, 350, 0)
    return drawing


def _taken() -> Drawing:
    drawing = Drawing(330, 290)
    drawing.text((165, 12), "Take rows", bold=True)
    table = matrix(
        drawing,
        TABLE,
        (36, 62),
        cell=(32, 30),
        name="*W*_E",
        rows=[str(i) for i in range(5)],
        tone="key",
        shape="(*V*, *D*)",
    )
    taken = matrix(drawing, [TABLE[i] for i in IDS], (228, 92), cell=(32, 30), shape="(*T*, *D*)")
    drawing.text((taken.top[0], 40), f"ids {', '.join(map(str, IDS))}", tone="query")
    for row, token in enumerate(IDS):
        start, end = table.row(token).right, taken.row(row).left
        arrow(drawing, (start[0] + 4, start[1]), (end[0] - 4, end[1]))
    for token in sorted(set(IDS)):
        frame(drawing, table.row(token), tone="query")
    return drawing


def _product() -> Drawing:
    drawing = Drawing(350, 342)
    drawing.text((175, 12), "Multiply by one-hot rows", bold=True)
    hot = [[float(column == token) for column in range(5)] for token in IDS]
    one_hot = matrix(
        drawing, hot, (44, 222), cell=(30, 30), rows=[str(token) for token in IDS], tone="query", shape="(*T*, *V*)"
    )
    right = one_hot.right[0] + 14
    table = matrix(drawing, TABLE, (right, 58), cell=(34, 28), name="*W*_E", tone="key")
    result = matrix(drawing, [TABLE[i] for i in IDS], (right, 222), cell=(34, 30), shape="(*T*, *D*)")
    frame(drawing, one_hot.row(0), tone="query")
    frame(drawing, table.column(0), tone="key")
    frame(drawing, result.cell(0, 0))
    return drawing


def real_cuts(cuts: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Drawing:
    """Draw texts as a real tokenizer cuts them, with the ids.

    Args:
        cuts: for each text its tokens, in which `Ġ` is a space, and their ids.

    Returns:
        The drawing: ids next to the tokens on a page, below them on a phone.
    """
    narrow = Drawing(350, 66 * len(cuts) + 4)
    drawing = Drawing(700, 40 * len(cuts) + 8, narrow=narrow)
    for row, (tokens, ids) in enumerate(cuts):
        shown = [token.replace("Ġ", "␣") for token in tokens]
        tones: list[Tone] = ["key"] * len(shown)
        numbers = "  ".join(map(str, ids))
        _row(drawing, shown, (8, 24 + 40 * row), tones=tones, gap=4, size=TEXT)
        drawing.text((400, 24 + 40 * row), numbers, size=SMALL, anchor="start", tone="muted")
        _row(narrow, shown, (4, 20 + 66 * row), tones=tones, gap=3, size=TEXT)
        narrow.text((4, 48 + 66 * row), numbers, size=SMALL, anchor="start", tone="muted")
    return drawing
