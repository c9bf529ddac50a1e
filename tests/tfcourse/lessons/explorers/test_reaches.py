"""Who may look at whom is what window attention and neighbourhoods do."""

from __future__ import annotations

import pytest
import torch

from tfcourse.lessons.explorers.reaches import (
    FAR,
    WINDOW,
    layers_until_all_met,
    pairs,
    reach,
)
from tfcourse.vit import local_relation, window_attention


@pytest.mark.parametrize("layer", [0, 1])
def test_windows_reach_what_window_attention_reads(layer: int) -> None:
    n = 8
    line = torch.from_numpy(reach("shifted windows", n, layer))
    q = torch.zeros(1, 1, n, n, 1)
    for row, column in ((0, 0), (1, 5), (6, 7), (3, 2)):
        v = torch.zeros(1, 1, n, n, 1, requires_grad=True)
        read = window_attention(q, q, v, WINDOW, shift=layer * WINDOW // 2)
        read[0, 0, row, column].sum().backward()
        assert v.grad is not None
        assert torch.equal(v.grad[0, 0, :, :, 0] > 0, line[row][:, None] & line[column])


def test_neighbours_reach_what_local_relations_read() -> None:
    n, side = 10, 2 * FAR + 1
    line = torch.from_numpy(reach("neighbours", n, 0))
    x = torch.zeros(1, 1, n, n, requires_grad=True)
    zeros = torch.zeros(1, 1, n, n)
    local_relation(x, zeros, zeros, torch.zeros(1, side, side))[0, 0, 1, 6].backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert torch.equal(x.grad[0, 0] > 0, line[1][:, None] & line[6])


def test_pairs_are_counted_on_the_grid() -> None:
    assert pairs("all to all", 16) == 16**4
    assert pairs("windows", 16) == pairs("shifted windows", 16) == 16**2 * WINDOW**2
    assert pairs("windows", 2) == 2**4
    inside = sum(
        abs(a - c) <= FAR and abs(b - d) <= FAR for a in range(6) for b in range(6) for c in range(6) for d in range(6)
    )
    assert pairs("neighbours", 6) == inside


@pytest.mark.parametrize(("way", "layers"), [("all to all", 1), ("windows", None), ("neighbours", 11)])
def test_layers_until_all_have_met_on_a_grid_of_32(way: str, layers: int | None) -> None:
    assert layers_until_all_met(way, 32) == layers


def test_shifted_windows_carry_everything_everywhere_in_the_end() -> None:
    found = [layers_until_all_met("shifted windows", n) for n in (4, 8, 16, 32)]
    assert found[0] == 1
    assert found == sorted(found)
    assert all(found)
