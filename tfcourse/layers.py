"""Transformer layers: layer norm, feed-forward network, residuals, encoder and decoder.

Shapes: B batch, T target length, S source length, D model width, F feed-forward width,
H heads; `...` stands for any number of leading dimensions. Boolean masks are True where
a query may attend. The default is post-norm, as in the original paper: add, then
normalise.

Half precision: statistics of float16 and bfloat16 inputs are computed in float32, and
the result is rounded to the input dtype.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfcourse.attention import causal_mask
from tfcourse.multihead import MultiHeadAttention

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "layer_norm",
    "gelu",
    "FeedForward",
    "residual_post_norm",
    "residual_pre_norm",
    "EncoderLayer",
    "DecoderLayer",
]


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise every row to mean 0 and variance 1, then scale and shift each column.

    Mean and variance are computed over the D numbers of each row; the variance divides
    by D (not by D - 1). The result is (x - mean) / sqrt(variance + eps) · gamma + beta.

    Args:
        x: Rows, (..., D).
        gamma: One learned factor per column, (D,).
        beta: One learned shift per column, (D,).
        eps: Added to the variance; avoids division by zero if all numbers of a row are
            equal.

    Returns:
        Normalised rows, (..., D), in the dtype of `x`.

    Raises:
        ValueError: If `x` is not floating point, or `gamma` or `beta` does not have the
            shape (D,).

    Source:
        Ba et al. 2016, Layer Normalization, equation 4.
    """
    if gamma.shape != x.shape[-1:] or beta.shape != x.shape[-1:]:
        raise ValueError(
            f"gamma and beta need the shape {tuple(x.shape[-1:])} of a row of x {tuple(x.shape)}, "
            f"got {tuple(gamma.shape)} and {tuple(beta.shape)}"
        )
    if not x.is_floating_point():
        raise ValueError(f"rows are floating-point numbers, got {x.dtype}")
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)  # (..., D)
    variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return (centred / torch.sqrt(variance + eps) * gamma + beta).to(x.dtype)


def gelu(x: Tensor, *, approximate: bool = False) -> Tensor:
    """Apply the Gaussian error linear unit, x · Φ(x), exactly or approximately.

    Φ is the standard normal distribution function. The exact form is x · Φ(x) = x / 2 ·
    (1 + erf(x / sqrt(2))). The approximation, which GPT-2 and the original BERT code
    use, is x / 2 · (1 + tanh(sqrt(2 / π) · (x + 0.044715 x³))).

    Args:
        x: Tensor of any shape.
        approximate: Use the approximation with tanh.

    Returns:
        A tensor with the shape and dtype of `x`.

    Source:
        Hendrycks and Gimpel 2016, Gaussian Error Linear Units, section 2.
    """
    if not x.is_floating_point():
        raise ValueError(f"expected floating-point numbers, got {x.dtype}")
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    bend = (
        torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
        if approximate
        else torch.erf(wide / math.sqrt(2))
    )
    return (wide / 2 * (1 + bend)).to(x.dtype)


class FeedForward(nn.Module):
    """The position-wise feed-forward network: D -> F, an activation, F -> D.

    Its parts are two `nn.Linear` layers with biases and PyTorch's default
    initialisation, `up_proj` (D -> F) and `down_proj` (F -> D). It has no residual
    connection, normalisation or dropout.

    Args:
        d_model: Width D of inputs and outputs.
        d_ff: Inner width F; 4 · D in the original.
        activation: `"relu"`, max(0, x), as in the original, or `"gelu"`, the exact
            form.

    Raises:
        ValueError: If `activation` is unknown.

    Source:
        Vaswani et al. 2017, section 3.3, equation 2.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation is 'relu' or 'gelu', got {activation!r}")
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to every row.

        Args:
            x: Rows, (..., D).

        Returns:
            Rows, (..., D).
        """
        inner = self.up_proj(x)  # (..., F)
        inner = gelu(inner) if self.activation == "gelu" else torch.relu(inner)
        return self.down_proj(inner)  # (..., D)


def residual_post_norm(
    x: Tensor,
    sublayer: Callable[[Tensor], Tensor],
    gamma: Tensor,
    beta: Tensor,
    *,
    dropout: float = 0.0,
    eps: float = 1e-5,
) -> Tensor:
    """Apply a sublayer with post-norm: layer_norm(x + dropout(sublayer(x))).

    Dropout is applied to the output of the sublayer, never to `x` itself: each number
    is replaced by 0 with probability `dropout`, and the others are divided by 1 -
    `dropout`.

    Args:
        x: Rows, (..., D).
        sublayer: Attention, a feed-forward network, or any other function from rows
            (..., D) to rows (..., D).
        gamma: The norm's factors, (D,).
        beta: The norm's shifts, (D,).
        dropout: Probability from 0 to 1. The caller passes 0 in evaluation mode.
        eps: As in `layer_norm`.

    Returns:
        Rows, (..., D), in the dtype of `x`.

    Source:
        Vaswani et al. 2017, sections 3.1 and 5.4.
    """
    return layer_norm(x + nn.functional.dropout(sublayer(x), dropout), gamma, beta, eps)


def residual_pre_norm(
    x: Tensor,
    sublayer: Callable[[Tensor], Tensor],
    gamma: Tensor,
    beta: Tensor,
    *,
    dropout: float = 0.0,
    eps: float = 1e-5,
) -> Tensor:
    """Apply a sublayer with pre-norm: x + dropout(sublayer(layer_norm(x))).

    The residual path adds `x` without normalisation, so gradients reach the first layer
    through an identity. Dropout is applied to the output of the sublayer, as in
    `residual_post_norm`.

    Args:
        x: Rows, (..., D).
        sublayer: Attention, a feed-forward network, or any other function from rows
            (..., D) to rows (..., D).
        gamma: The norm's factors, (D,).
        beta: The norm's shifts, (D,).
        dropout: Probability from 0 to 1. The caller passes 0 in evaluation mode.
        eps: As in `layer_norm`.

    Returns:
        Rows, (..., D), in the dtype of `x`.

    Source:
        Xiong et al. 2020, On Layer Normalization in the Transformer Architecture,
        section 3.1.
    """
    return x + nn.functional.dropout(sublayer(layer_norm(x, gamma, beta, eps)), dropout)


class EncoderLayer(nn.Module):
    """An encoder layer: self-attention and a feed-forward network.

    Each sublayer has a residual connection and a norm. Its parts are named
    `self_attention` (a `MultiHeadAttention`), `feed_forward` (a `FeedForward`), and
    `self_attention_norm` and `feed_forward_norm`: two `nn.LayerNorm(d_model)`, whose
    weight is gamma and whose bias is beta. In training mode, dropout is applied to the
    output of each sublayer.

    Args:
        d_model: Width D of inputs and outputs.
        n_heads: Number of heads H; divides D.
        d_ff: Feed-forward width F.
        dropout: Probability of residual dropout.
        pre_norm: Put each norm before its sublayer; by default it comes after the sum,
            as in the original.
        activation: Activation of the feed-forward network, `"relu"` or `"gelu"`.

    Source:
        Vaswani et al. 2017, sections 3.1 and 5.4; Xiong et al. 2020, figure 1
        (pre-norm).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply self-attention, then the feed-forward network.

        Args:
            x: Sequences, (B, S, D).
            mask: Boolean, True where a position may attend, in a shape that
                `MultiHeadAttention` takes, for example (B, 1, S) for padding; None
                permits every pair.

        Returns:
            Sequences, (B, S, D).
        """
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.self_attention_norm(x), mask=mask))
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, mask=mask)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """A decoder layer: causal self-attention, cross-attention and a feed-forward network.

    Each sublayer has a residual connection and a norm. Its parts are named
    `self_attention` and `cross_attention` (two `MultiHeadAttention`), `feed_forward` (a
    `FeedForward`), and `self_attention_norm`, `cross_attention_norm` and
    `feed_forward_norm` (three `nn.LayerNorm(d_model)`). Self-attention is always
    causal: the layer creates this mask itself. In training mode, dropout is applied to
    the output of each sublayer.

    Args:
        d_model: Width D of inputs and outputs.
        n_heads: Number of heads H; divides D.
        d_ff: Feed-forward width F.
        dropout: Probability of residual dropout.
        pre_norm: Put each norm before its sublayer; by default it comes after the sum,
            as in the original. The encoder's output is not normalised here.
        activation: Activation of the feed-forward network, `"relu"` or `"gelu"`.

    Source:
        Vaswani et al. 2017, sections 3.1, 3.2.3 and 5.4; Xiong et al. 2020, figure 1
        (pre-norm).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Apply causal self-attention, cross-attention and the feed-forward network.

        Args:
            x: Target sequences, (B, T, D).
            memory: Output of the encoder, (B, S, D).
            memory_mask: Boolean, True where a target position may attend to a source
                position, in a shape that `MultiHeadAttention` takes, for example
                (B, 1, S) for padding; None permits every pair.

        Returns:
            Target sequences, (B, T, D).
        """
        past = causal_mask(x.shape[1], x.device)  # (T, T)
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.self_attention_norm(x), mask=past))
            x = x + self.dropout(self.cross_attention(self.cross_attention_norm(x), memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, mask=past)))
        x = self.cross_attention_norm(x + self.dropout(self.cross_attention(x, memory, memory_mask)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
