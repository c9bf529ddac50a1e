"""Sequence to sequence: an encoder compresses the source into a state, and a decoder generates the target from it.

Shapes: B batch, S source length, T target length, E embedding width, D state width, L
layers, V target vocabulary. The batch comes first. Boolean masks are True at real
tokens.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

__all__ = ["Seq2Seq"]


class Seq2Seq(nn.Module):
    """An encoder-decoder translation model whose context is the encoder's final state.

    The encoder is an LSTM; its final hidden and cell states, one pair per layer, are
    the context. The decoder is another LSTM that starts from the context. It reads the
    target with teacher forcing: at every step its input is the correct token, and its
    hidden state predicts the next token. The layers have PyTorch's default
    initialisation: `source_embedding` and `target_embedding` (`nn.Embedding`, width E),
    `encoder` and `decoder` (`nn.LSTM`, L layers from E to D, batch first) and `output`
    (`nn.Linear`, D to V).

    Args:
        source_vocab_size: Number of source tokens.
        target_vocab_size: Number of target tokens V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of the states.
        n_layers: Number of layers L of both LSTMs.

    Source:
        Sutskever, Vinyals and Le 2014, Sequence to Sequence Learning with Neural
        Networks, section 2.
    """

    def __init__(
        self, source_vocab_size: int, target_vocab_size: int, d_embedding: int, d_model: int, *, n_layers: int = 1
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab_size, d_embedding)
        self.target_embedding = nn.Embedding(target_vocab_size, d_embedding)
        self.encoder = nn.LSTM(d_embedding, d_model, n_layers, batch_first=True)
        self.decoder = nn.LSTM(d_embedding, d_model, n_layers, batch_first=True)
        self.output = nn.Linear(d_model, target_vocab_size)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Encode the source into a context of fixed size.

        Args:
            source: Source tokens, integers, (B, S).
            source_mask: Boolean, (B, S), True at real tokens, at least one per source.
                Padding comes after them and does not change the context. None means
                that all tokens are real.

        Returns:
            The final hidden and cell states of the encoder, each (L, B, D).

        Raises:
            ValueError: If `source_mask` does not have the shape of `source`, is not
                boolean, has padding before a real token, or has a row without real
                tokens.
        """
        _check_source_mask(source, source_mask)
        embedded = self.source_embedding(source)  # (B, S, E)
        if source_mask is not None:
            # Packed sequences end where their tokens end. PyTorch wants their lengths on the CPU.
            lengths = source_mask.sum(dim=1).cpu()
            if bool((lengths == 0).any()):
                raise ValueError(f"expected a token in every source, got sources of the lengths {lengths.tolist()}")
            embedded = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, (states, cells) = self.encoder(embedded)
        return states, cells

    def decode(self, target: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Predict the next token after every target token.

        Args:
            target: Target tokens, integers, (B, T).
            state: Initial hidden and cell states of the decoder, each (L, B, D): the
                context, or the states returned by an earlier call, so that a target can
                be decoded piece by piece.

        Returns:
            Logits, (B, T, V), and the hidden and cell states after the last token, each
            (L, B, D).
        """
        states, state = self.decoder(self.target_embedding(target), state)  # (B, T, D)
        return self.output(states), state

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Predict every target token from the source and the target tokens before it.

        Args:
            source: Source tokens, integers, (B, S).
            target: Target tokens, integers, (B, T); the first is BOS.
            source_mask: Boolean, (B, S), True at real tokens; None means that all are
                real.

        Returns:
            Logits, (B, T, V): position t predicts the token after target[:, t].

        Raises:
            ValueError: If `source_mask` does not fit, as in `encode`.
        """
        logits, _ = self.decode(target, self.encode(source, source_mask))
        return logits


def _check_source_mask(source: Tensor, mask: Tensor | None) -> None:
    """Raise a ValueError unless padding comes after the source tokens: code that counts real tokens relies on it."""
    if mask is None:
        return
    if mask.dtype != torch.bool or mask.shape != source.shape:
        raise ValueError(f"expected a boolean mask {tuple(source.shape)}, got {mask.dtype} {tuple(mask.shape)}")
    if mask.is_meta:
        return  # it has a shape, but no values to look at
    broken = (mask[:, 1:] > mask[:, :-1]).any(dim=1).nonzero().flatten().tolist()
    if broken:
        raise ValueError(f"expected padding behind the tokens, got mask[{broken[0]}] = {mask[broken[0]].tolist()}")
