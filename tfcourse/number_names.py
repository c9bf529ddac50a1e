"""Number names, a language with a known grammar that gives exact counts for a [MASK].

The numbers are 0 to 999,999, in English, tokenized by `tfcourse.data.tokenize`. A
sequence begins with BOS (BERT's [CLS]) and ends with EOS (BERT's [SEP]); [MASK] is a
separate token.

Shapes: B batch, T length of a sequence, N names, V vocabulary.
"""

import random
from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from tfcourse.data import BOS, EOS, PAD, Vocabulary, number_to_words, pad_batch, tokenize

__all__ = ["MASK_TOKEN", "NumberNames"]

MASK_TOKEN = "[MASK]"
"""What the token is called that stands for a gap; it is the last one of the vocabulary."""

_THOUSAND = 1000


class NumberNames:
    """The names of all numbers below a million, with exact counts of what fits.

    Counting is cheap because a name consists of the name of the thousands, which are
    below 1,000, and a rest.

    Attributes:
        vocabulary: The tokens, with [MASK] as the last one.
        mask: The id of [MASK].
    """

    def __init__(self) -> None:
        self._below = [tokenize(number_to_words(number, "en")) for number in range(_THOUSAND)]
        words = dict.fromkeys(word for name in self._below for word in name)
        self.vocabulary = Vocabulary([*words, "thousand", "thousand,", MASK_TOKEN])
        self.mask = len(self.vocabulary) - 1
        self._ids = {token: number for number, token in enumerate(self.vocabulary.tokens)}
        self._small = _by_length([self._numbers(name) for name in self._below])
        self._high = _by_length([self._numbers(name) for name in self._below[1:]])
        self._low = _by_length([self._numbers(self._rest(number)) for number in range(_THOUSAND)])

    def encode(self, number: int) -> list[int]:
        """Return the token ids of a number's name.

        Args:
            number: From 0 to 999,999.

        Returns:
            BOS, the ids of the name's tokens, EOS.

        Raises:
            ValueError: If the number is out of range.
        """
        if not 0 <= number < _THOUSAND**2:
            raise ValueError(f"expected a number from 0 to 999,999, got {number}")
        high, low = divmod(number, _THOUSAND)
        name = [*self._below[high], *self._rest(low)] if high else self._below[low]
        return [BOS, *self._numbers(name), EOS]

    def batch(self, numbers: Sequence[int]) -> Tensor:
        """Return the names of several numbers, (B, T), padded at the end with PAD."""
        return pad_batch([self.encode(number) for number in numbers])[0]

    def fitting(self, tokens: Sequence[int] | Tensor) -> tuple[int, Tensor]:
        """Count the names of the same length with the same tokens at unmasked positions.

        Args:
            tokens: The tokens of a name with masked positions, (T,), without BOS and
                EOS.

        Returns:
            The number of fitting names, and the fraction of them that has each token at
            each position, (T, V). The fractions are the best possible prediction from
            the grammar alone. They are zero if no name fits.
        """
        masked = torch.as_tensor(tokens)
        length, counts, total = len(masked), torch.zeros(len(masked), len(self.vocabulary)), 0
        if length in self._small:
            names = self._matching(self._small[length], masked)
            total += len(names)
            _count(names, counts)
        for border in range(1, length):
            if border not in self._high or length - border not in self._low:
                continue
            high = self._matching(self._high[border], masked[:border])
            low = self._matching(self._low[length - border], masked[border:])
            total += len(high) * len(low)
            _count(high, counts[:border], times=len(low))
            _count(low, counts[border:], times=len(high))
        return total, counts / max(total, 1)

    def is_name(self, tokens: Sequence[int] | Tensor) -> bool:
        """Return whether tokens, without BOS and EOS, are the name of a number."""
        masked = torch.as_tensor(tokens)
        return len(masked) > 0 and not bool((masked == self.mask).any()) and self.fitting(masked)[0] > 0

    def acceptability(self, numbers: Sequence[int], *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Return names and non-names, which have two neighbouring tokens swapped.

        Args:
            numbers: The numbers. A number is omitted if every swap gives a valid name.
            seed: Seed for the swaps.

        Returns:
            Tokens (B, T), and labels (B,): 1 for a name, 0 for a non-name.
        """
        rng = random.Random(f"swaps {seed}")
        rows: list[list[int]] = []
        labels: list[int] = []
        for number in numbers:
            row = self.encode(number)
            is_name = len(rows) % 2 == 0
            if not is_name:
                spoiled = [swapped for swapped in _swaps(row) if not self.is_name(swapped[1:-1])]
                if not spoiled:
                    continue
                row = rng.choice(spoiled)
            rows.append(row)
            labels.append(int(is_name))
        return pad_batch(rows)[0], torch.tensor(labels)

    def written(self, tokens: Sequence[int] | Tensor) -> str:
        """Return tokens as readable text, without BOS, EOS and PAD; masked tokens appear as `[MASK]`."""
        names = [self.vocabulary.tokens[int(token)] for token in tokens if int(token) not in (PAD, BOS, EOS)]
        return " ".join(names).replace(" ##", "")

    def _numbers(self, name: Sequence[str]) -> list[int]:
        return [self._ids[token] for token in name]

    def _rest(self, low: int) -> list[str]:
        """Return the tokens after the name of the thousands: "thousand" and the name of the rest."""
        if low == 0:
            return ["thousand"]
        return [*(["thousand", "and"] if low < 100 else ["thousand,"]), *self._below[low]]

    def _matching(self, names: Tensor, masked: Tensor) -> Tensor:
        """Return the names, out of (N, T), that fit."""
        return names[((names == masked) | (masked == self.mask)).all(dim=1)]


def _by_length(names: Sequence[list[int]]) -> dict[int, Tensor]:
    """Group the names by length; each group is a tensor (N, T)."""
    grouped: dict[int, list[list[int]]] = defaultdict(list)
    for name in names:
        grouped[len(name)].append(name)
    return {length: torch.tensor(rows) for length, rows in grouped.items()}


def _count(names: Tensor, counts: Tensor, *, times: int = 1) -> None:
    """Add to counts (T, V) how often each token occurs at each position of names (N, T)."""
    for position, column in enumerate(names.T):
        counts[position] += times * torch.bincount(column, minlength=counts.shape[1])


def _swaps(row: list[int]) -> list[list[int]]:
    """Return all copies of a sequence with two neighbours swapped, except its first and last token."""
    return [[*row[:i], row[i + 1], row[i], *row[i + 2 :]] for i in range(1, len(row) - 2)]
