"""The gap explorer's record: every set of gaps, the hidden word among the guesses, and tables of the same numbers."""

from __future__ import annotations

from tfcourse.lessons.explorers.gaps import gap_explorer

from .examples import data_of, tables_of

WORDS = ["two", "hundred"]
GUESSES = [
    [],
    [[("six", 0.3), ("two", 0.25)]],
    [[("hundred", 0.999)]],
    [[("one", 0.5), ("two", 0.004)], [("ten", 0.4), ("hundred", 0.1)]],
]


def test_every_word_is_written_once_and_every_set_of_gaps_has_its_guesses() -> None:
    explorer = gap_explorer([WORDS], [GUESSES], caption="c")
    data = data_of(explorer)
    names = data["vocabulary"]
    assert len(names) == len(set(names))
    assert [[names[word] for word in words] for words in data["sentences"]] == [WORDS]
    read = [[[(names[word], share) for word, share in guess] for guess in gaps] for gaps in data["guesses"][0]]
    assert read == GUESSES
    assert tables_of(explorer)[0][1:] == [["two", "0.25", "0.00"], ["hundred", "1.00", "0.10"]]
    assert "4 sets" in explorer.summary()
