"""Labels know italics, subscripts and superscripts, and how wide they are at most."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tfcourse.lessons.figures.markup import Run, parse, text_width, write


@pytest.mark.parametrize(
    ("label", "runs"),
    [
        ("plain", [Run("plain")]),
        ("*Q* *K*^⊤", [Run("Q", 0, True), Run(" "), Run("K", 0, True), Run("⊤", 1)]),
        ("*h*_{t−1}", [Run("h", 0, True), Run("t−1", -1)]),
        ("√*D*_h + 1", [Run("√"), Run("D", 0, True), Run("h", -1), Run(" + 1")]),
        (r"q\_proj \* 2", [Run("q_proj * 2")]),
        ("{a}", [Run("{a}")]),
        ("", []),
    ],
)
def test_a_label_is_split_into_runs(label: str, runs: list[Run]) -> None:
    assert parse(label) == runs


@pytest.mark.parametrize("label", ["*Q", "x_", "x^{2", "x_a^", "x_{a^2}"])
def test_a_label_that_opens_and_does_not_close_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match=r"closed|inside another"):
        parse(label)


def test_text_after_a_subscript_returns_to_the_line() -> None:
    element = ET.Element("text")
    write(element, "*h*_t = 1^a", 10)
    assert "".join(element.itertext()) == "ht = 1a"
    shifts = [float(part.get("dy", 0)) for part in element]
    assert sum(shifts[:2]) > 0
    assert sum(shifts[:3]) == pytest.approx(0)
    assert sum(shifts) < 0


def test_a_wider_label_is_estimated_wider() -> None:
    assert text_width("i", 10) < text_width("m", 10) < text_width("mm", 10) < text_width("mm", 12)
    assert text_width("x_a", 10) < text_width("xa", 10) < text_width("xa", 10, bold=True)
