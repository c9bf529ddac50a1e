"""What a marker types is read as it was meant, or refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.marking.points_field import read_points


@given(st.integers(0, 999), st.text("0123456789", min_size=1, max_size=4), st.sampled_from(".,"))
def test_comma_and_point_separate_the_decimals(whole: int, decimals: str, separator: str) -> None:
    expected = whole + Fraction(int(decimals), 10 ** len(decimals))
    assert read_points(f" {whole}{separator}{decimals} ") == float(expected)


@pytest.mark.parametrize(("text", "points"), [("0,5", 0.5), (",5", 0.5), ("3", 3.0), ("", None), (" ", None)])
def test_a_number_or_nothing_is_read(text: str, points: float | None) -> None:
    assert read_points(text) == points


@pytest.mark.parametrize(
    "text",
    [
        "1.000,5",
        "1,000.5",
        "1,5,0",
        "5,",
        "+1",
        "-1",
        "1e1",
        "0x2",
        "nan",
        "inf",
        "½",
        "٣",
        "1 000",
        "1_0",
        "'2",
        "2 points",
    ],
)
def test_anything_else_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of points"):
        read_points(text)
