"""What every figure to play with promises without a browser: JSON and tables in HTML that no text can break."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tfcourse.lessons.explorers.base import Explorer, required_text, table, weight_cell

from .examples import EXAMPLES, HOSTILE, broken, documented_code, hostile, plainly

STATIC = Path(__file__).parents[4] / "book" / "_static"
every_explorer = pytest.mark.parametrize("name", EXAMPLES)


class Page(HTMLParser):
    """The elements of a page in order with their attributes, those that are open, and the scripts' texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.around: list[list[str]] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.around.append(self._open.copy())
        self._open.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """The elements and the names of their attributes, without any text."""
        return [(tag, list(attributes)) for tag, attributes in self.elements]


def page_of(explorer: Explorer) -> Page:
    return Page(explorer._repr_html_())


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
    tag, attributes = page_of(explorer).elements[0]
    assert tag == explorer.element
    assert attributes["class"] == "explorer"
    script = documented_code()["js"] if name == "documented" else (STATIC / f"{tag}.js").read_text(encoding="utf-8")
    assert f'define("{tag}", ' in script


@every_explorer
def test_html_is_the_same_on_every_run(name: str) -> None:
    assert EXAMPLES[name](plainly)._repr_html_() == EXAMPLES[name](plainly)._repr_html_()


@every_explorer
def test_hostile_texts_open_no_element_and_come_back_as_they_are(name: str) -> None:
    tame, page = page_of(EXAMPLES[name](plainly)), page_of(EXAMPLES[name](hostile))
    assert page.shape == tame.shape
    for before, after in zip(tame.scripts, page.scripts, strict=True):
        assert not set(after) & set("<>&")
        assert after.isascii()
        told, expected = texts_in(json.loads(after)), texts_in(json.loads(before))
        assert [text.replace(HOSTILE, "") for text in told] == expected
        assert Counter(HOSTILE in text for text in told)[True], "none of the texts went through"


@every_explorer
def test_texts_that_no_page_can_hold_are_replaced(name: str) -> None:
    text = EXAMPLES[name](broken)._repr_html_()
    assert text.encode("utf-8").isascii() is False  # the replacement signs are there
    assert not re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", text)
    data = json.loads(page_of(EXAMPLES[name](broken)).scripts[0])
    assert data["caption"].startswith("?\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}")


@every_explorer
def test_without_a_script_there_are_folded_tables_in_boxes_with_a_name_and_one_is_open(name: str) -> None:
    page = page_of(EXAMPLES[name](plainly))
    tables = [around for (tag, _), around in zip(page.elements, page.around, strict=True) if tag == "table"]
    assert tables
    assert all({"figure", "details"} <= set(around) for around in tables)
    boxes = [attributes for tag, attributes in page.elements if attributes.get("role") == "region"]
    assert len(boxes) == len(tables)
    assert len({box["aria-label"] for box in boxes}) == len(boxes)
    assert all(box["tabindex"] == "0" for box in boxes)
    plain = [attributes for _, attributes in page.elements if attributes.get("class") == "explorer-plain"]
    assert sum("open" in attributes for tag, attributes in page.elements if tag == "details") == max(1, len(plain) - 1)


@every_explorer
def test_json_says_its_version_and_the_caption(name: str) -> None:
    explorer = EXAMPLES[name](plainly)
    data = json.loads(explorer.to_json())
    assert data["version"] == 1
    assert data["caption"] == explorer.caption
    assert page_of(explorer).scripts[0] == explorer.to_json()


@every_explorer
def test_text_form_names_the_class_and_ends_with_the_caption(name: str) -> None:
    explorer = EXAMPLES[name](plainly)
    assert re.fullmatch(rf"{type(explorer).__name__}: .+\. {re.escape(explorer.caption)}", repr(explorer))


@every_explorer
def test_blank_caption_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"needs a caption .*' \\n'"):
        dataclasses.replace(EXAMPLES[name](plainly), caption=" \n")


def test_blank_text_is_refused_by_what_it_is_for() -> None:
    with pytest.raises(ValueError, match="a figure needs a name for its dial"):
        required_text("", "a name for its dial")


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
