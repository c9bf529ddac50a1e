"""The reader gives a value or a ProtocolError, whatever arrives, and takes no more room than a small multiple of it."""

from __future__ import annotations

import contextlib
import resource
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy
import pytest
import torch
from hypothesis import find, given
from hypothesis import strategies as st

from autograder.engine.transport import serialization
from autograder.engine.transport.msgpack_scan import MAX_DEPTH, ProtocolError
from autograder.engine.transport.serialization import Opaque, pack, unpack

from .confined import in_child
from .values import examples

_LIST, _DICT, _SET, _INTEGER = (
    serialization._LIST,
    serialization._DICT,
    serialization._SET,
    serialization._INTEGER,
)
_TAGS = len(serialization._READERS)


def tensor(code: int, *shape: int, data: bytes = b"", dimensions: int | None = None) -> bytes:
    """Return a message that says that it is a tensor."""
    header = struct.pack("<BB", code, len(shape) if dimensions is None else dimensions)
    return bytes(msgpack.packb(msgpack.ExtType(1, header + struct.pack(f"<{len(shape)}Q", *shape) + data)))


def array(dtype: str, *shape: int, data: bytes = b"", dimensions: int | None = None) -> bytes:
    """Return a message that says that it is an array."""
    header = struct.pack("<BB", len(dtype.encode()), len(shape) if dimensions is None else dimensions) + dtype.encode()
    return bytes(msgpack.packb(msgpack.ExtType(2, header + struct.pack(f"<{len(shape)}Q", *shape) + data)))


def message(*content: Any) -> bytes:
    """Return an array of msgpack, with whatever in it."""
    return bytes(msgpack.packb(list(content)))


LARGEST = 2**64 - 1
HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "an array that claims four thousand million": b"\xdd\xff\xff\xff\xff",
    "an array that claims millions": b"\xdd" + struct.pack(">I", 2_000_000),
    "a thousand arrays in one another that claim millions": (b"\xdd" + struct.pack(">I", 2_000_000)) * 1000,
    "a million levels": b"\x91" * 10**6,
    "a million levels of tagged lists": b"\x92\x00" * 10**6 + b"\xc0",
    "a million empty arrays": b"\xdd" + struct.pack(">I", 10**6) + b"\x90" * 10**6,
    "text that claims gigabytes": b"\xdb\xff\xff\xff\xff",
    "bytes that claim gigabytes": b"\xc6\xff\xff\xff\xff",
    "an extension that claims gigabytes": b"\xc9\xff\xff\xff\xff\x01",
    "an extension without a type": b"\xc7",
    "a map": msgpack.packb({"a": 1}),
    "an empty map": b"\x80",
    "a map that claims millions": b"\xdf\x00\xff\xff\xff",
    "a time": msgpack.packb(msgpack.Timestamp(1, 1)),
    "a time of eight bytes": b"\xd7\xff" + bytes(8),
    "an unknown extension": msgpack.packb(msgpack.ExtType(3, b"abc")),
    "a byte that means nothing": b"\xc1",
    "text that is no text": b"\xa2\xff\xfe",
    "half a character": b"\xa3\xed\xa0\x80",
    "two messages": pack(1) + pack(2),
    "an empty array": b"\x90",
    "an unknown tag": message(_TAGS),
    "a negative tag": message(-1),
    "a tag that is a truth value": message(True, 1),
    "a tag that is a list": message([0], 1),
    "a mapping without a value": message(_DICT, 1, 2, 3),
    "a mapping by lists": message(_DICT, [_LIST, 1], 2),
    "a set of lists": message(_SET, [_LIST]),
    "a set of arrays": b"\x92" + bytes([_SET]) + array("<i4", 1, data=bytes(4)),
    "an invalid integer": message(_INTEGER, "12z"),
    "a whole number without end": message(_INTEGER, "0x" + "f" * 10**6),
    "a whole number that is a list": message(_INTEGER, [_LIST]),
    "keys of one hash": message(_SET, *([_INTEGER, hex((2**61 - 1) * i)] for i in range(1, 20_000))),
    "keys of a mapping of one hash": message(
        _DICT, *(item for i in range(1, 20_000) for item in ([_INTEGER, hex((2**61 - 1) * i)], 0))
    ),
    "complex keys of one hash": message(_SET, *([serialization._COMPLEX, -1000003.0 * i, float(i)] for i in range(1, 20_000))),
    "a dtype of which there is none": message(serialization._DTYPE, "load"),
    "a dtype that is a list": message(serialization._DTYPE, [_LIST]),
    "a dtype without a name": message(serialization._DTYPE),
    "an unknown device": message(serialization._DEVICE, "privateuseone"),
    "a complex number of text": message(serialization._COMPLEX, "x", "y"),
    "a complex number of lists": message(serialization._COMPLEX, [0], [0]),
    "half a complex number": message(serialization._COMPLEX, 1.0),
    "a number of numpy that is text": message(serialization._SCALAR, "x"),
    "a number of numpy with a shape": b"\x92" + bytes([serialization._SCALAR]) + array("<i4", 1, data=bytes(4)),
    "a description that is a number": message(serialization._OPAQUE, 3),
    "a description without one": message(serialization._OPAQUE),
    "a tensor without a header": msgpack.packb(msgpack.ExtType(1, b"")),
    "a tensor of half a header": tensor(0, dimensions=3),
    "a tensor of an unknown dtype": tensor(200),
    "a tensor of too many dimensions": tensor(0, *[1] * 200, data=bytes(4)),
    "a tensor of too many empty dimensions": tensor(0, *[0] * 17),
    "a tensor larger than its bytes": tensor(0, 2**30),
    "a tensor smaller than its bytes": tensor(0, 1, data=bytes(400)),
    "a tensor whose size overflows": tensor(0, 2**62, 4, data=bytes(16)),
    "a tensor whose size overflows to nothing": tensor(0, 2**32, 2**32),
    "an empty tensor of absurd size": tensor(0, 0, LARGEST),
    "an empty tensor whose strides overflow": tensor(0, 0, *[2**40] * 15),
    "a tensor of a negative size": tensor(0, LARGEST, LARGEST, data=bytes(4)),
    "an array without a header": msgpack.packb(msgpack.ExtType(2, b"")),
    "an array of half a name": msgpack.packb(msgpack.ExtType(2, b"\xff\x01<f4")),
    "an array of too many dimensions": array("<f4", *[1] * 100, data=bytes(4)),
    "an array larger than its bytes": array("<f4", 2**40),
    "an array whose size overflows": array("<f4", 2**62, 4, data=bytes(16)),
    "an empty array of absurd size": array("<f4", 0, LARGEST),
    "an empty array whose strides overflow": array("<f4", 0, *[2**40] * 15),
    "an empty array of huge items": array("<U500000000", 0),
    "an array of giants": array("|S2147483647", 1),
    "an array of invalid characters": array("<U1", 1, data=b"\xff\xff\xff\xff"),
    "an array of half characters": array("<U1", 1, data=struct.pack("<I", 0xD800)),
    **{
        f"an array of {dtype!r}": array(dtype, 1, data=bytes(8))
        for dtype in (
            "|O", "O8", "|V8", "<M8[s]", "<m8[ns]", "f4,f4", "(2,)f4", "i8", "=i8", ">i8", "<f4\0", "a8", "<c3", "<f99",
            "<U-1", "<U99999999999999999999", "int", "object", "np.load", "{'names':['a'],'formats':['O']}", "", "é", "<T8", "g",
        )
    },
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _traced() -> Iterator[None]:
    find(st.text(), bool)  # makes Hypothesis's table of all characters, which takes half a minute while it is traced
    tracemalloc.start()
    yield
    tracemalloc.stop()


def read(data: bytes) -> Any:
    """Read a message, see that it took no more room than it may, and return the value, or the error."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    found: Any
    try:
        found = unpack(data)
    except ProtocolError as error:
        found = error
    room = tracemalloc.get_traced_memory()[1] - before
    # Two bytes can be a list of its own, and a list takes a hundred.
    assert room < 100 * len(data) + 200_000, f"{room} bytes of room for {len(data)}"
    return found


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_message_made_to_do_harm_is_refused(data: bytes) -> None:
    assert isinstance(read(data), ProtocolError)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, MAX_DEPTH + 2, MAX_DEPTH + 3, 500, 5000])
def test_a_list_deeper_than_the_cap_is_refused(depth: int) -> None:
    assert isinstance(read(b"\x92\x00" * MAX_DEPTH + b"\xc0"), list)
    assert isinstance(read(b"\x92\x00" * (depth + 1) + b"\xc0"), ProtocolError)


def test_a_truth_value_of_any_byte_is_one_or_zero() -> None:
    flags = [False, True, True, True]
    found = read(tensor(9, 4, data=b"\x00\x01\x02\xff"))
    assert found.dtype is torch.bool
    assert found.view(torch.uint8).tolist() == flags
    found = read(array("|b1", 4, data=b"\x00\x01\x02\xff"))
    assert found.dtype == numpy.bool_
    assert found.view("u1").tolist() == flags


def test_numbers_of_equal_hash_may_be_keys_while_they_are_few() -> None:
    keys = {(2**61 - 1) * i for i in range(1, 60)}
    assert read(pack(keys)) == keys
    assert len(read(pack({i: i for i in range(40_000)}))) == 40_000


def test_all_that_is_hostile_together_leaves_the_process_as_large_as_it_was() -> None:
    def grown() -> int:
        tracemalloc.stop()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for data in HOSTILE.values():
            with contextlib.suppress(ProtocolError):
                unpack(data)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert in_child(grown) < 64 * 1024, "KiB"


SOUND = [
    pack(value, describe=True)
    for value in (
        {"value": [1, 2.5, None, True, "text", b"bytes", 2**100, 1j]},
        {"part": 0, "answers": [pack({"outputs": {"output": torch.arange(6.0).reshape(2, 3)}})]},
        {"value": (torch.ones(2, dtype=torch.bool), numpy.array(["a", "bc"]))},
        {"raised": {"type": "ValueError", "bases": ["ValueError"], "text": "no", "where": []}},
        ({1, 2}, frozenset("ab"), torch.float16, torch.device("cpu"), numpy.float32(1), object()),
        {"value": Opaque("something")},
    )
]


@examples
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read(data)


@examples
@given(st.sampled_from(SOUND), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=8))
def test_a_message_with_bits_turned_is_read_or_refused(data: bytes, turned: list[tuple[int, int]]) -> None:
    changed = bytearray(data)
    for place, bit in turned:
        changed[place % len(data)] ^= 1 << bit
    read(bytes(changed))


@pytest.mark.parametrize("data", SOUND, ids=range(len(SOUND)))
def test_a_message_that_is_cut_off_anywhere_is_refused(data: bytes) -> None:
    for length in range(len(data)):
        assert isinstance(read(data[:length]), ProtocolError)


@examples
@given(*[st.sampled_from([*SOUND, *(data for data in HOSTILE.values() if len(data) < 1000)])] * 2, st.data())
def test_pieces_of_two_messages_are_read_or_refused(one: bytes, other: bytes, data: st.DataObject) -> None:
    begin, end = (data.draw(st.integers(0, len(item))) for item in (one, other))
    read(one[:begin] + other[end:])


@examples
@given(
    st.recursive(
        st.one_of(st.none(), st.integers(-3, 20), st.floats(), st.text(max_size=3), st.binary(max_size=3)),
        lambda inner: st.builds(lambda tag, items: [tag, *items], st.integers(0, _TAGS), st.lists(inner, max_size=4)),
        max_leaves=20,
    )
)
def test_any_tags_with_anything_behind_them_are_read_or_refused(content: Any) -> None:
    read(msgpack.packb(content))
