"""What an accelerator accepts and refuses, and that the pretend one computes what the CPU does.

The table is asked of CUDA too, where there is one: then it says whether the pretend accelerator is as strict as the real thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

pytestmark = pytest.mark.cuda

Call = Callable[[str], Any]
ONE_DEVICE = "(on|in|to be on) the same device|same device as|on different devices"


def ones(*size: int, device: str = "cpu") -> Tensor:
    return torch.ones(*size, device=device)


def index(*numbers: int, device: str = "cpu") -> Tensor:
    return torch.tensor(numbers, device=device)


def written(change: Callable[[Tensor], Any], device: str) -> Tensor:
    tensor = ones(2, 3, device=device)
    change(tensor)
    return tensor


def put(key: Any, value: Any) -> Callable[[Tensor], None]:
    return lambda tensor: tensor.__setitem__(key, value)


# By what students write: a tensor of the CPU meets one on the device.
REFUSED: dict[str, tuple[Call, str]] = {
    "a sum": (lambda d: ones(3, device=d) + ones(3), ONE_DEVICE),
    "a sum the other way round": (lambda d: ones(3) + ones(3, device=d), ONE_DEVICE),
    "a number of the device to a row of the CPU": (lambda d: ones(3) + torch.tensor(1.0, device=d), ONE_DEVICE),
    "a sum in place": (lambda d: ones(3, device=d).add_(ones(3)), ONE_DEVICE),
    "a sum in place into a number of the CPU": (
        lambda d: torch.tensor(1.0).add_(torch.tensor(1.0, device=d)),
        ONE_DEVICE,
    ),
    "a matrix product": (lambda d: ones(2, 3, device=d) @ ones(3, 2), ONE_DEVICE),
    "products of a batch": (lambda d: torch.bmm(ones(1, 2, 3), ones(1, 3, 2, device=d)), ONE_DEVICE),
    "einsum": (lambda d: torch.einsum("ij,kj->ik", ones(2, 3, device=d), ones(4, 3)), ONE_DEVICE),
    "a linear map": (lambda d: nn.Linear(3, 2)(ones(2, 3, device=d)), ONE_DEVICE),
    "a bias": (lambda d: F.linear(ones(2, 3, device=d), ones(4, 3, device=d), ones(4)), ONE_DEVICE),
    "masked_fill": (lambda d: ones(3, device=d).masked_fill(ones(3).bool(), 0.0), ONE_DEVICE),
    "masked_fill with a mask of one number": (
        lambda d: ones(3, device=d).masked_fill(torch.tensor(True), 0.0),
        ONE_DEVICE,
    ),
    "where": (lambda d: torch.where(ones(3).bool(), ones(3, device=d), ones(3, device=d)), ONE_DEVICE),
    "a mask times scores": (lambda d: ones(2, 2, device=d) * torch.ones(2, 2).tril(), ONE_DEVICE),
    "a comparison": (lambda d: torch.arange(3, device=d)[None] < index(1, 2)[:, None], ONE_DEVICE),
    "attention with a mask": (
        lambda d: F.scaled_dot_product_attention(*[ones(1, 2, 3, device=d)] * 3, attn_mask=ones(2, 2).bool()),
        ONE_DEVICE,
    ),
    "concatenation": (lambda d: torch.cat([ones(2, device=d), ones(2)]), ONE_DEVICE),
    "a stack": (lambda d: torch.stack([ones(2, device=d), ones(2)]), ONE_DEVICE),
    "a stack of numbers": (lambda d: torch.stack([torch.tensor(1.0, device=d), torch.tensor(1.0)]), ONE_DEVICE),
    "an embedding's tokens": (lambda d: F.embedding(index(1), ones(3, 2, device=d)), ONE_DEVICE),
    "an embedding's table": (lambda d: F.embedding(index(1, device=d), ones(3, 2)), ONE_DEVICE),
    "gather": (lambda d: ones(2, 3, device=d).gather(1, torch.zeros(2, 1, dtype=torch.int64)), ONE_DEVICE),
    "index_select": (lambda d: ones(2, 3, device=d).index_select(1, index(0)), ONE_DEVICE),
    "scatter": (lambda d: ones(2, 3, device=d).scatter(1, torch.zeros(2, 1, dtype=torch.int64), 1.0), ONE_DEVICE),
    "index_add": (lambda d: ones(2, 3, device=d).index_add(0, index(0), ones(1, 3, device=d)), ONE_DEVICE),
    "index_copy": (lambda d: ones(2, 3, device=d).index_copy(0, index(0, device=d), ones(1, 3)), ONE_DEVICE),
    "a tensor of the CPU by an index on the device": (lambda d: ones(3)[index(0, device=d)], "on the same device"),
    "rows of the CPU for an index": (
        lambda d: written(put(index(0, 1, device=d), ones(2, 3)), d),
        ONE_DEVICE,
    ),
    "a loss": (lambda d: F.cross_entropy(ones(2, 3, device=d), index(0, 1)), ONE_DEVICE),
    "a loss of squares": (lambda d: F.mse_loss(ones(2, device=d), ones(2)), ONE_DEVICE),
    "a norm's scale": (lambda d: F.layer_norm(ones(2, 3, device=d), (3,), ones(3), ones(3)), ONE_DEVICE),
    "a convolution": (lambda d: F.conv1d(ones(1, 2, 5, device=d), ones(3, 2, 2)), "same|should be"),
    "an LSTM": (lambda d: nn.LSTM(3, 2)(ones(4, 3, device=d)), "same device|not on the same"),
    "an LSTM's first state": (
        lambda d: nn.LSTM(3, 2).to(d)(ones(4, 3, device=d), (ones(1, 2), ones(1, 2))),
        "same device|not at the same device|on cpu",
    ),
    "a comparison of all numbers": (
        lambda d: torch.equal(ones(2, device=d), ones(2)),
        f"{ONE_DEVICE}|two different devices",
    ),
    "the packed lengths": (
        lambda d: nn.utils.rnn.pack_padded_sequence(ones(3, 1, 2, device=d), index(3, device=d)),
        "CPU int64 tensor",
    ),
    "a generator of the CPU": (lambda d: torch.rand(2, device=d, generator=torch.Generator()), "generator"),
    "a draw by a generator of the CPU": (
        lambda d: torch.multinomial(ones(3, device=d), 1, generator=torch.Generator()),
        "generator",
    ),
    "its memory as NumPy's": (lambda d: ones(2, device=d).numpy(), "type tensor to numpy"),
}
ACCEPTED: dict[str, Call] = {
    "a number of Python": lambda d: ones(2, device=d) * 2.0,
    "a number of the CPU": lambda d: ones(2, device=d) * torch.tensor(2.0),
    "a number of the CPU first": lambda d: torch.tensor(2.0) * ones(2, device=d),
    "a root of a number of the CPU": lambda d: ones(2, device=d) / torch.sqrt(torch.tensor(2.0)),
    "a number of the CPU in place": lambda d: ones(2, device=d).add_(torch.tensor(2.0)),
    "a power of a number of the CPU": lambda d: ones(2, device=d) ** torch.tensor(2),
    "a number of the CPU to fill in": lambda d: ones(2, device=d).masked_fill(
        ones(2, device=d).bool(), torch.tensor(0.0)
    ),
    "numbers of the CPU to choose from": lambda d: torch.where(
        ones(2, device=d).bool(), torch.tensor(1.0), torch.tensor(0.0)
    ),
    "an index of the CPU": lambda d: ones(3, device=d)[index(0, 1)],
    "a mask of the CPU as an index": lambda d: ones(3, device=d)[torch.tensor([True, False, True])],
    "an index of the CPU to write to": lambda d: written(put(index(0), 2.0), d),
    "a row of the CPU written to a place": lambda d: written(put(0, ones(3)), d),
    "rows of the CPU copied": lambda d: ones(2, 3, device=d).copy_(ones(2, 3)),
    "lengths of the CPU of a packed sequence": lambda d: (
        nn.utils.rnn.pack_padded_sequence(ones(3, 1, 2, device=d), index(3)).data
    ),
    "a generator of its own": lambda d: torch.rand(2, device=d, generator=torch.Generator(d).manual_seed(1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tensors_of_two_devices_are_refused(name: str, accelerator: str) -> None:
    ones(1, device=accelerator)
    call, message = REFUSED[name]
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError), match=message):
        call(accelerator)


@pytest.mark.parametrize("name", ACCEPTED)
def test_numbers_and_indices_of_the_cpu_are_accepted(name: str, accelerator: str) -> None:
    assert ACCEPTED[name](accelerator).device.type == accelerator
