"""Tokenisation against the library `tokenizers`, GPT-2's pattern, and PyTorch's embedding."""

from __future__ import annotations

import json
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
    bpe_encode,
    byte_characters,
    cosine_similarities,
    decode_ids,
    embedding_lookup,
    encode_text,
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


# ---------------------------------------------------------------------------------------------- merging


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


# ---------------------------------------------------------------------------------------------- encoding


def library_bpe(vocabulary: list[str], merges: Merges) -> models.BPE:
    return models.BPE({symbol: number for number, symbol in enumerate(vocabulary)}, merges)


def test_words_are_cut_as_the_library_cuts_them(word_counts: Counter[str], trained: tuple[list[str], Merges]) -> None:
    model = library_bpe(*trained)
    unseen = {spelled(piece) for piece in pre_tokenize(prose()[25_000:40_000])}
    for word in unseen | set(word_counts):
        assert bpe_encode(word, trained[1]) == [token.value for token in model.tokenize(word)], word


@settings(deadline=None)
@given(text=TEXTS)
def test_any_text_comes_back_from_its_ids_which_are_the_librarys(trained: tuple[list[str], Merges], text: str) -> None:
    tokenizer = Tokenizer(library_bpe(*trained))
    tokenizer.pre_tokenizer = byte_level()
    ids = encode_text(text, *trained)
    if text.isascii():  # the library's regular expression knows newer letters than Python's
        assert ids == tokenizer.encode(text).ids
    assert decode_ids(ids, trained[0]) == text


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


def test_the_best_cut_is_the_librarys() -> None:
    signs = random.Random(2)
    for _ in range(300):
        scores = {"".join(signs.choices("abc", k=signs.randrange(1, 5))): -signs.uniform(1, 8) for _ in range(9)}
        unknown = min(scores.values()) - 10
        model = models.Unigram([("<unk>", 0.0), *scores.items()], unk_id=0, byte_fallback=False)
        known = [letter for letter in "abc" if letter in scores]
        text = "".join(signs.choices([*known, *scores], k=4))  # made of pieces: the library joins unknown neighbours
        assert unigram_segment(text, scores, unknown)[0] == [token.value for token in model.tokenize(text)]


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


def test_cosines_are_pytorchs_and_zero_for_a_row_of_zeros() -> None:
    weight = torch.randn(6, 3, dtype=torch.float64)
    ids = torch.tensor([4, 1])
    expected = F.cosine_similarity(weight[ids][:, None], weight[None], dim=-1)
    torch.testing.assert_close(cosine_similarities(weight, ids), expected)
    weight[1] = 0
    cosines = cosine_similarities(weight, ids)
    assert not cosines[1].any()
    assert not cosines[:, 1].any()
