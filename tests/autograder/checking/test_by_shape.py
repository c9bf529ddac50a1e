"""What is worked out on the CPU has the shape, the type and the strides that PyTorch gives on the meta device."""

import subprocess
import sys

import pytest
import torch

from autograder.checking.by_shape import compute_on_meta_device

aten = torch.ops.aten


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


@pytest.mark.parametrize(
    ("func", "args", "kwargs"),
    [
        (aten.mm.default, (meta(3, 4), meta(4, 5)), {}),
        (aten.mv.default, (meta(3, 4), meta(4)), {}),
        (aten.bmm.default, (meta(2, 3, 4), meta(2, 4, 5)), {}),
        (aten._softmax.default, (meta(2, 3), -1, False), {}),
        (aten.add.Tensor, (meta(2, 1), meta(3)), {}),
        (aten.mul.Tensor, (meta(2, 3, dtype=torch.float16), torch.tensor(2.0)), {}),
        (aten.div.Tensor, (meta(2, 3, dtype=torch.int64), meta(3, dtype=torch.int64)), {}),
        (aten.sum.dim_IntList, (meta(2, 3, 4), [-1], True), {}),
        (aten.max.dim, (meta(2, 3), 1), {}),
        (aten.embedding.default, (meta(5, 3), meta(2, 4, dtype=torch.int64)), {}),
        (aten.gather.default, (meta(2, 3, 4), 1, meta(2, 2, 4, dtype=torch.int64)), {}),
        (aten.scatter.value, (meta(2, 3), 1, meta(2, 1, dtype=torch.int64), 1.0), {}),
        (aten.relu.default, (meta(2, 3).transpose(0, 1),), {}),
        (aten.gelu.default, (meta(2, 3, dtype=torch.bfloat16),), {}),
        (aten.native_layer_norm.default, (meta(2, 3, 4), [4], meta(4), meta(4), 1e-5), {}),
        (aten.logsumexp.default, (meta(2, 3), [-1]), {}),
        (aten.full_like.default, (meta(2, 3).transpose(0, 1), 1.0), {}),
        (aten.arange.default, (7,), {"device": torch.device("meta")}),
    ],
)
def test_the_result_is_the_meta_devices_own(func, args, kwargs):
    expected, found = func(*args, **kwargs), compute_on_meta_device(func, args, kwargs)
    pairs = zip(found, expected, strict=True) if isinstance(found, (tuple, list)) else [(found, expected)]
    for mine, theirs in pairs:
        assert mine.device.type == "meta"
        assert (mine.shape, mine.dtype, mine.stride()) == (theirs.shape, theirs.dtype, theirs.stride())


def test_what_is_changed_in_place_is_the_same_tensor():
    x = meta(2, 3)
    assert compute_on_meta_device(aten.mul_.Tensor, (x, 2.0), {}) is x


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.mm.default, (meta(3, 4), meta(5, 6))),  # shapes that do not fit: PyTorch says so
        (aten.nonzero.default, (meta(3),)),  # depends on the numbers
        (aten.add.Tensor, (torch.randn(3), torch.randn(3))),  # nothing on the meta device
        (aten.add.Tensor, (meta(1000, 1000), meta(1000, 1000))),  # too large
    ],
)
def test_the_rest_is_left_to_pytorch(func, args):
    assert compute_on_meta_device(func, args, {}) is NotImplemented


def test_a_check_does_not_import_pytorchs_compiler():
    code = (
        "import sys, torch\n"
        "from autograder.checking.draw import Case\n"
        "from autograder.checking.subject import LocalSubject\n"
        "def f(x, w): return torch.softmax(x @ w / 2, dim=-1)\n"
        "case = Case({'x': torch.randn(3, 4), 'w': torch.randn(4, 4)})\n"
        "for action, wrt in (('call', ()), ('meta', ()), ('operations', ()), ('gradients', ('x',))):\n"
        "    seen = LocalSubject(f).observe(case.request(action, wrt))\n"
        "    assert seen.error is None, seen.error\n"
        "print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
