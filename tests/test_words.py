"""The table of words holds everywhere that it is in force, and a new house word is found."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools.words import AREAS, CODE, ROOT, Passage, Rule, Table, bound_names, findings, markdown_passages, names, table

WORDS = table()
PAGE = ROOT / "docs" / "page.md"


@pytest.mark.parametrize("area", AREAS)
def test_no_banned_word_is_in_an_area_where_the_table_is_in_force(area: str) -> None:
    assert list(findings(area, WORDS)) == []


@pytest.mark.parametrize("area", WORDS.pending)
def test_an_area_that_is_not_yet_rewritten_gains_no_matches(area: str) -> None:
    assert len(list(findings(area, WORDS, everywhere=True))) <= WORDS.pending[area]


def test_the_allow_lists_are_short_and_every_entry_is_needed() -> None:
    assert len(WORDS.allowed()) <= 40
    unused = {piece: rule for rule in WORDS.rules for piece in rule.allow}
    for area in sorted({area for rule in WORDS.rules if rule.allow for area in rule.areas}):
        for passage in AREAS[area]():
            for piece, rule in list(unused.items()):
                if piece in passage.labelled and rule.find.search(passage.text):
                    del unused[piece]
    assert unused == {}


def test_every_rule_is_in_force_somewhere() -> None:
    assert [rule.find.pattern for rule in WORDS.rules if not rule.areas] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "An exercise pays four points.",
        "Eight tokens fit on a card.",
        "The hidden questions are secret.",
        "This command renews the pages.",
        "Gradients by both matrices are compared.",
        "Whoever solves it first may go.",
        "`doctor` says what is missing.",
        "There is one row a head.",
        "The course has a folder of its own.",
        "It lacks a mask, for it is short.",
        "Skipped if there is none.",
        "- an item\n- that looks at the device",
        "```{note}\nA note about the pretend device.\n```",
        "| a | b |\n|---|---|\n| one | those of the reference |",
        " ".join(["word"] * 36),
    ],
)
def test_a_new_house_word_is_found(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AREAS, "docs", lambda: markdown_passages(PAGE, f"# Title\n\nGood English.\n\n{sentence}\n"))
    assert list(findings("docs", WORDS))


def test_code_formulas_printed_values_and_generated_tables_are_not_read() -> None:
    page = (
        "# Title\n\nSay `it pays` and $pays$ and {{it[pays]:.2f}} and {ref}`it pays <label>`.\n\n```python\npays = 1\n```\n\n"
        "<!-- figures: begin -->\nIt pays.\n<!-- figures: end -->\n\nThe last line.\n"
    )
    passages = list(markdown_passages(PAGE, page))
    assert [passage.text for passage in passages] == [
        "Title",
        f"Say {CODE} and {CODE} and {CODE} and {CODE}.",
        "The last line.",
    ]
    assert [passage.line for passage in passages] == [1, 3, 13]


def test_an_allowed_passage_is_not_reported_and_another_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(
        re.compile("pays"), "is worth", frozenset({"docs"}), allow=("the state pays", "docs/page.md: A row pays")
    )
    words = Table((rule,), 35, frozenset(), (), {})
    text = "In Germany the state pays.\n\nA row pays.\n\nAn exercise pays.\n"
    monkeypatch.setitem(AREAS, "docs", lambda: markdown_passages(PAGE, text))
    assert [finding.partition(": ")[0] for finding in findings("docs", words)] == ["docs/page.md:5"]


def test_an_unknown_area_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    text = (ROOT / "tools" / "words.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('areas = ["docs"', 'areas = ["doc"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"unknown areas \['doc'\]"):
        table(path)


def test_every_way_to_bind_a_name_is_found() -> None:
    tree = ast.parse(
        "def told(known, *, given=1):\n"
        "    found = [left for left in known]\n"
        "    with open(found) as seen:\n"
        "        for _place in seen:\n"
        "            self.own = matches = lambda wanted: wanted\n"
    )
    bound = {name for name, _ in bound_names(tree)}
    assert bound == {"told", "known", "given", "found", "left", "seen", "_place", "matches", "wanted"}


def test_a_vague_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good, vague = (Passage(ROOT / "autograder" / "course" / "lock.py", 1, name) for name in ("lock_path", "found"))
    monkeypatch.setitem(AREAS, "names in course", lambda: iter((good, vague)))
    assert len(list(findings("names in course", WORDS))) == 1
    assert any(passage.text == "lock_path" for passage in [good, *names("autograder/course")])
