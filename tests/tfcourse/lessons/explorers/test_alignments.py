"""The alignment explorer tells the truth about weights and crossings."""

from __future__ import annotations

import itertools
import json

import torch
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from tfcourse.lessons.explorers.alignments import AlignedPair, alignment_explorer, count_crossings

SOURCE = ["forty-", "##five"]
TARGET = ["fünf", "##und", "##vierzig"]
SOFT = torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.8, 0.2]])  # fünf → ##five, ##und → forty-, ##vierzig → forty-


def pair(target: list[str] = TARGET) -> AlignedPair:
    weights = torch.rand(2, len(target), 2, generator=torch.Generator().manual_seed(0))
    return AlignedPair(SOURCE, target, dict(zip(("IBM", "net"), weights, strict=True)))


@given(st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=7))
def test_crossings_are_those_of_lines_that_intersect(places: list[int | None]) -> None:
    links = [(row, place) for row, place in enumerate(places) if place is not None]
    weights = torch.zeros(len(places), 6)
    for row, place in links:
        weights[row] = 0.1
        weights[row, place] = 0.5
    intersect = sum((a - b) * (s - t) < 0 for (a, s), (b, t) in itertools.combinations(links, 2))
    assert count_crossings(weights) == intersect


def test_every_pair_is_a_figure_whose_heads_are_the_aligners_with_the_number_of_crossings() -> None:
    first = AlignedPair(SOURCE, TARGET, {"IBM": SOFT, "net": torch.eye(2)[[0, 0, 1]]})
    page = BeautifulSoup(alignment_explorer([first, pair()], caption="c")._repr_html_(), "html.parser")
    outer, *inner = (json.loads(script.get_text()) for script in page.find_all("script"))
    assert outer["titles"][0].split(" → ") == [" ".join(SOURCE), " ".join(TARGET)]
    assert (inner[0]["keys"], inner[0]["queries"], inner[0]["names"]) == (SOURCE, TARGET, ["IBM", "net"])
    for data, expected in zip(inner, (first, pair()), strict=True):
        weights = torch.stack(list(expected.weights.values()))[None]
        torch.testing.assert_close(torch.tensor(data["weights"]), weights, atol=5.1e-5, rtol=0)
    assert [summary.get_text() for summary in page.find_all("summary")] == ["IBM", "net"] * 2
    assert any("IBM: 2; net: none" in text.get_text() for text in page.find_all("p"))


def test_first_word_or_the_one_asked_for_is_shown_first() -> None:
    assert alignment_explorer([pair()], caption="c").figures[0].start == (0, 0, 0)
    shown = alignment_explorer([pair(), pair(["a", "b"])], caption="c", start=2)
    assert [figure.start[2] for figure in shown.figures] == [2, 1]


def test_weights_that_need_gradients_in_half_precision_are_accepted() -> None:
    half, double = SOFT.half().requires_grad_(), SOFT.double()
    figure = alignment_explorer([AlignedPair(SOURCE, TARGET, {"net": half, "double": double})], caption="c").figures[0]
    torch.testing.assert_close(torch.tensor(figure.weights[0][0]), half.detach().float(), atol=5e-4, rtol=0)
