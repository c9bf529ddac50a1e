"""Chapter 01's translator, built in other ways than the reference: right, so each must get all the points."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


class Translator(nn.Module):
    """What the solutions below share: the layers, the decoder, and that a mask must fit."""

    def __init__(self, source_vocab_size, target_vocab_size, d_embedding, d_model, n_layers=1):
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab_size, d_embedding)
        self.target_embedding = nn.Embedding(target_vocab_size, d_embedding)
        self.encoder = nn.LSTM(d_embedding, d_model, num_layers=n_layers, batch_first=True)
        self.decoder = nn.LSTM(d_embedding, d_model, num_layers=n_layers, batch_first=True)
        self.output = nn.Linear(d_model, target_vocab_size)

    def encode(self, source, source_mask=None):
        if source_mask is not None and (source_mask.shape != source.shape or source_mask.dtype != torch.bool):
            raise ValueError(f"a mask {tuple(source_mask.shape)} for a source {tuple(source.shape)}")
        if source_mask is not None:
            behind = source_mask.cumprod(1).bool()  # nothing after the first place that is padding
            if not (behind == source_mask).all() or not source_mask[:, 0].all():
                raise ValueError("padding stands behind the tokens")
        return self.read(self.source_embedding(source), source_mask)

    def decode(self, target, state):
        states, state = self.decoder(self.target_embedding(target), state)
        return self.output(states), state

    def forward(self, source, target, source_mask=None):
        return self.decode(target, self.encode(source, source_mask))[0]


@alternative("Seq2Seq")
class Packed(Translator):
    """Packed sequences, sorted by PyTorch."""

    def read(self, embedded, mask):
        if mask is not None:
            embedded = pack_padded_sequence(embedded, mask.sum(-1).tolist(), batch_first=True, enforce_sorted=False)
        return self.encoder(embedded)[1]


@alternative("Seq2Seq")
class PackedOneByOne(Translator):
    """The sentences are cut to their lengths and packed."""

    def read(self, embedded, mask):
        if mask is None:
            return self.encoder(embedded)[1]
        rows = [row[:length] for row, length in zip(embedded, mask.sum(1).tolist(), strict=True)]
        return self.encoder(pack_sequence(rows, enforce_sorted=False))[1]


@alternative("Seq2Seq")
class ByHand(Translator):
    """The LSTMs hold the weights; cells, layers and padding are done by hand, in the decoder as well."""

    def along(self, lstm, x, state, mask):
        hs, cs = [], []
        for layer in range(lstm.num_layers):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w_i, w_h, b_i, b_h = (getattr(lstm, f"{name}_l{layer}") for name in names)
            if state is None:
                h = c = x.new_zeros(len(x), lstm.hidden_size)
            else:
                h, c = state[0][layer], state[1][layer]
            out = []
            for t in range(x.shape[1]):
                i, f, g, o = (F.linear(x[:, t], w_i, b_i) + F.linear(h, w_h, b_h)).chunk(4, dim=-1)
                c_new = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h_new = o.sigmoid() * c_new.tanh()
                real = True if mask is None else mask[:, t : t + 1]
                h = h_new if real is True else torch.where(real, h_new, h)
                c = c_new if real is True else torch.where(real, c_new, c)
                out.append(h)
            x = torch.stack(out, dim=1)
            hs.append(h)
            cs.append(c)
        return x, (torch.stack(hs), torch.stack(cs))

    def read(self, embedded, mask):
        return self.along(self.encoder, embedded, None, mask)[1]

    def decode(self, target, state):
        states, state = self.along(self.decoder, F.embedding(target, self.target_embedding.weight), state, None)
        return states @ self.output.weight.T + self.output.bias, state
