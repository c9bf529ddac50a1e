"""Names of numbers as a language with a known grammar: what fits into a gap can be counted, and a name can be told from a row of words.

The names are those of the numbers from 0 to 999,999 in English, in the tokens of `tfcourse.data.tokenize`. A sequence begins with BOS,
which models of this kind call [CLS], and ends with EOS, which they call [SEP]; [MASK] is a token of its own.

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
    """The names of all numbers below a million, and what can be asked about them without listing a million of them.

    A name is the name of the thousands, which are below 1,000, and a rest: that is what makes counting cheap.

    Attributes:
        vocabulary: The tokens, with [MASK] as the last one.
        mask: The number of [MASK].
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
        """The tokens of a number's name.

        Args:
            number: From 0 to 999,999.

        Returns:
            BOS, the numbers of the name's tokens, EOS.

        Raises:
            ValueError: If the number is another.
        """
        if not 0 <= number < _THOUSAND**2:
            raise ValueError(f"expected a number from 0 to 999,999, got {number}")
        high, low = divmod(number, _THOUSAND)
        name = [*self._below[high], *self._rest(low)] if high else self._below[low]
        return [BOS, *self._numbers(name), EOS]

    def batch(self, numbers: Sequence[int]) -> Tensor:
        """The names of several numbers, (B, T), padded with PAD behind the shorter ones."""
        return pad_batch([self.encode(number) for number in numbers])[0]

    def fitting(self, tokens: Sequence[int] | Tensor) -> tuple[int, Tensor]:
        """Count the names that fit: those of the same length that have the same tokens wherever there is no [MASK].

        Args:
            tokens: The tokens of a name with gaps, (T,), without BOS and EOS.

        Returns:
            How many names fit, and the share of them that has a token at a place, (T, V): the best that anybody who only knows the grammar
            can say about the gaps. The shares are zero if nothing fits.
        """
        asked = torch.as_tensor(tokens)
        length, counts, total = len(asked), torch.zeros(len(asked), len(self.vocabulary)), 0
        if length in self._small:
            names = self._matching(self._small[length], asked)
            total += len(names)
            _count(names, counts)
        for border in range(1, length):
            if border not in self._high or length - border not in self._low:
                continue
            high = self._matching(self._high[border], asked[:border])
            low = self._matching(self._low[length - border], asked[border:])
            total += len(high) * len(low)
            _count(high, counts[:border], times=len(low))
            _count(low, counts[border:], times=len(high))
        return total, counts / max(total, 1)

    def is_name(self, tokens: Sequence[int] | Tensor) -> bool:
        """Whether tokens, without BOS and EOS, are the name of a number."""
        asked = torch.as_tensor(tokens)
        return len(asked) > 0 and not bool((asked == self.mask).any()) and self.fitting(asked)[0] > 0

    def acceptability(self, numbers: Sequence[int], *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Names and rows of words that are none: every second name has two neighbouring tokens swapped, so that it names nothing.

        Args:
            numbers: Whose names; one that cannot be spoiled by a swap is left out.
            seed: Of the swaps.

        Returns:
            Tokens (B, T), and labels (B,): 1 for a name, 0 for what is none.
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
        """Tokens as people read them: BOS, EOS and PAD are left out, and a gap is `[MASK]`."""
        names = [self.vocabulary.tokens[int(token)] for token in tokens if int(token) not in (PAD, BOS, EOS)]
        return " ".join(names).replace(" ##", "")

    def _numbers(self, name: Sequence[str]) -> list[int]:
        return [self._ids[token] for token in name]

    def _rest(self, low: int) -> list[str]:
        """What follows the name of the thousands: "thousand", and what is left of them."""
        if low == 0:
            return ["thousand"]
        return [*(["thousand", "and"] if low < 100 else ["thousand,"]), *self._below[low]]

    def _matching(self, names: Tensor, asked: Tensor) -> Tensor:
        """The names that fit, out of (N, T)."""
        return names[((names == asked) | (asked == self.mask)).all(dim=1)]


def _by_length(names: Sequence[list[int]]) -> dict[int, Tensor]:
    """Names by their length, each a tensor (N, T)."""
    grouped: dict[int, list[list[int]]] = defaultdict(list)
    for name in names:
        grouped[len(name)].append(name)
    return {length: torch.tensor(rows) for length, rows in grouped.items()}


def _count(names: Tensor, counts: Tensor, *, times: int = 1) -> None:
    """Add to counts (T, V) how often each token stands at each place of names (N, T)."""
    for place, column in enumerate(names.T):
        counts[place] += times * torch.bincount(column, minlength=counts.shape[1])


def _swaps(row: list[int]) -> list[list[int]]:
    """A sequence with two neighbours swapped, in every way; its first and its last token stay."""
    return [[*row[:i], row[i + 1], row[i], *row[i + 2 :]] for i in range(1, len(row) - 2)]
