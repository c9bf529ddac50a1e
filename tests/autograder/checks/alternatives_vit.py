"""Chapter 11 up to local relations, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.layers import EncoderLayer

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ---------------------------------------------------------------------------------------------------------------- patches


def _fits(images, patch):
    if patch < 1 or images.shape[-2] % patch != 0 or images.shape[-1] % patch != 0:
        raise ValueError("patches do not fill the pictures")


@alternative("patchify")
def by_split_and_stack(images, patch):
    """Rows of patches, then the patches of each row."""
    _fits(images, patch)
    channels_last = images.movedim(1, -1)
    rows = torch.stack(channels_last.split(patch, dim=1), dim=1)  # (B, Hg, P, Wi, C)
    cells = torch.stack(rows.split(patch, dim=3), dim=2)  # (B, Hg, Wg, P, P, C)
    return cells.reshape(images.shape[0], -1, patch * patch * images.shape[1])


@alternative("patchify")
def by_index(images, patch):
    """Each number of the result is looked up."""
    _fits(images, patch)
    B, C, height, width = images.shape
    device = images.device
    top = torch.arange(0, height, patch, device=device)[:, None, None, None]
    left = torch.arange(0, width, patch, device=device)[:, None, None]
    row = top + torch.arange(patch, device=device)[:, None]
    column = left + torch.arange(patch, device=device)
    return images[:, :, row, column].permute(0, 2, 3, 4, 5, 1).reshape(B, -1, patch * patch * C)


@alternative("patchify")
def by_einsum(images, patch):
    """The six axes by their letters."""
    _fits(images, patch)
    B, C, height, width = images.shape
    six = images.view(B, C, height // patch, patch, width // patch, patch)
    return torch.einsum("bcipjq->bijpqc", six).reshape(B, -1, C * patch**2)


def _agrees(patches, patch, grid):
    if patches.shape[1] != grid[0] * grid[1] or patch < 1 or patches.shape[2] % patch**2:
        raise ValueError("the grid does not fit")


@alternative("unpatchify")
def back_by_einsum(patches, patch, grid):
    """The six axes by their letters."""
    _agrees(patches, patch, grid)
    six = patches.reshape(len(patches), *grid, patch, patch, -1)
    return torch.einsum("bijpqc->bcipjq", six).reshape(len(patches), -1, grid[0] * patch, grid[1] * patch)


@alternative("unpatchify")
def back_by_index(patches, patch, grid):
    """For each pixel: in which patch it is, and where."""
    _agrees(patches, patch, grid)
    device = patches.device
    y = torch.arange(grid[0] * patch, device=device)[:, None]
    x = torch.arange(grid[1] * patch, device=device)
    number = (y // patch) * grid[1] + x // patch
    inside = (y % patch) * patch + x % patch
    pixels = patches.reshape(*patches.shape[:2], patch * patch, -1)[:, number, inside]  # (B, Hi, Wi, C)
    return pixels.movedim(-1, 1)


# -------------------------------------------------------------------------------------------------------------- positions


def _side(table, n_extra):
    side = round(math.sqrt(max(len(table) - n_extra, 0)))
    if side == 0 or side**2 != len(table) - n_extra:
        raise ValueError("no square")
    return side


@alternative("interpolate_position_embedding")
def always_interpolated(table, grid, *, n_extra=1):
    """The same grid is no special case: interpolation gives the same numbers."""
    side = _side(table, n_extra)
    extra, patches = table.split([n_extra, side**2])
    picture = patches.float() if patches.dtype in (torch.float16, torch.bfloat16) else patches
    picture = picture.T.reshape(1, -1, side, side)
    resized = F.interpolate(picture, size=tuple(grid), mode="bicubic")
    return torch.cat((extra, resized.squeeze(0).permute(1, 2, 0).flatten(0, 1).to(table.dtype)))


def _cubic(old, new, dtype, device):
    """Weights of a bicubic resize along an axis, (new, old)."""
    a = -0.75
    source = (torch.arange(new, dtype=torch.float64, device=device) + 0.5) * old / new - 0.5
    first = source.floor()
    matrix = torch.zeros(new, old, dtype=torch.float64, device=device)
    for step in range(-1, 3):
        d = (source - first - step).abs()
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        place = (first + step).clamp(0, old - 1).long()
        matrix = matrix.scatter_add(1, place[:, None], torch.where(d <= 1, near, far)[:, None])
    return matrix.to(dtype)


@alternative("interpolate_position_embedding")
def by_two_matrices(table, grid, *, n_extra=1):
    """Resizing is linear: a matrix for the rows, one for the columns."""
    side = _side(table, n_extra)
    wide = torch.float64 if table.dtype == torch.float64 else torch.float32
    picture = table[n_extra:].to(wide).reshape(side, side, -1)
    down, across = (_cubic(side, new, wide, table.device) for new in grid)
    resized = torch.einsum("ia,jb,abd->ijd", down, across, picture).flatten(0, 1)
    return torch.cat([table[:n_extra], resized.to(table.dtype)])


# -------------------------------------------------------------------------------------------------------------- the model


class _Parts(nn.Module):
    """The parts, as the docstring names them."""

    def __init__(
        self,
        image_size,
        patch,
        n_channels,
        n_classes,
        *,
        d_model,
        n_heads,
        d_ff,
        n_layers,
        dropout=0.0,
        pooling="class",
    ):
        super().__init__()
        side, rest = divmod(image_size, patch)
        if rest:
            raise ValueError("patch")
        if pooling not in {"class", "mean"}:
            raise ValueError("pooling")
        self.patch, self.pooling, self.p = patch, pooling, dropout
        self.patch_proj = nn.Linear(n_channels * patch**2, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        self.position_table = nn.Parameter(0.02 * torch.randn(side * side + 1, d_model))
        made = [
            EncoderLayer(d_model, n_heads, d_ff, dropout=dropout, pre_norm=True, activation="gelu")
            for _ in range(n_layers)
        ]
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def positions(self, images):
        rows, columns = images.shape[-2] // self.patch, images.shape[-1] // self.patch
        return always_interpolated(self.position_table, (rows, columns))


@alternative("VisionTransformer")
class PositionsBeforeJoining(_Parts):
    """Patches and class token get their positions before they are joined."""

    def forward(self, images):
        table = self.positions(images)
        patches = self.patch_proj(by_einsum(images, self.patch)) + table[1:]
        first = (self.class_token + table[0]).expand(len(images), 1, -1)
        x = F.dropout(torch.hstack([first, patches]), self.p, self.training)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x[:, 0]) if self.pooling == "class" else self.head(x[:, 1:].mean(1))


@alternative("VisionTransformer")
class HeadBeforeMean(_Parts):
    """The head is linear: the mean of its answers is its answer to the mean."""

    def forward(self, images):
        x = F.linear(by_einsum(images, self.patch), self.patch_proj.weight, self.patch_proj.bias)
        x = torch.cat([self.class_token.view(1, 1, -1).expand(x.size(0), -1, -1), x], 1)
        x = F.dropout(x + self.positions(images).unsqueeze(0), self.p, training=self.training)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return logits[:, 0] if self.pooling == "class" else logits[:, 1:].mean(1)


@alternative("VisionTransformer")
class DrawnInAnotherOrder(nn.Module):
    """The parts are made from the last to the first, so that every one gets other random numbers."""

    def __init__(
        self,
        image_size,
        patch,
        n_channels,
        n_classes,
        *,
        d_model,
        n_heads,
        d_ff,
        n_layers,
        dropout=0.0,
        pooling="class",
    ):
        super().__init__()
        if image_size % patch != 0 or pooling not in ("mean", "class"):
            raise ValueError("patch or pooling")
        self.side, self.mean = patch, pooling == "mean"
        self.head, self.norm = nn.Linear(d_model, n_classes), nn.LayerNorm(d_model)
        options = {"dropout": dropout, "pre_norm": True, "activation": "gelu"}
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers)])
        self.drop = nn.Dropout(dropout)
        self.position_table = nn.Parameter(torch.normal(0, 0.02, (1 + (image_size // patch) ** 2, d_model)))
        self.patch_proj = nn.Linear(patch**2 * n_channels, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        nn.init.normal_(self.class_token, std=0.02)

    def forward(self, images):
        x = self.patch_proj(by_split_and_stack(images, self.side))
        x = torch.cat([self.class_token.repeat(len(x), 1, 1), x], dim=1)
        grid = [length // self.side for length in images.shape[2:]]
        x = self.drop(x + by_two_matrices(self.position_table, grid))
        x = self.norm(nn.Sequential(*self.layers)(x))
        return self.head(x[:, 1:].mean(dim=1) if self.mean else x[:, 0])


Counts = namedtuple("Counts", "patch class_token positions layers norm head")


@alternative("vit_parameters")
def map_by_map(image_size, patch, n_channels, d_model, d_ff, n_layers, n_classes):
    """Each map by its sizes."""

    def linear(inputs, outputs):
        return (inputs + 1) * outputs

    layer = 4 * linear(d_model, d_model) + linear(d_model, d_ff) + linear(d_ff, d_model) + 4 * d_model
    head = linear(d_model, n_classes) if n_classes else 0
    side = image_size // patch
    first = linear(n_channels * patch**2, d_model)
    return Counts(first, d_model, d_model * (side * side + 1), n_layers * layer, 2 * d_model, head)


@alternative("vit_parameters")
def by_building(image_size, patch, n_channels, d_model, d_ff, n_layers, n_classes):
    """Modules are made on the meta device, and counted."""

    def count(*modules):
        return sum(parameter.numel() for module in modules for parameter in module.parameters())

    with torch.device("meta"):
        layer = EncoderLayer(d_model, 1, d_ff)
        return Counts(
            count(nn.Linear(patch * patch * n_channels, d_model)),
            d_model,
            count(nn.Embedding(1 + (image_size // patch) ** 2, d_model)),
            n_layers * count(layer),
            count(nn.LayerNorm(d_model)),
            0 if n_classes is None else count(nn.Linear(d_model, n_classes)),
        )


# ---------------------------------------------------------------------------------------------------------- looking near


def _permitted(q, window, shift):
    rows, columns = q.shape[2:4]
    if window < 1 or rows % window or columns % window:
        raise ValueError("window")
    if shift < 0 or shift >= window:
        raise ValueError("shift")
    return rows, columns


@alternative("window_attention")
def by_one_mask(q, k, v, window, *, shift=0, bias=None):
    """All pairs of places, of which the mask leaves those that share a window and have not come over an edge."""
    rows, columns = _permitted(q, window, shift)
    device, wide = q.device, torch.float64 if q.dtype == torch.float64 else torch.float32
    y = torch.arange(rows, device=device).repeat_interleave(columns)
    x = torch.arange(columns, device=device).repeat(rows)
    rolled_y, rolled_x = (y - shift) % rows, (x - shift) % columns
    name = torch.stack([rolled_y // window, rolled_x // window, (y < shift).long(), (x < shift).long()], dim=1)
    mask = (name[:, None] == name).all(-1)  # (N, N)
    scores = q.to(wide).flatten(2, 3) @ k.to(wide).flatten(2, 3).mT / q.shape[-1] ** 0.5
    if bias is not None:
        place = rolled_y % window * window + rolled_x % window
        scores = scores + bias.to(wide)[:, place[:, None], place]
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return (weights @ v.to(wide).flatten(2, 3)).unflatten(2, (rows, columns)).to(q.dtype)


@alternative("window_attention")
def by_einsum_over_windows(q, k, v, window, *, shift=0, bias=None):
    """Windows as axes of their own; regions are numbered and rolled with the rest."""
    rows, columns = _permitted(q, window, shift)
    high, broad = rows // window, columns // window
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32

    def cut(x):
        rolled = torch.roll(x, (-shift, -shift), (-3, -2))
        parts = rolled.unflatten(-3, (high, window)).unflatten(-2, (broad, window)).transpose(-4, -3)
        return parts.flatten(-3, -2)  # (..., Hg / M, Wg / M, M², D)

    region = torch.zeros(rows, columns, 1, device=q.device)
    region[:shift] += 1
    region[:, :shift] += 2
    names = cut(region)  # (Hg / M, Wg / M, M², 1)
    scores = torch.einsum("bhijqd,bhijkd->bhijqk", cut(q.to(wide)), cut(k.to(wide))) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias.to(wide)[None, :, None, None]
    weights = torch.where(names == names.mT, scores, -torch.inf).softmax(-1)
    heads = torch.einsum("bhijqk,bhijkd->bhijqd", weights, cut(v.to(wide)))
    cells = heads.unflatten(-2, (window, window)).transpose(3, 4)  # (B, H, Hg / M, M, Wg / M, M, Dv)
    return cells.reshape(*q.shape[:4], -1).roll((shift, shift), (2, 3)).to(q.dtype)


def _agreeing(x, q, prior):
    side = prior.shape[-1]
    if side % 2 == 0 or prior.shape != (q.shape[1], side, side) or x.shape[1] % q.shape[1]:
        raise ValueError("sides or groups")
    return side, side // 2, torch.float64 if x.dtype == torch.float64 else torch.float32


@alternative("local_relation")
def by_shifted_copies(x, q, k, prior):
    """A loop over the K² offsets."""
    side, half, wide = _agreeing(x, q, prior)
    rows, columns = x.shape[2:]
    x_pad, k_pad = (F.pad(part.to(wide), (half, half, half, half)) for part in (x, k))
    inside = F.pad(torch.ones(rows, columns, device=x.device), (half, half, half, half)).bool()
    scores, values = [], []
    for dy in range(side):
        for dx in range(side):
            seen = (..., slice(dy, dy + rows), slice(dx, dx + columns))
            score = prior[:, dy, dx].to(wide)[:, None, None] - (q.to(wide) - k_pad[seen]) ** 2
            scores.append(score.masked_fill(~inside[seen], -torch.inf))
            values.append(x_pad[seen])
    weights = torch.stack(scores).softmax(0).repeat_interleave(x.shape[1] // q.shape[1], dim=2)
    return (weights * torch.stack(values)).sum(0).to(x.dtype)


@alternative("local_relation")
def by_all_pairs(x, q, k, prior):
    """Every place looks at every place; those too far away are masked."""
    side, half, wide = _agreeing(x, q, prior)
    rows, columns = x.shape[2:]
    y = torch.arange(rows, device=x.device).repeat_interleave(columns)
    z = torch.arange(columns, device=x.device).repeat(rows)
    dy, dx = y[None] - y[:, None], z[None] - z[:, None]  # (N, N): neighbour minus place
    near = (dy.abs() <= half) & (dx.abs() <= half)
    worth = prior.to(wide)[:, (dy + half).clamp(0, side - 1), (dx + half).clamp(0, side - 1)]
    alike = -((q.to(wide).flatten(2)[..., None] - k.to(wide).flatten(2)[:, :, None]) ** 2)
    weights = (alike + worth).masked_fill(~near, -torch.inf).softmax(-1)  # (B, C/m, N, N)
    grouped = x.to(wide).flatten(2).unflatten(1, (q.shape[1], -1))  # (B, C/m, m, N)
    return torch.einsum("bgpn,bgmn->bgmp", weights, grouped).reshape(x.shape).to(x.dtype)
