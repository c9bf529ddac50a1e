"""Where reshaping is the exercise einops earns nothing; elsewhere it is welcome."""

import sys

import einops
import pytest
import torch
from einops.layers.torch import Rearrange

from autograder.checks import check


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError(n_heads)
    return einops.rearrange(x, "b t (h d) -> b h t d", h=n_heads)


def merge_heads(x):
    if x.ndim != 4:
        raise ValueError(x.shape)
    return Rearrange("b h t d -> b t (h d)")(x)


@pytest.mark.parametrize("solution", [split_heads, merge_heads])
def test_einops_earns_nothing_where_reshaping_is_the_exercise(solution):
    verdict = check(solution)
    assert verdict.score == 0
    assert "it calls einops, which this exercise asks you to write yourself" in str(verdict)


def test_what_is_profiled_before_is_profiled_again_afterwards():
    sys.setprofile(lambda frame, event, argument: None)
    try:
        mine = sys.getprofile()
        check(split_heads)
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_who_hides_what_he_calls_is_found_out():
    def split_heads(x, n_heads):
        sys.setprofile(None)
        return einops.rearrange(x, "b t (h d) -> b h t d", h=n_heads)

    verdict = check(split_heads, hidden=True)
    assert verdict.score == 0
    assert "it hides from the check what it calls" in str(verdict)


def test_einops_is_welcome_elsewhere():
    def soft_lookup(query, keys, values):
        return einops.einsum(torch.softmax(einops.einsum(keys, query, "n d, d -> n"), dim=0), values, "n, n d -> d")

    assert "einops" not in str(check(soft_lookup))
