"""Tokenization and embeddings: byte-pair encoding, WordPiece, Unigram, and embedding lookup.

Symbols are strings. A tokenizer of bytes first spells each byte with one character
(`byte_characters`), so that one `train_bpe` serves characters and bytes alike. A
vocabulary is a list of symbols, and the position of a symbol in it is its id.

Shapes: V vocabulary, D width of an embedding, N tokens to compare; `...` stands for any
number of leading dimensions.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

__all__ = [
    "best_pair",
    "bpe_encode",
    "byte_characters",
    "cosine_similarities",
    "decode_ids",
    "embedding_lookup",
    "encode_text",
    "merge_pair",
    "pre_tokenize",
    "train_bpe",
    "unigram_segment",
    "wordpiece_encode",
]


def pre_tokenize(text: str) -> list[str]:
    """Split text as GPT-2 does into pieces that no merge joins.

    From left to right, the first matching rule takes as many characters as possible:

    - a lower-case ending of an English contraction, `'s 't 're 've 'm 'll 'd`, even if
      more letters follow;
    - letters, including one space before them if there is a space;
    - numbers, including one space before them if there is a space;
    - other characters, the underscore included, and one space before them if there is a
      space;
    - white space, except its last character if a character other than white space
      follows;
    - any remaining white space.

    Letters are the characters of Unicode's categories L*, numbers the characters of N*:
    digits of any script, and ², ½ or Ⅷ. White space is defined by Unicode.

    Args:
        text: Any text.

    Returns:
        The pieces, none of them empty; joined, they are `text`. An empty text has no
        pieces.

    Source:
        Radford et al. 2019, Language Models are Unsupervised Multitask Learners,
        section 2.2, and the published code.
    """
    # In Python's `re`, ², ½ and Ⅷ are word characters but no digits, and the separators \x1c to \x1f are white space.
    numerals = "".join(sorted(sign for sign in set(text) if unicodedata.category(sign) in ("Nl", "No")))
    contractions = r"'(?:s|t|re|ve|m|ll|d)"
    words = rf" ?[^\W\d_{numerals}]+| ?[\d{numerals}]+| ?(?:[^\s\w]|[_\x1c-\x1f])+"
    spaces = r"[^\S\x1c-\x1f]+(?![\S\x1c-\x1f])|[^\S\x1c-\x1f]+"
    return re.findall(f"{contractions}|{words}|{spaces}", text)


def byte_characters() -> list[str]:
    """Return the characters with which a byte-level tokenizer spells the 256 bytes.

    None of them is a space or invisible. Bytes 33 to 126, 161 to 172 and 174 to 255
    are spelled with the character of the same number. The other 68 get, in order,
    the characters from number 256 on: byte 0 is `Ā`, a space (byte 32) is `Ġ`, a
    line end (byte 10) is `Ċ`.

    Returns:
        256 strings of one character each, all different; the position is the byte.

    Source:
        Radford et al. 2019, the published code.
    """
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    return [chr(byte) if byte in shown else chr(256 + len({*range(byte)} - shown)) for byte in range(256)]


def merge_pair(symbols: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Replace every occurrence of a pair of neighbouring symbols by one symbol.

    It works from left to right and without overlap: in `a a a` the pair `(a, a)`
    occurs once, and the result is `aa a`.

    Args:
        symbols: A word, symbol by symbol; it is not changed.
        pair: The left and the right symbol.

    Returns:
        The symbols of the word after the merge.

    Source:
        Sennrich et al. 2016, Neural Machine Translation of Rare Words with Subword
        Units, section 3.2.
    """
    shorter: list[str] = []
    place = 0
    while place < len(symbols):
        if tuple(symbols[place : place + 2]) == tuple(pair):
            shorter.append(pair[0] + pair[1])
            place += 2
        else:
            shorter.append(symbols[place])
            place += 1
    return shorter


def best_pair(
    words: Sequence[Sequence[str]], counts: Sequence[int], vocabulary: Sequence[str]
) -> tuple[str, str] | None:
    """Find the most common pair of neighbouring symbols, which BPE merges next.

    All positions count, overlapping ones too: `a a a` has the pair `(a, a)` twice. Ties
    go to the pair with the earlier left symbol in `vocabulary`, then to the pair with
    the earlier right symbol.

    Args:
        words: Different words, each symbol by symbol.
        counts: How often each of them occurs.
        vocabulary: All symbols, in the order of their ids.

    Returns:
        The left and the right symbol, or None if no word has two symbols.

    Source:
        Sennrich et al. 2016, section 3.2; ties as in the library `tokenizers`.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in pairwise(word):
            pairs[pair] += count
    ids = {symbol: number for number, symbol in enumerate(vocabulary)}
    return min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]), default=None)


def train_bpe(
    word_counts: Mapping[str, int],
    vocab_size: int,
    alphabet: Sequence[str] | None = None,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Learn a byte-pair encoding: merge the most common pair again and again.

    The vocabulary starts with the alphabet, sorted by code point. Each round merges the
    pair that `best_pair` finds, in all words, and adds the new symbol, until the
    vocabulary has `vocab_size` symbols or no pair is left. If `vocab_size` is not
    larger than the alphabet, nothing is merged.

    Args:
        word_counts: How often each word occurs. Nothing is merged across the border of
            a word.
        vocab_size: How many symbols the vocabulary may have.
        alphabet: The single characters to start with; None means all characters that
            occur.

    Returns:
        The vocabulary, in which the position is the id, and the merges in the order in
        which they were learnt.

    Source:
        Sennrich et al. 2016, section 3.2, algorithm 1.
    """
    letters = {letter for word in word_counts for letter in word} if alphabet is None else set(alphabet)
    vocabulary = sorted(letters)
    words, counts = [list(word) for word in word_counts], list(word_counts.values())
    merges: list[tuple[str, str]] = []
    while len(vocabulary) < vocab_size and (pair := best_pair(words, counts, vocabulary)) is not None:
        merges.append(pair)
        vocabulary.append(pair[0] + pair[1])
        words = [merge_pair(word, pair) for word in words]
    return vocabulary, merges


def bpe_encode(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """Encode a word with learnt merges, in the order in which they were learnt.

    Start with single characters. While a neighbouring pair is in `merges`, merge all
    occurrences of the pair with the earliest merge.

    Args:
        word: The word; a character that is in no merge stays single.
        merges: Pairs of symbols, the earliest learnt first.

    Returns:
        The symbols of the word; joined, they are `word`.

    Source:
        Sennrich et al. 2016, section 3.2.
    """
    ranks = {tuple(pair): rank for rank, pair in reversed(list(enumerate(merges)))}
    symbols = list(word)
    while len(symbols) > 1:
        first = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(merges)))
        if first not in ranks:
            break
        symbols = merge_pair(symbols, first)
    return symbols


def encode_text(
    text: str,
    vocabulary: Sequence[str],
    merges: Sequence[tuple[str, str]],
) -> list[int]:
    """Turn text into the ids of a byte-level byte-pair encoding.

    The text is split by `pre_tokenize`; each piece is encoded in UTF-8, its bytes are
    spelled with `byte_characters`, and `bpe_encode` merges them. No text has unknown
    tokens, and no special tokens are added.

    Args:
        text: Any text that UTF-8 can encode.
        vocabulary: All symbols, in the order of their ids, including the 256 byte
            characters.
        merges: Pairs of symbols, the earliest learnt first.

    Returns:
        The ids.

    Source:
        Radford et al. 2019, section 2.2.
    """
    spelling = byte_characters()
    ids = {symbol: number for number, symbol in enumerate(vocabulary)}
    cuts: dict[str, list[int]] = {}
    pieces = pre_tokenize(text)
    for piece in set(pieces):
        spelled = "".join(spelling[byte] for byte in piece.encode("utf-8"))
        cuts[piece] = [ids[symbol] for symbol in bpe_encode(spelled, merges)]
    return [number for piece in pieces for number in cuts[piece]]


def decode_ids(ids: Sequence[int] | Tensor, vocabulary: Sequence[str]) -> str:
    """Turn the ids of a byte-level tokenizer back into text.

    A character may take several tokens, so the bytes of all tokens are joined before
    they are decoded as UTF-8. Invalid UTF-8 becomes the replacement character, �.

    Args:
        ids: Ids from 0 to V - 1, as numbers or as a tensor of one dimension.
        vocabulary: All symbols, spelled in byte characters, in the order of their
            ids.

    Returns:
        The text.

    Raises:
        ValueError: If an id is below 0 or not below the length of the vocabulary.

    Source:
        Radford et al. 2019, the published code.
    """
    numbers = [int(number) for number in ids]
    if any(not 0 <= number < len(vocabulary) for number in numbers):
        raise ValueError(f"ids must lie from 0 to {len(vocabulary) - 1}, got {numbers}")
    bytes_of = {character: byte for byte, character in enumerate(byte_characters())}
    spelled = "".join(vocabulary[number] for number in numbers)
    return bytes(bytes_of[character] for character in spelled).decode("utf-8", errors="replace")


def wordpiece_encode(
    word: str,
    vocabulary: Sequence[str],
    unknown: str = "[UNK]",
    prefix: str = "##",
) -> list[str]:
    """Split a word as BERT does: greedily, the longest matching piece from the left.

    Inside a word, `prefix` is prepended before a piece is looked up. If no piece
    matches, the whole word is unknown; no other segmentation is tried.

    Args:
        word: The word.
        vocabulary: The pieces.
        unknown: The token for a word that cannot be split.
        prefix: The mark of a piece that continues a word.

    Returns:
        The pieces, with the prefix on all but the first; `[unknown]` if the word cannot
        be split; an empty list for an empty word.

    Source:
        Wu et al. 2016, Google's Neural Machine Translation System, section 4.1; Devlin
        et al. 2019, the published code.
    """
    known = set(vocabulary)
    pieces: list[str] = []
    start = 0
    while start < len(word):
        mark = prefix if start else ""
        fitting = [end for end in range(len(word), start, -1) if mark + word[start:end] in known]
        if not fitting:
            return [unknown]
        pieces.append(mark + word[start : fitting[0]])
        start = fitting[0]
    return pieces


def unigram_segment(
    text: str,
    scores: Mapping[str, float],
    unknown: float,
) -> tuple[list[str], float]:
    """Find the segmentation of a text with the largest sum of log-probabilities.

    This is the Viterbi algorithm. The best segmentation of the first i characters is a
    piece that ends at i, after the best segmentation of what comes before it. One pass
    from left to right finds it, and a second one from the end reads it off.

    Args:
        text: The text.
        scores: The pieces with their log-probabilities.
        unknown: The score of a single character that is not a piece.

    Returns:
        The pieces, which joined are `text`, and the sum of their scores. Ties go to the
        segmentation with the longest last piece, then with the longest second-to-last
        piece, and so on. An empty text has no pieces and the sum 0.

    Source:
        Kudo 2018, Subword Regularization, section 3.2.
    """
    longest = max([1, *map(len, scores)])
    best = [0.0]  # of the first i characters
    starts: dict[int, int] = {}  # of the last piece of that best cut
    for end in range(1, len(text) + 1):
        options: dict[int, float] = {}
        for start in range(max(0, end - longest), end):
            piece = text[start:end]
            if piece in scores:
                options[start] = best[start] + scores[piece]
            elif len(piece) == 1:
                options[start] = best[start] + unknown
        starts[end] = max(options, key=lambda start: options[start])
        best.append(options[starts[end]])
    pieces: list[str] = []
    end = len(text)
    while end > 0:
        pieces.insert(0, text[starts[end] : end])
        end = starts[end]
    return pieces, best[-1]


def embedding_lookup(weight: Tensor, ids: Tensor) -> Tensor:
    """Take one row of the embedding matrix for each token.

    It equals the product of a one-hot row with the matrix, but does not compute it.
    The gradient of a row is the sum over all positions of its token.

    Args:
        weight: The embedding matrix, (V, D).
        ids: Tokens, integers (...), from 0 to V - 1.

    Returns:
        The rows, (..., D), in the dtype of `weight`.

    Raises:
        ValueError: If an id is below 0 or not below V.

    Source:
        Bengio et al. 2003, A Neural Probabilistic Language Model, section 2.
    """
    _check_ids(ids, weight)
    return weight[ids]


def _check_ids(ids: Tensor, weight: Tensor) -> None:
    """Raise a ValueError unless every id has a row: indexing would count negative ids from the end."""
    try:
        weight.index_select(0, ids.flatten())
    except IndexError as error:
        raise ValueError(f"ids must lie from 0 to {len(weight) - 1}, got {ids}") from error


def cosine_similarities(weight: Tensor, ids: Tensor) -> Tensor:
    """Compare the embeddings of some tokens with all embeddings, by the cosine.

    It is computed in float32 or wider, and a row of zeros has the cosine 0 with every
    row.

    Args:
        weight: The embedding matrix, (V, D).
        ids: The tokens to compare, integers (N,).

    Returns:
        Cosines, (N, V), in the dtype of `weight`, each from -1 to 1 up to rounding.

    Source:
        Mikolov et al. 2013, Linguistic Regularities in Continuous Space Word
        Representations, section 4.
    """
    rows = weight.to(torch.promote_types(weight.dtype, torch.float32))
    lengths = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)  # (V, 1)
    directions = rows / lengths.masked_fill(lengths == 0, 1)  # (V, D)
    cosines = directions[ids] @ directions.T  # (N, V)
    return cosines.to(weight.dtype)
