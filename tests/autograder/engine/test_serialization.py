"""Values cross whole, and what cannot cross says so."""

from __future__ import annotations

import collections
import functools
import math
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given

from autograder.engine.transport import serialization
from autograder.engine.transport.serialization import (
    MAX_DEPTH,
    Opaque,
    SerializationError,
    pack,
    unpack,
)

from .values import ARRAY_DTYPES, DTYPES, VIEWS, Marked, as_text, examples, plain, same


def crossed(value: Any) -> Any:
    return unpack(pack(value))


@examples
@given(plain)
def test_nested_plain_values_arrive_as_they_were_sent(value: Any) -> None:
    assert same(as_text(value), crossed(value))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_of_tensors_crosses_in_every_view_and_shape(dtype: torch.dtype) -> None:
    for shape in ((), (0,), (3,), (2, 0, 3), (2, 3, 4)):
        tensor = torch.arange(1, 1 + math.prod(shape)).reshape(shape).to(dtype)
        if dtype.is_complex:
            tensor = tensor * (1 - 2j)
        for view in VIEWS:
            assert same(view(tensor), crossed(view(tensor)))


@pytest.mark.parametrize("dtype", ARRAY_DTYPES)
def test_every_dtype_of_arrays_crosses_empty_single_and_in_bulk(dtype: str) -> None:
    for shape in ((), (0,), (3,), (2, 0, 3), (2, 3)):
        array = numpy.arange(math.prod(shape)).reshape(shape).astype(dtype)
        assert same(array, crossed(array))


def test_a_tensor_arrives_as_a_copy_that_can_be_written_to() -> None:
    tensor = torch.arange(3.0)
    copy = crossed(tensor)
    copy += 1
    assert tensor.tolist() == [0, 1, 2]


def test_values_whose_address_is_odd_arrive_where_arithmetic_works() -> None:
    values = [b"x" * shift for shift in range(9)]
    for shift in values:
        _, tensor, array = crossed([shift, torch.arange(5.0, dtype=torch.float64), numpy.arange(5.0)])
        assert tensor.sum() == array.sum() == 10


class Loud(str):
    """A text that says something else than it is."""

    __slots__ = ()

    def __str__(self) -> str:
        return "full marks"


class Padded(list[Any]):
    """A list that gives out more than it holds."""

    def __iter__(self) -> Any:
        return iter([1, 2, 3])


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Loud("0"), "0"),
        (Padded([7]), [7]),
        (type("Many", (int,), {"__index__": lambda self: 9})(2), 2),
        (type("Real", (float,), {"__float__": lambda self: 9.0})(2.5), 2.5),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (torch.Size([2, 3]), (2, 3)),
        (bytearray(b"ab"), b"ab"),
        (numpy.matrix([[1, 2]]), numpy.array([[1, 2]])),
        (torch.ones(2).as_subclass(Marked), torch.ones(2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_subclass_travels_as_what_it_is_made_of_and_its_own_methods_are_not_asked(value: Any, arrives: Any) -> None:
    assert same(arrives, crossed(value))


def nested(depth: int) -> list[Any]:
    return functools.reduce(lambda inner, _: [inner], range(depth - 1), [])


def test_values_nested_to_the_cap_cross_and_one_level_more_is_refused() -> None:
    assert crossed(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(SerializationError, match="nested"):
        pack(nested(MAX_DEPTH + 1))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(SerializationError, match="nested"):
        pack(endless)


def test_as_many_items_as_are_packed_are_read_and_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialization, "MAX_ITEMS", 1000)
    for item in (1.5, 1j, 2**100, [3], {4: 5}, (6, 7), Opaque("x"), torch.float32):
        count = next(n for n in range(1000, 0, -1) if _packs([item] * n))
        assert 150 <= count < 1000
        assert len(crossed([item] * count)) == count
        with pytest.raises(SerializationError, match="more than 1000 items"):
            pack([item] * (count + 1))


def _packs(value: Any) -> bool:
    try:
        pack(value)
    except SerializationError:
        return False
    return True


def test_a_tensor_or_array_past_the_size_cap_becomes_its_description() -> None:
    for value in (torch.zeros(1000), torch.zeros(1).expand(2**40), numpy.zeros(1000)):
        stood = unpack(pack(value, max_bytes=3999))
        assert isinstance(stood, Opaque)
        assert str(tuple(value.shape)) in stood.description
    assert isinstance(unpack(pack(torch.zeros(1000), max_bytes=4000)), torch.Tensor)


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(2, device="meta"),
        torch.eye(2).to_sparse(),
        torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)], layout=torch.jagged),
        torch.zeros([1] * 17),
        torch.zeros(0, 2**41),
        torch.zeros(1, dtype=torch.float8_e4m3fn),
        numpy.zeros([1] * 17),
        numpy.zeros(2, "V8"),
        numpy.zeros(2, "M8[s]"),
        numpy.zeros(2, [("a", "f4"), ("b", "i4")]),
        numpy.array([object()]),
        numpy.empty(0, "U50000"),
        numpy.array(["\ud800"]),
        numpy.str_("\ud800"),
        2**20_000,
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_what_a_reader_would_refuse_travels_as_a_description(value: Any) -> None:
    assert isinstance(unpack(pack(value)), Opaque)


@pytest.mark.parametrize(
    "value",
    [object(), len, torch.nn.Linear(1, 1), torch.device("cuda", 3), (i for i in ()), ..., slice(1, 2)],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_cannot_cross_and_may_be_described(value: Any) -> None:
    with pytest.raises(SerializationError, match="sent"):
        pack([value])
    assert unpack(pack([value], describe=True)) == [Opaque(f"a {type(value).__name__}")]
