"""The position explorer's numbers are those of the matrices."""

import json
import math
import re

import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.positions import sinusoidal_positions


def cells_of(text: str) -> list[str]:
    """The texts of all cells of the tables in a page."""
    return re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", text)


def encodings(n: int = 6, D: int = 4) -> dict[str, Tensor]:
    return {
        "Sinusoids": sinusoidal_positions(n, D),
        "Drawn": torch.randn(n, D, generator=torch.Generator().manual_seed(0)),
    }


def test_json_holds_the_matrices_rounded_to_four_decimals() -> None:
    data = json.loads(position_explorer(encodings(), caption="c", start=(1, 5)).to_json())
    assert data["start"] == {"first": 1, "second": 5}
    for told, (name, matrix) in zip(data["encodings"], encodings().items(), strict=True):
        assert told["name"] == name
        torch.testing.assert_close(torch.tensor(told["rows"]), matrix, atol=5.1e-5, rtol=0)


def test_table_of_sinusoids_has_one_dot_product_a_distance_and_that_of_others_has_not() -> None:
    cells = cells_of(position_explorer(encodings(40, 32), caption="c").plain())
    start = cells.index("largest") + 1
    rows = [cells[start + 3 * i : start + 3 * i + 3] for i in range(40)]
    assert [row[0] for row in rows] == [str(distance) for distance in range(40)]
    expected = [sum(math.cos(k / 10_000 ** (2 * i / 32)) for i in range(16)) for k in range(40)]
    for (_, low, high), value in zip(rows, expected, strict=True):
        assert float(low) == pytest.approx(value, abs=0.006)
        assert float(high) == pytest.approx(value, abs=0.006)
    after = cells.index("largest", start) + 1
    assert float(cells[after + 1]) < float(cells[after + 2]) - 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"encodings": {}}, "matrices"),
        ({"encodings": {"a": torch.zeros(3, 4), "b": torch.zeros(4, 4)}}, "same n"),
        ({"encodings": {"a": torch.zeros(3)}}, r"\(3,\)"),
        ({"encodings": {"a": torch.full((3, 4), torch.nan)}}, "not finite"),
        ({"encodings": {" ": torch.zeros(3, 4)}}, "blank"),
        ({"start": (0, 3)}, "points outside of 3"),
    ],
)
def test_encodings_that_cannot_be_compared_are_refused(given: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"encodings": {"a": torch.zeros(3, 4)}, "caption": "c", **given}
    with pytest.raises(ValueError, match=message):
        position_explorer(arguments.pop("encodings"), **arguments)  # type: ignore[arg-type]


def test_text_form_says_what_there_is_to_see() -> None:
    assert repr(position_explorer(encodings(), caption="Which?")) == (
        "PositionExplorer: Sinusoids, Drawn; 6 positions of width 4. Which?"
    )
