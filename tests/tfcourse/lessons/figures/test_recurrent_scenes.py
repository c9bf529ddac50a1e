"""The drawings of chapter 01 show what its text says, on a page and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
import torch

from tfcourse.lessons.figures import Drawing
from tfcourse.lessons.figures.scenes import ch01_recurrent as scenes
from tfcourse.recurrent import language_model_blocks

DRAWINGS = (
    scenes.read_line_by_line,
    scenes.window_model,
    scenes.unrolled_network,
    scenes.five_configurations,
    scenes.lstm_cell,
    scenes.gru_cell,
    scenes.encoder_decoder,
    scenes.teacher_forcing,
    scenes.stacked_and_bidirectional,
    scenes.corpus_in_blocks,
    scenes.gradient_on_its_way,
    scenes.all_states_kept,
)


def layouts(draw: Callable[[], Drawing]) -> list[ET.Element]:
    """Return the layout for a page and the one for a phone."""
    drawing = draw()
    assert drawing.narrow is not None
    return [drawing._root, drawing.narrow._root]


def texts(layout: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in layout.iter("text")]


def count(layout: ET.Element, tone: str) -> int:
    return sum(f"tfd-{tone}" in rect.attrib.get("class", "") for rect in layout.iter("rect"))


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_phones_get_a_layout_that_fits(draw: Callable[[], Drawing]) -> None:
    narrow = draw().narrow
    assert narrow is not None
    assert narrow.width <= 350


def test_the_last_state_stands_clear_of_the_question() -> None:
    for layout in layouts(scenes.read_line_by_line):
        (name,) = [text for text in layout.iter("text") if "".join(text.itertext()) == "h3"]
        (question,) = [text for text in layout.iter("text") if "".join(text.itertext()) == "how many"]
        assert float(question.attrib["x"]) - float(name.attrib["x"]) >= 18


def test_window_sizes_are_those_of_the_text() -> None:
    for layout in layouts(scenes.window_model):
        written = texts(layout)
        assert {"n", "d", "e", "x", "x: 48 numbers", "tanh, 64", "logits y, 29", "12 each"} <= set(written)
        assert 4 * 12 == 48


def test_unrolled_network_hands_a_state_to_each_step() -> None:
    for layout in layouts(scenes.unrolled_network):
        written = texts(layout)
        assert written.count("cell") == 4
        assert [text for text in written if text in {"h0", "h1", "h2", "h3"}] == ["h0", "h1", "h2", "h3"]


def test_configurations_have_as_many_inputs_as_they_say() -> None:
    for layout in layouts(scenes.five_configurations):
        panels = scenes.ARRANGEMENTS.values()
        assert count(layout, "key") == 1 + sum(steps for steps, _, _ in panels)
        assert count(layout, "query") == 1 + sum(len(outputs) for _, _, outputs in panels)
        squares = 3 + sum(steps + len(inputs) + len(outputs) for steps, inputs, outputs in panels)
        assert len(list(layout.iter("rect"))) == squares


@pytest.mark.parametrize(("draw", "gates"), [(scenes.lstm_cell, "figo"), (scenes.gru_cell, "znr")])
def test_cells_show_all_their_gates(draw: Callable[[], Drawing], gates: str) -> None:
    for layout in layouts(draw):
        assert {text[0] for text in texts(layout) if text[1:] in ("", " = σ(·)", " = tanh(·)")} >= set(gates)


def test_decoder_reads_the_target_behind_bos() -> None:
    for layout in layouts(scenes.encoder_decoder):
        written = [text for text in texts(layout) if text in {"a", "b", "c", "BOS", "EOS"}]
        source, decoder = written[:3], written[3:]
        assert source == ["a", "b", "c"]
        assert decoder[0::2] == ["BOS", *reversed(source)]
        assert decoder[1::2] == [*reversed(source), "EOS"]


def test_forced_decoder_reads_the_truth_and_a_free_one_itself() -> None:
    for layout in layouts(scenes.teacher_forcing):
        tokens = [text for text in texts(layout) if text in {"BOS", "a", "b", "c", "d", "e"}]
        forced, free = tokens[:6], tokens[6:]
        assert forced[0::2] == ["BOS", "c", "b"]
        assert free[0::2] == ["BOS", *free[1:-1:2]]


def test_stack_and_both_directions_have_six_cells_each() -> None:
    for layout in layouts(scenes.stacked_and_bidirectional):
        written = texts(layout)
        assert [written.count(cell) for cell in ("lower", "upper", "→", "←")] == [3, 3, 3, 3]


def test_drawn_blocks_are_those_of_the_reference() -> None:
    inputs, targets = language_model_blocks(torch.arange(11), 3)
    expected = [*range(11), *inputs.flatten().tolist(), *targets.flatten().tolist()]
    for layout in layouts(scenes.corpus_in_blocks):
        assert [int(text) for text in texts(layout) if text.isdigit()] == expected


def test_gradients_halve_or_double_on_their_way() -> None:
    for layout in layouts(scenes.gradient_on_its_way):
        sizes = [float(text) for text in texts(layout) if re.fullmatch(r"[\d.]+", text)]
        assert sizes[:4] == [0.125, 0.25, 0.5, 1]
        assert sizes[-5:-1] == [8, 4, 2, 1]


def test_every_state_is_kept() -> None:
    for layout in layouts(scenes.all_states_kept):
        assert {"h1", "h2", "h3", "decoder"} <= set(texts(layout))
