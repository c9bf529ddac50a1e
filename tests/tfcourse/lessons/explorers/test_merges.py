"""The merge explorer's record: cuts, counts and sizes are those of merging by hand, step by step."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tfcourse.lessons.explorers.merges import merge_explorer

from .examples import data_of

WORDS = ["low", " low", " lower", " low", "newest"]
MERGES = [("l", "o"), ("lo", "w"), (" ", "low"), ("e", "w"), ("e", "r")]


def merged(word: list[str], pair: tuple[str, str]) -> list[str]:
    """One merge by a rule of its own: a text with marks between the symbols, and a search."""
    done: list[str] = []
    while word:
        take = 2 if tuple(word[:2]) == pair else 1
        done.append("".join(word[:take]))
        word = word[take:]
    return done


def told(words: Any = WORDS, merges: Any = MERGES) -> dict[str, Any]:
    return data_of(merge_explorer(words, merges, caption="c"))


def cuts(data: dict[str, Any], done: int) -> list[list[str]]:
    """The pieces after so many merges, as the script puts them together."""
    pieces = []
    for word, borders in zip(data["words"], data["joined"], strict=True):
        cut = [data["vocabulary"][word[0]]]
        for symbol, merge in zip(word[1:], borders, strict=True):
            if 0 < merge <= done:
                cut[-1] += data["vocabulary"][symbol]
            else:
                cut.append(data["vocabulary"][symbol])
        pieces.append(cut)
    return pieces


@given(
    st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "aa", "ab"]), st.sampled_from(["a", "b", "aa"])), min_size=1, max_size=5
    ),
)
def test_borders_vanish_with_the_merge_that_joins_their_sides(words: list[str], merges: list[tuple[str, str]]) -> None:
    data = told(words, merges)
    expected = [list(word) for word in words]
    for done in range(len(merges) + 1):
        assert cuts(data, done) == expected
        assert data["steps"][done][0] == sum(map(len, expected))
        if done < len(merges):
            before = sum(map(len, expected))
            expected = [merged(word, merges[done]) for word in expected]
            assert data["merges"][done][3] == before - sum(map(len, expected))


def test_commonest_pairs_stand_behind_the_next_merge_and_the_older_symbol_wins_a_tie() -> None:
    data = told()
    names = data["vocabulary"]
    pairs = Counter(pair for word in WORDS for pair in pairwise(word))
    shown = [((names[left], names[right]), count) for left, right, count in data["steps"][0][2]]
    assert shown[:3] == [(("l", "o"), 4), (("o", "w"), 4), ((" ", "l"), 3)]
    assert [count for _, count in shown] == sorted(pairs.values(), reverse=True)[: len(shown)]
    assert len(data["steps"][-1][2]) <= 5


def test_a_symbol_that_comes_to_be_in_two_ways_is_one_entry_of_the_vocabulary() -> None:
    data = told(["abc", "abc"], [("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc")])
    assert [step[1] for step in data["steps"]] == [3, 4, 5, 6, 6]
    assert data["vocabulary"] == ["a", "b", "c", "ab", "abc", "bc"]


def test_a_merge_that_never_occurs_counts_zero() -> None:
    data = told(["low"], [("x", "y"), ("l", "o")])
    assert (data["merges"][0][3], data["steps"][0][2][0][2]) == (0, 0)
    assert [step[0] for step in data["steps"]] == [3, 3, 2]
