"""The check of ``tiled_attention``: attention that visits keys and values tile by tile."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import large, manners, unbatched
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.variants import changed
from tfcourse import attention


def uneven_tiles(draw: Draw) -> Case:
    """Three tiles, the last of which is not full."""
    s, (t, dh, dv) = 7 + int(draw.integers(0, 2)), draw.sizes(3, low=3)
    return Case({"q": draw.normal(2, t, dh), "k": draw.normal(2, s, dh), "v": draw.normal(2, s, dv), "tile_size": 3})


def even_tiles(draw: Draw) -> Case:
    """Tiles that fit exactly."""
    t, dh, dv = draw.sizes(3, low=3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(12, dh), "v": draw.normal(12, dv), "tile_size": 4})


def tiles_of_one(draw: Draw) -> Case:
    """One key at a time."""
    return unbatched(draw).with_arguments(tile_size=1)


def one_tile(draw: Draw) -> Case:
    """A tile that is larger than everything."""
    return unbatched(draw).with_arguments(tile_size=100)


def usual_tile(draw: Draw) -> Case:
    """The default tile size, with more than one tile."""
    t, dh, dv = draw.sizes(3)
    s = 70 + int(draw.integers(0, 9))
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def many_keys(draw: Draw) -> Case:
    """Many queries and keys, small tiles: all weights together are several times what one tile needs."""
    t, s = 90 + int(draw.integers(0, 9)), 100 + int(draw.integers(0, 9))
    return Case({"q": draw.normal(t, 4), "k": draw.normal(s, 4), "v": draw.normal(s, 5), "tile_size": 16})


def large_tiles(draw: Draw) -> Case:
    """Scores in the hundreds, in tiles."""
    return large(draw).with_arguments(tile_size=3)


def far_below_zero(draw: Draw) -> Case:
    """Scores of minus several hundred, in tiles: all exponentials vanish unless the maximum is taken off."""
    case = large(draw)
    return case.with_arguments(q=case.arguments["q"].abs(), k=-case.arguments["k"].abs(), tile_size=2)


def wider(draw: Draw, size: int) -> Case:
    """More examples, heads and queries, and as many tiles as before."""
    q, k, v = draw.normal(size, size, 2 * size, 3), draw.normal(size, size, 4, 3), draw.normal(size, size, 4, 2)
    return Case({"q": q, "k": k, "v": v, "tile_size": 3})


def one_key(draw: Draw) -> Case:
    """A single key, which every query has to take."""
    t, dh, dv = draw.sizes(3, low=3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(1, dh), "v": draw.normal(1, dv), "tile_size": 2})


def with_keys(keys: int, values: int) -> rows.Maker:
    """Make a case with these numbers of keys and values, in tiles of four."""

    def pairs(draw: Draw) -> Case:
        t, dh, dv = draw.sizes(3, low=3)
        return Case({"q": draw.normal(t, dh), "k": draw.normal(keys, dh), "v": draw.normal(values, dv), "tile_size": 4})

    return pairs


def linear_memory(case: Case) -> int:
    """Twice the elements of one tile of weights, or of the largest input or output if that is more."""
    q, k, v = (case.arguments[name] for name in ("q", "k", "v"))
    tile, output = len(q) * case.arguments["tile_size"], len(q) * v.shape[-1]
    return 2 * int(max(tile, output, q.numel(), k.numel(), v.numel()))


TILED_ATTENTION = Exercise(
    reference=attention.tiled_attention,
    rows=(
        rows.numbers(
            4.5,
            uneven_tiles,
            gradients=False,
            title="The numbers are those of plain attention, even if the last tile is not full.",
        ),
        rows.numbers(
            1,
            uneven_tiles,
            even_tiles,
            tiles_of_one,
            one_tile,
            one_key,
            usual_tile,
            name="tiles",
            title="Gradients are right, and so are the numbers with tiles of any size and no leading dimension.",
        ),
        rows.memory(
            2.75,
            many_keys,
            limit=linear_memory,
            title="No tensor on the way is larger than a tile of weights needs to be.",
        ),
        rows.edge(
            0.75,
            large_tiles,
            far_below_zero,
            name="large scores",
            title="Scores in the hundreds, above and below zero, give finite, right numbers.",
            # Where the softmax is this sharp, its gradients are next to zero and differ by more than rounding.
            gradients=False,
            dtypes=(),
        ),
        rows.precision(0.5, uneven_tiles),
        manners(0.75, (uneven_tiles,), wider, over="examples, heads or queries"),
        rows.errors(
            0.75,
            one_tile,
            changed(one_tile, tile_size=0),
            changed(one_tile, tile_size=-1),
            with_keys(0, 0),
            with_keys(8, 12),
            with_keys(12, 8),
            title="A tile size below one, no keys, and a key without its value are a ValueError.",
        ),
    ),
    forbidden=ATTENTION,
    rule_case=uneven_tiles,
)
