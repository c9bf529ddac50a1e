"""Inputs made from a seed."""

import hashlib
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from autograder.checking.draw import Case, Draw


def stream(draw: Draw) -> list[object]:
    """A bit of everything that can be drawn."""
    return [
        draw.sizes(4),
        draw.normal(2, 3).tolist(),
        draw.integers(0, 9, 5).tolist(),
        draw.permutation(6).tolist(),
        draw.mask(3, 4).tolist(),
    ]


def test_the_same_key_draws_the_same_whatever_was_drawn_before_and_whatever_the_global_seed():
    torch.manual_seed(1)
    first = stream(Draw("blend", "values", 0))
    torch.manual_seed(2)
    torch.rand(5)
    Draw("other").normal(7)
    assert stream(Draw("blend", "values", 0)) == first


@pytest.mark.parametrize("key", [("blend", "values", 1), ("blend", "shape", 0), ("ble", "ndvalues", 0), ("blend",)])
def test_another_key_draws_something_else(key):
    assert Draw(*key).normal(8).tolist() != Draw("blend", "values", 0).normal(8).tolist()


def test_all_19968_bits_of_a_hidden_stream_come_from_its_key():
    words = np.frombuffer(hashlib.shake_256(b"blend\x00values\x000").digest(4 * 624), "<u4")
    twister = np.random.MT19937()
    twister.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 624}}
    drawn = torch.rand(700, generator=Draw("blend", "values", 0, hidden=True)._generator)
    assert (drawn * 2**24).tolist() == (twister.random_raw(700) & (2**24 - 1)).tolist()


def several(draw: Draw) -> Case:
    return Case({"x": draw.normal(8)})


def other(draw: Draw) -> Case:
    return Case({"x": draw.normal(8)})


def test_draws_that_share_a_name_make_the_same_cases_whatever_else_they_draw():
    def numbers(draw: Draw, maker=several) -> list[float]:
        return draw.case(maker).arguments["x"].tolist()

    mine, yours = Draw("blend", "shape", shared=("blend", 0)), Draw("blend", "values", shared=("blend", 0))
    yours.normal(3)
    first = numbers(mine)
    assert numbers(yours) == first
    assert numbers(mine) != first, "who asks for two, gets two"
    assert numbers(Draw("blend", "values", shared=("blend", 1))) != first
    assert numbers(Draw("blend", "values", shared=("blend", 0)), other) != first
    assert len(numbers(Draw("blend"), partial(several))) == 8, "a maker need not have a name"


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("low", [0, 1, 2, 5])
def test_sizes_are_pairwise_distinct_and_at_least_as_large_as_asked(count, low):
    seen = set()
    for seed in range(60):
        sizes = Draw(seed).sizes(count, low)
        assert len(sizes) == count == len(set(sizes))
        assert low <= min(sizes) and max(sizes) <= low + count  # noqa: PT018 - one statement about a range
        seen.add(sizes)
    assert len(seen) > 1, "sizes that are always the same can be written into a solution"


@pytest.mark.parametrize("n", range(2, 10))
def test_a_permutation_moves_every_element(n):
    for seed in range(40):
        order = Draw(seed).permutation(n)
        assert sorted(order.tolist()) == list(range(n))
        assert not (order == torch.arange(n)).any()


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 1, 5), (2, 3, 4, 5)])
def test_a_mask_permits_something_to_every_query_and_forbids_something(shape):
    for seed in range(300):
        mask = Draw(seed).mask(*shape)
        assert mask.shape == shape
        assert mask.dtype == torch.bool
        assert mask.any(-1).all(), "a query that may attend to nothing is a case of its own"
        assert not mask.all(), "a mask that forbids nothing would let `mask ignored` through"


def test_a_number_is_the_same_in_every_precision_up_to_rounding():
    wide = Draw("x").normal(50, scale=0.5, dtype=torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.testing.assert_close(Draw("x").normal(50, scale=0.5, dtype=dtype), wide.to(dtype), rtol=0, atol=0)
    assert 0.3 < wide.std() < 0.7


def test_weights_give_every_parameter_and_buffer_a_number_that_is_not_zero():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=True, track_running_stats=False))
    weights = Draw("w").weights(module, dtype=torch.float64)
    assert {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in module.state_dict().items()
    }
    assert all(value.dtype == torch.float64 and value.all() for value in weights.values())


def test_a_case_in_another_precision_converts_numbers_and_leaves_masks_and_indices():
    draw = Draw("c")
    case = Case(
        {"x": draw.normal(3), "mask": draw.mask(2, 3), "pair": (draw.normal(2), draw.integers(0, 5, 2)), "n": 4},
        init={"width": 3},
        state={"weight": draw.normal(3)},
    )
    half = case.to(torch.float16)
    assert half.arguments["x"].dtype == half.arguments["pair"][0].dtype == half.state["weight"].dtype == torch.float16
    assert half.arguments["mask"].dtype == torch.bool
    assert half.arguments["pair"][1].dtype == torch.int64
    assert (half.arguments["n"], half.init) == (4, {"width": 3})
    assert case.arguments["x"].dtype == torch.float32, "the case itself stays as it is"


def test_hidden_questions_have_larger_numbers_than_visible_ones():
    visible = {Draw("length", seed).unseen(3, 9) for seed in range(40)}
    hidden = {Draw("length", seed, hidden=True).unseen(3, 9) for seed in range(40)}
    assert (visible, hidden) == ({3, 4, 5}, {6, 7, 8})
    drawn = Draw("length", hidden=True).case(lambda draw: Case({"n": draw.unseen(3, 9)}))
    assert drawn.arguments["n"] in hidden, "a case maker's own draw knows as well"


def test_any_order_is_drawn_the_unchanged_one_among_them():
    orders = {tuple(Draw("order", seed).order(3)) for seed in range(60)}
    assert len(orders) == 6
