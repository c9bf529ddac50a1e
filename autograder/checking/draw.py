"""Draw the inputs of an exercise from a seed.

One case serves every aspect that needs it. A case is drawn from a stream that is named after its maker, the exercise and the round, not
after the aspect (`Draw.case`). So shape, numbers, in-place changes and the first half of a relation are judged on one answer. A submission
for chapter 03 answers 293 questions, not 489. The price is shared luck. A case that happens to hide a mistake hides it from several
aspects, so a maker must draw sizes at which mistakes show; the quality tests say where it does not.

Operations and executed lines are counted at sizes that the secret draws (`Draw.counting_size`), and numbers are judged on ordinary calls
of the same shapes: code that behaves only while it is counted gains nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from autograder.checking.request import Action, Request, Value, map_value

_WORDS, _FIRST_WORD = 624, 24
# The fields of a case that hold tensors.
_HELD = ("arguments", "state", "props")


@dataclass(frozen=True)
class Case:
    """One set of inputs for an exercise."""

    arguments: Mapping[str, Value]  # the call's arguments by name
    init: Mapping[str, Value] | None = None  # for a class, the constructor's arguments
    state: Mapping[str, Tensor] | None = None  # for a class, its weights by name
    method: str | None = None  # for a class, the method to call in the place of the instance
    # arguments that are built where the call is made: models, optimisers, generators (``autograder.checking.props``)
    props: Mapping[str, Mapping[str, Value]] | None = None
    # for a class, call it in training mode, where dropout drops; by default it is in evaluation mode
    training: bool = False

    def request(self, action: Action = "call", wrt: tuple[str, ...] = ()) -> Request:
        """Return a request to a subject about this case."""
        return Request(action=action, wrt=wrt, **vars(self))

    def with_arguments(self, **arguments: Value) -> Case:
        """Return the case with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})

    def to(self, dtype: torch.dtype) -> Case:
        """Return the case with every floating-point tensor converted to another dtype."""

        def convert(tensor: Tensor) -> Tensor:
            return tensor.to(dtype) if tensor.is_floating_point() else tensor

        return Case(**{**vars(self), **{name: map_value(vars(self)[name], convert) for name in _HELD}})


def _set_state(generator: torch.Generator, key: bytes) -> None:
    """Set a generator's whole state from a key.

    `manual_seed` uses 32 bits of its number, so that somebody who knows a few bits of what is drawn can find the rest by trying all
    seeds. The state of the Mersenne Twister has 624 words of 32 bits; PyTorch stores each in 64 bits, after three fields of 8 bytes.
    """
    words = np.frombuffer(hashlib.shake_256(key).digest(4 * _WORDS), "<u4").astype("<u8")
    state = generator.get_state()
    state[_FIRST_WORD : _FIRST_WORD + 8 * _WORDS] = torch.from_numpy(words.view(np.uint8))
    generator.set_state(state)


class Draw:
    """A stream of random inputs that depends only on its key: the same on every machine and in every order of checks.

    Args:
        key: identifies this stream (exercise, row, round, seed).
        shared: identifies the streams of cases in :meth:`case`; by default the key.
        hidden: whether it draws hidden tests.
    """

    def __init__(self, *key: object, shared: tuple[object, ...] | None = None, hidden: bool = False) -> None:
        self._shared = key if shared is None else shared
        self._hidden = hidden
        self._made: Counter[str] = Counter()
        name = "\0".join(map(str, key)).encode()
        digest = hashlib.sha256(name).digest()
        self._generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        if hidden:
            _set_state(self._generator, name)
        # The size at which operations are counted; students know the size in the visible tests.
        self.counting_size = 2 + digest[7] % 3 if hidden else 2

    def case(self, maker: Callable[[Draw], Case]) -> Case:
        """Return a maker's case from a stream with the maker's name, the same in every draw with the same shared key.

        So one answer serves all rows with the same question. A second call with the same maker gives another case.
        """
        name = getattr(maker, "__qualname__", type(maker).__qualname__)
        self._made[name] += 1
        return maker(Draw(*self._shared, name, self._made[name], hidden=self._hidden))

    def sizes(self, count: int, low: int = 2) -> tuple[int, ...]:
        """Return ``count`` distinct sizes of at least ``low``, so that a mix-up of two axes shows."""
        return tuple((torch.randperm(count + 1, generator=self._generator)[:count] + low).tolist())

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return independent normal numbers of mean 0 and standard deviation ``scale``."""
        return (torch.randn(shape, generator=self._generator, dtype=torch.float64) * scale).to(dtype)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Return independent integers in ``low … high - 1``."""
        return torch.randint(low, high, shape, generator=self._generator)

    def unseen(self, low: int, high: int) -> int:
        """Return an integer in ``low … high - 1``: from the lower half if visible, from the upper half if hidden.

        So no visible test has the hidden number, and no recorded answer of that size is large enough to be cut to the hidden one.
        """
        middle = (low + high) // 2
        return int(self.integers(*((middle, high) if self._hidden else (low, middle))))

    def order(self, n: int) -> list[int]:
        """Return ``0 … n - 1`` in random order."""
        return torch.randperm(n, generator=self._generator).tolist()

    def permutation(self, n: int) -> Tensor:
        """Return a permutation of ``0 … n - 1`` that moves every element."""
        cycle = torch.randperm(n, generator=self._generator)
        order = torch.empty_like(cycle)
        order[cycle] = cycle.roll(1)  # each moves to the position of its neighbour in one random cycle
        return order

    def mask(self, *shape: int) -> Tensor:
        """Return a random boolean mask: every row has a True and, given two keys, at least one row has a False."""
        mask = torch.rand(*shape, generator=self._generator) < 0.6
        mask[..., 0] |= ~mask.any(dim=-1)
        mask[..., -1] &= mask[..., :-1].any(dim=-1).logical_not() | (
            torch.rand(*shape[:-1], generator=self._generator) < 0.5
        )
        mask[..., 0] |= ~mask.any(dim=-1)
        if shape[-1] > 1 and bool(mask.all()):
            mask.view(-1, shape[-1])[0, -1] = False
        return mask

    def weights(self, module: nn.Module, scale: float = 0.5, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        """Return random, non-zero weights for every entry of a module's state dict, including biases."""
        return {
            name: self.normal(*value.shape, scale=scale, dtype=dtype) for name, value in module.state_dict().items()
        }
