"""Patches of digits, sets of boxes, columns of tables, each against what was there before: what lesson 11 reads.

    python experiments/vision.py --record tfcourse/recorded/vision.json

Vision Transformers, a small CNN, a linear model and nearest neighbours read digits; a detector learns sets with and without matching;
a Transformer of feature tokens reads three tables beside boosted trees and a linear model. Some ten minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.beyond import FeatureTokenizer, generalized_iou, hungarian_matching_loss
from tfcourse.data import Scenes, scenes
from tfcourse.layers import EncoderLayer, FeedForward
from tfcourse.multihead import MultiHeadAttention
from tfcourse.vit import VisionTransformer

COMMAND = "python experiments/vision.py --record tfcourse/recorded/vision.json"
SEEDS, MOVED_SEEDS = (0, 1, 2), (0, 1, 2, 3, 4)
# Digits: how many are read at most, how many steps are taken whatever the number of pictures, and the numbers of pictures.
TRAINED, DIGIT_STEPS, DIGIT_BATCH = 1297, 410, 64
FEWER = (100, 200, 400, 800, 1297)
SHIFTS = (0, 1, 2)
# Scenes: predictions for a picture, kinds of boxes, and what is read and examined.
N_QUERIES, KINDS, WIDTH = 6, 3, 64
SCENES, EXAMINED, SCENE_STEPS, SCENE_BATCH = 3200, 300, 400, 32
SCENE_SEEDS = (0, 1)
SHOWN = 6
# Tables: splits, epochs, and the width of a token.
SPLITS, EPOCHS, TOKEN = (0, 1, 2, 3, 4), 20, 32


# ------------------------------------------------------------------------------------------------------------- digits


class Digits(NamedTuple):
    """Pictures (N, 1, 8, 8) with numbers from -1 to 1, and what they show (N,)."""

    images: Tensor
    labels: Tensor


def digits() -> tuple[Digits, Digits]:
    """The digits of scikit-learn in an order of their own: 1,297 to read and 500 to be examined in."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 8 - 1
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    return Digits(images[:TRAINED], labels[:TRAINED]), Digits(images[TRAINED:], labels[TRAINED:])


def on_paper(digits: Digits) -> Digits:
    """The same digits with two pixels of paper on every side: room to move by two without losing ink."""
    return Digits(F.pad(digits.images, (2, 2, 2, 2), value=-1.0), digits.labels)


def shifted(images: Tensor, pixels: int) -> Tensor:
    """Pictures moved to the right; what comes in is paper."""
    return F.pad(images, (pixels, 0), value=-1.0)[..., : images.shape[-1]]


def vit(side: int = 8, *, positions: bool = True) -> VisionTransformer:
    """A small Vision Transformer; without positions its table stays zero."""
    model = VisionTransformer(side, 2, 1, 10, d_model=64, n_heads=4, d_ff=128, n_layers=2)
    with torch.no_grad():
        model.position_table.normal_(std=0.5 if positions else 0.0)
    model.position_table.requires_grad_(positions)
    return model


def cnn(cells: int = 1) -> nn.Module:
    """A small network of convolutions; a linear layer reads the means of `cells` x `cells` parts of the last map."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(cells),
        nn.Flatten(),
        nn.Linear(48 * cells**2, 10),
    )


def fit(
    model: nn.Module, loss_of: Callable[[Tensor], Tensor], count: int, steps: int, batch: int, rate: float, seed: int
) -> list[float]:
    """Train on batches of numbers below `count`, with AdamW and a rate that rises and falls; return the losses."""
    draws, losses = torch.Generator().manual_seed(seed), []
    optimiser = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    queue = torch.empty(0, dtype=torch.long)
    model.train()
    for _ in range(steps):
        while len(queue) < batch:
            queue = torch.cat([queue, torch.randperm(count, generator=draws)])
        chosen, queue = queue[:batch], queue[batch:]
        loss = loss_of(chosen)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    return losses


def read_digits(model: nn.Module, train: Digits, seed: int, *, steps: int = DIGIT_STEPS) -> list[float]:
    """Teach a model digits; the same number of steps for however many there are."""
    return fit(
        model,
        lambda chosen: F.cross_entropy(model(train.images[chosen]), train.labels[chosen]),
        len(train.labels),
        steps,
        DIGIT_BATCH,
        3e-3,
        seed,
    )


@torch.no_grad()
def share_right(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of pictures that are read rightly."""
    return round((model(images).argmax(dim=-1) == labels).double().mean().item(), 4)


def classical(name: str, train: Digits, images: Tensor, labels: Tensor) -> list[float]:
    """The share that a model of scikit-learn reads rightly, for each shift."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    model = LogisticRegression(max_iter=2000) if name == "linear" else KNeighborsClassifier(3)
    model.fit(train.images.flatten(1).numpy(), train.labels.numpy())
    return [
        round(float(model.score(shifted(images, pixels).flatten(1).numpy(), labels.numpy())), 4) for pixels in SHIFTS
    ]


def read_with(build: Callable[[], nn.Module], train: Digits, test: Digits, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Train a model once per seed; the share that each reads rightly of digits that have moved, for each shift."""
    runs = []
    for seed in seeds:
        torch.manual_seed(seed)
        model = build()
        read_digits(model, train, seed)
        runs.append([share_right(model, shifted(test.images, pixels), test.labels) for pixels in SHIFTS])
    print(runs, flush=True)
    return {"right": runs, "parameters": sum(p.numel() for p in model.parameters())}


def read_all_digits() -> dict[str, Any]:
    """Positions of patches; digits that move with room around them; and models that read few or many digits."""
    train, test = digits()
    variants: dict[str, Callable[[], nn.Module]] = {"patches of 2": vit, "no positions": lambda: vit(positions=False)}
    ways = {name: read_with(build, train, test, SEEDS) for name, build in variants.items()}
    framed, moving = on_paper(train), on_paper(test)
    variants = {"ViT": lambda: vit(12), "CNN": cnn, "CNN without pooling": lambda: cnn(6)}  # 6 x 6: the whole last map
    moved = {name: read_with(build, framed, moving, MOVED_SEEDS) for name, build in variants.items()}
    for name in ("linear", "three neighbours"):
        moved[name] = {"right": [classical(name, framed, moving.images, test.labels)]}
    return {"ways": ways, "moved": moved, "fewer": read_few_digits(train, test)}


def read_few_digits(train: Digits, test: Digits) -> dict[str, list[list[float]]]:
    """Models that read few or many digits, 8 x 8 pixels as they are."""
    fewer: dict[str, list[list[float]]] = {"ViT": [], "CNN": [], "linear": [], "three neighbours": []}
    for count in FEWER:
        some = Digits(train.images[:count], train.labels[:count])
        for name, build in (("ViT", vit), ("CNN", cnn)):
            shares = []
            for seed in SEEDS:
                torch.manual_seed(seed)
                model = build()
                read_digits(model, some, seed)
                shares.append(share_right(model, test.images, test.labels))
            fewer[name].append(shares)
        for name in ("linear", "three neighbours"):
            fewer[name].append(classical(name, some, test.images, test.labels)[:1])
        print(count, {name: shares[-1] for name, shares in fewer.items()}, flush=True)
    return fewer


# ------------------------------------------------------------------------------------------------------------- scenes


class Asking(nn.Module):
    """A layer in which questions look at each other, then at a map of features, each with its norm in front."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attention, self.cross_attention = (MultiHeadAttention(WIDTH, 4) for _ in range(2))
        self.feed_forward = FeedForward(WIDTH, 2 * WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """Questions, (B, N, D), that have read the map, (B, S, D)."""
        y = self.norms[0](x)
        x = x + self.self_attention(y, y)
        x = x + self.cross_attention(self.norms[1](x), memory)
        output: Tensor = x + self.feed_forward(self.norms[2](x))
        return output


class Detector(nn.Module):
    """Convolutions, an encoder over their map, and questions that are answered with a kind and a box each: DETR, small."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, WIDTH, 3, stride=2, padding=1)
        )
        self.positions = nn.Parameter(torch.randn(36, WIDTH) * 0.5)
        self.questions = nn.Parameter(torch.randn(N_QUERIES, WIDTH))
        self.encoder = EncoderLayer(WIDTH, 4, 2 * WIDTH, pre_norm=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Asking() for _ in range(2))
        self.last = nn.LayerNorm(WIDTH)
        self.kind = nn.Linear(WIDTH, KINDS + 1)
        self.box = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the kinds, (B, N, 4), and boxes, (B, N, 4)."""
        features = self.stem(images).flatten(2).mT + self.positions  # (B, 36, D)
        memory = self.norm(self.encoder(features))
        x = self.questions.expand(len(images), -1, -1)  # (B, N, D)
        for layer in self.layers:
            x = layer(x, memory)
        x = self.last(x)
        return self.kind(x), torch.sigmoid(self.box(x))


def loss_in_order(logits: Tensor, boxes: Tensor, labels: list[Tensor], targets: list[Tensor]) -> Tensor:
    """The same loss, with object number i asked of prediction number i: no matching."""
    wanted = torch.full(logits.shape[:2], KINDS, dtype=torch.long)
    for number, kind in enumerate(labels):
        wanted[number, : len(kind)] = kind
    weight = torch.tensor([1.0] * KINDS + [0.1])
    said = torch.cat([boxes[number, : len(target)] for number, target in enumerate(targets)])
    true = torch.cat(targets)
    distance = (said - true).abs().sum()
    waste = (1 - generalized_iou(said, true).diagonal()).sum()
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), weight) + (5 * distance + 2 * waste) / len(true)


@torch.no_grad()
def found_objects(model: Detector, test: Scenes) -> tuple[float, float]:
    """The share of objects that a prediction of their kind covers (GIoU above 0.5), and predictions too many for a picture."""
    logits, boxes = model(test.images)
    kinds = logits.argmax(dim=-1)
    found = extra = total = 0
    for number, (label, target) in enumerate(zip(test.labels, test.boxes, strict=True)):
        said = kinds[number] < KINDS
        fits = (generalized_iou(boxes[number][said], target) > 0.5) & (kinds[number][said][:, None] == label)
        hits = int(fits.any(dim=0).sum())
        found, extra, total = found + hits, extra + int(said.sum()) - hits, total + len(label)
    return round(found / total, 4), round(extra / len(test.images), 3)


def detect(way: str, seed: int, train: Scenes, test: Scenes, *, steps: int = SCENE_STEPS) -> dict[str, Any]:
    """Train a detector with matching or in the given order, examine it, and keep some of what it says."""
    torch.manual_seed(seed)
    model = Detector()

    def loss_of(chosen: Tensor) -> Tensor:
        logits, boxes = model(train.images[chosen])
        labels = [train.labels[number] for number in chosen.tolist()]
        targets = [train.boxes[number] for number in chosen.tolist()]
        if way == "matched":
            return hungarian_matching_loss(logits, boxes, labels, targets)
        return loss_in_order(logits, boxes, labels, targets)

    began = time.process_time()
    losses = fit(model, loss_of, len(train.images), steps, SCENE_BATCH, 2e-3, seed)
    seconds = time.process_time() - began
    found, extra = found_objects(model, test)
    with torch.no_grad():
        logits, boxes = model(test.images)
    said = logits.argmax(dim=-1)
    print(way, seed, steps, found, extra, f"{losses[-1]:.2f}", f"{seconds:.0f} s", flush=True)
    return {
        "found": found,
        "extra": extra,
        "seconds": round(seconds, 1),
        "loss": [round(sum(losses[k : k + 20]) / len(losses[k : k + 20]), 3) for k in range(0, steps, 20)],
        "parameters": sum(p.numel() for p in model.parameters()),
        "kinds": said[:SHOWN].tolist(),
        "boxes": [[[round(x, 2) for x in box] for box in picture] for picture in boxes[:SHOWN].tolist()],
        # Where each question puts its boxes, on pictures where it says that there is something.
        "centres": [
            [[round(x, 2) for x in box[:2]] for box in boxes[:, query][said[:, query] < KINDS][:60].tolist()]
            for query in range(N_QUERIES)
        ],
    }


def detect_all() -> dict[str, Any]:
    """Both ways, for each seed, and the given order for three times as long."""
    train, test = scenes(SCENES, seed=1), scenes(EXAMINED, seed=2)
    runs = {way: [detect(way, seed, train, test) for seed in SCENE_SEEDS] for way in ("matched", "in order")}
    runs["in order, longer"] = [detect("in order", 0, train, test, steps=3 * SCENE_STEPS)]
    for way, kept in runs.items():
        for run in kept[1:] if way == "matched" else kept:
            del run["centres"]
    return runs


# ------------------------------------------------------------------------------------------------------------- tables


class Table(NamedTuple):
    """A table: numbers, categories, what is asked, and the number of classes, 0 for a regression."""

    numerical: Tensor
    categorical: Tensor
    target: Tensor
    classes: int


def table(name: str) -> Table:
    """One of scikit-learn's small tables. The diabetes table has a category, the sex."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

    if name == "diabetes":
        rows, target = load_diabetes(return_X_y=True, scaled=False)
        numbers = torch.tensor(rows, dtype=torch.float32)
        others = [column for column in range(numbers.shape[1]) if column != 1]
        return Table(numbers[:, others], numbers[:, 1:2].long() - 1, torch.tensor(target, dtype=torch.float32), 0)
    rows, target = (load_breast_cancer if name == "cancer" else load_wine)(return_X_y=True)
    none = torch.empty(len(rows), 0, dtype=torch.long)
    return Table(torch.tensor(rows, dtype=torch.float32), none, torch.tensor(target), int(target.max()) + 1)


class FeatureTransformer(nn.Module):
    """Tokens of columns, two layers of an encoder, and what the class token then says."""

    def __init__(self, n_numerical: int, cardinalities: list[int], outputs: int) -> None:
        super().__init__()
        self.tokens = FeatureTokenizer(n_numerical, cardinalities, TOKEN)
        self.layers = nn.ModuleList(
            EncoderLayer(TOKEN, 4, 2 * TOKEN, pre_norm=True, dropout=0.1, activation="gelu") for _ in range(2)
        )
        self.norm, self.head = nn.LayerNorm(TOKEN), nn.Linear(TOKEN, outputs)

    def forward(self, numerical: Tensor, categorical: Tensor) -> Tensor:
        """Answers, (B, outputs)."""
        x = self.tokens(numerical, categorical)
        for layer in self.layers:
            x = layer(x)
        output: Tensor = self.head(self.norm(x[:, 0]))
        return output


def read_table(name: str, split: int, *, epochs: int = EPOCHS) -> dict[str, float]:
    """Accuracy, or the explained share of the variance, of three models on a quarter of the rows that they have not read."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    data = table(name)
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(split))
    cut = len(order) * 3 // 4
    train, test = order[:cut], order[cut:]
    mean, std = data.numerical[train].mean(dim=0), data.numerical[train].std(dim=0)
    numbers = (data.numerical - mean) / std
    torch.manual_seed(split)
    model = FeatureTransformer(numbers.shape[1], [2] * data.categorical.shape[1], data.classes or 1)
    middle, spread = (data.target[train].mean(), data.target[train].std()) if not data.classes else (0.0, 1.0)

    def loss_of(chosen: Tensor) -> Tensor:
        rows = train[chosen]
        said = model(numbers[rows], data.categorical[rows])
        if data.classes:
            return F.cross_entropy(said, data.target[rows])
        return F.mse_loss(said[:, 0], (data.target[rows] - middle) / spread)

    fit(model, loss_of, cut, epochs * max(1, cut // 32), 32, 2e-3, split)
    with torch.no_grad():
        said = model(numbers[test], data.categorical[test])
    asked = data.target[test]
    if data.classes:
        ours = (said.argmax(dim=-1) == asked).double().mean().item()
        trees: Any = HistGradientBoostingClassifier(random_state=0)
        linear: Any = LogisticRegression(max_iter=5000)
    else:
        error = (said[:, 0] * spread + middle - asked).square().sum()
        ours = (1 - error / (asked - asked.mean()).square().sum()).item()
        trees, linear = HistGradientBoostingRegressor(random_state=0), Ridge()
    rows = torch.cat([numbers, data.categorical.float()], dim=1).numpy()
    found = {"feature tokens": round(ours, 4)}
    for way, other in (("boosted trees", trees), ("linear", linear)):
        other.fit(rows[train], data.target[train].numpy())
        found[way] = round(float(other.score(rows[test], asked.numpy())), 4)
    return found


def read_tables() -> dict[str, Any]:
    """All tables, all splits."""
    found: dict[str, Any] = {}
    for name in ("cancer", "wine", "diabetes"):
        runs = [read_table(name, split) for split in SPLITS]
        data = table(name)
        found[name] = {
            "rows": len(data.target),
            "columns": data.numerical.shape[1] + data.categorical.shape[1],
            **{way: [run[way] for run in runs] for way in runs[0]},
        }
        print(name, found[name], flush=True)
    return found


def record() -> dict[str, Any]:
    """Run everything."""
    return {
        "digits": read_all_digits(),
        "fewer": list(FEWER),
        "shifts": list(SHIFTS),
        "steps": {"digits": DIGIT_STEPS, "scenes": SCENE_STEPS},
        "scenes": detect_all(),
        "tables": read_tables(),
        "generated": f"by {COMMAND}; run it again, do not change this file",
    }


def main() -> None:
    """Record, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.dumps(record(), separators=(",", ":")) + "\n"
    if options.record:
        options.record.write_text(found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
