"""Scores and values to blend, softly or hard, with and without masks."""

from __future__ import annotations

from autograder.checking.draw import Case, Draw


def blend(draw: Draw) -> Case:
    """Scores and values, no mask."""
    b, t, s, d = draw.sizes(4)
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d)})


def blend_square(draw: Draw) -> Case:
    """As many queries as values: axes that changed places go unseen by the shapes."""
    b, t, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, t, t), "values": draw.normal(b, t, d)})


def one_example(draw: Draw) -> Case:
    """One example of equal sizes: the shapes do not show which axis is which."""
    return Case({"scores": draw.normal(1, 4, 4), "values": draw.normal(1, 4, 4)})


def padded_blend(draw: Draw) -> Case:
    """A mask (B, S): the same for all queries of an example. The first example may look at everything, the last one not."""
    b, t, s, d = draw.sizes(4)
    mask = draw.mask(b, s)
    mask[0], mask[-1, 0], mask[-1, -1] = True, True, False
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d), "mask": mask})


def as_many_queries(draw: Draw) -> Case:
    """A mask (B, S) and as many examples as queries: examples that are taken for queries go unseen by the shapes."""
    b, s, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, b, s), "values": draw.normal(b, s, d), "mask": draw.mask(b, s)})


def masked_blend(draw: Draw) -> Case:
    """A mask (B, T, S), in which every query may attend to something."""
    case = blend(draw)
    return case.with_arguments(mask=draw.mask(*case.arguments["scores"].shape))


def empty_row(draw: Draw) -> Case:
    """A mask (B, T, S), of which one row permits nothing."""
    case = masked_blend(draw)
    mask = case.arguments["mask"].clone()
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def more_blend(draw: Draw, size: int) -> Case:
    """More of everything."""
    return Case({"scores": draw.normal(size, size + 1, 2 * size), "values": draw.normal(size, 2 * size, 4)})
