"""The drawings of chapter 02 show what its text says, on a page and on a phone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from xml.etree import ElementTree as ET

import pytest
import torch

from tfcourse.alignment import SCORES as SCORE_FUNCTIONS
from tfcourse.alignment import attend, masked_softmax
from tfcourse.lessons.explorers.alignments import count_crossings
from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.scenes import ch02_alignment as scenes

DRAWINGS = (
    scenes.looking_back,
    scenes.soft_lookup,
    scenes.six_scores,
    scenes.masked_weights,
    scenes.decoder_step,
    scenes.looks_next_door,
    scenes.date_orders,
    scenes.closed_places,
    scenes.chosen_places,
)


def layouts(draw: Callable[[], Drawing]) -> list[ET.Element]:
    """Return the layout for a page and the one for a phone."""
    drawing = draw()
    assert drawing.narrow is not None
    return [drawing._root, drawing.narrow._root]


def texts(layout: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in layout.iter("text")]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_phones_get_a_layout_that_fits(draw: Callable[[], Drawing]) -> None:
    narrow = draw().narrow
    assert narrow is not None
    assert narrow.width <= 350


def test_lookup_shows_the_weights_and_context_of_its_scores() -> None:
    scores = torch.tensor([[[0.0, math.log(8), 0.0]]])
    notes = torch.tensor([[[10.0, 0.0], [0.0, 10.0], [0.0, 0.0]]])
    weights, context = attend(scores, notes, torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(weights[0, 0], torch.tensor(scenes.WEIGHTS))
    for layout in layouts(scenes.soft_lookup):
        assert f"context ({context[0, 0, 0]:.0f}, {context[0, 0, 1]:.0f})" in texts(layout)


def test_every_score_of_the_course_has_its_panel() -> None:
    assert {name.replace(" ", "_") for name in scenes.SCORE_PANELS} == set(SCORE_FUNCTIONS)
    for layout in layouts(scenes.six_scores):
        assert set(scenes.SCORE_PANELS) <= set(texts(layout))


def test_drawn_weights_are_those_of_the_masked_softmax() -> None:
    scores = torch.tensor([[0.0, math.log(8), 0.0, 0.0, 0.0]])
    allowed = torch.tensor([[True, True, True, False, False]])
    plain = torch.softmax(scores, dim=-1)
    for expected, entries in zip(
        (plain, masked_softmax(scores, allowed), plain * allowed), scenes.SOFTMAX_ROWS.values(), strict=True
    ):
        torch.testing.assert_close(expected[0], torch.tensor([float(Fraction(entry)) for entry in entries]))


def test_step_has_everything_that_its_equations_name() -> None:
    for layout in layouts(scenes.decoder_step):
        assert {"st−1", "GRU", "st", "ct", "yt−1", "Wout", "logits", "h1", "h4"} <= set(texts(layout))


@pytest.mark.parametrize("place", scenes.ORDERS)
def test_drawn_crossings_are_those_of_the_digits(place: str) -> None:
    parts = [part for part in scenes.ORDERS[place] for _ in range(scenes.DIGITS[part])]
    columns = {part: [i for i, other in enumerate(parts) if other == part] for part in scenes.DIGITS}
    order = [column for part in ("year", "month", "day") for column in columns[part]]
    links = torch.nn.functional.one_hot(torch.tensor(order), 8).double()
    for layout in layouts(scenes.date_orders):
        assert f"{place}: {count_crossings(links)} crossings" in texts(layout)


def test_open_weights_sum_to_one_and_keep_their_proportions() -> None:
    everything, closed, nothing = ([float(entry or 0) for entry in row] for row in scenes.CLOSED.values())
    assert sum(everything) == pytest.approx(1)
    rest = sum(everything[1:])
    assert closed == pytest.approx([0, *(weight / rest for weight in everything[1:])])
    assert not any(nothing)


def test_second_hundert_looks_at_the_digit_before_it() -> None:
    for layout in layouts(scenes.looks_next_door):
        written = texts(layout)
        assert written.index("seven") + 1 == written.index("hundred")
        assert "##hundert" in written


def test_a_choice_gives_all_the_weight_to_the_largest() -> None:
    rows = [torch.tensor([float(entry) for entry in row]) for row in scenes.CHOSEN.values()]
    for weights, chosen in zip(rows[0::2], rows[1::2], strict=True):
        assert float(weights.sum()) == pytest.approx(1)
        assert torch.equal(chosen, torch.nn.functional.one_hot(weights.argmax(), 4).float())
