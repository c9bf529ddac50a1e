"""Tokenisation against the library `tokenizers`, against PyTorch's embedding, and against loops from the definitions."""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
import unicodedata
from collections import Counter

import pytest
import regex
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tfcourse.data import prose
from tfcourse.tokenization import (
    best_pair,
    bpe_encode,
    byte_characters,
    cosine_similarities,
    decode_ids,
    embedding_lookup,
    encode_text,
    merge_pair,
    pre_tokenize,
    train_bpe,
    unigram_segment,
    wordpiece_encode,
)

Merges = list[tuple[str, str]]

# Text that UTF-8 can write, with much white space and punctuation in it.
TEXTS = st.text(
    st.one_of(
        st.sampled_from(" \n\t\x1c'_.!7½stré東🙂"), st.characters(codec="utf-8", categories=("L", "N", "P", "Zs", "S"))
    )
)
# As published, https://github.com/openai/gpt-2/blob/master/src/encoder.py
GPT2_PATTERN = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")


def byte_level() -> pre_tokenizers.ByteLevel:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


SPELLING = byte_characters()


def spelled(text: str) -> str:
    return "".join(SPELLING[byte] for byte in text.encode("utf-8"))


@pytest.fixture(scope="module")
def word_counts() -> Counter[str]:
    """The pieces of some prose in byte characters."""
    return Counter(spelled(piece) for piece in pre_tokenize(prose()[:25_000]))


@pytest.fixture(scope="module")
def trained(word_counts: Counter[str]) -> tuple[list[str], Merges]:
    """A byte-level encoding of 350 symbols."""
    return train_bpe(word_counts, 350, alphabet=byte_characters())


# ---------------------------------------------------------------------------------------------- cutting first


def test_pieces_of_prose_are_those_of_the_library() -> None:
    text = prose()
    for start in range(0, len(text), 4000):  # the library takes long for a long text
        part = text[start : start + 4000]
        expected = [piece for piece, _ in byte_level().pre_tokenize_str(part)]
        assert [spelled(piece) for piece in pre_tokenize(part)] == expected


def test_pieces_of_random_text_are_those_of_the_library() -> None:
    signs = random.Random(0)
    for _ in range(3000):
        text = "".join(signs.choices("ab éß東🙂 .,!?'_-  \n\tstrevmld1290", k=signs.randrange(14)))
        expected = [piece for piece, _ in byte_level().pre_tokenize_str(text)]
        assert [spelled(piece) for piece in pre_tokenize(text)] == expected, repr(text)


def test_every_character_is_of_the_kind_that_gpt2s_pattern_says() -> None:
    signs = [chr(number) for number in range(sys.maxunicode + 1)]
    known = [
        sign for sign in signs if unicodedata.category(sign) not in ("Cn", "Co", "Cs")
    ]  # `regex` may know newer ones
    for start in range(0, len(known), 500):
        text = "".join(f"a{sign}1 {sign}.{sign}  {sign} " for sign in known[start : start + 500])
        assert pre_tokenize(text) == GPT2_PATTERN.findall(text)


@given(TEXTS)
def test_pieces_of_any_text_are_those_of_gpt2s_pattern(text: str) -> None:
    assert pre_tokenize(text) == GPT2_PATTERN.findall(text)


@given(TEXTS)
def test_joined_pieces_are_the_text(text: str) -> None:
    assert "".join(pre_tokenize(text)) == text
    assert all(pre_tokenize(text))


def test_contractions_are_cut_in_small_letters_only() -> None:
    assert pre_tokenize("I don't") == ["I", " don", "'t"]
    assert pre_tokenize("DON'T") == ["DON", "'", "T"]
    assert pre_tokenize("x_1  =  2 ") == ["x", "_", "1", " ", " =", " ", " 2", " "]


# ---------------------------------------------------------------------------------------------- bytes


def test_byte_characters_are_the_librarys_alphabet() -> None:
    characters = byte_characters()
    assert len(set(characters)) == 256
    assert set(characters) == set(pre_tokenizers.ByteLevel.alphabet())
    for byte in range(128):  # where a byte is a character, the library shows which character writes it
        [(piece, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte))
        assert piece == characters[byte]
    assert characters[ord(" ")] == "Ġ"
    assert characters[ord("\n")] == "Ċ"


def test_sorted_byte_characters_are_gpt2s_first_ids() -> None:
    alphabet = sorted(byte_characters())
    assert alphabet.index("!") == 0
    assert alphabet.index("Ġ") == 220


# ---------------------------------------------------------------------------------------------- merging


@given(st.lists(st.sampled_from("ab")), st.tuples(st.sampled_from("ab"), st.sampled_from("ab")))
def test_a_merge_is_what_a_search_from_the_left_does(symbols: list[str], pair: tuple[str, str]) -> None:
    expected, rest = [], "".join(symbols)
    while rest:
        take = 2 if rest.startswith("".join(pair)) else 1
        expected.append(rest[:take])
        rest = rest[take:]
    before = list(symbols)
    assert merge_pair(symbols, pair) == expected
    assert symbols == before


def test_a_merge_does_not_reach_across_the_borders_of_symbols() -> None:
    assert merge_pair(["ab", "c"], ("a", "bc")) == ["ab", "c"]
    assert merge_pair(["a", "a", "a"], ("a", "a")) == ["aa", "a"]


def test_overlapping_places_count_and_ties_go_by_the_vocabulary() -> None:
    assert best_pair([["a", "a", "a"], ["b", "c"]], [1, 1], ["a", "b", "c"]) == ("a", "a")
    assert best_pair([["a", "b"], ["c", "a"]], [1, 1], ["c", "a", "b"]) == ("c", "a")
    assert best_pair([["a", "b"], ["a", "c"]], [1, 1], ["a", "c", "b"]) == ("a", "c")
    assert best_pair([["a"], []], [5, 1], ["a"]) is None


@given(
    st.lists(
        st.tuples(st.text("abc", min_size=1, max_size=6), st.integers(1, 9)), max_size=8, unique_by=lambda pair: pair[0]
    )
)
def test_best_pair_is_that_of_a_count_over_all_pairs_of_symbols(corpus: list[tuple[str, int]]) -> None:
    def count(left: str, right: str) -> int:
        return sum(n * sum(word[i : i + 2] == left + right for i in range(len(word) - 1)) for word, n in corpus)

    candidates = [pair for pair in itertools.product("abc", repeat=2) if count(*pair)]
    expected = max(candidates, key=lambda pair: (count(*pair), [-ord(c) for c in pair]), default=None)
    assert best_pair([list(word) for word, _ in corpus], [n for _, n in corpus], "abc") == expected


def library_training(words: Counter[str], size: int, alphabet: list[str]) -> tuple[list[str], Merges]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, min_frequency=0, show_progress=False)
    tokenizer.train_from_iterator((f"{word} " * count for word, count in words.items()), trainer)
    ids = tokenizer.get_vocab()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return sorted(ids, key=ids.__getitem__), [tuple(pair) for pair in merges]


def test_training_on_prose_gives_the_librarys_merges_and_ids(
    word_counts: Counter[str], trained: tuple[list[str], Merges]
) -> None:
    assert trained == library_training(word_counts, 350, byte_characters())


def test_training_on_small_corpora_gives_the_librarys_merges_and_ids() -> None:
    signs = random.Random(0)
    for _ in range(300):
        letters = "abcd"[: signs.randrange(1, 5)]
        words = {"".join(signs.choices(letters, k=signs.randrange(1, 7))): signs.randrange(1, 6) for _ in range(6)}
        corpus = Counter(words)
        size = signs.randrange(1, 20)
        vocabulary, merges = train_bpe(corpus, size)
        expected, learnt = library_training(corpus, size, [])
        if size >= len({letter for word in words for letter in word}):  # below that the library drops letters
            assert (vocabulary, merges) == (expected, learnt), (words, size)
        else:
            assert not merges


def test_a_second_way_to_a_symbol_is_a_merge_and_no_new_symbol() -> None:
    vocabulary, merges = train_bpe({"abc": 5, "ab": 4, "bc": 1, "xbc": 6, "xabc": 2}, 40)
    made = ["".join(pair) for pair in merges]
    assert len(set(vocabulary)) == len(vocabulary)
    assert len(merges) >= len(set(made))
    assert set(made) < set(vocabulary)


def test_no_merges_below_the_size_of_the_alphabet() -> None:
    assert train_bpe({"ab": 3}, 2) == (["a", "b"], [])
    assert train_bpe({"ab": 3}, 1, alphabet=["c", "b", "a"]) == (["a", "b", "c"], [])


# ---------------------------------------------------------------------------------------------- encoding


def library_bpe(vocabulary: list[str], merges: Merges) -> models.BPE:
    return models.BPE({symbol: number for number, symbol in enumerate(vocabulary)}, merges)


def test_words_are_cut_as_the_library_cuts_them(word_counts: Counter[str], trained: tuple[list[str], Merges]) -> None:
    model = library_bpe(*trained)
    unseen = {spelled(piece) for piece in pre_tokenize(prose()[25_000:40_000])}
    for word in unseen | set(word_counts):
        assert bpe_encode(word, trained[1]) == [token.value for token in model.tokenize(word)], word


def test_order_of_the_merges_decides_and_not_the_length_of_the_pieces() -> None:
    merges = [("b", "c"), ("a", "b"), ("ab", "c")]
    assert bpe_encode("abc", merges) == ["a", "bc"]
    assert bpe_encode("", merges) == []
    assert bpe_encode("xyz", merges) == ["x", "y", "z"]


@settings(deadline=None)
@given(text=TEXTS)
def test_any_text_comes_back_from_its_ids_which_are_the_librarys(trained: tuple[list[str], Merges], text: str) -> None:
    tokenizer = Tokenizer(library_bpe(*trained))
    tokenizer.pre_tokenizer = byte_level()
    ids = encode_text(text, *trained)
    if text.isascii():  # the library's regular expression knows newer letters than Python's
        assert ids == tokenizer.encode(text).ids
    assert decode_ids(ids, trained[0]) == text


def test_half_of_a_surrogate_pair_is_refused(trained: tuple[list[str], Merges]) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode_text("a\ud800", *trained)


def test_more_merges_never_give_more_tokens_on_the_words_they_were_learnt_from(
    word_counts: Counter[str], trained: tuple[list[str], Merges]
) -> None:
    def tokens(n: int) -> int:
        return sum(count * len(bpe_encode(word, trained[1][:n])) for word, count in word_counts.items())

    lengths = [tokens(n) for n in (0, 10, 30, 60, 94)]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == len(lengths)


def test_bytes_of_a_character_are_joined_before_they_are_read() -> None:
    vocabulary = byte_characters()
    ids = list("東".encode())
    assert decode_ids(ids, vocabulary) == "東"
    assert decode_ids(torch.tensor(ids), vocabulary) == "東"
    assert decode_ids(ids[:2], vocabulary) == "�"
    assert decode_ids([], vocabulary) == ""


@pytest.mark.parametrize("number", [-1, 256])
def test_an_id_outside_of_the_vocabulary_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 255"):
        decode_ids([65, number], byte_characters())


# ---------------------------------------------------------------------------------------------- the two others


def test_wordpiece_cuts_as_the_library_does() -> None:
    signs = random.Random(1)
    for _ in range(200):
        pieces = {"".join(signs.choices("ab", k=signs.randrange(1, 4))) for _ in range(4)}
        pieces |= {"##" + "".join(signs.choices("abc", k=signs.randrange(1, 4))) for _ in range(5)}
        vocabulary = ["[UNK]", *sorted(pieces)]
        model = models.WordPiece({piece: n for n, piece in enumerate(vocabulary)}, unk_token="[UNK]")
        for _ in range(20):
            word = "".join(signs.choices("abc", k=signs.randrange(7)))
            assert wordpiece_encode(word, vocabulary) == [token.value for token in model.tokenize(word)]


def test_wordpiece_gives_up_on_a_whole_word_and_tries_no_other_cut() -> None:
    vocabulary = ["un", "unaff", "##able", "##aff", "##a"]
    assert wordpiece_encode("unaffable", vocabulary) == ["unaff", "##able"]
    assert wordpiece_encode("unaffx", vocabulary) == ["[UNK]"]
    assert wordpiece_encode("unaffx", vocabulary, unknown="?") == ["?"]
    assert wordpiece_encode("ab", ["a", "ab", "abc", "@@b"], prefix="@@") == ["ab"]
    assert wordpiece_encode("", vocabulary) == []


def all_cuts(text: str) -> list[list[str]]:
    if not text:
        return [[]]
    return [[text[:n], *rest] for n in range(1, len(text) + 1) for rest in all_cuts(text[n:])]


@given(
    st.text("abx", max_size=7),
    st.dictionaries(st.text("ab", min_size=1, max_size=3), st.floats(-9, -0.1), min_size=1, max_size=8),
)
def test_the_best_cut_is_the_best_of_all_cuts(text: str, scores: dict[str, float]) -> None:
    def score(cut: list[str]) -> float:
        return sum(scores.get(piece, -12.0 if len(piece) == 1 else -math.inf) for piece in cut)

    pieces, total = unigram_segment(text, scores, -12.0)
    assert "".join(pieces) == text
    assert total == pytest.approx(max(map(score, all_cuts(text))))
    assert score(pieces) == pytest.approx(total)


def test_the_best_cut_is_the_librarys() -> None:
    signs = random.Random(2)
    for _ in range(300):
        scores = {"".join(signs.choices("abc", k=signs.randrange(1, 5))): -signs.uniform(1, 8) for _ in range(9)}
        unknown = min(scores.values()) - 10
        model = models.Unigram([("<unk>", 0.0), *scores.items()], unk_id=0, byte_fallback=False)
        known = [letter for letter in "abc" if letter in scores]
        text = "".join(signs.choices([*known, *scores], k=4))  # made of pieces: the library joins unknown neighbours
        assert unigram_segment(text, scores, unknown)[0] == [token.value for token in model.tokenize(text)]


def test_of_equal_cuts_the_one_with_the_longest_last_piece_wins() -> None:
    assert unigram_segment("abc", {"a": -1.0, "bc": -2.0, "ab": -2.0, "c": -1.0}, -9.0) == (["a", "bc"], -3.0)
    assert unigram_segment("", {"a": -1.0}, -9.0) == ([], 0.0)
    assert unigram_segment("xy", {"a": -1.0}, -9.0) == (["x", "y"], -18.0)


# ---------------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize("shape", [(7,), (2, 3), ()])
def test_a_lookup_is_pytorchs_embedding_with_its_gradients(shape: tuple[int, ...]) -> None:
    weight = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    ids = torch.randint(0, 5, shape)
    loss_weights = torch.randn(*shape, 4, dtype=torch.float64)
    ours, theirs = embedding_lookup(weight, ids), F.embedding(ids, weight)
    torch.testing.assert_close(ours, theirs)
    (ours_gradient,) = torch.autograd.grad((ours * loss_weights).sum(), weight)
    (theirs_gradient,) = torch.autograd.grad((theirs * loss_weights).sum(), weight)
    torch.testing.assert_close(ours_gradient, theirs_gradient)


@pytest.mark.parametrize("number", [-1, 5])
def test_a_lookup_outside_of_the_matrix_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 4"):
        embedding_lookup(torch.randn(5, 2), torch.tensor([[0, number]]))


def test_cosines_are_pytorchs_and_zero_for_a_row_of_zeros() -> None:
    weight = torch.randn(6, 3, dtype=torch.float64)
    ids = torch.tensor([4, 1])
    expected = F.cosine_similarity(weight[ids][:, None], weight[None], dim=-1)
    torch.testing.assert_close(cosine_similarities(weight, ids), expected)
    weight[1] = 0
    cosines = cosine_similarities(weight, ids)
    assert not cosines[1].any()
    assert not cosines[:, 1].any()


def test_cosines_of_half_precision_are_computed_in_float32() -> None:
    weight = (200 * torch.randn(4, 3)).half()  # squares overflow in float16
    ids = torch.tensor([0, 3])
    cosines = cosine_similarities(weight, ids)
    assert cosines.dtype == torch.float16
    torch.testing.assert_close(cosines, cosine_similarities(weight.float(), ids).half())
