"""Serialise plain data and raw tensors as msgpack between a checker and a student's process.

Containers are sent as arrays that begin with a tag, tensors and arrays as a small header and their bytes. Tensors are sent via host memory.
Tensors on the checks' device, which both sides read from ``TFCOURSE_DEVICE``, are moved back to it.

Protects against:

- code execution: no pickle, no import, no class of the sender's; unknown tags raise :class:`ProtocolError`
- huge allocations: :mod:`msgpack_scan` checks depth, number of items and every length before anything is allocated
- tensors and arrays whose header does not fit their bytes; arrays of objects
- dictionaries and sets with many keys of the same hash

Does not protect against:

- wrong content: the receiver checks values, shapes and dtypes
- long messages: the channel limits the bytes of one message, the client the bytes of one cell
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy
import torch
from torch import Tensor

from autograder.engine.transport.msgpack_scan import (
    ARRAY,
    MAX_DEPTH,
    MAX_ITEMS,
    TENSOR,
    ItemBudget,
    ProtocolError,
    check_limits,
)

MAX_DIMENSIONS = 16
MAX_SIZE = 2**40
_MAX_DIGITS = 4000
# This many keys of one hash may be accidental; with thousands, building a dictionary takes quadratic time.
_SAME_HASH = 64
# An empty array allocates one item of the size that its header claims.
_MAX_EMPTY_ITEM = 2**16
(
    _LIST,
    _TUPLE,
    _DICT,
    _SET,
    _FROZENSET,
    _COMPLEX,
    _INTEGER,
    _DTYPE,
    _DEVICE,
    _SCALAR,
    _OPAQUE,
) = range(11)

_TAGS: dict[Any, int] = {list: _LIST, set: _SET, frozenset: _FROZENSET}

_DTYPES: tuple[torch.dtype, ...] = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip
_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}
_DTYPE_NAMES = {str(dtype).removeprefix("torch."): dtype for dtype in _DTYPES}
# Set in a tensor's code if the tensor was on the device that checks run on.
_ON_DEVICE = 0x80
_ARRAY_KINDS = frozenset("biufcSU")
_ARRAY_DTYPE = re.compile("[<|][biufcSU][0-9]{1,10}")


def _grading_device() -> str:
    """Return the device type of this process's requests and answers."""
    return os.environ.get("TFCOURSE_DEVICE") or "cpu"


def _available_devices() -> Set[str]:
    return {"cpu", "meta", "cuda", "cuda:0", _grading_device(), f"{_grading_device()}:0"}


class SerializationError(TypeError):
    """The value cannot be serialised."""


@dataclass(frozen=True)
class Opaque:
    """A placeholder with a description, for a value that is not sent."""

    description: str  # the value in words


def pack(value: Any, *, describe: bool = False, max_bytes: int = 2**28) -> bytes:
    """Serialise a value.

    Args:
        value: None, numbers, text, bytes, tensors, arrays and containers of them. An instance of a subclass is sent as its base class.
        describe: whether a description is sent for any other value. Otherwise such a value is an error.
        max_bytes: a larger tensor becomes an :class:`Opaque`.

    Raises:
        SerializationError: if a value is not plain, too deep or has too many items.
    """
    packer = _Packer(describe, max_bytes)
    try:
        packed: bytes = msgpack.packb(packer.plain(value, 0), use_bin_type=True)
    except (ValueError, OverflowError) as error:
        raise SerializationError(f"it cannot be sent: {error}") from error
    return packed


class _Packer:
    def __init__(self, describe: bool, max_bytes: int) -> None:
        self._describe = describe
        self._max_bytes = max_bytes
        self._items = 0

    def plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is float or kind is str or kind is bytes:
            return value.encode("utf-8", "replace").decode() if kind is str and not value.isascii() else value
        if kind is int:
            return value if -(2**63) <= value < 2**64 else self._pack_long(value)
        if depth >= MAX_DEPTH:
            raise SerializationError(f"it is nested more than {MAX_DEPTH} deep")
        if kind is Tensor or isinstance(value, Tensor):
            return self._pack_tensor(value, depth)
        if kind is list or kind is tuple or kind is set or kind is frozenset or kind is torch.Size:
            return self._pack_sequence(_TAGS.get(kind, _TUPLE), value, depth)
        if kind is dict:
            return self._pack_mapping(value, depth)
        self._count_items(4)  # no mark is longer
        return self._pack_other(value, depth)

    def _pack_sequence(self, tag: int, values: Any, depth: int) -> list[Any]:
        self._count_items(1 + len(values))
        ordered = sorted(values, key=repr) if tag in (_SET, _FROZENSET) else values
        return [tag, *(self.plain(item, depth + 1) for item in ordered)]

    def _pack_mapping(self, value: Mapping[Any, Any], depth: int) -> list[Any]:
        self._count_items(1 + 2 * len(value))
        flat: list[Any] = [_DICT]
        for key, item in value.items():
            flat += (self.plain(key, depth + 1), self.plain(item, depth + 1))
        return flat

    def _pack_other(self, value: Any, depth: int) -> Any:
        if isinstance(value, numpy.ndarray):
            return self._pack_array(value)
        if isinstance(value, numpy.generic):
            if value.dtype.kind not in _ARRAY_KINDS:
                return self._pack_description(value)
            array = self._pack_array(numpy.asarray(value))
            return array if isinstance(array, list) else [_SCALAR, array]
        if isinstance(value, torch.dtype):
            return [_DTYPE, str(value).removeprefix("torch.")] if value in _CODES else self._pack_description(value)
        if isinstance(value, torch.device):
            return [_DEVICE, str(value)] if str(value) in _available_devices() else self._pack_description(value)
        if isinstance(value, complex):
            return [_COMPLEX, complex.real.__get__(value), complex.imag.__get__(value)]
        if isinstance(value, Opaque):
            return [_OPAQUE, value.description[:1000]]
        return self._convert_subclass(value, depth)

    def _convert_subclass(self, value: Any, depth: int) -> Any:
        """Convert an instance of a subclass to its base class without calling its methods."""
        if isinstance(value, bool):
            return bool(value)
        if isinstance(value, int):
            return self.plain(int.__add__(value, 0), depth)
        if isinstance(value, float):
            return float.__add__(value, 0.0)
        if isinstance(value, str):
            return self.plain(str.__str__(value) if type(value) is str else "".join(str.__iter__(value)), depth)
        if isinstance(value, (bytes, bytearray)):
            return bytes(memoryview(value))
        if isinstance(value, tuple):
            return self._pack_sequence(_TUPLE, list(tuple.__iter__(value)), depth)
        if isinstance(value, list):
            return self._pack_sequence(_LIST, list(list.__iter__(value)), depth)
        if isinstance(value, (set, frozenset)):
            return self._pack_sequence(_SET if isinstance(value, set) else _FROZENSET, set(value), depth)
        if isinstance(value, dict):
            return self._pack_mapping(dict(dict.items(value)), depth)
        return self._pack_description(value)

    def _pack_description(self, value: Any) -> list[Any]:
        if not self._describe:
            raise SerializationError(f"a {type(value).__name__} cannot be sent; plain data and tensors can")
        return [_OPAQUE, f"a {type(value).__name__}"[:1000]]

    def _pack_long(self, value: int) -> Any:
        self._count_items(2)
        if value.bit_length() > 3 * _MAX_DIGITS:
            return [_OPAQUE, f"a whole number of {value.bit_length()} bits"]
        return [_INTEGER, hex(value)]

    def _pack_tensor(self, value: Tensor, depth: int) -> Any:
        if (
            value.layout is not torch.strided
            or value.device.type == "meta"
            or value.dtype not in _CODES
            or value.is_nested
            or not _is_shape(value.shape)
        ):
            shape = tuple(value.shape) if not value.is_nested else "irregular"
            return [_OPAQUE, f"a tensor of shape {shape}, {value.dtype}, {value.layout}, on {value.device}"]
        size = value.numel() * value.element_size()
        if size > self._max_bytes:
            return [_OPAQUE, f"a tensor of shape {tuple(value.shape)}, which is {size / 2**20:.0f} MiB"]
        code = _CODES[value.dtype] | (0 if value.is_cpu or value.device.type != _grading_device() else _ON_DEVICE)
        header = struct.pack(f"<BB{value.ndim}Q", code, value.ndim, *value.shape)
        with torch._C.DisableTorchFunctionSubclass():
            plain = value.detach().resolve_conj().resolve_neg().cpu()
            # numpy has no such dtype: send the bytes.
            data = (plain.view(torch.int16) if plain.dtype is torch.bfloat16 else plain).numpy().tobytes()
        return msgpack.ExtType(TENSOR, header + data)

    def _pack_array(self, value: numpy.ndarray[Any, Any]) -> Any:
        if (
            value.dtype.kind not in _ARRAY_KINDS
            or value.nbytes > self._max_bytes
            or not _is_shape(value.shape)
            or (not value.size and value.dtype.itemsize > _MAX_EMPTY_ITEM)
        ):
            return [_OPAQUE, f"an array of shape {value.shape}, {value.dtype}"]
        code = value.dtype.newbyteorder("<").str.encode()
        plain = numpy.ascontiguousarray(numpy.asarray(value), dtype=code.decode())
        if value.dtype.kind == "U" and not _is_text(plain):
            return [_OPAQUE, f"an array of shape {value.shape}, of invalid characters"]
        header = struct.pack("<BB", len(code), value.ndim) + code + struct.pack(f"<{value.ndim}Q", *value.shape)
        return msgpack.ExtType(ARRAY, header + plain.tobytes())

    def _count_items(self, items: int) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise SerializationError(f"it has more than {MAX_ITEMS} items")


def _is_shape(shape: Sequence[int]) -> bool:
    return len(shape) <= MAX_DIMENSIONS and all(size <= MAX_SIZE for size in shape)


def unpack(data: bytes, *, trusted: bool = False, budget: ItemBudget | None = None) -> Any:
    """Deserialise bytes from :func:`pack`, and reject any others.

    Args:
        data: the bytes.
        trusted: whether they come from the checker; then the limits are not checked.
        budget: the budget for its items; by default that of one message.

    Raises:
        ProtocolError: if the bytes violate the protocol.
    """
    try:
        if not trusted:
            check_limits(data, budget or ItemBudget(MAX_ITEMS))
        content = msgpack.unpackb(
            data,
            ext_hook=_read_extension,
            raw=False,
            max_map_len=0,
            max_array_len=MAX_ITEMS,
            max_str_len=len(data),
            max_bin_len=len(data),
            max_ext_len=len(data),
        )
        return _unpack_value(content, 0)
    except ProtocolError:
        raise
    except Exception as error:  # any exception that a malformed message causes is an error of the message
        raise ProtocolError(f"malformed ({type(error).__name__}: {str(error)[:200]})") from error


def _unpack_value(content: Any, depth: int) -> Any:
    if type(content) is not list:
        return content
    if depth > MAX_DEPTH:
        raise ProtocolError(f"nested more than {MAX_DEPTH} deep")
    if not content or type(content[0]) is not int or not 0 <= content[0] < len(_READERS):
        raise ProtocolError("an array without a tag")
    return _READERS[content[0]](content, depth + 1)


def _unpack_items(content: list[Any], depth: int) -> list[Any]:
    return [item if type(item) is not list else _unpack_value(item, depth) for item in content[1:]]


def _unpack_mapping(content: list[Any], depth: int) -> dict[Any, Any]:
    flat = _unpack_items(content, depth)
    if len(flat) % 2:
        raise ProtocolError("a mapping with a key and no value")
    return dict(zip(_reject_hash_collisions(flat[::2]), flat[1::2], strict=True))


def _unpack_scalar(content: list[Any], depth: int) -> Any:
    if len(content) != 2 or not isinstance(content[1], numpy.ndarray) or content[1].ndim:
        raise ProtocolError("an invalid number")
    return content[1][()]


def _unpack_opaque(content: list[Any], depth: int) -> Opaque:
    _, description = content
    if type(description) is not str:
        raise ProtocolError("a description that is not text")
    return Opaque(description[:1000])


def _unpack_integer(content: list[Any], depth: int) -> int:
    _, digits = content
    if type(digits) is not str or len(digits) > _MAX_DIGITS:
        raise ProtocolError("an invalid integer")
    return int(digits, 16)


def _unpack_complex(content: list[Any], depth: int) -> complex:
    _, real, imaginary = content
    return complex(float(real), float(imaginary))


def _unpack_device(content: list[Any], depth: int) -> torch.device:
    _, name = content
    if name not in _available_devices():
        raise ProtocolError("an unknown device")
    return torch.device(name)


# In the order of the tags.
_READERS: tuple[Callable[[list[Any], int], Any], ...] = (
    _unpack_items,
    lambda content, depth: tuple(_unpack_items(content, depth)),
    _unpack_mapping,
    lambda content, depth: set(_reject_hash_collisions(_unpack_items(content, depth))),
    lambda content, depth: frozenset(_reject_hash_collisions(_unpack_items(content, depth))),
    _unpack_complex,
    _unpack_integer,
    lambda content, depth: _DTYPE_NAMES[content[1]],
    _unpack_device,
    _unpack_scalar,
    _unpack_opaque,
)


def _reject_hash_collisions(keys: list[Any]) -> list[Any]:
    """Return keys for a dictionary or set, and reject keys that were chosen to collide."""
    if len(keys) > _SAME_HASH and max(Counter(map(hash, keys)).values()) > _SAME_HASH:
        raise ProtocolError("too many keys of the same hash")
    return keys


def _read_extension(code: int, data: bytes) -> Any:
    if code == TENSOR:
        return _read_tensor(data)
    if code == ARRAY:
        return _read_array(data)
    raise ProtocolError("an unknown kind of data")


def _read_tensor(data: bytes) -> Tensor:
    code, dimensions = data[0] & ~_ON_DEVICE, data[1]
    if code >= len(_DTYPES) or dimensions > MAX_DIMENSIONS:
        raise ProtocolError("a tensor of an unknown dtype or of too many dimensions")
    device = _grading_device() if data[0] & _ON_DEVICE else "cpu"
    if data[0] & _ON_DEVICE and device == "cpu":
        raise ProtocolError("a tensor on a device that is not in use")
    dtype, begin = _DTYPES[code], 2 + 8 * dimensions
    shape = struct.unpack_from(f"<{dimensions}Q", data, 2)
    _check_size(shape, dtype.itemsize, len(data) - begin)
    if len(data) == begin:
        return torch.empty(shape, dtype=dtype, device=device)
    # Copy: a tensor may be written to, the message's bytes may not, and numbers need aligned addresses.
    numbers = bytearray(memoryview(data)[begin:])
    # Any other byte as a bool would be undefined behaviour.
    tensor = torch.frombuffer(numbers, dtype=torch.uint8 if dtype is torch.bool else dtype)
    return (tensor != 0 if dtype is torch.bool else tensor).reshape(shape).to(device)


def _read_array(data: bytes) -> numpy.ndarray[Any, Any]:
    length, dimensions = struct.unpack_from("<BB", data)
    name = data[2 : 2 + length].decode("ascii")
    if not _ARRAY_DTYPE.fullmatch(name) or dimensions > MAX_DIMENSIONS or numpy.dtype(name).str != name:
        raise ProtocolError("an array of a kind that is not allowed")
    dtype = numpy.dtype(name)
    shape = struct.unpack_from(f"<{dimensions}Q", data, 2 + length)
    begin = 2 + length + 8 * dimensions
    _check_size(shape, dtype.itemsize, len(data) - begin)
    if not math.prod(shape) and dtype.itemsize > _MAX_EMPTY_ITEM:
        raise ProtocolError("an empty array of huge items")
    if not math.prod(shape) or not dtype.itemsize:
        return numpy.empty(shape, dtype)
    array = numpy.frombuffer(data, dtype if dtype.kind != "b" else numpy.uint8, offset=begin).reshape(shape).copy()
    if dtype.kind == "U" and not _is_text(array):
        raise ProtocolError("an array of invalid text")
    return array.astype(bool) if dtype.kind == "b" else array


def _is_text(array: numpy.ndarray[Any, Any]) -> bool:
    """Return whether a text array has valid characters only: others fail only when printed."""
    if not array.dtype.itemsize:
        return True
    codes = array.reshape(-1).view("<u4")
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()


def _check_size(shape: tuple[int, ...], itemsize: int, size: int) -> None:
    """Check that a header matches the size of the data, and that an empty array claims no absurd sizes."""
    if math.prod(shape) * itemsize != size or not (size or _is_shape(shape)):
        raise ProtocolError(f"a header of shape {shape}, followed by {size} bytes")
