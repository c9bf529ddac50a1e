"""What all figures to play with share: the data as JSON, the caption, and the plain tables that stand in for the figure.

An explorer is a custom element such as `<head-explorer>` in a notebook's output. It holds its data as JSON and the same numbers as
tables. Where the page loads `explorer.js` and the script that is named after the element (the course's site does), they become an
interactive figure; everywhere else the tables are readable as they are.
"""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["Explorer", "folded", "readable", "required_text", "script_json", "scrollable", "table", "weight_cell"]


@dataclass(frozen=True)
class Explorer(ABC):
    """A figure to play with, as the last value of a notebook cell shows it.

    A subclass is a frozen dataclass with `repr=False`, and has its data, its checks and its tables.

    Raises:
        ValueError: If the caption is blank.
    """

    element: ClassVar[str]
    """The name of the custom element: two words with a dash, the second one "explorer"."""

    caption: str
    """One sentence that describes the figure."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "caption", required_text(self.caption, "a caption that says what it shows"))

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The data that the element's script needs in addition to the caption; anything that JSON can represent."""

    @abstractmethod
    def plain(self) -> str:
        """The same numbers as HTML that needs no script: a sentence, and tables made by `folded` and `table`."""

    @abstractmethod
    def summary(self) -> str:
        """The contents of the figure in a few words: the text form, which appears before the caption."""

    def to_json(self) -> str:
        """The figure's data as one line of JSON that is safe inside an HTML `<script>` element.

        Returns:
            The same bytes on every run; `<`, `>` and `&` as escapes, so that no text can end the element or open one.
        """
        return script_json({"version": 1, "caption": self.caption, **self.data()})

    def _repr_html_(self) -> str:
        caption = html.escape(self.caption)
        return (
            f'<{self.element} class="explorer" style="display:block"><script type="application/json">{self.to_json()}</script>'
            f'<figure class="explorer-plain" role="group" aria-label="{caption}"><figcaption>{caption}</figcaption>'
            f"{self.plain()}</figure></{self.element}>"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.summary()}. {self.caption}"


def folded(title: str, inside: str, *, unfolded: bool = False) -> str:
    """HTML that readers unfold by clicking on its title.

    Args:
        title: Any text; it is escaped.
        inside: HTML.
        unfolded: Whether it is open at first.
    """
    return f"<details{' open' if unfolded else ''}><summary>{html.escape(title)}</summary>{inside}</details>"


def scrollable(label: str, inside: str) -> str:
    """HTML, such as a wide table, in a box that scrolls sideways, with the keyboard too.

    Args:
        label: What the box is called, different from all others on a page where possible; it is escaped.
        inside: HTML.
    """
    return (
        f'<div class="explorer-scroll" role="region" aria-label="{html.escape(label)}" tabindex="0" '
        f'style="overflow-x:auto">{inside}</div>'
    )


def _number_cell(number: float) -> str:
    """A number to two decimals as a cell of a table."""
    return f"<td>{number:.2f}</td>"


def weight_cell(weight: float) -> str:
    """A weight from 0 to 1 as a cell of a table: more weight is darker indigo, also where no style sheet is loaded.

    A weight of exactly zero, such as a mask makes, is told from a small one: "0" and "0.00".
    """
    if not weight:
        return "<td>0</td>"
    if weight < 0.005:
        return "<td>0.00</td>"
    # Less than half of the colour at most, so that the text keeps its contrast on it.
    shade = f"color-mix(in srgb,var(--tfcourse-weight,rgb(79,70,229)) {45 * min(weight, 1):.1f}%,transparent)"
    return f'<td style="background:{shade}">{weight:.2f}</td>'


def table(
    label: str,
    columns: Sequence[str],
    rows: Iterable[tuple[str, Iterable[Any]]],
    *,
    cell: Callable[[Any], str] = _number_cell,
    corner: str = "",
) -> str:
    """A table, of numbers mostly, with a header for each column and row, in a box that scrolls.

    Args:
        label: What the box is called, for whoever cannot see it.
        columns: What stands above the columns; any text, it is escaped.
        rows: What stands before each row, which is escaped too, and the row's values.
        cell: Turns a value into the HTML of its cell; a number unless it is said otherwise.
        corner: What the headers of the rows are.
    """
    first = f'<th scope="col">{html.escape(corner)}</th>' if corner else "<td></td>"
    header = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(cell, values))}</tr>' for name, values in rows
    )
    return scrollable(label, f"<table><thead><tr>{first}{header}</tr></thead><tbody>{body}</tbody></table>")


def required_text(text: str, what: str) -> str:
    """A text of a figure as a page can carry it.

    Args:
        text: Any text, a token of a broken file included.
        what: What the text is, with its article, for the complaint.

    Raises:
        ValueError: If there is nothing to read in it.
    """
    if not text.strip():
        raise ValueError(f"a figure needs {what}: pass a text that is not blank, got {text!r}")
    return readable(text)


def readable(text: str) -> str:
    """Make text fit for a page.

    Args:
        text: Any text, a token of a broken file included.

    Returns:
        The text without what HTML cannot carry: lone surrogates and control characters become a replacement sign.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join("\N{REPLACEMENT CHARACTER}" if c < " " and c not in "\t\n" else c for c in text)


def script_json(data: Any) -> str:
    """JSON in one line that is safe inside an HTML `<script>` element.

    Args:
        data: What JSON can hold.

    Returns:
        ASCII text in which `<`, `>` and `&` are escapes, so that no text in the data can end the element or open one.
    """
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
