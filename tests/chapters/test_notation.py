"""The legend has the letters that the lessons' formulas are written in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEGEND = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
LESSONS = {path.parent.name[:2]: path for path in sorted((ROOT / "chapters").glob("[0-9]*/lesson.md"))}

# What lives in a paragraph: indices, Euler's number, and the numbers of a small example.
INDICES = {"i", "j", "t", "e"}
LOCAL = {
    "01": {
        "a",
        "v",
        "w",
    },  # the argument of the logistic function; a token, as an index; a weight that is a single number
    "02": {"u"},  # the words of a source, in a sum
    "03": {"c", "b", "n", "p", r"\Delta", r"\delta", r"\varphi", r"\theta"},  # c multiplies a query, or is a column
    "04": {"q"},  # a query, as in chapter 03
    "05": {"a", "k", "m", "n"},  # an angle; a distance and two places
    "06": {"a", "b"},  # two symbols that are counted
    "07": set(),
    "09": {"t"},
    "10": set(),
    "11": set(),
    "13": set(),
    "12": {"s"},  # how many times longer a text is
    "08": {"b", "i", "j"},  # the number of a text in a batch; start and end of a span
}
# The letters of others, in the tables that translate between theirs and ours.
THEIRS = {"03": {"d"}}
GREEK = r"\\(?:alpha|beta|gamma|delta|Delta|varepsilon|epsilon|theta|mu|sigma|omega|Phi|varphi|ell|varrho|lambda|tau)(?![a-zA-Z])"


def letters(text: str) -> set[str]:
    """The letters of the formulas in a text, without what is attached to them below and above."""
    formulas = re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, flags=re.S)
    found: set[str] = set()
    for display, inline in formulas:
        formula = re.sub(
            r"\\(?:text|operatorname|mathtt|mathrm|mathbb|mathcal|begin|end)\*?\{[^}]*\}", " ", display or inline
        )
        formula = re.sub(r"_\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|_[a-zA-Z0-9]", "", formula)
        found |= set(re.findall(GREEK, formula))
        found |= set(re.findall(r"[A-Za-z]", re.sub(r"\\[a-zA-Z]+", " ", formula)))
    return found


def rows_of(chapter: str, text: str = LEGEND) -> list[str]:
    """Return the rows of a chapter's letters; a row may belong to several chapters."""
    return [
        row
        for row in text.splitlines()
        if (cell := re.match(r"\| (\d\d(?:, \d\d)*) \|", row)) and chapter in cell[1].split(", ")
    ]


def explained(chapter: str) -> set[str]:
    """The letters that the legend explains to a reader of a chapter."""
    shapes, symbols, chapters = (
        part.partition("\n## ")[0] for part in re.split(r"^## (?:Shapes|Symbols|Letters.*)$", LEGEND, flags=re.M)[1:]
    )
    own = "\n".join(rows_of(chapter, chapters))
    columns = "\n".join(row.split("|")[2] for row in own.splitlines())
    firsts = "\n".join(row.split("|")[1] for row in symbols.splitlines() if row.startswith("| "))
    return set(re.findall(r"^\| `([A-Z])", shapes, flags=re.M)) | letters(firsts) | letters(columns)


def prose(chapter: str) -> str:
    text = LESSONS[chapter].read_text(encoding="utf-8")
    return re.sub(r"```\{code-cell\}.*?\n```|```python.*?\n```|\{\{.+?\}\}", "", text, flags=re.S)


@pytest.mark.parametrize("chapter", sorted(LESSONS))
def test_every_letter_of_the_formulas_stands_in_the_legend(chapter: str) -> None:
    unknown = letters(prose(chapter)) - explained(chapter) - INDICES - LOCAL[chapter] - THEIRS.get(chapter, set())
    assert not unknown, f"docs/notation.md does not say what {sorted(unknown)} mean in chapter {chapter}"


@pytest.mark.parametrize("chapter", sorted(LESSONS))
def test_legend_explains_no_letter_that_its_chapter_does_not_write(chapter: str) -> None:
    rows = [row.split("|")[2] for row in rows_of(chapter)]
    assert rows
    assert letters("\n".join(rows)) <= letters(prose(chapter)) | {"q"}  # chapter 02 writes q in its exercises


def test_letters_are_found_in_formulas_and_nowhere_else() -> None:
    text = (
        r"A word, $\operatorname{softmax}(Q K^\top)_{ij}$ and $$\bar s_n = \mathtt{eps} + \beta \cdot W_{V,h}$$ `code`"
    )
    assert letters(text) == {"Q", "K", "s", r"\beta", "W"}
