"""The second half of chapter 11, solved in other ways than the reference: right, so each must get all the points."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfcourse.beyond import assign
from tfcourse.layers import FeedForward
from tfcourse.multihead import MultiHeadAttention

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ------------------------------------------------------------------------------------------------------ attention on maps


class _Parts(nn.Module):
    """The four convolutions and gamma."""

    def __init__(self, channels, inner=None):
        super().__init__()
        if inner is None:
            inner = channels // 8 or 1
        self.gamma = nn.Parameter(torch.tensor(0.0))
        self.o_proj = nn.Conv2d(inner, channels, kernel_size=1)
        for name in ("v", "k", "q"):
            setattr(self, f"{name}_proj", nn.Conv2d(channels, inner, kernel_size=1))


@alternative("SelfAttention2d")
class PlacesLast(_Parts):
    """Rows of places, as a Transformer has them."""

    def forward(self, x):
        b, _, high, wide = x.shape
        q, k, v = (p(x).flatten(2).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        read = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2), v)
        return x + self.gamma * self.o_proj(read.transpose(1, 2).reshape(b, -1, high, wide))


@alternative("SelfAttention2d")
class ByEinsum(_Parts):
    """The axes of the map are kept apart, and gamma has one axis, as in SAGAN's published code."""

    def __init__(self, channels, inner=None):
        super().__init__(channels, inner)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        scores = torch.einsum("bcij,bckl->bijkl", q, k)
        weights = scores.flatten(3).softmax(dim=-1).view_as(scores)
        return self.gamma * self.o_proj(torch.einsum("bijkl,bckl->bcij", weights, v)) + x


@alternative("SelfAttention2d")
class AsLinearMaps(_Parts):
    """A convolution of 1 x 1 is a linear map of the channels."""

    def forward(self, x):
        places = x.permute(0, 2, 3, 1).flatten(1, 2)
        q, k, v = (F.linear(places, p.weight[:, :, 0, 0], p.bias) for p in (self.q_proj, self.k_proj, self.v_proj))
        read = F.linear((q @ k.mT).softmax(-1) @ v, self.o_proj.weight[:, :, 0, 0], self.o_proj.bias)
        return x + self.gamma * read.mT.reshape(x.shape)


@alternative("SelfAttention2d")
class WithAnExplicitSoftmax(_Parts):
    """The softmax is written out, and gamma has been put into the output's map."""

    def forward(self, x):
        q, k, v = (p(x).flatten(2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.matmul(q.transpose(-1, -2), k)
        weights = (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()
        read = (weights @ v.transpose(-1, -2)).transpose(-1, -2).reshape(x.shape[0], v.shape[1], *x.shape[-2:])
        return x + F.conv2d(read, self.gamma * self.o_proj.weight, self.gamma * self.o_proj.bias)


# ------------------------------------------------------------------------------------------------------------------ boxes


def _refuse(a, b):
    if a.shape[-1] != 4 or b.shape[-1] != 4:
        raise ValueError("a box has four numbers")


def _ratio(part, whole):
    return torch.where(whole > 0, part / torch.where(whole > 0, whole, torch.ones_like(whole)), torch.zeros_like(part))


@alternative("generalized_iou")
def by_four_separate_sides(a, b):
    """Left, top, right and bottom, one by one."""
    _refuse(a, b)
    ax, ay, aw, ah = (part[:, None] for part in a.unbind(-1))
    bx, by, bw, bh = b.unbind(-1)
    wide = torch.min(ax + aw / 2, bx + bw / 2) - torch.max(ax - aw / 2, bx - bw / 2)
    high = torch.min(ay + ah / 2, by + bh / 2) - torch.max(ay - ah / 2, by - bh / 2)
    shared = F.relu(wide) * F.relu(high)
    union = aw * ah + bw * bh - shared
    hull_wide = torch.max(ax + aw / 2, bx + bw / 2) - torch.min(ax - aw / 2, bx - bw / 2)
    hull_high = torch.max(ay + ah / 2, by + bh / 2) - torch.min(ay - ah / 2, by - bh / 2)
    hull = hull_wide * hull_high
    return _ratio(shared, union) - _ratio(hull - union, hull)


@alternative("generalized_iou")
def by_repeated_pairs(a, b):
    """All pairs side by side, flat."""
    _refuse(a, b)
    one = a.repeat_interleave(b.shape[0], dim=0)
    two = b.repeat(a.shape[0], 1)
    corners = [
        torch.cat([boxes[:, :2] - boxes[:, 2:] * 0.5, boxes[:, :2] + boxes[:, 2:] * 0.5], dim=1) for boxes in (one, two)
    ]
    sides = torch.min(corners[0][:, 2:], corners[1][:, 2:]) - torch.max(corners[0][:, :2], corners[1][:, :2])
    shared = sides.clamp_min(0).prod(1)
    union = one[:, 2] * one[:, 3] + two[:, 2] * two[:, 3] - shared
    low, high = torch.stack(corners).amin(0)[:, :2], torch.stack(corners).amax(0)[:, 2:]
    hull = (high - low).prod(1)
    return (_ratio(shared, union) - _ratio(hull - union, hull)).view(a.shape[0], b.shape[0])


@alternative("matching_cost")
def by_cdist(logits, boxes, labels, targets, *, class_weight=1.0, l1_weight=5.0, iou_weight=2.0):
    """The distance is one that PyTorch has."""
    likely = F.softmax(logits, -1).index_select(1, labels)
    return (
        l1_weight * torch.cdist(boxes, targets, p=1)
        - class_weight * likely
        - iou_weight * by_repeated_pairs(boxes, targets)
    )


@alternative("matching_cost")
def by_gather(logits, boxes, labels, targets, *, class_weight=1.0, l1_weight=5.0, iou_weight=2.0):
    """Logits are looked up before they are divided."""
    looked_up = logits.gather(1, labels.expand(logits.shape[0], -1))
    likely = torch.exp(looked_up - torch.logsumexp(logits, dim=1, keepdim=True))
    distance = sum((boxes[:, i, None] - targets[None, :, i]).abs() for i in range(4))
    overlap = by_four_separate_sides(boxes, targets)
    return torch.stack([-class_weight * likely, l1_weight * distance, -iou_weight * overlap]).sum(dim=0)


def _pairs(boxes, targets):
    return torch.stack(
        [by_repeated_pairs(one[None], other[None])[0, 0] for one, other in zip(boxes, targets, strict=True)]
    )


@alternative("hungarian_matching_loss")
def by_indices(logits, boxes, labels, targets, *, no_object_weight=0.1, l1_weight=5.0, iou_weight=2.0):
    """Gather all matched pairs of the batch first."""
    n_pictures, n, kinds = *logits.shape[:2], logits.shape[2] - 1
    picture, chosen = [], []
    for number in range(n_pictures):
        cost = by_cdist(
            logits[number].detach(),
            boxes[number].detach(),
            labels[number],
            targets[number],
            l1_weight=l1_weight,
            iou_weight=iou_weight,
        )
        chosen.append(assign(cost))
        picture.append(torch.full_like(chosen[-1], number))
    where = (torch.cat(picture), torch.cat(chosen))
    kind, target = torch.cat(list(labels)), torch.cat(list(targets))
    wanted = torch.full((n_pictures, n), kinds, device=logits.device)
    wanted[where] = kind
    log_p = F.log_softmax(logits, dim=-1).gather(2, wanted[..., None])[..., 0]
    weights = torch.where(wanted == kinds, no_object_weight, 1.0).to(logits.dtype)
    loss = -(weights * log_p).sum() / weights.sum()
    matched = boxes[where]
    count = max(len(kind), 1)
    if len(kind):
        loss = loss + iou_weight * (1 - _pairs(matched, target)).sum() / count
    return loss + l1_weight * (matched - target).abs().sum() / count


@alternative("hungarian_matching_loss")
def by_trying_all(logits, boxes, labels, targets, *, no_object_weight=0.1, l1_weight=5.0, iou_weight=2.0):
    """Small pictures: every assignment is tried."""
    last = logits.shape[-1] - 1
    total_objects = max(1, sum(label.numel() for label in labels))
    terms, weights = [], []
    of_boxes = logits.new_zeros(())
    for scores, guess, kind, target in zip(logits, boxes, labels, targets, strict=True):
        objects = kind.numel()
        with torch.no_grad():
            cost = by_gather(scores, guess, kind, target, l1_weight=l1_weight, iou_weight=iou_weight)
        best = list(range(objects))
        if cost.device.type != "meta" and objects:
            columns = cost.T.tolist()
            ways = itertools.permutations(range(len(guess)), objects)
            best = list(min(ways, key=lambda way: sum(column[row] for column, row in zip(columns, way, strict=True))))
        wanted = torch.full((len(guess),), last, device=scores.device)
        wanted[best] = kind
        weight = torch.ones(len(guess), device=scores.device, dtype=scores.dtype)
        weight[wanted == last] = no_object_weight
        terms.append(weight * F.cross_entropy(scores, wanted, reduction="none"))
        weights.append(weight)
        if objects:
            of_boxes = of_boxes + l1_weight * (guess[best] - target).abs().sum()
            of_boxes = of_boxes + iou_weight * (objects - _pairs(guess[best], target).sum())
    return torch.cat(terms).sum() / torch.cat(weights).sum() + of_boxes / total_objects


# ------------------------------------------------------------------------------------------------------------ tables


class _Columns(nn.Module):
    """The parameters of a tokenizer, drawn in another order."""

    def __init__(self, n_numerical, cardinalities, d_token):
        super().__init__()
        bound = 1 / math.sqrt(d_token)

        def drawn(*shape):
            return nn.Parameter((2 * torch.rand(*shape) - 1) * bound)

        self.class_token = drawn(d_token)
        self.category_bias = drawn(len(cardinalities), d_token)
        self.weight = drawn(n_numerical, d_token)
        self.bias = drawn(n_numerical, d_token)
        self.embedding = nn.Embedding(sum(cardinalities), d_token)
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        starts = [sum(cardinalities[:j]) for j in range(len(cardinalities))]
        self.register_buffer("offsets", torch.tensor(starts, dtype=torch.long))


@alternative("FeatureTokenizer")
class ByEinsumOfColumns(_Columns):
    """An outer product by name."""

    def forward(self, numerical, categorical):
        numbers = torch.einsum("bj,jd->bjd", numerical, self.weight)
        rows = self.embedding.weight[categorical + self.offsets]
        first = self.class_token.repeat(numerical.shape[0], 1, 1)
        return torch.hstack([first, numbers + self.bias, rows + self.category_bias])


@alternative("FeatureTokenizer")
class WithAPlaceToWrite(_Columns):
    """The tokens are written into their places."""

    def forward(self, numerical, categorical):
        b, j = numerical.shape
        tokens = numerical.new_empty(b, 1 + j + categorical.shape[1], self.class_token.shape[0])
        tokens[:, 0] = self.class_token
        tokens[:, 1 : 1 + j] = torch.addcmul(self.bias, numerical.unsqueeze(2), self.weight)
        tokens[:, 1 + j :] = self.embedding(categorical + self.offsets) + self.category_bias
        return tokens


@alternative("FeatureTokenizer")
class WithOneHotRows(_Columns):
    """A row is picked by a product with a one."""

    def forward(self, numerical, categorical):
        rows = categorical + self.offsets
        picked = (rows[..., None] == torch.arange(self.embedding.num_embeddings, device=rows.device)).to(
            self.weight.dtype
        )
        categories = picked @ self.embedding.weight + self.category_bias
        numbers = self.weight * numerical[:, :, None] + self.bias
        return torch.cat(
            (self.class_token.expand(numerical.size(0), 1, self.class_token.size(0)), numbers, categories), 1
        )


# ------------------------------------------------------------------------------------------------------------ two streams


class _Streams(nn.Module):
    """The parts of both streams, made in a loop."""

    def __init__(self, d_model, n_heads, d_ff, *, dropout=0.0):
        super().__init__()
        for stream in ("image", "text"):
            setattr(self, f"{stream}_feed_forward", FeedForward(d_model, d_ff, activation="gelu"))
            setattr(self, f"{stream}_cross_attention", MultiHeadAttention(d_model, n_heads))
            for part in ("cross_attention", "feed_forward"):
                setattr(self, f"{stream}_{part}_norm", nn.LayerNorm(d_model))
        self.dropout = nn.Dropout(dropout)


@alternative("CoAttentionLayer")
class OneStreamAfterTheOther(_Streams):
    """A method for a stream."""

    def _stream(self, name, own, other, mask):
        said = getattr(self, f"{name}_cross_attention")(own, other, mask)
        own = getattr(self, f"{name}_cross_attention_norm")(own + self.dropout(said))
        thought = getattr(self, f"{name}_feed_forward")(own)
        return getattr(self, f"{name}_feed_forward_norm")(own + self.dropout(thought))

    def forward(self, text, image, text_mask=None, image_mask=None):
        return self._stream("text", text, image, image_mask), self._stream("image", image, text, text_mask)


@alternative("CoAttentionLayer")
class WithFourDropouts(_Streams):
    """A dropout for each sublayer."""

    def __init__(self, d_model, n_heads, d_ff, *, dropout=0.0):
        super().__init__(d_model, n_heads, d_ff, dropout=dropout)
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(4))

    def forward(self, text, image, text_mask=None, image_mask=None):
        read = self.drops[0](self.text_cross_attention(text, image, image_mask))
        seen = self.drops[1](self.image_cross_attention(image, text, text_mask))
        text, image = self.text_cross_attention_norm(read + text), self.image_cross_attention_norm(seen + image)
        text = self.text_feed_forward_norm(self.drops[2](self.text_feed_forward(text)) + text)
        return text, self.image_feed_forward_norm(self.drops[3](self.image_feed_forward(image)) + image)


@alternative("CoAttentionLayer")
class WithSublayersAsFunctions(_Streams):
    """A sublayer is a function that is wrapped."""

    def forward(self, text, image, text_mask=None, image_mask=None):
        def wrapped(x, sublayer, norm):
            return norm(x + self.dropout(sublayer(x)))

        after_text = wrapped(
            text, lambda x: self.text_cross_attention(x, image, image_mask), self.text_cross_attention_norm
        )
        after_image = wrapped(
            image, lambda x: self.image_cross_attention(x, text, text_mask), self.image_cross_attention_norm
        )
        return (
            wrapped(after_text, self.text_feed_forward, self.text_feed_forward_norm),
            wrapped(after_image, self.image_feed_forward, self.image_feed_forward_norm),
        )
