"""The check of ``restore_spans``: the spans back in their places."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch10_t5.spans import DESCENDING, SENTINELS, noise, runs, text
from tfcourse import t5


def in_order(draw: Draw) -> Case:
    """An output of `corrupt_spans`."""
    lengths = runs(draw)
    source, target = t5.corrupt_spans(text(draw, sum(lengths)), noise(lengths), SENTINELS)
    return Case({"source": source, "target": target, "sentinels": list(SENTINELS)})


def _written(source: list[int], target: list[int], sentinels: tuple[int, ...] = SENTINELS) -> Case:
    return Case({"source": torch.tensor(source), "target": torch.tensor(target), "sentinels": list(sentinels)})


def _parts(draw: Draw, lengths: list[int]) -> list[list[int]]:
    """Pieces of a text, none of whose tokens comes twice."""
    return [piece.tolist() for piece in torch.split(text(draw, sum(lengths)), lengths)]


def _short(draw: Draw, count: int) -> list[int]:
    """Lengths from 1 to 3."""
    return draw.integers(1, 4, count).tolist()


def in_another_order(draw: Draw) -> Case:
    """A model has written the spans in another order."""
    lengths = [1 + index for index in draw.order(3)]
    pieces, spans = _parts(draw, _short(draw, 4)), [[70 + 3 * i + j for j in range(n)] for i, n in enumerate(lengths)]
    source = [*pieces[0], 90, *pieces[1], 91, *pieces[2], 92, *pieces[3]]
    target = [token for index in draw.permutation(3).tolist() for token in (90 + index, *spans[index])]
    return _written(source, [*target, 93])


def descending(draw: Draw) -> Case:
    """Sentinels that count downwards, spans the other way round, and no sentinel behind the last one."""
    pieces, spans = _parts(draw, _short(draw, 2)), [[70 + 3 * i + j for j in range(n)] for i, n in enumerate((2, 1, 3))]
    source = [*pieces[0], 99, *pieces[1], 98, 97]
    return _written(source, [97, *spans[2], 98, *spans[1], 99, *spans[0]], DESCENDING)


def small_integers(draw: Draw) -> Case:
    """Integers of 32 bits, and a span that is empty."""
    pieces, span = _parts(draw, [2, 3])
    case = _written([pieces[0], 90, pieces[1], 91], [90, 91, *span, 92])
    return case.with_arguments(**{name: case.arguments[name].to(torch.int32) for name in ("source", "target")})


def nothing_left(draw: Draw) -> Case:
    """Of a source that is one sentinel nothing is left, since its span is missing."""
    return _written([91], [90, *text(draw, 2).tolist()])


def one_missing(draw: Draw) -> Case:
    """A model has left out a span, which is not the last one."""
    count = 3 + int(draw.integers(0, 2))
    pieces, spans = _parts(draw, _short(draw, count)), [[70 + i] for i in range(count)]
    missing = int(draw.integers(0, count - 1))
    source = [token for index, piece in enumerate(pieces) for token in (90 + index, *piece)]
    target = [token for index in range(count) if index != missing for token in (90 + index, *spans[index])]
    return _written(source, [*target, 90 + count])


def more_than_asked(draw: Draw) -> Case:
    """A model's text begins without a sentinel and contains a superfluous span."""
    before, behind, early, span, more = _parts(draw, [*_short(draw, 3), 1, *_short(draw, 1)])
    return _written([*before, 90, *behind], [*early, 90, *span, 91, *more])


def any_order(draw: Draw) -> Case:
    """Up to four spans of any length, in any order, from a text whose tokens repeat; with or without a last sentinel."""
    count = int(draw.integers(1, 5))
    sentinels = [90 + index for index in draw.order(9)][: count + 1]
    pieces = [(10 + draw.integers(0, 5, int(draw.integers(0, 4)))).tolist() for _ in range(2 * count + 1)]
    source = [*pieces[0]]
    for sentinel, piece in zip(sentinels[:count], pieces[1 : count + 1], strict=True):
        source += [sentinel, *piece]
    target = [token for index in draw.order(count) for token in (sentinels[index], *pieces[count + 1 + index])]
    case = _written(source, target + sentinels[count:] * int(draw.integers(0, 2)))
    return case.with_arguments(sentinels=sentinels)


RESTORE_SPANS = Exercise(
    reference=t5.restore_spans,
    rows=(
        rows.numbers(
            1.75,
            in_order,
            in_another_order,
            gradients=False,
            title="Each span is back where it was, whatever the order of the spans.",
        ),
        rows.numbers(
            1,
            one_missing,
            nothing_left,
            name="missing",
            gradients=False,
            title="A span that is missing leaves nothing in its place.",
        ),
        rows.edge(
            0.25,
            descending,
            more_than_asked,
            small_integers,
            name="edges",
            gradients=False,
            dtypes=(),
            title="A span may be empty or end the target, there may be more than was asked for, and int32 stays int32.",
        ),
        rows.many(0.75, any_order, title="Many answers of a model, with their spans in any order, are put back."),
        rows.inputs_kept(0.25, in_order),
    ),
)
