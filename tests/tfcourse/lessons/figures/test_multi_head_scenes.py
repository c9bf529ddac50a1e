"""The drawings of chapter 04 show what its text says, on a page and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
import torch

from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.scenes import ch04_multi_head as scenes
from tfcourse.multihead import merge_heads, split_heads

SENTENCE = scenes.WORDS
# Two heads: one looks at the word itself, one at the first word.
WEIGHTS = [torch.eye(9).tolist(), [[1.0, *[0.0] * 8]] * 9]
PATTERNS = [("right", [[j <= i for j in range(9)] for i in range(9)])] * 3

DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "two_looks": scenes.two_looks,
    "multi_head_layer": scenes.multi_head_layer,
    "split_and_merge": scenes.split_and_merge,
    "three_sources": scenes.three_sources,
    "reach_on_a_ring": scenes.reach_on_a_ring,
    "jobs_of_heads": lambda: scenes.jobs_of_heads(SENTENCE, WEIGHTS, ("boys", "sees")),
    "take_a_head_away": scenes.take_a_head_away,
    "two_permutations": scenes.two_permutations,
    "who_notices": lambda: scenes.who_notices(PATTERNS),
}


def texts(drawing: Drawing) -> list[str]:
    """Return the labels of the layout for a page, in the order in which they are drawn."""
    return ["".join(text.itertext()) for text in drawing._root.iter("text")]


def crosses(root: ET.Element) -> int:
    """Return how many cells of masks are crossed out."""
    return sum(
        path.attrib["d"].count("M") == 2 and "tfd-muted" in path.attrib.get("class", "") for path in root.iter("path")
    )


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_fits_a_phone(name: str) -> None:
    drawing = DRAWINGS[name]()
    if drawing.narrow is None:
        assert 0.85 * drawing.width <= 350
    else:
        assert drawing.narrow.width <= 350


def test_layer_writes_a_shape_at_every_step() -> None:
    labels = texts(scenes.multi_head_layer())
    shapes = [label for label in labels if label.startswith("(")]
    # In the order of drawing: input, projections, split, weights, head outputs, merged, output.
    model, heads = "(B, T, D)", "(B, H, T, Dh)"
    assert shapes == [model, model, heads, "(B, H, T, S)", heads, model, model]
    assert [label for label in labels if re.fullmatch(r"\w_proj|\w+_heads", label)] == [
        *("q_proj", "k_proj", "v_proj"),
        *("split_heads", "merge_heads", "o_proj"),
    ]


def test_split_shows_the_numbers_of_split_heads() -> None:
    numbers = torch.tensor([scenes.NUMBERS])
    split = split_heads(numbers, scenes.N_HEADS)
    assert torch.equal(merge_heads(split), numbers)
    written = [int(label) for label in texts(scenes.split_and_merge()) if label.isdecimal()]
    reshaped = numbers.reshape(split.shape)
    assert written == [*numbers.flatten().tolist(), *split.flatten().tolist(), *reshaped.flatten().tolist()]


def test_only_the_causal_panel_has_crosses() -> None:
    for layout in (scenes.three_sources(), scenes.three_sources().narrow):
        assert layout is not None
        assert crosses(layout._root) == 6


def test_cross_attention_has_as_many_outputs_as_queries() -> None:
    labels = texts(scenes.three_sources())
    assert labels.count("weights (9, 9)") == labels.count("9 outputs") == 2
    assert labels.count("weights (10, 9)") == labels.count("10 outputs") == 1


def test_two_layers_hold_three_steps_down() -> None:
    held = [label for label in texts(scenes.reach_on_a_ring()) if label.startswith("holds")]
    assert held == ["holds 0, 1", "holds 2, 3", "holds 0, 1, 2, 3"]


def test_each_head_names_the_word_with_most_weight() -> None:
    labels = texts(scenes.jobs_of_heads(SENTENCE, WEIGHTS, ("boys", "sees")))
    assert labels == [
        "head 1",
        "head 2",
        "boys",
        "boys",
        "1.00",
        "the (1)",
        "1.00",
        "sees",
        "sees",
        "1.00",
        "the (1)",
        "1.00",
    ]


def test_removed_head_sends_no_arrow_to_the_sum() -> None:
    def arrows(second: str) -> int:
        panel = scenes._contributions("title", second)
        return sum(path.attrib["fill"] != "none" for path in panel._root.iter("path"))

    assert arrows("nothing") == arrows("") - 1
    assert arrows("its mean") == arrows("")


def test_outputs_move_with_their_words() -> None:
    labels = texts(scenes.two_permutations())
    assert labels[1:13] == ["the", "o1", "aunt", "o2", "near", "o3", "near", "o3", "the", "o1", "aunt", "o2"]
    assert labels[13:] == [
        "Heads renumbered",
        "+",
        "head 1",
        "head 2",
        "head 3",
        "o",
        "+",
        "head 3",
        "head 1",
        "head 2",
        "o",
    ]


def test_notices_cross_out_what_is_not_noticed() -> None:
    assert crosses(scenes.who_notices(PATTERNS)._root) == 3 * 36
