"""JSON with an item on a line: it says the same as any other, and a person finds the line."""

from __future__ import annotations

import json

import pytest

from autograder.record.compact_json import dumps_by_line


@pytest.mark.parametrize(
    "data",
    [
        {"cells": []},
        {"cells": [1, {"b": [2, "ł\n"], "a": None}]},
        {"nbformat": 4, "cells": [{"z": 1, "a": 2}], "metadata": {"b": 1, "a": "\ud800"}},
    ],
)
@pytest.mark.parametrize("sort_keys", [False, True])
def test_it_says_what_any_other_json_of_it_says(data: dict[str, object], sort_keys: bool) -> None:
    text = dumps_by_line(data, "cells", sort_keys=sort_keys)
    assert json.loads(text) == data
    assert list(json.loads(text)) == (sorted(data) if sort_keys else list(data))


def test_each_member_and_each_item_has_a_line() -> None:
    text = dumps_by_line({"score": 2.5, "exercises": [{"b": 1, "a": 2}, {}], "pending": 0}, "exercises")
    assert text == '{"score": 2.5,\n"exercises": [\n{"b": 1, "a": 2},\n{}\n],\n"pending": 0}\n'


def test_names_are_sorted_at_every_depth_where_that_is_asked_for() -> None:
    text = dumps_by_line({"b": {"d": 1, "c": 2}, "a": [{"f": 1, "e": 2}]}, "a", sort_keys=True)
    assert text == '{"a": [\n{"e": 2, "f": 1}\n],\n"b": {"c": 2, "d": 1}}\n'
