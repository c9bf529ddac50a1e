"""Values that may cross, made by Hypothesis, and what it means that they have arrived whole."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

from autograder.engine.transport import serialization

# The same examples on every machine and in every run, and no database left behind.
examples = settings(
    derandomize=True, max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

DTYPES = serialization._DTYPES
ARRAY_DTYPES = (
    "?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", ">f8", ">i4", "<c8", "<c16", "g", "S3", "U4",
    ">U2",
)  # fmt: skip


class Marked(Tensor):
    """A subclass that is nothing more."""


texts = st.text(st.characters(exclude_categories=()), max_size=12)
integers = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 11_999).map(lambda bits: 2**bits),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1]),
)
floats = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324]))
hashable_leaves = st.one_of(st.none(), st.booleans(), integers, texts, st.binary(max_size=12))
keys = st.recursive(hashable_leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


@st.composite
def tensors(draw: st.DrawFn, dtype: torch.dtype | None = None) -> Tensor:
    """Tensors of every dtype, with any bytes for values, and in every way that a tensor can lie in memory."""
    dtype = dtype or draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    count = math.prod(shape)
    data = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    if dtype is torch.bool:
        data = bytes(byte & 1 for byte in data)
    flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return draw(st.sampled_from(VIEWS))(flat.reshape(shape))


def _negated(tensor: Tensor) -> Tensor:
    return tensor.conj().imag if tensor.is_complex() else tensor


VIEWS = (
    lambda tensor: tensor,
    lambda tensor: tensor.mT if tensor.ndim > 1 else tensor,
    lambda tensor: tensor[..., ::2] if tensor.ndim else tensor,
    lambda tensor: tensor[..., None].expand(*tensor.shape, 3),
    lambda tensor: tensor.conj(),
    _negated,
    lambda tensor: tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor,
    lambda tensor: torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point()),
    lambda tensor: tensor.as_subclass(Marked),
)


@st.composite
def arrays(draw: st.DrawFn) -> numpy.ndarray[Any, Any]:
    """Arrays of every kind that crosses."""
    dtype = numpy.dtype(draw(st.sampled_from(ARRAY_DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    count = math.prod(shape)
    if dtype.kind in "SU":
        alphabet = st.characters(exclude_categories=["Cs"], max_codepoint=0x7F if dtype.kind == "S" else None)
        words = draw(st.lists(st.text(alphabet, max_size=4), min_size=count, max_size=count))
        array = numpy.array([word.encode() if dtype.kind == "S" else word for word in words], dtype).reshape(shape)
    else:
        array = numpy.array(draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))).astype(dtype)
        array = array.reshape(shape)
    return draw(st.sampled_from([lambda a: a, lambda a: a.T, lambda a: a[..., ::-1] if a.ndim else a]))(array)


leaves = st.one_of(
    hashable_leaves,
    floats,
    st.complex_numbers(),
    tensors(),
    arrays(),
    arrays().filter(lambda array: array.size).map(lambda array: array.reshape(-1)[0]),
    st.sampled_from([*DTYPES, torch.device("cpu"), torch.device("meta")]),
)
plain = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(keys, max_size=4),
        st.frozensets(keys, max_size=4),
    ),
    max_leaves=12,
)


def as_text(value: Any) -> Any:
    """Return a value as it arrives: half characters, which no encoding of text has, as question marks."""
    if isinstance(value, str) and not isinstance(value, numpy.generic):
        return value.encode("utf-8", "replace").decode()
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(as_text, value))
    if type(value) is dict:
        return {as_text(key): as_text(item) for key, item in value.items()}
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same to the bit, and of the same kind; a subclass arrives as what it is made of."""
    if isinstance(a, Tensor):
        return (
            type(b) in (Tensor, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and _bytes(a) == _bytes(b)
        )
    if isinstance(a, (numpy.ndarray, numpy.generic)):
        little = a.astype(a.dtype.newbyteorder("<"))
        kinds = isinstance(b, numpy.ndarray) == isinstance(a, numpy.ndarray)
        return kinds and little.dtype == b.dtype and a.shape == b.shape and little.tobytes() == b.tobytes()
    if isinstance(a, float):
        return type(b) is float and (struct.pack("d", a) == struct.pack("d", b) or (a != a and b != b))
    if isinstance(a, complex):
        return type(b) is complex and same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and a == b


def _bytes(tensor: Tensor) -> bytes:
    plain = tensor.detach().as_subclass(Tensor).resolve_conj().resolve_neg().clone().reshape(-1).contiguous()
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
