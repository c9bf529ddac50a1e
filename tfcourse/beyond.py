"""Transformers beyond text and patches: attention on a map of features, sets of objects, columns of a table, two streams.

A boolean mask is True where a query may attend. A box is (centre x, centre y, width, height), in shares of the picture.

Shapes: B batch, T texts' length, S regions or places, C channels, Hg and Wg of a grid, N predictions for a picture, O objects in it, K
kinds of objects, J columns of a table, D model width, H heads, F feed-forward width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.layers import FeedForward
from tfcourse.multihead import MultiHeadAttention

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "SelfAttention2d",
    "generalized_iou",
    "matching_cost",
    "assign",
    "hungarian_matching_loss",
    "FeatureTokenizer",
    "CoAttentionLayer",
]


class SelfAttention2d(nn.Module):
    """Attention of every place of a map of features to all of its places, which can be put into a network of convolutions.

    Its parts are four 1 x 1 convolutions, `q_proj`, `k_proj` and `v_proj` (C -> inner) and `o_proj` (inner -> C), and the parameter
    `gamma`, a single number of shape () that begins at 0: at the start the network is the one without attention. The output is
    x + gamma · o; scores are not scaled.

    Args:
        channels: C.
        inner: Width of queries, keys and values; None means C / 8, rounded down, but at least 1.

    Source:
        Zhang et al. 2019, Self-Attention Generative Adversarial Networks, section 3.
    """

    def __init__(self, channels: int, inner: int | None = None) -> None:
        super().__init__()
        width = max(1, channels // 8) if inner is None else inner
        self.q_proj = nn.Conv2d(channels, width, 1)
        self.k_proj = nn.Conv2d(channels, width, 1)
        self.v_proj = nn.Conv2d(channels, width, 1)
        self.o_proj = nn.Conv2d(width, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Let every place look at all places.

        Args:
            x: Features, (B, C, Hg, Wg).

        Returns:
            Features, (B, C, Hg, Wg).
        """
        q, k, v = (project(x).flatten(2) for project in (self.q_proj, self.k_proj, self.v_proj))  # (B, inner, N)
        weights = torch.softmax(q.mT @ k, dim=-1)  # (B, N, N)
        attended = (v @ weights.mT).reshape(len(x), -1, *x.shape[2:])  # (B, inner, Hg, Wg)
        output: Tensor = x + self.gamma * self.o_proj(attended)
        return output


def generalized_iou(a: Tensor, b: Tensor) -> Tensor:
    """How well boxes agree: intersection over union, less what their common hull wastes.

    With the union U and the smallest box H around both, it is intersection / U - (H - U) / H: 1 for equal boxes, near -1 for small
    ones far apart. Where a divisor is zero, the quotient counts as zero, and gradients stay finite.

    Args:
        a: Boxes, (N, 4), as centre x, centre y, width and height.
        b: Boxes, (O, 4).

    Returns:
        A number from -1 to 1 for every pair, (N, O); -1 itself only where neither box has an area.

    Raises:
        ValueError: If the boxes do not have four numbers each.

    Source:
        Rezatofighi et al. 2019, Generalized Intersection over Union, algorithm 1.
    """
    if a.shape[-1] != 4 or b.shape[-1] != 4:
        raise ValueError(f"a box has four numbers, got {tuple(a.shape)} and {tuple(b.shape)}")
    low_a, high_a = (a[:, None, :2] - a[:, None, 2:] / 2), (a[:, None, :2] + a[:, None, 2:] / 2)  # (N, 1, 2)
    low_b, high_b = b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2  # (O, 2)
    shared = (torch.minimum(high_a, high_b) - torch.maximum(low_a, low_b)).clamp(min=0).prod(dim=-1)  # (N, O)
    union = a[:, 2:].prod(dim=-1)[:, None] + b[:, 2:].prod(dim=-1) - shared
    hull = (torch.maximum(high_a, high_b) - torch.minimum(low_a, low_b)).prod(dim=-1)
    return _share(shared, union) - _share(hull - union, hull)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    """Divide, with zero for 0 / 0, and without NaN in gradients."""
    return part / whole.masked_fill(whole <= 0, torch.inf)


def matching_cost(
    logits: Tensor,
    boxes: Tensor,
    labels: Tensor,
    targets: Tensor,
    *,
    class_weight: float = 1.0,
    l1_weight: float = 5.0,
    iou_weight: float = 2.0,
) -> Tensor:
    """What it costs to hold each prediction responsible for each object of one picture.

    The cost is -class_weight · p(label) + l1_weight · d - iou_weight · generalised IoU, where d is the sum of the absolute differences
    of the four numbers. The probabilities are a softmax over all K + 1 kinds, of which the last is "no object".

    Args:
        logits: (N, K + 1).
        boxes: Predicted boxes, (N, 4).
        labels: Kinds of the objects, integers (O,).
        targets: Their boxes, (O, 4).
        class_weight: Weight of the kind.
        l1_weight: Weight of the distance.
        iou_weight: Weight of the generalised IoU.

    Returns:
        Costs, (N, O).

    Source:
        Carion et al. 2020, End-to-End Object Detection with Transformers, section 3.1.
    """
    probability = torch.softmax(logits, dim=-1)[:, labels]  # (N, O)
    distance = (boxes[:, None] - targets).abs().sum(dim=-1)  # (N, O)
    return -class_weight * probability + l1_weight * distance - iou_weight * generalized_iou(boxes, targets)


def assign(cost: Tensor) -> Tensor:
    """The cheapest way to give every object a prediction of its own: the Hungarian algorithm.

    Args:
        cost: Costs, (N, O), with O at most N; no NaN.

    Returns:
        For each object its prediction, integers (O,), on the device of `cost`; on the meta device, which has no numbers, the shape alone.

    Raises:
        ValueError: If there are more objects than predictions.

    Source:
        Kuhn 1955, The Hungarian Method for the Assignment Problem, by shortest augmenting paths.
    """
    n, m = cost.shape
    if m > n:
        raise ValueError(f"{m} objects cannot each have one of {n} predictions")
    if cost.is_meta:
        return torch.empty(m, dtype=torch.long, device=cost.device)
    rows = cost.detach().mT.tolist()  # Objects ask for predictions: m lists of n numbers.
    u, v = [0.0] * (m + 1), [0.0] * (n + 1)  # Prices of objects and predictions; number 0 stands for none.
    owner = [0] * (n + 1)
    for task in range(1, m + 1):
        owner[0], column = task, 0
        least, before, done = [float("inf")] * (n + 1), [0] * (n + 1), [False] * (n + 1)
        while owner[column]:
            done[column] = True
            row, step, following = owner[column], float("inf"), 0
            for j in range(1, n + 1):
                if not done[j]:
                    price = rows[row - 1][j - 1] - u[row] - v[j]
                    if price < least[j]:
                        least[j], before[j] = price, column
                    if least[j] < step:
                        step, following = least[j], j
            for j in range(n + 1):
                if done[j]:
                    u[owner[j]], v[j] = u[owner[j]] + step, v[j] - step
                else:
                    least[j] -= step
            column = following
        while column:
            owner[column], column = owner[before[column]], before[column]
    prediction = {task: j - 1 for j, task in enumerate(owner) if j and task}
    return torch.tensor([prediction[task] for task in range(1, m + 1)], dtype=torch.long, device=cost.device)


def hungarian_matching_loss(
    logits: Tensor,
    boxes: Tensor,
    labels: Sequence[Tensor],
    targets: Sequence[Tensor],
    *,
    no_object_weight: float = 0.1,
    l1_weight: float = 5.0,
    iou_weight: float = 2.0,
) -> Tensor:
    """The loss of a detector that says a set: match first, then compare.

    For each picture the predictions are matched with the objects at the least `matching_cost` (by `assign`, without gradients). The
    loss is a sum of two parts. The first is a weighted mean of the cross-entropies of all predictions, whose target is the kind of
    their object or "no object" with the weight `no_object_weight` (others have weight 1; the mean divides by the sum of the weights).
    The second is the sum over all matched pairs of l1_weight · d + iou_weight · (1 - generalised IoU), with d the sum of the absolute
    differences of the four numbers, divided by the number of objects in the batch, which counts as at least 1.

    Args:
        logits: (B, N, K + 1), the last for "no object".
        boxes: Predicted boxes, (B, N, 4).
        labels: For each picture the kinds of its objects, integers (O,); may be empty.
        targets: For each picture their boxes, (O, 4).
        no_object_weight: Weight of the predictions without an object.
        l1_weight: Weight of the distance, in the matching too.
        iou_weight: Weight of the generalised IoU, in the matching too.

    Returns:
        A number, ().

    Source:
        Carion et al. 2020, section 3.1.
    """
    kinds = logits.shape[-1] - 1
    wanted = torch.full(logits.shape[:2], kinds, device=logits.device)  # (B, N)
    distance, waste = boxes.new_zeros(()), boxes.new_zeros(())
    for number, (kind, target) in enumerate(zip(labels, targets, strict=True)):
        with torch.no_grad():
            cost = matching_cost(
                logits[number], boxes[number], kind, target, l1_weight=l1_weight, iou_weight=iou_weight
            )
            chosen = assign(cost)  # (O,)
        wanted[number, chosen] = kind
        distance = distance + (boxes[number, chosen] - target).abs().sum()
        waste = waste + (1 - generalized_iou(boxes[number, chosen], target).diagonal()).sum()
    weight = logits.new_ones(kinds + 1)
    weight[kinds] = no_object_weight
    classes = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), weight)
    objects = max(1, sum(len(kind) for kind in labels))
    return classes + (l1_weight * distance + iou_weight * waste) / objects


class FeatureTokenizer(nn.Module):
    """Make tokens of a row of a table: a number times a vector plus a bias, a category as a row of an embedding, a class token in front.

    Its parts are the parameters `weight` and `bias` (J_num, D), one row for each numerical column; `embedding`, one `nn.Embedding`
    with the rows of all categories, column by column; the parameter `category_bias` (J_cat, D); the parameter `class_token` (D,); and
    the buffer `offsets` (J_cat,), the first row of each categorical column. All parameters are drawn evenly from -1 / sqrt(D) to 1 /
    sqrt(D).

    Args:
        n_numerical: Numerical columns J_num.
        cardinalities: Number of categories of each categorical column.
        d_token: Width D of a token.

    Source:
        Gorishniy et al. 2021, Revisiting Deep Learning Models for Tabular Data, section 3.3.
    """

    offsets: Tensor

    def __init__(self, n_numerical: int, cardinalities: Sequence[int], d_token: int) -> None:
        super().__init__()
        sizes = torch.tensor([0, *cardinalities])
        self.weight = nn.Parameter(torch.empty(n_numerical, d_token))
        self.bias = nn.Parameter(torch.empty(n_numerical, d_token))
        self.embedding = nn.Embedding(sum(cardinalities), d_token)
        self.category_bias = nn.Parameter(torch.empty(len(cardinalities), d_token))
        self.class_token = nn.Parameter(torch.empty(d_token))
        self.register_buffer("offsets", sizes.cumsum(0)[:-1])
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(d_token**-0.5), d_token**-0.5)

    def forward(self, numerical: Tensor, categorical: Tensor) -> Tensor:
        """Make the tokens of some rows.

        Args:
            numerical: Numbers, (B, J_num).
            categorical: Categories, integers (B, J_cat), counted from 0 in each column.

        Returns:
            Tokens, (B, 1 + J_num + J_cat, D): the class token, then numbers, then categories.
        """
        numbers = numerical[..., None] * self.weight + self.bias  # (B, J_num, D)
        categories = self.embedding(categorical + self.offsets) + self.category_bias  # (B, J_cat, D)
        first = self.class_token.expand(len(numerical), 1, -1)  # (B, 1, D)
        return torch.cat([first, numbers, categories], dim=1)


class CoAttentionLayer(nn.Module):
    """Two streams that read each other: text asks the picture, and the picture asks the text, each with weights of its own.

    For each stream there are a `MultiHeadAttention`, `text_cross_attention` and `image_cross_attention`, and a `FeedForward` with the
    exact GELU, `text_feed_forward` and `image_feed_forward`; behind each sum stands an `nn.LayerNorm`, `text_cross_attention_norm`,
    `text_feed_forward_norm` and the same for `image`. Both streams attend to what the other was on its way in. While training, dropout
    falls on what the sublayers say.

    Args:
        d_model: Width D of both streams.
        n_heads: Heads H; divides D.
        d_ff: Feed-forward width F.
        dropout: Probability of dropout.

    Source:
        Lu et al. 2019, ViLBERT, section 3.1.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.text_cross_attention = MultiHeadAttention(d_model, n_heads)
        self.image_cross_attention = MultiHeadAttention(d_model, n_heads)
        self.text_cross_attention_norm = nn.LayerNorm(d_model)
        self.image_cross_attention_norm = nn.LayerNorm(d_model)
        self.text_feed_forward = FeedForward(d_model, d_ff, activation="gelu")
        self.image_feed_forward = FeedForward(d_model, d_ff, activation="gelu")
        self.text_feed_forward_norm = nn.LayerNorm(d_model)
        self.image_feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, text: Tensor, image: Tensor, text_mask: Tensor | None = None, image_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Let both streams read each other, and think.

        Args:
            text: Text, (B, T, D).
            image: Regions or patches, (B, S, D).
            text_mask: Boolean, True where there is text, (B, 1, T); None means everywhere.
            image_mask: The same for the picture, (B, 1, S).

        Returns:
            Text, (B, T, D), and picture, (B, S, D).
        """
        read = self.text_cross_attention(text, image, image_mask)
        seen = self.image_cross_attention(image, text, text_mask)
        text = self.text_cross_attention_norm(text + self.dropout(read))
        image = self.image_cross_attention_norm(image + self.dropout(seen))
        text = self.text_feed_forward_norm(text + self.dropout(self.text_feed_forward(text)))
        image = self.image_feed_forward_norm(image + self.dropout(self.image_feed_forward(image)))
        return text, image
