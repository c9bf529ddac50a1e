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
        (aten.flip.default, (meta(2, 3), [1]), {}),
        (aten.cumprod.default, (meta(2, 3, dtype=torch.bool), 1), {}),
        (aten.remainder.Scalar, (meta(4, dtype=torch.int64), 3), {}),
        (
            aten.convolution.default,
            (meta(2, 3, 8, 8), meta(4, 3, 3, 3), None, [2, 2], [1, 1], [1, 1], False, [0], 1),
            {},
        ),
        (aten.nll_loss_forward.default, (meta(6, 5), meta(6, dtype=torch.int64), meta(5), 1, -100), {}),
        (aten.scatter_add.default, (meta(2, 5), 1, meta(2, 3, dtype=torch.int64), meta(2, 3)), {}),
        (aten.scatter_reduce.two, (meta(2, 5), 1, meta(2, 3, dtype=torch.int64), meta(2, 3), "amax"), {}),
        (aten.silu.default, (meta(2, 3).transpose(0, 1),), {}),
        (aten.topk.default, (meta(2, 6), 3), {}),
        (aten.sort.default, (meta(2, 6), -1, True), {}),
        (aten.constant_pad_nd.default, (meta(2, 6), [1, 2], 0.0), {}),
        (aten.index.Tensor, (meta(5, 4), [meta(2, 3, dtype=torch.int64)]), {}),
        (aten.index.Tensor, (meta(5, 4, 3), [None, torch.tensor([0, 3])]), {}),
        (aten.index_select.default, (meta(5, 4), 0, meta(3, dtype=torch.int64)), {}),
        (aten.isin.Tensor_Tensor, (meta(2, 3, dtype=torch.int64), meta(2, dtype=torch.int64)), {}),
        (aten.im2col.default, (meta(1, 2, 5, 5), [3, 3], [1, 1], [1, 1], [1, 1]), {}),
        (aten.var_mean.correction, (meta(2, 3), [-1]), {"correction": 0, "keepdim": True}),
        (aten.lerp.Tensor, (meta(2, 3), meta(2, 3), meta(2, 3)), {}),
        (aten.polar.default, (meta(2, 3), meta(2, 3)), {}),
        (aten.bucketize.Tensor, (meta(4), meta(3)), {}),
        (aten.upsample_bicubic2d.default, (meta(1, 2, 4, 4), [6, 6], False), {}),
        (aten.repeat.default, (meta(2, 3), [2, 1]), {}),
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
        (aten.index.Tensor, (meta(3, 4), [meta(3, dtype=torch.bool)])),
        (aten.index.Tensor, (torch.eye(3), [meta(2, dtype=torch.int64)])),  # on different devices
        (aten.add.Tensor, (torch.randn(3), torch.randn(3))),  # nothing on the meta device
        (aten.add.Tensor, (meta(1000, 1000), meta(1000, 1000))),  # too large
    ],
)
def test_the_rest_is_left_to_pytorch(func, args):
    assert compute_on_meta_device(func, args, {}) is NotImplemented


def test_no_question_about_a_reference_makes_pytorch_import_its_compiler():
    code = (
        "import sys\n"
        "from autograder.checks import exercises\n"
        "from autograder.engine.workers.engine import answer_cache, warm_up_worker\n"
        "warm_up_worker()\n"
        "answer_cache(0, 'cpu').fill(list(exercises()))\n"
        "print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
