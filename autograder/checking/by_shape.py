"""Compute results on PyTorch's meta device for operations whose output shapes depend only on input shapes.

PyTorch implements many operations on the meta device in Python, and the first one imports its compiler and a computer algebra system. This
takes more than a second, in a command that should take little longer. For the operations below, the CPU gives the same answer on tensors of
ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checking.request import flatten_outputs, map_value

_OPERATIONS = frozenset({
    "_cdist_forward", "_log_softmax", "_softmax", "abs", "add", "addcdiv", "addcmul", "addmm", "all", "amax", "amin", "any",
    "argmax", "argmin", "baddbmm", "bitwise_and", "bitwise_not", "bitwise_or", "bmm", "bucketize", "cat", "ceil", "clamp",
    "clamp_max", "clamp_min", "clone", "complex", "constant_pad_nd", "convolution", "cos", "cumprod", "cumsum", "diag_embed",
    "div", "dot", "embedding", "eq", "erf", "erfc", "exp", "expm1", "flip", "floor", "floor_divide", "fmod", "gather", "ge",
    "gelu", "gt", "im2col", "index", "index_select", "isin", "isinf", "isnan", "le", "lerp", "linalg_vector_norm", "log", "log1p",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logsumexp", "lt", "masked_fill", "max", "maximum", "mean", "min",
    "minimum", "mm", "mul", "mv", "nan_to_num", "native_layer_norm", "ne", "neg", "nll_loss_forward", "polar", "pow", "prod",
    "reciprocal", "relu", "remainder", "repeat", "roll", "round", "rsqrt", "rsub", "scatter", "scatter_add", "scatter_reduce",
    "sigmoid", "sign", "silu", "sin", "softplus", "sort", "sqrt", "square", "stack", "std", "sub", "sum", "tanh", "topk", "tril",
    "triu", "upsample_bicubic2d", "var", "var_mean", "where",
})  # fmt: skip
_IN_PLACE = frozenset(
    {
        "add_",
        "clamp_",
        "clamp_max_",
        "clamp_min_",
        "div_",
        "exp_",
        "masked_fill_",
        "mul_",
        "scatter_",
        "scatter_add_",
        "sigmoid_",
        "sub_",
        "tanh_",
        "tril_",
        "triu_",
    }
)
_LIKE = frozenset({"empty_like", "full_like", "ones_like", "zeros_like"})
_FACTORIES = frozenset({"arange", "eye", "full", "ones", "zeros"})
# A limit for memory: tensors on the meta device may have any size.
_LARGEST = 100_000


def compute_on_meta_device(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of an operation on the meta device, or NotImplemented if PyTorch must compute it.

    Args:
        func: the operation, an overload of ``torch.ops``.
        args: its arguments: tensors on the meta device, and single numbers on the CPU.
        kwargs: its keyword arguments.
    """
    name = func.overloadpacket.__name__
    tensors = [
        leaf
        for arguments in (args, dict(kwargs))
        for leaf in flatten_outputs(arguments).values()
        if isinstance(leaf, Tensor)
    ]
    if name in _FACTORIES:
        fits = not tensors and _is_meta(kwargs.get("device")) and _is_small_factory(args)
    elif name in _LIKE:
        fits = _are_supported(tensors) and (kwargs.get("device") is None or _is_meta(kwargs["device"]))
    else:
        fits = (
            (name in _OPERATIONS and not func._schema.is_mutable) or (name in _IN_PLACE and _is_meta(tensors[0].device))
        ) and (_are_supported(tensors) and not kwargs.get("device") and not _is_unsuitable_index(name, tensors))
    if not fits:
        return NotImplemented
    try:
        result = func(
            *map_value(args, _make_ones),
            **{
                k: torch.device("cpu") if k == "device" else map_value(value, _make_ones) for k, value in kwargs.items()
            },
        )
    except Exception:
        return NotImplemented  # PyTorch raises its own error on the meta device
    return args[0] if name in _IN_PLACE else map_value(result, _to_meta)


def _is_meta(device: Any) -> bool:
    return device is not None and torch.device(device).type == "meta"


def _is_unsuitable_index(name: str, tensors: Sequence[Tensor]) -> bool:
    """Return whether an index selects by values (booleans) or is an error (a tensor on the CPU with an index on another device)."""
    return name == "index" and (
        not tensors[0].is_meta or any(index.dtype in (torch.bool, torch.uint8) for index in tensors[1:])
    )


def _are_supported(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors are ordinary and small, and at least one is on the meta device."""
    return any(tensor.device.type == "meta" for tensor in tensors) and all(
        type(tensor) in (Tensor, nn.Parameter) and tensor.layout == torch.strided and tensor.numel() <= _LARGEST
        for tensor in tensors
    )


def _is_small_factory(args: tuple[Any, ...]) -> bool:
    sizes = [size for item in args for size in (item if isinstance(item, (list, tuple)) else [item])]
    return (
        all(isinstance(size, (int, float)) for size in sizes)
        and math.prod(max(1.0, abs(size)) for size in sizes) <= _LARGEST
    )


def _make_ones(value: Tensor) -> Tensor:
    if value.device.type != "meta":
        return value
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype).fill_(1)


def _to_meta(value: Tensor) -> Tensor:
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
