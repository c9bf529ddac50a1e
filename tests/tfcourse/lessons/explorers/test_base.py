"""What every figure to play with promises without a browser: JSON and tables in HTML that no text can break."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from bs4 import BeautifulSoup, Tag

from tfcourse.lessons.explorers.base import Explorer, table, weight_cell
from tfcourse.lessons.explorers.blocks import block_explorer
from tfcourse.lessons.explorers.gradients import gradient_explorer
from tfcourse.lessons.explorers.heads import head_explorer

from .examples import EXAMPLES, HOSTILE, broken, data_of, documented_code, hostile, plainly

STATIC = Path(__file__).parents[4] / "book" / "_static"
NORMS = {name: torch.ones(3, 2) for name in ("plain", "gated")}
every_explorer = pytest.mark.parametrize("name", EXAMPLES)


def elements_of(explorer: Explorer) -> list[Tag]:
    """The elements of a figure in order; all that open have to close."""
    text = explorer._repr_html_()
    opened, closed = (Counter(re.findall(pattern, text)) for pattern in (r"<([a-z][\w-]*)", r"</([a-z][\w-]*)"))
    assert opened == closed
    return list(BeautifulSoup(text, "html.parser").find_all(True))


def shape(elements: list[Tag]) -> list[tuple[str, list[str]]]:
    """The elements and the names of their attributes, without any text."""
    return [(element.name, list(element.attrs)) for element in elements]


def scripts(elements: list[Tag]) -> list[str]:
    return [element.get_text() for element in elements if element.name == "script"]


def texts_in(value: Any) -> list[str]:
    """Every text in what JSON holds, names of objects included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    return [text for part in value for text in texts_in(part)] if isinstance(value, list) else []


@every_explorer
def test_element_has_a_script_of_its_own_and_the_class_that_the_style_sheet_knows(name: str) -> None:
    explorer = EXAMPLES[name](plainly)
    first = elements_of(explorer)[0]
    assert (first.name, first["class"]) == (explorer.element, ["explorer"])
    script = STATIC / f"{first.name}.js"
    text = documented_code()["js"] if name == "documented" else script.read_text(encoding="utf-8")
    assert f'define("{first.name}", ' in text


@every_explorer
def test_figure_is_the_same_on_every_run_and_has_its_version_and_caption_in_its_data_and_text_form(name: str) -> None:
    explorer = EXAMPLES[name](plainly)
    data = data_of(explorer)
    assert (data["version"], data["caption"]) == (1, explorer.caption)
    assert scripts(elements_of(explorer))[0] == explorer.to_json()
    assert explorer._repr_html_() == EXAMPLES[name](plainly)._repr_html_()
    assert re.fullmatch(rf"{type(explorer).__name__}: .+\. {re.escape(explorer.caption)}", repr(explorer))
    with pytest.raises(ValueError, match=r"caption .*' \\n'"):
        dataclasses.replace(explorer, caption=" \n")


@every_explorer
def test_hostile_texts_open_no_element_and_come_back_as_they_are(name: str) -> None:
    tame, page = elements_of(EXAMPLES[name](plainly)), elements_of(EXAMPLES[name](hostile))
    assert shape(page) == shape(tame)
    for before, after in zip(scripts(tame), scripts(page), strict=True):
        assert not set(after) & set("<>&")
        assert after.isascii()
        texts, expected = texts_in(json.loads(after)), texts_in(json.loads(before))
        assert [text.replace(HOSTILE, "") for text in texts] == expected
        assert Counter(HOSTILE in text for text in texts)[True], "none of the texts went through"


@every_explorer
def test_texts_that_no_page_can_hold_are_replaced(name: str) -> None:
    text = EXAMPLES[name](broken)._repr_html_()
    assert text.encode("utf-8").isascii() is False  # the replacement signs are there
    assert not re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", text)
    caption = data_of(EXAMPLES[name](broken))["caption"]
    assert caption.startswith("?\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}")


@every_explorer
def test_without_a_script_there_are_folded_tables_in_boxes_with_a_name_and_one_is_open(name: str) -> None:
    elements = elements_of(EXAMPLES[name](plainly))
    tables = [element for element in elements if element.name == "table"]
    assert tables
    assert all(table.find_parent("figure") and table.find_parent("details") for table in tables)
    boxes = [element for element in elements if element.get("role") == "region"]
    assert len({box["aria-label"] for box in boxes}) == len(boxes) == len(tables)
    assert all(box["tabindex"] == "0" for box in boxes)
    plain = [element for element in elements if element.get("class") == ["explorer-plain"]]
    opened = [element for element in elements if element.name == "details" and element.has_attr("open")]
    assert len(opened) == max(1, len(plain) - 1)


@pytest.mark.parametrize(
    ("explorer", "expected"),
    [
        (head_explorer(["a"], torch.ones(2, 2, 1, 1), caption="c", start=(1, 0, 0)), "Layer 2, head 1"),
        (head_explorer(["a"], torch.ones(1, 2, 1, 1), caption="c", names=["left", "right"]), "left"),
        (head_explorer(["a"], torch.ones(2, 1, 1, 1), caption="c", names=["left"], start=(1, 0, 0)), "Layer 2, left"),
        (block_explorer(layer="decoder", norm="pre", caption="c"), "Decoder layer, pre-norm"),
        (gradient_explorer(NORMS, (1, 2, 3), setting_name="s", caption="c", start=(1, 0, 0)), "gated"),
    ],
)
def test_the_open_table_is_that_of_what_is_shown_first(explorer: Explorer, expected: str) -> None:
    page = BeautifulSoup(explorer._repr_html_(), "html.parser")
    (opened,) = (details for details in page.find_all("details") if details.has_attr("open"))
    assert opened.summary.get_text() == expected


def test_more_weight_is_darker_and_a_zero_is_told_from_a_small_weight() -> None:
    cells = [weight_cell(weight) for weight in (0, 0.004, 0.3, 1.0, 1.004)]
    assert [re.sub("<.*?>", "", cell) for cell in cells] == ["0", "0.00", "0.30", "1.00", "1.00"]
    shades = [float(found[1]) if (found := re.search(r" ([\d.]+)%", cell)) else 0.0 for cell in cells]
    assert shades == pytest.approx([0, 0, 13.5, 45, 45])


def test_table_has_headers_for_rows_columns_and_where_asked_for_for_their_corner() -> None:
    bare = table("label", ["a", "b"], [("x", [1.0, 2.0])])
    assert re.findall(r'<th scope="(\w+)">(.*?)</th>', bare) == [("col", "a"), ("col", "b"), ("row", "x")]
    assert re.findall("<td>(.*?)</td>", bare) == ["", "1.00", "2.00"]
    assert '<th scope="col">step</th><th scope="col">a</th>' in table("label", ["a"], [], corner="step")


def test_example_for_contributors_fits_on_a_screen() -> None:
    assert sum(len(code.splitlines()) for code in documented_code().values()) <= 60
