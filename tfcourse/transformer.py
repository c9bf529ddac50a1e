"""The encoder-decoder Transformer, with optionally tied embeddings.

Shapes: B batch, S source length, T target length, D model width, V vocabulary. Token
masks are True at real tokens.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from tfcourse.layers import DecoderLayer, EncoderLayer
from tfcourse.positions import add_positions, sinusoidal_positions

__all__ = ["Transformer"]


class Transformer(nn.Module):
    """An encoder-decoder Transformer for translation.

    Its inputs are the source and the target so far, its outputs the logits of the next
    tokens. Its parts are:

    - `embedding`, an `nn.Embedding(V, D)`, if the weights are tied: it embeds source
      and target, and its transpose computes the logits, without bias. Otherwise
      `source_embedding`, `target_embedding` and `output`, an
      `nn.Linear(D, V, bias=False)`;
    - `position_table`, an `nn.Parameter` (max_length, D), if positions are learned,
      shared by source and target;
    - `encoder_layers` and `decoder_layers`, each an `nn.ModuleList`;
    - `encoder_norm` and `decoder_norm`, an `nn.LayerNorm(D)` after each stack, if
      `pre_norm` is set.

    Embeddings are initialised with standard deviation 1 / sqrt(D) and multiplied by
    sqrt(D); the positions are added, and dropout is applied to the sum in training
    mode. A learned position table is initialised with standard deviation 0.02.

    Args:
        source_vocab_size: Number of source tokens.
        target_vocab_size: Number of target tokens V.
        d_model: Width D; must be even for sinusoidal positions.
        n_heads: Number of heads H; divides D.
        d_ff: Feed-forward width F.
        n_layers: Number of layers of the encoder, and also of the decoder.
        dropout: Probability of dropout on embeddings and on the output of every
            sublayer.
        pre_norm: Put every norm before its sublayer, and one norm after each stack.
        activation: Activation of the feed-forward networks, `"relu"` or `"gelu"`.
        tie_weights: Use one matrix for both embeddings and the output; both languages
            must share one vocabulary.
        positions: `"sinusoidal"` (of any length) or `"learned"` (of at most
            `max_length`).
        positions_every_layer: Add the positions before every layer, not only before the
            first.
        max_length: Number of rows of a learned position table.

    Raises:
        ValueError: If `tie_weights` is set and the vocabularies differ in size,
            `positions` is unknown, or D is odd and the positions are sinusoidal.

    Source:
        Vaswani et al. 2017, sections 3.1, 3.4, 3.5 and 5.4; Press and Wolf 2017, Using
        the Output Embedding to Improve Language Models (tied weights). Dehghani et al.
        2019, Universal Transformers, section 2.1 (positions every layer).
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        *,
        d_model: int = 512,
        n_heads: int = 8,
        d_ff: int = 2048,
        n_layers: int = 6,
        dropout: float = 0.1,
        pre_norm: bool = False,
        activation: str = "relu",
        tie_weights: bool = True,
        positions: Literal["sinusoidal", "learned"] = "sinusoidal",
        positions_every_layer: bool = False,
        max_length: int = 512,
    ) -> None:
        super().__init__()
        if tie_weights and source_vocab_size != target_vocab_size:
            raise ValueError(
                f"tied weights need one vocabulary, got {source_vocab_size} source and {target_vocab_size} target tokens"
            )
        if positions not in ("sinusoidal", "learned"):
            raise ValueError(f"positions are 'sinusoidal' or 'learned', got {positions!r}")
        if positions == "sinusoidal" and d_model % 2:
            raise ValueError(f"sinusoids come in pairs, so d_model must be even, got {d_model}")
        self.dropout = dropout
        self.tie_weights = tie_weights
        self.positions_every_layer = positions_every_layer
        if tie_weights:
            self.embedding = nn.Embedding(target_vocab_size, d_model)
        else:
            self.source_embedding = nn.Embedding(source_vocab_size, d_model)
            self.target_embedding = nn.Embedding(target_vocab_size, d_model)
            self.output = nn.Linear(d_model, target_vocab_size, bias=False)
        for embedding in (self.embedding,) if tie_weights else (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        self.position_table: nn.Parameter | None = None
        if positions == "learned":
            self.position_table = nn.Parameter(torch.empty(max_length, d_model))
            nn.init.normal_(self.position_table, std=0.02)

        def layers(kind: type[EncoderLayer] | type[DecoderLayer]) -> nn.ModuleList:
            return nn.ModuleList(
                kind(d_model, n_heads, d_ff, dropout=dropout, pre_norm=pre_norm, activation=activation)
                for _ in range(n_layers)
            )

        self.encoder_layers = layers(EncoderLayer)
        self.decoder_layers = layers(DecoderLayer)
        self.encoder_norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Predict the next token at every position of the target.

        Args:
            source: Source tokens, integers (B, S).
            target: Target tokens so far, integers (B, T); the first is BOS.
            source_mask: Boolean (B, S), True at real tokens, False at padding; None
                means that all are real.

        Returns:
            Logits, (B, T, V): position t predicts the token after target[:, t].

        Raises:
            ValueError: If source or target is longer than a learned position table, or
                the mask is not boolean or does not have the shape of the source.
        """
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Encode the source.

        Args:
            source: Source tokens, integers (B, S).
            source_mask: Boolean (B, S), True at real tokens; None means that all are
                real.

        Returns:
            The encoder's output, (B, S, D).

        Raises:
            ValueError: As in `forward`.
        """
        _check_mask(source_mask, source.shape)
        mask = None if source_mask is None else source_mask[:, None]  # (B, 1, S): the same for every query
        x = self.embed(source, self.embedding if self.tie_weights else self.source_embedding)
        for number, layer in enumerate(self.encoder_layers):
            if self.positions_every_layer and number > 0:
                x = self.place(x)
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Predict the next tokens from the target so far and the encoder's output.

        Args:
            target: Target tokens so far, integers (B, T).
            memory: Output of `encode`, (B, S, D).
            source_mask: Boolean (B, S), True at real tokens; None means that all are
                real.

        Returns:
            Logits, (B, T, V).

        Raises:
            ValueError: As in `forward`.
        """
        _check_mask(source_mask, memory.shape[:2])
        mask = None if source_mask is None else source_mask[:, None]  # (B, 1, S)
        x = self.embed(target, self.embedding if self.tie_weights else self.target_embedding)
        for number, layer in enumerate(self.decoder_layers):
            if self.positions_every_layer and number > 0:
                x = self.place(x)
            x = layer(x, memory, mask)
        output = self.embedding if self.tie_weights else self.output
        return nn.functional.linear(self.decoder_norm(x), output.weight)  # (B, T, V)

    def embed(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:
        """Embed tokens: look up, scale by sqrt(D), add positions, apply dropout.

        Args:
            tokens: Integers, (B, T).
            embedding: The embedding matrix.

        Returns:
            Vectors, (B, T, D).

        Raises:
            ValueError: As in `place`.
        """
        x = embedding(tokens) * math.sqrt(embedding.embedding_dim)  # (B, T, D)
        return nn.functional.dropout(self.place(x), self.dropout, self.training)

    def place(self, x: Tensor) -> Tensor:
        """Add the positions 0 … T - 1.

        Args:
            x: Vectors, (B, T, D).

        Returns:
            Vectors, (B, T, D).

        Raises:
            ValueError: If a learned table has fewer than T rows.
        """
        if self.position_table is not None:
            return add_positions(x, self.position_table)
        return add_positions(x, sinusoidal_positions(x.shape[1], x.shape[2], x.device))


def _check_mask(mask: Tensor | None, shape: torch.Size) -> None:
    """Raise a ValueError unless the mask has one entry per source token; the error of attention would show other shapes."""
    if mask is not None and (mask.dtype != torch.bool or mask.shape != shape):
        raise ValueError(f"expected a boolean source_mask {tuple(shape)}, got {mask.dtype} {tuple(mask.shape)}")
