"""Transformers for feature maps, sets of objects, table rows and image-text pairs.

Boolean masks are True where a query may attend. A box is (centre x, centre y, width,
height), relative to the image size.

Shapes: B batch, T text length, S regions or positions, C channels, Hg and Wg of a grid,
N predictions per image, O objects in it. K is the number of object classes, J the
number of table columns, D model width, H heads, F feed-forward width.
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
    """Self-attention over all positions of a feature map, for convolutional networks.

    Its parts are four 1 x 1 convolutions, `q_proj`, `k_proj` and `v_proj` (C -> inner)
    and `o_proj` (inner -> C), and the scalar parameter `gamma` of shape (). The output
    is x + gamma · o, and scores are not scaled. `gamma` is initially 0, so the
    attention has no effect at first.

    Args:
        channels: C.
        inner: Width of queries, keys and values; None means C / 8, rounded down, but at
            least 1.

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
        """Attend from every position to all positions.

        Args:
            x: Features, (B, C, Hg, Wg).

        Returns:
            Features, (B, C, Hg, Wg).
        """
        q, k, v = (project(x).flatten(2) for project in (self.q_proj, self.k_proj, self.v_proj))  # (B, inner, N)
        weights = torch.softmax(q.mT @ k, dim=-1)  # (B, N, N)
        attended = (v @ weights.mT).reshape(len(x), -1, *x.shape[2:])  # (B, inner, Hg, Wg)
        return x + self.gamma * self.o_proj(attended)


def generalized_iou(a: Tensor, b: Tensor) -> Tensor:
    """Compute the generalised intersection over union (IoU) of all pairs of boxes.

    U is the area of the union and H the area of the smallest box around both. The
    result is intersection / U - (H - U) / H: 1 for equal boxes, near -1 for small boxes
    that are far apart. A quotient with divisor zero is zero, and gradients stay finite.

    Args:
        a: Boxes, (N, 4), as centre x, centre y, width and height.
        b: Boxes, (O, 4).

    Returns:
        Values from -1 to 1, (N, O); exactly -1 only if neither box has an area.

    Raises:
        ValueError: If a box does not have four numbers.

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
    """Divide, with 0 where the divisor is 0, and without NaN in gradients."""
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
    """Compute the cost of matching each prediction to each object in one image.

    The cost is -class_weight · p(label) + l1_weight · d - iou_weight · generalised IoU,
    where d is the sum of the absolute differences of the four numbers. The
    probabilities are a softmax over all K + 1 classes, the last of which is "no
    object".

    Args:
        logits: (N, K + 1).
        boxes: Predicted boxes, (N, 4).
        labels: Classes of the objects, integers (O,).
        targets: Their boxes, (O, 4).
        class_weight: Weight of the class probability.
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
    """Assign a different prediction to every object at the least total cost.

    Args:
        cost: Costs, (N, O), with O at most N; no NaN.

    Returns:
        The prediction of each object, integers (O,), on the device of `cost`. On the
        meta device, which has no values, only the shape is meaningful.

    Raises:
        ValueError: If there are more objects than predictions.

    Source:
        Kuhn 1955, The Hungarian Method for the Assignment Problem, here by shortest
        augmenting paths.
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
    """Compute the loss of a detector that predicts a set: match, then compare.

    In each image the predictions are matched to the objects at the least
    `matching_cost` (by `assign`, without gradients). The loss is the sum of a class
    loss and a box loss.

    The class loss is the weighted mean of the cross-entropies of all predictions. The
    target of a matched prediction is the class of its object, with weight 1; the target
    of any other is "no object", with weight `no_object_weight`. The mean divides by the
    sum of the weights.

    The box loss is the sum over all matched pairs of l1_weight · d + iou_weight · (1 -
    generalised IoU), where d is the sum of the absolute differences of the four
    numbers. It is divided by the number of objects in the batch, or by 1 in a batch
    without objects.

    Args:
        logits: (B, N, K + 1); the last class is "no object".
        boxes: Predicted boxes, (B, N, 4).
        labels: Per image the classes of its objects, integers (O,); may be empty.
        targets: Per image the boxes of its objects, (O, 4).
        no_object_weight: Weight of predictions without an object.
        l1_weight: Weight of the distance, also in the matching.
        iou_weight: Weight of the generalised IoU, also in the matching.

    Returns:
        A scalar, ().

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
    """Turn the columns of a table row into tokens, with a class token first.

    The token of a number is the number times the column's vector plus the column's
    bias. The token of a category is its embedding plus the column's bias. The parts
    are:

    - the parameters `weight` and `bias` (J_num, D), one row per numerical column;
    - `embedding`, one `nn.Embedding` with the rows of all categories, column by column;
    - the parameters `category_bias` (J_cat, D) and `class_token` (D,);
    - the buffer `offsets` (J_cat,), the first embedding row of each categorical column.

    All parameters are drawn uniformly from -1 / sqrt(D) to 1 / sqrt(D).

    Args:
        n_numerical: Numerical columns J_num.
        cardinalities: Number of categories of each categorical column.
        d_token: Width D of a token.

    Source:
        Gorishniy et al. 2021, Revisiting Deep Learning Models for Tabular Data, section
        3.3.
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
        """Compute the tokens of a batch of rows.

        Args:
            numerical: Numbers, (B, J_num).
            categorical: Categories, integers (B, J_cat), counted from 0 in each column.

        Returns:
            Tokens, (B, 1 + J_num + J_cat, D): the class token, then numbers, then
            categories.
        """
        numbers = numerical[..., None] * self.weight + self.bias  # (B, J_num, D)
        categories = self.embedding(categorical + self.offsets) + self.category_bias  # (B, J_cat, D)
        first = self.class_token.expand(len(numerical), 1, -1)  # (B, 1, D)
        return torch.cat([first, numbers, categories], dim=1)


class CoAttentionLayer(nn.Module):
    """Cross-attention in both directions between a text stream and an image stream.

    Each stream has its own sublayers: a `MultiHeadAttention` (`text_cross_attention`,
    `image_cross_attention`) and a `FeedForward` with the exact GELU
    (`text_feed_forward`, `image_feed_forward`). After each residual sum comes an
    `nn.LayerNorm` (`text_cross_attention_norm`, `text_feed_forward_norm`, and the same
    for `image`). Both streams attend to the other stream's input. In training mode,
    dropout is applied to the outputs of the sublayers.

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
        """Apply cross-attention and the feed-forward network to both streams.

        Args:
            text: Text, (B, T, D).
            image: Regions or patches, (B, S, D).
            text_mask: Boolean, True at real text tokens, (B, 1, T); None means that all
                are real.
            image_mask: The same for the image, (B, 1, S).

        Returns:
            Text, (B, T, D), and image, (B, S, D).
        """
        read = self.text_cross_attention(text, image, image_mask)
        seen = self.image_cross_attention(image, text, text_mask)
        text = self.text_cross_attention_norm(text + self.dropout(read))
        image = self.image_cross_attention_norm(image + self.dropout(seen))
        text = self.text_feed_forward_norm(text + self.dropout(self.text_feed_forward(text)))
        image = self.image_feed_forward_norm(image + self.dropout(self.image_feed_forward(image)))
        return text, image
