"""The gap explorer's record: every set of gaps, the hidden word among the guesses, and tables of the same numbers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tfcourse.lessons.explorers.gaps import LONGEST, gap_explorer

WORDS = ["two", "hundred"]
GUESSES = [
    [],
    [[("six", 0.3), ("two", 0.25)]],
    [[("hundred", 0.999)]],
    [[("one", 0.5), ("two", 0.004)], [("ten", 0.4), ("hundred", 0.1)]],
]


def told(sentences: Any = (WORDS,), guesses: Any = (GUESSES,)) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gap_explorer(sentences, guesses, caption="c").to_json())
    return data


def test_every_word_is_written_once_and_every_set_of_gaps_has_its_guesses() -> None:
    data = told()
    names = data["vocabulary"]
    assert len(names) == len(set(names))
    assert [[names[word] for word in words] for words in data["sentences"]] == [WORDS]
    read = [[[(names[word], share) for word, share in guess] for guess in gaps] for gaps in data["guesses"][0]]
    assert read == GUESSES


def test_tables_have_the_first_and_the_last_guess_of_every_word() -> None:
    plain = gap_explorer([WORDS], [GUESSES], caption="c").plain()
    assert re.findall(r"<td[^>]*>([\d.]+)</td>", plain) == ["0.25", "0.00", "1.00", "0.10"]
    assert "2^" not in plain


def test_text_form_counts_sentences_and_sets() -> None:
    assert (
        repr(gap_explorer([WORDS] * 2, [GUESSES] * 2, caption="Who?"))
        == "GapExplorer: 2 sentences, 8 sets of gaps. Who?"
    )


@pytest.mark.parametrize(
    ("sentences", "guesses", "complaint"),
    [
        ([], [], "at least one sentence"),
        ([WORDS], [], "at least one sentence"),
        ([["a"] * (LONGEST + 1)], [[[]]], "1 to 9 words"),
        ([["", "b"]], [GUESSES], "none of them empty"),
        ([WORDS], [GUESSES[:3]], "4 sets of gaps, got 3"),
        ([WORDS], [[[], [], *GUESSES[2:]]], "entry 1 has 1 gaps, got 0"),
        ([WORDS], [[[], [[("six", 1.0)]], *GUESSES[2:]]], "that of 'two' among them"),
        ([WORDS], [[[], [[("two", 1.5)]], *GUESSES[2:]]], "expected probabilities"),
    ],
)
def test_what_cannot_be_shown_is_refused(sentences: Any, guesses: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        gap_explorer(sentences, guesses, caption="c")
