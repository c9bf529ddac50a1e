"""Vision Transformers: patches, interpolated position embeddings, and local attention.

Boolean masks are True where a query may attend. A grid is a pair (Hg, Wg): rows and
columns of patches or features, numbered row by row.

Shapes: B batch, C channels, Hi and Wi height and width in pixels, P side of a patch, Hg
and Wg of a grid, N = Hg · Wg. D is the model width, H heads, Dh and Dv head widths, F
feed-forward width, L layers. M is the side of a window, K the side of a neighbourhood.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.alignment import masked_softmax
from tfcourse.layers import EncoderLayer

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "patchify",
    "unpatchify",
    "interpolate_position_embedding",
    "VisionTransformer",
    "VitParameters",
    "vit_parameters",
    "window_attention",
    "local_relation",
]


def patchify(images: Tensor, patch: int) -> Tensor:
    """Split images into square patches, the tokens of a Vision Transformer.

    Patches come row by row of the grid. Within a patch the numbers are ordered by row,
    then column, then channel: the channel runs fastest.

    Args:
        images: Images, (B, C, Hi, Wi), of any dtype.
        patch: Side P of a patch, in pixels; divides Hi and Wi.

    Returns:
        Patches, (B, Hg·Wg, P·P·C), with Hg = Hi / P and Wg = Wi / P, in the dtype of
        `images`.

    Raises:
        ValueError: If the patches do not fill the images.

    Source:
        Dosovitskiy et al. 2021, An Image Is Worth 16x16 Words, section 3.1.
    """
    B, C, height, width = images.shape
    if height % patch or width % patch:
        raise ValueError(f"pictures of {height} x {width} pixels cannot be cut into patches of {patch} x {patch}")
    cut = images.reshape(B, C, height // patch, patch, width // patch, patch)  # (B, C, Hg, P, Wg, P)
    return cut.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)  # (B, Hg·Wg, P·P·C)


def unpatchify(patches: Tensor, patch: int, grid: tuple[int, int]) -> Tensor:
    """Reassemble images from patches: the inverse of `patchify`.

    Args:
        patches: Patches, (B, Hg·Wg, P·P·C), as `patchify` orders them, of any dtype.
        patch: Side P of a patch.
        grid: Rows and columns of patches (Hg, Wg).

    Returns:
        Images, (B, C, Hg·P, Wg·P), in the dtype of `patches`.

    Raises:
        ValueError: If the grid size differs from the number of patches, or the patch
            width is not a multiple of P·P.

    Source:
        Dosovitskiy et al. 2021, section 3.1, inverted.
    """
    rows, columns = grid
    B, count, numbers = patches.shape
    if rows * columns != count or numbers % (patch * patch):
        raise ValueError(
            f"{count} patches of {numbers} numbers are no grid of {rows} x {columns} with a side of {patch}"
        )
    cut = patches.reshape(B, rows, columns, patch, patch, numbers // patch**2)  # (B, Hg, Wg, P, P, C)
    return cut.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)  # (B, C, Hg·P, Wg·P)


def interpolate_position_embedding(table: Tensor, grid: tuple[int, int], *, n_extra: int = 1) -> Tensor:
    """Interpolate a table of learned position embeddings to another grid of patches.

    The position embeddings of the patches, as an image with D channels, are resized to
    the new grid by bicubic interpolation: `size` is given, `align_corners` and
    `antialias` are off. Rows for extra tokens come first and are not changed. The same
    grid gives the same numbers.

    Args:
        table: Position embeddings, (n_extra + N, D); N is a square number, the size of
            the training grid.
        grid: The new grid (Hg, Wg).
        n_extra: Number of rows that belong to no patch, such as the class token's row.

    Returns:
        Position embeddings, (n_extra + Hg·Wg, D), in the dtype of `table`; half
        precision is computed in float32 and rounded once.

    Raises:
        ValueError: If N is not the square of a positive integer.

    Source:
        Dosovitskiy et al. 2021, section 3.2; resized to a size as in DINOv2 (Oquab et
        al. 2023).
    """
    count = len(table) - n_extra
    if count < 1 or math.isqrt(count) ** 2 != count:
        raise ValueError(f"positions of patches are learned on a square, got {count} of them")
    side = math.isqrt(count)
    rows, columns = grid
    if (rows, columns) == (side, side):
        return table
    wide = table[n_extra:].to(torch.promote_types(table.dtype, torch.float32))
    picture = wide.reshape(1, side, side, -1).permute(0, 3, 1, 2)  # (1, D, √N, √N)
    resized = F.interpolate(picture, size=(rows, columns), mode="bicubic", align_corners=False)  # (1, D, Hg, Wg)
    patches = resized.flatten(2).squeeze(0).mT.to(table.dtype)  # (Hg·Wg, D)
    return torch.cat([table[:n_extra], patches])


class VisionTransformer(nn.Module):
    """A Vision Transformer for image classification.

    The sequence is a class token and the patches. Its parts are:

    - `patch_proj`, an `nn.Linear` from P·P·C to D;
    - the parameters `class_token` (D,) and `position_table` (1 + N, D), with the class
      token's row first, drawn from a normal distribution with standard deviation 0.02;
    - `layers`, each a pre-norm `EncoderLayer` with the exact GELU;
    - `norm`, an `nn.LayerNorm`;
    - `head`, an `nn.Linear` from D to the classes.

    Dropout is applied to the embeddings and in the layers. Images of another size get
    interpolated position embeddings.

    Args:
        image_size: Side, in pixels, of the images for which the position table is made.
        patch: Side P of a patch; divides `image_size`.
        n_channels: Channels C.
        n_classes: Classes.
        d_model: Width D.
        n_heads: Heads H; divides D.
        d_ff: Feed-forward width F.
        n_layers: Layers L.
        dropout: Probability of dropout.
        pooling: Input of the head: the class token, or the mean of the patches without
            it, both after the norm.

    Raises:
        ValueError: If `patch` does not divide `image_size`, or `pooling` is unknown.

    Source:
        Dosovitskiy et al. 2021, section 3.1.
    """

    def __init__(
        self,
        image_size: int,
        patch: int,
        n_channels: int,
        n_classes: int,
        *,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        dropout: float = 0.0,
        pooling: Literal["class", "mean"] = "class",
    ) -> None:
        super().__init__()
        if image_size % patch:
            raise ValueError(f"pictures of {image_size} pixels cannot be cut into patches of {patch}")
        if pooling not in ("class", "mean"):
            raise ValueError(f"pooling is 'class' or 'mean', got {pooling!r}")
        self.patch, self.pooling = patch, pooling
        self.patch_proj = nn.Linear(patch * patch * n_channels, d_model)
        self.class_token = nn.Parameter(torch.empty(d_model).normal_(std=0.02))
        self.position_table = nn.Parameter(torch.empty(1 + (image_size // patch) ** 2, d_model).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, dropout=dropout, pre_norm=True, activation="gelu")
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the class logits of images.

        Args:
            images: Images, (B, C, Hi, Wi); P divides Hi and Wi.

        Returns:
            Logits, (B, classes).
        """
        x = self.patch_proj(patchify(images, self.patch))  # (B, N, D)
        x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)  # (B, 1 + N, D)
        grid = (images.shape[2] // self.patch, images.shape[3] // self.patch)
        x = self.dropout(x + interpolate_position_embedding(self.position_table, grid))
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x[:, 0] if self.pooling == "class" else x[:, 1:].mean(dim=1))


class VitParameters(NamedTuple):
    """Parameter counts of a Vision Transformer, by part."""

    patch: int
    """The projection of patches."""
    class_token: int
    """The class token."""
    positions: int
    """The table of positions, with the class token's."""
    layers: int
    """All layers."""
    norm: int
    """The last norm."""
    head: int
    """The output layer; 0 if there is none."""


def vit_parameters(
    image_size: int, patch: int, n_channels: int, d_model: int, d_ff: int, n_layers: int, n_classes: int | None
) -> VitParameters:
    """Count the parameters of a Vision Transformer; every linear layer has a bias.

    Args:
        image_size: Side of the images, in pixels.
        patch: Side P of a patch; divides `image_size`.
        n_channels: Channels C.
        d_model: Width D.
        d_ff: Feed-forward width F.
        n_layers: Layers L.
        n_classes: Classes; None means a model without a head.

    Returns:
        A `VitParameters` of integers whose sum is the size of the model.

    Source:
        Dosovitskiy et al. 2021, table 1.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * 2 * d_model
    return VitParameters(
        patch=patch * patch * n_channels * d_model + d_model,
        class_token=d_model,
        positions=(1 + (image_size // patch) ** 2) * d_model,
        layers=n_layers * (attention + feed_forward + norms),
        norm=2 * d_model,
        head=0 if n_classes is None else d_model * n_classes + n_classes,
    )


def window_attention(
    q: Tensor, k: Tensor, v: Tensor, window: int, *, shift: int = 0, bias: Tensor | None = None
) -> Tensor:
    """Compute attention within square windows of a grid, which may be shifted.

    With a shift the grid is rolled up and to the left by that many positions, split
    into windows, and rolled back afterwards. A window may then contain positions from
    opposite edges of the grid. Positions attend to each other only if they are from the
    same side of each edge. The scores are divided by sqrt(Dh); then the bias is added.

    Args:
        q: Queries, (B, H, Hg, Wg, Dh).
        k: Keys, (B, H, Hg, Wg, Dh).
        v: Values, (B, H, Hg, Wg, Dv).
        window: Side M of a window; divides Hg and Wg.
        shift: Number of positions to roll by, 0 … M - 1.
        bias: One number per head and pair of positions in a window, numbered row by
            row, (H, M², M²).

    Returns:
        Outputs, (B, H, Hg, Wg, Dv), in the dtype of `q`; half precision is computed in
        float32 and rounded once.

    Raises:
        ValueError: If the windows do not fill the grid, or the shift is not within a
            window.

    Source:
        Liu et al. 2021, Swin Transformer, section 3.2.
    """
    rows, columns = q.shape[2:4]
    if rows % window or columns % window:
        raise ValueError(f"a grid of {rows} x {columns} cannot be cut into windows of {window} x {window}")
    if not 0 <= shift < window:
        raise ValueError(f"a shift is at least 0 and below the window's side {window}, got {shift}")
    wide = torch.promote_types(q.dtype, torch.float32)
    q_cut, k_cut, v_cut = (
        _windows(x.to(wide).roll((-shift, -shift), dims=(2, 3)), window) for x in (q, k, v)
    )  # (B, H, windows, M², Dh)
    scores = q_cut @ k_cut.mT / math.sqrt(q.shape[-1])  # (B, H, windows, M², M²)
    if bias is not None:
        scores = scores + bias[:, None]
    heads = masked_softmax(scores, _same_region(rows, columns, window, shift, q.device)) @ v_cut
    B, H = q.shape[:2]
    cut = heads.reshape(B, H, rows // window, columns // window, window, window, -1)  # (B, H, Hg / M, Wg / M, M, M, Dv)
    together = cut.transpose(3, 4).flatten(4, 5).flatten(2, 3)  # (B, H, Hg, Wg, Dv)
    return together.roll((shift, shift), dims=(2, 3)).to(q.dtype)


def _windows(x: Tensor, window: int) -> Tensor:
    """Split a grid (B, H, Hg, Wg, D) into windows row by row, (B, H, Hg·Wg / M², M², D)."""
    B, H, rows, columns, width = x.shape
    cut = x.reshape(B, H, rows // window, window, columns // window, window, width)
    return cut.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def _same_region(rows: int, columns: int, window: int, shift: int, device: torch.device) -> Tensor:
    """Return which positions of each window belong together after the roll: boolean, (windows, M², M²)."""
    over_row = (torch.arange(rows, device=device) + shift) // rows  # (Hg,): 1 where it came over the upper edge
    over_column = (torch.arange(columns, device=device) + shift) // columns  # (Wg,)
    region = torch.cartesian_prod(over_row, over_column).reshape(1, 1, rows, columns, -1)  # (1, 1, Hg, Wg, 2)
    cut = _windows(region, window).flatten(0, 2)  # (windows, M², 2)
    return (cut[:, :, None] == cut[:, None, :]).all(dim=-1)


def local_relation(x: Tensor, q: Tensor, k: Tensor, prior: Tensor) -> Tensor:
    """Apply a convolution whose weights depend on similarity and a positional prior.

    Neighbour p' = p + (dy, dx) has the score -(q_p - k_p')² + prior[K // 2 + dy, K // 2
    + dx]. The weights are a softmax of the scores over all K x K neighbours inside the
    image. They are computed separately for each of the C/m channels of q and k.
    Channels m·c … m·c + m - 1 of `x` share the weights of channel c.

    Args:
        x: Features, (B, C, Hg, Wg).
        q: Queries, (B, C/m, Hg, Wg).
        k: Keys, (B, C/m, Hg, Wg).
        prior: Learned score of each offset, (C/m, K, K), K odd.

    Returns:
        Features, (B, C, Hg, Wg), in the dtype of `x`; half precision is computed in
        float32 and rounded once.

    Raises:
        ValueError: If `prior` is not square with an odd side, `prior` and `q` have
            different numbers of channels, or this number does not divide C.

    Source:
        Hu et al. 2019, Local Relation Networks for Image Recognition, section 3.
    """
    groups, side = prior.shape[0], prior.shape[-1]
    if side % 2 == 0 or prior.shape[-2] != side:
        raise ValueError(f"a neighbourhood has a place in its middle, got {prior.shape[-2]} x {side}")
    B, C, rows, columns = x.shape
    if q.shape[1] != groups or C % groups:
        raise ValueError(f"{C} channels cannot share {q.shape[1]} queries and priors for {groups}")
    wide = torch.promote_types(x.dtype, torch.float32)
    keys = _neighbours(k, side)  # (B, C/m, K², N)
    values = _neighbours(x, side)  # (B, C, K², N)
    inside = _neighbours(x.new_ones(1, 1, rows, columns), side) > 0  # (1, 1, K², N)
    # One wide operand makes the difference wide, and so all that is computed of it.
    alike = -(q.to(wide).flatten(2)[:, :, None] - keys).square()  # (B, C/m, K², N)
    scores = alike + prior.reshape(groups, side * side, 1)
    weights = scores.masked_fill(~inside, -torch.inf).softmax(dim=2)  # (B, C/m, K², N)
    shared = weights.repeat_interleave(C // groups, dim=1)  # (B, C, K², N)
    return (shared * values).sum(dim=2).reshape(B, C, rows, columns).to(x.dtype)


def _neighbours(x: Tensor, side: int) -> Tensor:
    """Return the K x K neighbours of every position, row by row, zeros outside: (B, C, Hg, Wg) -> (B, C, K², N)."""
    B, C = x.shape[:2]
    return F.unfold(x, side, padding=side // 2).reshape(B, C, side * side, -1)
