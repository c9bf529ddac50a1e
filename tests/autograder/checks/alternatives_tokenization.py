"""Chapter 06, solved in other ways than the reference: right, so each must get all the points."""

import functools
import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}
Pair = tuple[str, str]


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ---------------------------------------------------------------------------------------------------- cutting first


@alternative("pre_tokenize")
def cut_by_finditer(text: str) -> list[str]:
    """A verbose pattern of the package `regex`, and groups of its matches."""
    import regex

    pattern = regex.compile(
        r"""
        '(?:[stmd]|re|ve|ll)          # contractions
        | [ ]?\p{L}+
        | [ ]?\p{N}+
        | [ ]?[^\s\p{L}\p{N}]+
        | \s+(?!\S) | \s+
        """,
        regex.VERBOSE,
    )
    return [match.group() for match in pattern.finditer(text)]


@alternative("pre_tokenize")
def cut_by_hand(text: str) -> list[str]:
    """Character by character, with kinds in place of a pattern."""

    def kind(sign: str) -> str:
        if sign.isspace():
            return "space"
        return {"N": "number", "L": "letter"}.get(unicodedata.category(sign)[0], "sign")

    pieces, place = [], 0
    while place < len(text):
        ending = next((end for end in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(end, place)), "")
        end = place + len(ending)
        if not ending:
            start = place + (text[place] == " " and place + 1 < len(text) and not text[place + 1].isspace())
            end = start + 1
            while end < len(text) and kind(text[end]) == kind(text[start]):
                end += 1
            if kind(text[start]) == "space" and end < len(text) and end - place > 1:
                end -= 1
        pieces.append(text[place:end])
        place = end
    return pieces


@alternative("byte_characters")
def characters_by_counter() -> list[str]:
    """A list, and a counter that runs over what is hidden."""
    characters, free = [], 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            characters.append(chr(byte))
        else:
            characters.append(chr(free))
            free += 1
    return characters


@alternative("byte_characters")
def characters_by_categories() -> list[str]:
    """What Python calls printable and no space is what can be seen."""
    seen = [chr(byte).isprintable() and not chr(byte).isspace() for byte in range(256)]
    return [chr(byte) if seen[byte] else chr(256 + seen[:byte].count(False)) for byte in range(256)]


# ---------------------------------------------------------------------------------------------------- byte-pair encoding


@alternative("merge_pair")
def merge_with_a_stack(symbols: Sequence[str], pair: Pair) -> list[str]:
    """The left half waits on a stack, marked as free or as taken."""
    stack: list[tuple[str, bool]] = []
    for symbol in symbols:
        if stack and stack[-1][1] and (stack[-1][0], symbol) == (pair[0], pair[1]):
            stack[-1] = ("".join(pair), False)
        else:
            stack.append((symbol, True))
    return [symbol for symbol, _ in stack]


@alternative("merge_pair")
def merge_by_recursion(symbols: Sequence[str], pair: Pair) -> list[str]:
    """The first place, and the same for the rest."""
    left, right = pair
    for place in range(len(symbols) - 1):
        if symbols[place] == left and symbols[place + 1] == right:
            return [*symbols[:place], left + right, *merge_by_recursion(symbols[place + 2 :], pair)]
    return list(symbols)


@alternative("best_pair")
def best_by_sorting(words: Sequence[Sequence[str]], counts: Sequence[int], vocabulary: Sequence[str]) -> Pair | None:
    """A dictionary of counts, sorted."""
    pairs: dict[Pair, int] = defaultdict(int)
    for n, word in enumerate(words):
        for left, right in pairwise(word):
            pairs[left, right] += counts[n]
    order = sorted(pairs, key=lambda p: (-pairs[p], vocabulary.index(p[0]), vocabulary.index(p[1])))
    return order[0] if order else None


@alternative("best_pair")
def best_by_looking(words: Sequence[Sequence[str]], counts: Sequence[int], vocabulary: Sequence[str]) -> Pair | None:
    """All pairs of symbols in the order of the vocabulary; only a greater count takes the lead."""
    best, most = None, 0
    for left in vocabulary:
        for right in vocabulary:
            times = sum(
                count * sum((word[i], word[i + 1]) == (left, right) for i in range(len(word) - 1))
                for word, count in zip(words, counts, strict=True)
            )
            if times > most:
                best, most = (left, right), times
    return best


@alternative("train_bpe")
def train_on_copies(
    word_counts: Mapping[str, int], vocab_size: int, alphabet: Sequence[str] | None = None
) -> tuple[list[str], list[Pair]]:
    """Every occurrence of a word is a word of its own."""
    words = [list(word) for word, count in word_counts.items() for _ in range(count)]
    vocabulary = sorted(set(alphabet if alphabet is not None else "".join(word_counts)))
    merges: list[Pair] = []
    while len(vocabulary) < vocab_size:
        pair = best_by_sorting(words, [1] * len(words), vocabulary)
        if pair is None:
            break
        merges.append(pair)
        if "".join(pair) not in vocabulary:
            vocabulary += ["".join(pair)]
        words = [merge_with_a_stack(word, pair) for word in words]
    return vocabulary, merges


@alternative("train_bpe")
def train_with_numbers(
    word_counts: Mapping[str, int], vocab_size: int, alphabet: Sequence[str] | None = None
) -> tuple[list[str], list[Pair]]:
    """Symbols are their ids, so that a tie goes to the smaller pair of numbers."""
    names = sorted(set(alphabet) if alphabet is not None else {c for word in word_counts for c in word})
    ids = {name: i for i, name in enumerate(names)}
    words = {word: [ids[letter] for letter in word] for word in word_counts}
    merges: list[Pair] = []
    while len(names) < vocab_size:
        pairs: dict[tuple[int, int], int] = {}
        for word, parts in words.items():
            for i in range(len(parts) - 1):
                pairs[parts[i], parts[i + 1]] = pairs.get((parts[i], parts[i + 1]), 0) + word_counts[word]
        if not pairs:
            return names, merges
        (a, b), _ = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0]
        merges.append((names[a], names[b]))
        made = ids.setdefault(names[a] + names[b], len(names))
        if made == len(names):
            names.append(names[a] + names[b])
        for word, parts in words.items():
            joined: list[int] = []
            for part in parts:
                if joined and joined[-1] == -1 - a and part == b:
                    joined[-1] = made
                else:
                    if joined and joined[-1] < 0:
                        joined[-1] = a
                    joined.append(-1 - a if part == a else part)
            words[word] = [a if part < 0 else part for part in joined]
    return names, merges


@alternative("bpe_encode")
def encode_merge_by_merge(word: str, merges: Sequence[Pair]) -> list[str]:
    """Go through all merges in order; what a merge makes only occurs in later ones."""
    parts = list(word)
    for pair in merges:
        parts = merge_with_a_stack(parts, pair)
    return parts


@alternative("bpe_encode")
def encode_with_infinite_ranks(word: str, merges: Sequence[Pair]) -> list[str]:
    """Unknown pairs have an infinite rank."""
    ranks = {tuple(pair): float(i) for i, pair in enumerate(merges)}
    parts = [*word]
    while True:
        found = [(ranks.get((a, b), math.inf), (a, b)) for a, b in pairwise(parts)]
        rank, pair = min(found, default=(math.inf, ("", "")))
        if rank == math.inf:
            return parts
        parts = merge_by_recursion(parts, pair)


@alternative("encode_text")
def encode_with_index(text: str, vocabulary: Sequence[str], merges: Sequence[Pair]) -> list[int]:
    """No dictionary: the place of each symbol is looked for."""
    letters = characters_by_counter()
    ids: list[int] = []
    for piece in cut_by_finditer(text):
        word = "".join(map(letters.__getitem__, piece.encode()))
        ids.extend(list(vocabulary).index(part) for part in encode_with_infinite_ranks(word, merges))
    return ids


@alternative("encode_text")
def encode_with_a_cache(text: str, vocabulary: Sequence[str], merges: Sequence[Pair]) -> list[int]:
    """A cached function of the piece, and a translation table for the bytes."""
    table = dict(enumerate(characters_by_categories()))
    numbers = dict(zip(vocabulary, range(len(vocabulary)), strict=True))

    @functools.cache
    def ids(piece: str) -> tuple[int, ...]:
        word = piece.encode("utf-8").decode("latin-1").translate(table)
        return tuple(numbers[part] for part in encode_with_infinite_ranks(word, merges))

    return [number for piece in cut_by_finditer(text) for number in ids(piece)]


@alternative("decode_ids")
def decode_by_translation(ids: Sequence[int] | Tensor, vocabulary: Sequence[str]) -> str:
    """Byte characters to Latin-1, whose bytes are the bytes."""
    numbers = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    if numbers and (min(numbers) < 0 or max(numbers) >= len(vocabulary)):
        raise ValueError("no such id")
    back = {ord(character): chr(byte) for byte, character in enumerate(characters_by_counter())}
    return "".join(vocabulary[n] for n in numbers).translate(back).encode("latin-1").decode("utf-8", "replace")


@alternative("decode_ids")
def decode_into_an_array(ids: Sequence[int] | Tensor, vocabulary: Sequence[str]) -> str:
    """A growing array of bytes."""
    letters = characters_by_counter()
    data = bytearray()
    for number in map(int, ids):
        if number < 0 or number >= len(vocabulary):
            raise ValueError(number)
        data += bytes(letters.index(character) for character in vocabulary[number])
    return str(data, encoding="utf-8", errors="replace")


# ---------------------------------------------------------------------------------------------------- the two others


@alternative("wordpiece_encode")
def wordpiece_by_shortening(
    word: str, vocabulary: Sequence[str], unknown: str = "[UNK]", prefix: str = "##"
) -> list[str]:
    """The rest, made shorter from its end until it fits."""
    cut: list[str] = []
    rest = word
    while rest:
        piece = (prefix if cut else "") + rest
        length = len(rest)
        while length and piece not in vocabulary:
            piece, length = piece[:-1], length - 1
        if not length:
            return [unknown]
        cut.append(piece)
        rest = rest[length:]
    return cut


@alternative("wordpiece_encode")
def wordpiece_with_else(word: str, vocabulary: Sequence[str], unknown: str = "[UNK]", prefix: str = "##") -> list[str]:
    """Two loops and an else."""
    known, at, cut = frozenset(vocabulary), 0, []
    while at != len(word):
        for end in reversed(range(at + 1, len(word) + 1)):
            candidate = word[at:end] if at == 0 else prefix + word[at:end]
            if candidate in known:
                cut.append(candidate)
                at = end
                break
        else:
            return [unknown]
    return cut


@alternative("unigram_segment")
def segment_by_memory(text: str, scores: Mapping[str, float], unknown: float) -> tuple[list[str], float]:
    """The best cut of each beginning, remembered."""

    @functools.cache
    def best(end: int) -> tuple[float, tuple[str, ...]]:
        if end == 0:
            return 0.0, ()
        options = []
        for start in range(end):
            piece = text[start:end]
            score = scores.get(piece, unknown if len(piece) == 1 else None)
            if score is not None:
                before, pieces = best(start)
                options.append((before + score, (*pieces, piece)))
        return max(options, key=lambda option: option[0])

    total, pieces = best(len(text))
    return list(pieces), total


@alternative("unigram_segment")
def segment_with_arrays(text: str, scores: Mapping[str, float], unknown: float) -> tuple[list[str], float]:
    """Scores forwards, pieces backwards, with a first-found rule for ties."""
    best, piece_at = [-math.inf] * (len(text) + 1), [""] * (len(text) + 1)
    best[0] = 0.0
    for end in range(1, len(text) + 1):
        for start in range(end):
            piece = text[start:end]
            if piece in scores:
                score = scores[piece]
            elif end - start == 1:
                score = unknown
            else:
                continue
            if best[start] + score > best[end]:
                best[end], piece_at[end] = best[start] + score, piece
    cut, end = [], len(text)
    while end:
        cut.append(piece_at[end])
        end -= len(piece_at[end])
    return cut[::-1], best[-1]


# ---------------------------------------------------------------------------------------------------- vectors


def _inside(weight: Tensor, ids: Tensor) -> None:
    if ids.device.type != "meta" and ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= weight.shape[0]):
        raise ValueError("an id outside of the matrix")


@alternative("embedding_lookup")
def lookup_by_index_select(weight: Tensor, ids: Tensor) -> Tensor:
    """One axis of ids, then their shape again."""
    _inside(weight, ids)
    return weight.index_select(0, ids.reshape(-1)).reshape(*ids.shape, weight.shape[1])


@alternative("embedding_lookup")
def lookup_by_product(weight: Tensor, ids: Tensor) -> Tensor:
    """The one-hot product of the lesson, in the matrix's dtype."""
    _inside(weight, ids)
    numbers = torch.arange(weight.shape[0], device=weight.device)
    return (ids[..., None] == numbers).to(weight.dtype) @ weight


@alternative("cosine_similarities")
def cosines_by_squares(weight: Tensor, ids: Tensor) -> Tensor:
    """Products divided by the outer product of the lengths."""
    rows = weight if weight.dtype == torch.float64 else weight.float()
    lengths = torch.linalg.norm(rows, dim=1)
    scale = torch.where(lengths > 0, lengths, torch.ones_like(lengths)).reciprocal()
    return (rows[ids] * scale[ids, None] @ (rows * scale[:, None]).mT).to(weight.dtype)


@alternative("cosine_similarities")
def cosines_by_einsum(weight: Tensor, ids: Tensor) -> Tensor:
    """Unit vectors, and a sum over their columns."""
    wide = torch.promote_types(weight.dtype, torch.float32)
    rows = weight.to(wide)
    lengths = rows.norm(p=2, dim=1, keepdim=True)
    unit = rows / torch.where(lengths == 0, torch.ones_like(lengths), lengths)
    return torch.einsum("nd,vd->nv", unit.index_select(0, ids), unit).to(weight.dtype)
