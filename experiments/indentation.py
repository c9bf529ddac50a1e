"""Cut lesson 06's text with GPT-2's merges and with 1,792 merges of its own, as it is and with every run of spaces cut to one.

    python experiments/indentation.py --record experiments/results/indentation.json

Takes a few minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from tfcourse.data import gpt2_merges, prose
from tfcourse.tokenization import byte_characters, merge_pair, pre_tokenize, train_bpe

COMMAND = "python experiments/indentation.py --record experiments/results/indentation.json"
SPELLING = byte_characters()
SIZE = 2048


def counted(text: str) -> Counter[str]:
    """Return how often each piece occurs, spelled in byte characters."""
    pieces = Counter(pre_tokenize(text))
    return Counter({"".join(SPELLING[byte] for byte in piece.encode()): n for piece, n in pieces.items()})


def n_tokens(piece: str, ranks: Mapping[tuple[str, str], int]) -> int:
    """Return into how many tokens a piece is cut, as `bpe_encode` does, without a new table of ranks for each piece."""
    symbols = list(piece)
    while len(symbols) > 1:
        first = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(ranks)))
        if first not in ranks:
            break
        symbols = merge_pair(symbols, first)
    return len(symbols)


def bytes_per_token(text: str, merges: Sequence[tuple[str, str]]) -> float:
    """Return the length of a text in bytes, divided by the number of its tokens."""
    ranks = {(left, right): rank for rank, (left, right) in enumerate(merges)}
    tokens = sum(n * n_tokens(piece, ranks) for piece, n in counted(text).items())
    return round(len(text.encode()) / tokens, 3)


def main() -> None:
    """Train, cut and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    path = parser.parse_args().record
    text = prose()
    texts = {"as it is": text, "single spaces": re.sub(" {2,}", " ", text)}
    _, own = train_bpe(counted(text), SIZE, alphabet=SPELLING)
    vocabularies = {"GPT-2": gpt2_merges(), "own": own}
    runs = {
        name: {what: bytes_per_token(changed, merges) for what, changed in texts.items()}
        for name, merges in vocabularies.items()
    }
    path.write_text(json.dumps({"command": COMMAND, "bytes_per_token": runs}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
