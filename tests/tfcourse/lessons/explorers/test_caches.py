"""What the cache explorer counts is what a model does: counted here one product at a time."""

from __future__ import annotations

import pytest

from tfcourse.lessons.explorers.caches import CacheStep, cache_explorer

from .examples import data_of, tables_of


def products(queries: range, d_model: int, n_layers: int) -> int:
    """Multiplications of the tokens at these places, by loops over the layers, the matrices and the keys."""
    count = 0
    for _ in range(n_layers):
        for query in queries:
            for rows, columns in [(d_model, d_model)] * 4 + [(d_model, 4 * d_model), (4 * d_model, d_model)]:
                count += rows * columns
            for _key in range(query + 1):
                count += 2 * d_model  # the score, and the value times its weight
    return count


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_step_costs_what_a_loop_counts(length: int) -> None:
    step = CacheStep.of(length, d_model=6, n_layers=3)
    assert step.recomputed == products(range(length), 6, 3)
    assert step.cached == products(range(length - 1, length), 6, 3)
    assert step.kept == 3 * length * (6 + 6) * 4, "a key and a value for each token and layer, in float32"


def test_data_and_table_have_a_step_for_each_word() -> None:
    explorer = cache_explorer(["a", "b", "c"], d_model=4, n_layers=1, caption="c")
    steps = [CacheStep.of(length, 4, 1) for length in (1, 2, 3)]
    numbers = [[step.recomputed, step.cached, step.kept] for step in steps]
    data = data_of(explorer)
    assert (data["words"], data["steps"]) == (["a", "b", "c"], numbers)
    assert [row[1:] for row in tables_of(explorer)[0][1:]] == [[f"{n:,}" for n in row] for row in numbers]
    ratio = sum(step.recomputed for step in steps) / sum(step.cached for step in steps)
    assert f"{ratio:.1f} times" in explorer.summary()
