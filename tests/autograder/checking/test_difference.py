"""Tests of differences between two values, as they are described to students."""

from __future__ import annotations

import torch

from autograder.checking.difference import describe_difference


def test_a_small_error_is_called_nearly_right_and_a_large_one_wrong() -> None:
    reference = torch.tensor([1.0, 2.0, -4.0], dtype=torch.float64)
    assert "nearly right, off by up to 1e-08 of the largest (float64 allows 1e-09)" in str(
        describe_difference("the result", reference * (1 + 1e-8), reference)
    )
    assert "nearly right" not in str(describe_difference("the result", reference + 0.001, reference))
    assert "nearly right" not in str(describe_difference("the result", reference * torch.nan, reference))
