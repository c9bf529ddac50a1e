"""The benchmark of the models compares equal models, and tells a ratio for each."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from torch import Tensor


def test_every_model_is_compared_and_two_write(experiment: Callable[[str], ModuleType]) -> None:
    found = experiment("models").figures(1, width=16, layers=1, new_tokens=3)
    assert [row[0] for row in found.rows] == ["Bert", "Gpt", "Gpt", "T5", "ViT", "Llama", "Llama"]
    assert all(row[4] > 0 for row in found.rows)
    assert "ours / theirs" in found.text()


def test_rounds_are_taken_in_turns_and_the_first_does_not_count(experiment: Callable[[str], ModuleType]) -> None:
    seen: list[str] = []

    def run(name: str) -> Callable[[], Tensor]:
        return lambda: seen.append(name) or Tensor()  # type: ignore[func-returns-value]

    assert len(experiment("models").in_turns(run("a"), run("b"), 2)) == 2
    assert seen == ["a", "b"] * 3
