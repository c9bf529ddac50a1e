"""The check of ``BertEmbeddings``: three tables, one sum, one norm."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch08_bert.bert_cases import (
    MODEL,
    B,
    N,
    V,
    all_dropped,
    encoder,
    hardly_dropped,
    longer,
    no_loop_on_any_device,
    two_texts,
)
from autograder.checks.combined_rows import also_asking
from tfcourse import bert

INIT = {name: MODEL[name] for name in ("vocab_size", "d_model", "max_length")}


def _embeddings(draw: Draw, **options: int) -> Case:
    """Tables of such large numbers that the eps of the norm does not show."""
    case = encoder(draw, bert.BertEmbeddings, {**INIT, **options})
    large = {name: value * (20 if "embedding" in name else 1) for name, value in (case.state or {}).items()}
    return replace(case, state=large)


def with_segments(draw: Draw) -> Case:
    """Two texts in each row."""
    return _embeddings(draw).with_arguments(segments=two_texts(draw))


def three_texts(draw: Draw) -> Case:
    """Three texts in each row, as long as a text can be."""
    case = _embeddings(draw, segments=3)
    return case.with_arguments(tokens=draw.integers(0, V, B, N), segments=draw.integers(0, 3, B, N))


def one_text(draw: Draw) -> Case:
    """No segments are given."""
    return _embeddings(draw)


def tiny_numbers(draw: Draw) -> Case:
    """Tables so small that the eps of the norm decides."""
    case = with_segments(draw).to(torch.float64)
    small = {name: value * (1e-6 if "embedding" in name else 1) for name, value in (case.state or {}).items()}
    return replace(case, state=small)


def everything_dropped(draw: Draw) -> Case:
    """Nothing is left."""
    return all_dropped(with_segments(draw))


def hardly_anything_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_dropped(with_segments(draw))


def too_long(draw: Draw) -> Case:
    """A text that is longer than the table of positions."""
    return longer(draw, one_text(draw))


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    case = _embeddings(draw, max_length=20)
    return case.with_arguments(tokens=draw.integers(0, V, size, size + 1))


def drawn(draw: Draw, name: str) -> Case:
    """A table as it is drawn, so large that its numbers tell how."""
    sizes = {"vocab_size": 60, "max_length": 50 + int(draw.integers(0, 9)), "d_model": 32, "segments": 50}
    return Case({"target": name}, init=sizes, method="get_parameter")


def _as_drawn(draw: Draw) -> list[Probe]:
    """Ask for each table by its name: behind the norm nothing shows how it was drawn."""
    tables = (f"{kind}_embedding.weight" for kind in ("token", "position", "segment"))
    return [Probe((drawn(draw, name).request(),), "spread", {"dim": 0, "within": 1.15}) for name in tables]


def equal_sizes(draw: Draw) -> Case:
    """As many texts as tokens in each, as tokens in the vocabulary and as numbers in a vector."""
    case = _embeddings(draw, vocab_size=4, d_model=4, max_length=4)
    return case.with_arguments(tokens=draw.integers(0, 4, 4, 4), segments=draw.integers(0, 2, 4, 4))


def one_short_text(draw: Draw) -> Case:
    """A batch of one text of a single token."""
    return _embeddings(draw).with_arguments(tokens=draw.integers(0, V, 1, 1), segments=draw.integers(0, 2, 1, 1))


BERT_EMBEDDINGS = Exercise(
    reference=bert.BertEmbeddings,
    rows=(
        rows.numbers(
            3.25,
            with_segments,
            title="Embeddings of token, position and segment are added, and the sum is normalised.",
            gradients=False,
        ),
        rows.numbers(
            2,
            one_text,
            name="one text",
            title="Without segments every token belongs to the first text.",
            gradients=False,
        ),
        rows.numbers(
            0.75,
            everything_dropped,
            hardly_anything_dropped,
            name="dropout",
            title="In training dropout falls behind the norm.",
        ),
        also_asking(
            rows.edge(
                0.5,
                tiny_numbers,
                name="edges",
                dtypes=(),
                title="The norm has an eps of 1e-12, three segments, equal sizes and a single token work, and gradients are right.",
            ),
            rows.numbers(0, with_segments, three_texts, equal_sizes, one_short_text),
        ),
        rows.Row("initialisation", "The tables begin with a standard deviation of 0.02.", 0.5, _as_drawn, side=True),
        no_loop_on_any_device(0.5, more, one_text, over="texts or positions"),
        rows.errors(0.5, one_text, too_long, title="A text that is too long is a ValueError."),
    ),
)
