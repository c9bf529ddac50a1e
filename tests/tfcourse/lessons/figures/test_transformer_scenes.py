"""The drawings of chapter 05 show what its text says, on a page and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
import torch

from tfcourse.attention import causal_mask
from tfcourse.layers import layer_norm
from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.scenes import ch05_transformer as scenes
from tfcourse.training import cross_entropy, noam_learning_rate, shift_right

DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "transformer_map": scenes.transformer_map,
    "two_stacks": scenes.two_stacks,
    "norms_of_a_batch": scenes.norms_of_a_batch,
    "post_and_pre_norm": scenes.post_and_pre_norm,
    "shifted_target": scenes.shifted_target,
    "three_masks": scenes.three_masks,
    "smoothed_target": lambda: scenes.smoothed_target(113, 0.1),
    "warm_up_rate": scenes.warm_up_rate,
    "beam_tree": scenes.beam_tree,
    "descendants": scenes.descendants,
}


def texts(drawing: Drawing) -> list[str]:
    """Return the labels of the layout for a page, in the order in which they are drawn."""
    return ["".join(text.itertext()) for text in drawing._root.iter("text")]


def crosses(root: ET.Element) -> int:
    """Return how many cells of masks are crossed out."""
    paths = (path for path in root.iter("path") if "tfd-muted" in path.attrib.get("class", ""))
    return sum(path.attrib["d"].count("M") == 2 for path in paths)


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_fits_a_phone(name: str) -> None:
    drawing = DRAWINGS[name]()
    if drawing.narrow is None:
        assert 0.85 * drawing.width <= 350
    else:
        assert drawing.narrow.width <= 350


def test_normalised_row_is_that_of_layer_norm() -> None:
    row = torch.tensor(scenes.ROW, dtype=torch.float64)
    exact = layer_norm(row, torch.ones(4).double(), torch.zeros(4).double())
    fractions = {"−1": -1.0, "−⅓": -1 / 3, "1⅔": 5 / 3}
    torch.testing.assert_close(
        exact, torch.tensor([fractions[text] for text in scenes.NORMALISED]).double(), atol=1e-5, rtol=0
    )
    labels = texts(scenes.norms_of_a_batch())
    assert [*map(str, scenes.ROW)] == [label.replace("−", "-") for label in labels if label in ("−1", "1", "7")][-5:-1]
    assert f"mean {row.mean():.0f}, deviation {row.std(correction=0):.0f}" in labels


def test_norm_comes_after_the_sum_or_first() -> None:
    heights = {
        panel: {
            label: float(text.attrib["y"])
            for text in half
            for label in ["".join(text.itertext())]
            if label in ("LN", "f", "+")
        }
        for panel, half in (
            ("post", [text for text in scenes.post_and_pre_norm()._root.iter("text") if float(text.attrib["x"]) < 200]),
            ("pre", [text for text in scenes.post_and_pre_norm()._root.iter("text") if float(text.attrib["x"]) > 200]),
        )
    }
    assert heights["post"]["f"] < heights["post"]["+"] < heights["post"]["LN"]
    assert heights["pre"]["LN"] < heights["pre"]["f"] < heights["pre"]["+"]


def test_decoder_reads_the_target_shifted_right() -> None:
    numbers = {
        token: number for number, token in enumerate(("(pad)", "(begin)", "(end)", "drei", "##und", "##zwanzig"))
    }
    target = torch.tensor([[numbers[token] for token in scenes.SAYS]])
    assert shift_right(target).tolist() == [[numbers[token] for token in scenes.READS]]
    labels = texts(scenes.shifted_target())
    assert [label for label in labels if label in numbers] == [
        token for pair in zip(scenes.READS, scenes.SAYS, strict=True) for token in pair
    ]


def test_masks_cross_out_padding_and_the_future() -> None:
    future = int((~causal_mask(4)).sum())
    for layout in (scenes.three_masks(), scenes.three_masks().narrow):
        assert layout is not None
        assert crosses(layout._root) == 4 + future + 4


def test_smoothed_shares_are_those_of_the_loss() -> None:
    labels = texts(scenes.smoothed_target(113, 0.1))
    right, others, each = 0.9 + 0.1 / 113, 112 * 0.1 / 113, 0.1 / 113
    assert f"right token {right:.3f}" in labels
    assert f"the 112 others {others:.3f}, each {each:.4f}" in labels
    target = torch.full((113,), each).double()
    target[7] = right
    floor = cross_entropy(target.log()[None], torch.tensor([7]), label_smoothing=0.1)
    torch.testing.assert_close(floor, -(target * target.log()).sum())


def test_rate_peaks_where_the_branches_meet() -> None:
    curves = [
        path.attrib["d"] for path in scenes.warm_up_rate()._root.iter("path") if path.attrib.get("stroke-width") == "3"
    ]
    rising, falling = (re.findall(r"([\d.]+) ([\d.]+)", curve) for curve in curves)
    assert rising[-1] == falling[0]
    heights = [196.0 - float(y) for _, y in falling]
    steps = [float(x) - 44.0 for x, _ in falling]
    ratio = noam_learning_rate(round(1000 * steps[-1] / steps[0]), 512, 1000) / noam_learning_rate(1000, 512, 1000)
    assert heights[-1] / heights[0] == pytest.approx(ratio, abs=0.01)
    assert heights == sorted(heights, reverse=True)


def test_beam_multiplies_the_probabilities_of_the_table() -> None:
    table = {
        "": {"A": 0.5, "B": 0.2, "C": 0.2, "end": 0.1},
        "A": {"A": 0.1, "B": 0.4, "C": 0.3, "end": 0.2},
        "AB": {"A": 0.2, "B": 0.2, "C": 0.4, "end": 0.2},
        "AC": {"A": 0.1, "B": 0.6, "C": 0.2, "end": 0.1},
        "ABC": {"end": 0.6},
        "ACB": {"end": 0.6},
    }
    totals = {"": 1.0}
    for branches in scenes.BEAM:
        for parent, name, probability, _ in branches:
            totals[name] = probability
            token = name.removeprefix(parent).strip()
            if parent in table and token in table[parent]:
                assert probability == pytest.approx(totals[parent] * table[parent][token]), name
        assert sum(kept for *_, kept in branches) <= 2
    (best,) = [name for _, name, _, kept in scenes.BEAM[-1] if kept]
    assert best == max((branch[1] for branch in scenes.BEAM[-1]), key=totals.__getitem__)


def test_t5_alone_has_both_stacks() -> None:
    labels = texts(scenes.descendants())
    assert labels.count("encoder") == labels.count("decoder") == 6
    assert [label for label in labels if label in ("BERT", "GPT", "T5")] == ["BERT", "GPT", "T5"]
