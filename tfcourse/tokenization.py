"""Draft for measurements: text into tokens (the reference comes from another branch)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

__all__ = ["best_pair", "bpe_encode", "byte_characters", "cosine_similarities", "decode_ids", "embedding_lookup", "encode_text", "merge_pair", "pre_tokenize", "train_bpe", "unigram_segment", "wordpiece_encode"]

_PATTERN = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def pre_tokenize(text: str) -> list[str]:
    return _PATTERN.findall(text)


def byte_characters() -> list[str]:
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    out, n = [], 0
    for b in range(256):
        if b in printable:
            out.append(chr(b))
        else:
            out.append(chr(256 + n))
            n += 1
    return out


def merge_pair(symbols: Sequence[str], pair: tuple[str, str]) -> list[str]:
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == tuple(pair):
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def best_pair(words, counts, vocabulary):
    pairs = Counter()
    for word, count in zip(words, counts, strict=True):
        for pair in zip(word, word[1:]):
            pairs[pair] += count
    if not pairs:
        return None
    place = {s: i for i, s in reversed(list(enumerate(vocabulary)))}
    return min(pairs, key=lambda p: (-pairs[p], place[p[0]], place[p[1]]))


def train_bpe(word_counts, vocab_size, alphabet=None):
    words = [list(w) for w in word_counts]
    counts = list(word_counts.values())
    vocabulary = sorted(set(alphabet) if alphabet is not None else {c for w in word_counts for c in w})
    place = {s: i for i, s in enumerate(vocabulary)}
    merges = []
    pairs = Counter()
    where = {}
    for n, (w, c) in enumerate(zip(words, counts)):
        for p in zip(w, w[1:]):
            pairs[p] += c
            where.setdefault(p, set()).add(n)
    while len(vocabulary) < vocab_size:
        pairs = Counter({p: c for p, c in pairs.items() if c > 0})
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], place[p[0]], place[p[1]]))
        merges.append(best)
        new = best[0] + best[1]
        if new not in place:
            place[new] = len(vocabulary)
            vocabulary.append(new)
        for n in list(where[best]):
            w, c = words[n], counts[n]
            for p in zip(w, w[1:]):
                pairs[p] -= c
            w = words[n] = merge_pair(w, best)
            for p in zip(w, w[1:]):
                pairs[p] += c
                where.setdefault(p, set()).add(n)
    return vocabulary, merges


def bpe_encode(word, merges):
    ranks = {}
    for i, p in enumerate(merges):
        ranks.setdefault(tuple(p), i)
    s = list(word)
    while len(s) > 1:
        best = min(zip(s, s[1:]), key=lambda p: ranks.get(p, len(merges)))
        if best not in ranks:
            break
        s = merge_pair(s, best)
    return s


def encode_text(text, vocabulary, merges):
    names = byte_characters()
    ids = {s: i for i, s in enumerate(vocabulary)}
    cache = {}
    out = []
    for piece in pre_tokenize(text):
        if piece not in cache:
            cache[piece] = [ids[s] for s in bpe_encode("".join(names[b] for b in piece.encode()), merges)]
        out += cache[piece]
    return out


def decode_ids(ids, vocabulary):
    values = {c: b for b, c in enumerate(byte_characters())}
    ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    if any(not 0 <= i < len(vocabulary) for i in ids):
        raise ValueError(f"ids lie between 0 and {len(vocabulary) - 1}, got {ids}")
    return bytes(values[c] for i in ids for c in vocabulary[i]).decode("utf-8", errors="replace")


def wordpiece_encode(word, vocabulary, unknown="[UNK]", prefix="##"):
    have = set(vocabulary)
    out, at = [], 0
    while at < len(word):
        for end in range(len(word), at, -1):
            piece = (prefix if at else "") + word[at:end]
            if piece in have:
                out.append(piece)
                at = end
                break
        else:
            return [unknown]
    return out


def unigram_segment(text, scores, unknown):
    best = [0.0] + [-float("inf")] * len(text)
    back = [0] * (len(text) + 1)
    longest = max(map(len, scores), default=1)
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - max(longest, 1)), end):
            piece = text[start:end]
            score = scores.get(piece)
            if score is None:
                if end - start > 1:
                    continue
                score = unknown
            if best[start] + score > best[end]:
                best[end], back[end] = best[start] + score, start
    pieces, end = [], len(text)
    while end:
        pieces.append(text[back[end]:end])
        end = back[end]
    return pieces[::-1], best[-1]


def embedding_lookup(weight: Tensor, ids: Tensor) -> Tensor:
    if ids.numel() and (ids.min() < 0 or ids.max() >= len(weight)):
        raise ValueError("ids")
    return weight[ids]


def cosine_similarities(weight: Tensor, ids: Tensor) -> Tensor:
    w = weight.float() if weight.dtype in (torch.float16, torch.bfloat16) else weight
    norm = w.norm(dim=-1, keepdim=True)
    unit = torch.where(norm > 0, w / norm.clamp_min(torch.finfo(w.dtype).tiny), 0)
    return unit[ids] @ unit.T
