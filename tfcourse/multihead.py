"""Multi-head attention: several attention heads, each on its own slice of the width.

Shapes: B batch, T query length, S key/value length, D model width, H heads, Dh = D / H
head width, Dv value width, Do output width. Boolean masks are True where a query may
attend: opposite to `torch.nn.MultiheadAttention`.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfcourse.attention import scaled_dot_product_attention

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "split_heads",
    "merge_heads",
    "MultiHeadAttention",
    "attention_parameters",
    "merge_value_output",
    "head_ablation",
    "AttentionParameters",
]


class AttentionParameters(NamedTuple):
    """Parameter counts of the matrices of multi-head attention, without biases."""

    query_key: int
    """The query and key matrices of all heads."""
    merged_query_key: int
    """One merged matrix for each head in their place."""
    value_output: int
    """The value matrices of all heads and the output matrix."""
    merged_value_output: int
    """One merged matrix in their place."""


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Split the width into heads: head h gets the h-th block of Dh = D / H columns.

    Args:
        x: Sequences, (B, T, D).
        n_heads: Number of heads H.

    Returns:
        One sequence per head, (B, H, T, Dh).

    Raises:
        ValueError: If `x` does not have three dimensions, or D cannot be divided by
            `n_heads`.

    Source:
        Vaswani et al. 2017, section 3.2.2: one (D, D) projection split into H parts
        equals H separate projections.
    """
    if x.ndim != 3:
        raise ValueError(f"expected x of shape (B, T, D), got {tuple(x.shape)}")
    B, T, D = x.shape
    if D % n_heads:
        raise ValueError(f"the width {D} cannot be divided into {n_heads} heads (x has shape {tuple(x.shape)})")
    x = x.reshape(B, T, n_heads, D // n_heads)  # (B, T, H, Dh)
    return x.transpose(1, 2)  # (B, H, T, Dh)


def merge_heads(x: Tensor) -> Tensor:
    """Concatenate the heads: the inverse of `split_heads`.

    Args:
        x: One sequence per head, (B, H, T, Dh).

    Returns:
        Sequences, (B, T, D) with D = H·Dh: first the columns of head 0, then the
        columns of head 1, and so on.

    Raises:
        ValueError: If `x` does not have four dimensions.

    Source:
        Vaswani et al. 2017, section 3.2.2: Concat(head_1, …, head_h).
    """
    if x.ndim != 4:
        raise ValueError(f"expected x of shape (B, H, T, Dh), got {tuple(x.shape)}")
    B, H, T, Dh = x.shape
    return x.transpose(1, 2).reshape(B, T, H * Dh)  # (B, T, D)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (self-, cross- or causal) with Dh = Dv = D / H.

    `q_proj`, `k_proj`, `v_proj` and `o_proj` are `nn.Linear` layers D -> D with
    PyTorch's default initialisation. The first three compute queries, keys and values
    for all heads at once; head h attends with its own Dh columns; the merged heads pass
    through `o_proj`. The number of heads is the attribute `n_heads`.

    Args:
        d_model: Width D of inputs and outputs.
        n_heads: Number of heads H; divides D.
        bias: Whether the four linear layers have a bias.

    Raises:
        ValueError: If `d_model` cannot be divided by `n_heads`.

    Source:
        Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} cannot be divided into n_heads={n_heads}")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Attend from every position of `x` to `context`, or to `x` itself.

        Args:
            x: Sequence for the queries, (B, T, D).
            context: Sequence for the keys and values, (B, S, D); None means
                self-attention, with S = T.
            mask: Boolean, True where a query may attend; None permits every pair. With
                up to three dimensions it is broadcastable to (B, T, S) and shared by
                all heads, for example (T, S) or (B, 1, S). With four dimensions it is
                broadcastable to (B, H, T, S). In a fully masked row all heads give
                zeros, so the output is the bias of `o_proj`.

        Returns:
            Outputs, (B, T, D).
        """
        if context is None:
            context = x
        q = split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, Dh)
        k = split_heads(self.k_proj(context), self.n_heads)  # (B, H, S, Dh)
        v = split_heads(self.v_proj(context), self.n_heads)  # (B, H, S, Dh)
        if mask is not None and mask.ndim == 3:
            # Broadcasting aligns from the right: without a place for the heads, B would be taken for H.
            mask = mask.unsqueeze(1)  # (B, 1, T, S)
        heads = scaled_dot_product_attention(q, k, v, mask)  # (B, H, T, Dh)
        return self.o_proj(merge_heads(heads))


def attention_parameters(d_model: int, n_heads: int, d_k: int, d_v: int, d_out: int) -> AttentionParameters:
    """Count the parameters of multi-head attention with separate and merged matrices.

    Biases are not counted. Each head has a query and a key matrix (D, Dk), which can be
    merged into one (D, D), and a value matrix (D, Dv). The concatenated heads share an
    output matrix (H·Dv, Do); merged with the value matrices it becomes (H·D, Do).

    Args:
        d_model: Width D of the inputs.
        n_heads: Number of heads H.
        d_k: Width Dk of a head's queries and keys.
        d_v: Width Dv of a head's values.
        d_out: Width Do of the outputs.

    Returns:
        An `AttentionParameters` with the integers `query_key`, `merged_query_key`,
        `value_output` and `merged_value_output`. With the sizes of the source
        (Dk = Dv = D / H, Do = D) merged matrices have H / 2 times as many parameters.

    Source:
        Vaswani et al. 2017, section 3.2.2 (sizes of the matrices).
    """
    return AttentionParameters(
        query_key=2 * n_heads * d_model * d_k,
        merged_query_key=n_heads * d_model * d_model,
        value_output=n_heads * d_model * d_v + n_heads * d_v * d_out,
        merged_value_output=n_heads * d_model * d_out,
    )


def merge_value_output(w_v: Tensor, w_o: Tensor) -> Tensor:
    """Merge the value matrices of all heads and the output matrix into one matrix Z.

    With the attention weights A_h of head h and the inputs X (one row per position),
    concat_h(A_h X) Z = concat_h(A_h X W_V_h) W_O. So the value projection can be
    applied after the weighted average.

    Args:
        w_v: One value matrix per head, (H, D, Dv).
        w_o: Output matrix, (H·Dv, Do); its first Dv rows belong to head 0, the next to
            head 1, and so on.

    Returns:
        The merged matrix Z, (H·D, Do); its first D rows belong to head 0.

    Raises:
        ValueError: If `w_v` does not have three dimensions, or `w_o` does not have two,
            with H·Dv rows.

    Source:
        Elhage et al. 2021, A Mathematical Framework for Transformer Circuits, the
        output-value circuit.
    """
    if (w_v.ndim, w_o.ndim) != (3, 2) or w_o.shape[0] != w_v.shape[0] * w_v.shape[2]:
        raise ValueError(f"w_v (H, D, Dv) and w_o (H·Dv, Do) do not fit: {tuple(w_v.shape)} and {tuple(w_o.shape)}")
    H, D, Dv = w_v.shape
    Do = w_o.shape[1]
    w_o = w_o.reshape(H, Dv, Do)  # (H, Dv, Do)
    return (w_v @ w_o).reshape(H * D, Do)  # (H·D, Do)


def head_ablation(head_outputs: Tensor, o_weight: Tensor, o_bias: Tensor | None = None) -> Tensor:
    """Compute the output of the layer with head h removed, for every head h.

    Removing a head means that its columns are zero when they enter the output
    projection. The other heads and the bias stay as they are; nothing is rescaled.
    float16 and bfloat16 inputs are summed in float32.

    Args:
        head_outputs: Outputs of the heads, before the output projection, (B, H, T, Dh).
        o_weight: Weight of the output projection in the layout of `nn.Linear`,
            (D, H·Dh).
        o_bias: Bias of the output projection, (D,), or None.

    Returns:
        One output per removed head, (H, B, T, D), in the dtype of `head_outputs`.

    Raises:
        ValueError: If `head_outputs` does not have four dimensions, or `o_weight` does
            not have H·Dh columns.

    Source:
        Michel et al. 2019, Are Sixteen Heads Really Better than One?, sections 2.3 and
        3.2.
    """
    if head_outputs.ndim != 4:
        raise ValueError(f"expected head_outputs of shape (B, H, T, Dh), got {tuple(head_outputs.shape)}")
    _, H, _, Dh = head_outputs.shape
    D, columns = o_weight.shape
    if columns != H * Dh:
        raise ValueError(f"expected o_weight of shape (D, {H * Dh}) for {H} heads of {Dh}, got {tuple(o_weight.shape)}")
    wide = torch.promote_types(head_outputs.dtype, torch.float32)
    weights = o_weight.to(wide).transpose(0, 1).reshape(H, 1, Dh, D)  # (H, 1, Dh, D)
    contributions = head_outputs.to(wide).transpose(0, 1) @ weights  # (H, B, T, D)
    output = contributions.sum(dim=0)  # (B, T, D)
    if o_bias is not None:
        output = output + o_bias
    return (output - contributions).to(head_outputs.dtype)
