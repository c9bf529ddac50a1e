"""What the cache explorer counts is what a model does: counted here one product at a time."""

from __future__ import annotations

import json

import pytest

from tfcourse.lessons.explorers.caches import MOST_TOKENS, CacheStep, cache_explorer


def products(queries: range, d_model: int, n_layers: int) -> int:
    """Multiplications of the tokens at these places, by loops over the layers, the matrices and the keys."""
    count = 0
    for _ in range(n_layers):
        for query in queries:
            for rows, columns in [(d_model, d_model)] * 4 + [(d_model, 4 * d_model), (4 * d_model, d_model)]:
                count += rows * columns
            for _key in range(query + 1):
                count += d_model  # the score
                count += d_model  # the value, times its weight
    return count


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_step_costs_what_a_loop_counts(length: int) -> None:
    step = CacheStep.of(length, d_model=6, n_layers=3)
    assert step.recomputed == products(range(length), 6, 3)
    assert step.cached == products(range(length - 1, length), 6, 3)
    assert step.kept == 3 * length * (6 + 6) * 4, "a key and a value for each token and layer, in float32"


def test_its_data_has_a_step_for_each_word() -> None:
    data = json.loads(cache_explorer(["a", "b", "c"], d_model=4, n_layers=1, caption="c").to_json())
    assert data["words"] == ["a", "b", "c"]
    first = CacheStep.of(1, 4, 1)
    assert data["steps"][0] == [first.recomputed, first.cached, first.kept]
    assert first.recomputed == first.cached, "the first token has nothing behind it"
    assert len(data["steps"]) == 3


def test_its_table_says_the_same_where_no_script_runs() -> None:
    explorer = cache_explorer(["a", "b"], d_model=4, n_layers=1, caption="c")
    step = CacheStep.of(2, 4, 1)
    assert f"<td>{step.recomputed:,}</td><td>{step.cached:,}</td><td>{step.kept}</td>" in explorer.plain()
    assert explorer.summary().startswith("2 tokens, 1.5 times")


@pytest.mark.parametrize(
    ("words", "sizes", "complaint"),
    [
        (["a"], {}, "2 to 24 words, got 1"),
        (["a"] * (MOST_TOKENS + 1), {}, "got 25"),
        (["a", "b"], {"d_model": 0}, "d_model=0"),
        (["a", "b"], {"n_layers": 0}, "n_layers=0"),
        (["a", "b"], {"caption": " "}, "caption"),
    ],
)
def test_what_cannot_be_shown_is_refused(words: list[str], sizes: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        cache_explorer(words, **({"d_model": 4, "n_layers": 1, "caption": "c"} | sizes))  # type: ignore[arg-type]
