"""On a device without float64 the course computes in float32, and gives nearly the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tfcourse import dtypes
from tfcourse.decoding import beam_search
from tfcourse.dtypes import widest_float
from tfcourse.llama import Llama
from tfcourse.positions import sinusoidal_positions
from tfcourse.rotary import RotaryAttention, rotary_embedding, rotary_frequencies, rotary_score
from tfcourse.sampling import top_p


class RefusesFloat64(TorchDispatchMode):
    """A device that has no float64: every operation that makes or takes such a tensor fails, as on Apple's GPUs."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, result)):
            if isinstance(leaf, Tensor) and leaf.dtype == torch.float64:
                raise TypeError(f"{func} on a device that has no float64")
        return result


def llama() -> Tensor:
    torch.manual_seed(0)
    model = Llama(11, d_model=16, n_heads=4, n_kv_heads=2, d_ff=24, n_layers=2)
    logits, cache = model(torch.arange(6).reshape(2, 3))
    return torch.cat([logits, model(torch.tensor([[1], [2]]), cache)[0]], dim=1)


def rotations() -> Tensor:
    torch.manual_seed(0)
    q, frequencies = torch.randn(2, 5, 8), rotary_frequencies(8)
    turned = rotary_embedding(q, torch.arange(5), frequencies)
    return torch.cat([turned.flatten(), rotary_score(q, q.flip(1), torch.arange(5), frequencies).flatten()])


def rotary_attention() -> Tensor:
    torch.manual_seed(0)
    return RotaryAttention(16, 4)(torch.randn(2, 5, 16))


def nucleus() -> Tensor:
    torch.manual_seed(0)
    return top_p(torch.randn(4, 9), 0.7)


def beams() -> Tensor:
    table = torch.randn(9, 9, generator=torch.Generator().manual_seed(1))
    texts = beam_search(lambda text: table[text], torch.tensor([[1]]), beam_width=3, max_new_tokens=4)
    return torch.tensor([score for score, _ in texts])


COMPUTED: dict[str, Callable[[], Tensor]] = {
    "llama": llama,
    "rotations": rotations,
    "rotary attention": rotary_attention,
    "sinusoids": lambda: sinusoidal_positions(7, 12),
    "top-p": nucleus,
    "beams": beams,
}


@pytest.fixture
def without_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dtypes, "WITHOUT_FLOAT64", {"cpu"})
    with RefusesFloat64():
        yield


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED)
def test_float32_does_where_there_is_no_float64(compute: Callable[[], Tensor], without_float64: None) -> None:
    result = compute()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dtypes, "WITHOUT_FLOAT64", frozenset())
        with pytest.raises(TypeError, match="has no float64"):
            compute()
    assert result.dtype != torch.float64


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED)
def test_the_numbers_are_nearly_those_of_float64(
    compute: Callable[[], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compute()
    monkeypatch.setattr(dtypes, "WITHOUT_FLOAT64", {"cpu"})
    torch.testing.assert_close(compute(), expected, rtol=1e-4, atol=1e-5)


def test_apples_devices_have_float32_and_others_float64() -> None:
    assert widest_float("mps") == torch.float32
    assert widest_float("cpu") == widest_float("cuda") == widest_float(None) == torch.float64
