"""Small random words, vocabularies and corpora over few letters: symbols repeat, pieces overlap, and counts tie."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from autograder.checking.draw import Case, Draw
from autograder.checks.ch06_tokenization.drawn_words import drawn_word, shuffled
from tfcourse.tokenization import merge_pair, train_bpe


def _index(draw: Draw, count: int) -> int:
    return int(draw.integers(0, count))


def random_merges(draw: Draw) -> Case:
    """A word, and merges each of which joins symbols that earlier merges have made."""
    symbols, merges = list("abc"), []
    for _ in range(3 + _index(draw, 6)):
        pair = symbols[_index(draw, len(symbols))], symbols[_index(draw, len(symbols))]
        if pair not in merges:
            merges.append(pair)
            symbols.append("".join(pair))
    return Case({"word": drawn_word(draw, "abc", 3 + _index(draw, 8)), "merges": merges})


def random_pieces(draw: Draw) -> Case:
    """A word, and pieces for its beginning and for its inside, among them long ones; or a word whose longest piece leads to a dead end."""
    letters = "abc"
    if not _index(draw, 4):
        x, y, z = shuffled(draw, letters)
        return Case({"word": x + y + z, "vocabulary": ["[UNK]", f"##{y}{z}", x, x + y]})
    pieces = {prefix + letter for prefix in ("", "##") for letter in letters if _index(draw, 5)}
    for _ in range(4 + _index(draw, 5)):
        pieces.add(("", "##")[_index(draw, 2)] + drawn_word(draw, letters, 2 + _index(draw, 7)))
    word = drawn_word(draw, letters, 2 + _index(draw, 8))
    if _index(draw, 2):
        word = max(sorted(pieces), key=len).removeprefix("##") + word
    return Case({"word": word, "vocabulary": ["[UNK]", *sorted(pieces)]})


def random_scores(draw: Draw) -> Case:
    """A text, and pieces of one to nine letters with scores at random, so that no two cuts are equally good."""
    scores: dict[str, float] = {}
    for _ in range(5 + _index(draw, 6)):
        piece = drawn_word(draw, "abc", 1 + _index(draw, 4) * (1 + _index(draw, 3)) % 9)
        if piece:
            scores[piece] = -float(draw.normal(1).abs()) * 3 - 0.5
    text = drawn_word(draw, "abc", 2 + _index(draw, 8))
    if _index(draw, 2):
        text = max(scores, key=len) + text
    return Case({"text": text, "scores": scores, "unknown": -9.0})


def random_corpus(draw: Draw) -> Case:
    """Few words over two or three letters: pairs repeat within words, and no two pairs are equally common when one is merged."""
    while True:
        letters = "abc"[: 2 + _index(draw, 2)]
        counts = {
            drawn_word(draw, letters, 1 + _index(draw, 7)): 1 + _index(draw, 40) for _ in range(2 + _index(draw, 4))
        }
        size = len({letter for word in counts for letter in word}) + 1 + _index(draw, 4)
        if each_merge_has_one_winner(counts, size):
            return Case({"word_counts": counts, "vocab_size": size})


def each_merge_has_one_winner(word_counts: dict[str, int], vocab_size: int) -> bool:
    """Return whether no two pairs are equally common when BPE merges one of them."""
    words = {word: list(word) for word in word_counts}
    _, merges = train_bpe(word_counts, vocab_size)
    for merge in merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, symbols in words.items():
            for pair in pairwise(symbols):
                pairs[pair] += word_counts[word]
        if sorted(pairs.values())[-2:] == [pairs[merge]] * 2:
            return False
        words = {word: merge_pair(symbols, merge) for word, symbols in words.items()}
    return True
