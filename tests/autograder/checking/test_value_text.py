"""Tests of values in words."""

from __future__ import annotations

from autograder.checking.value_text import number_or_repr


def test_the_mark_for_what_is_left_out_of_a_text_stands_outside_its_quotes() -> None:
    assert number_or_repr("short") == "'short'"
    assert number_or_repr("a" * 20 + "..." + "b" * 20) == f"'{'a' * 14}' … '{'b' * 14}'"
    assert number_or_repr(["a" * 40]) == f"['{'a' * 14}' … '{'a' * 14}']"
