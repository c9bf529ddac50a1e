"""The small task of chapter 05: who trains reaches it, who does not does not, in time; and the prompt says so."""

from pathlib import Path
from time import process_time
from typing import Any

import pytest
import torch

from autograder.checking.draw import Draw
from autograder.checking.judges import judge
from autograder.checking.subject import LocalSubject
from autograder.checks import check, exercise
from autograder.checks.ch05_transformer.training_loop import LARGEST_LOSS, LEAST_RIGHT, STEPS
from autograder.engine.settings import GradingSettings
from tfcourse.training import training_loop, training_step

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = " ".join(
    (Path(__file__).parents[3] / "chapters" / "05_transformer" / "exercises.md").read_text(encoding="utf-8").split()
)


def verdict(loop: Any, seed: int) -> str | None:
    """What is said of a loop that was asked to do the small task."""
    (aspect,) = (aspect for aspect in exercise("training_loop").rows if aspect.name == "reaches")
    (probe,) = aspect.probes(Draw("small task", seed))
    seen, expected = ([LocalSubject(f).observe(probe.requests[0])] for f in (loop, training_loop))
    return judge(probe.judge, seen, expected, probe.options)


def without_training(model: Any, optimizer: Any, batches: Any, learning_rate: Any) -> Any:
    return torch.zeros(len(batches))


def on_one_batch(model: Any, optimizer: Any, batches: Any, learning_rate: Any) -> Any:
    return training_loop(model, optimizer, [batches[0]] * len(batches), learning_rate=learning_rate)


def at_the_optimisers_rate(model: Any, optimizer: Any, batches: Any, learning_rate: Any) -> Any:
    return training_loop(model, optimizer, batches)


def at_the_first_rate(model: Any, optimizer: Any, batches: Any, learning_rate: Any) -> Any:
    return training_loop(model, optimizer, batches, learning_rate=lambda step: learning_rate(1))


def for_ten_steps(model: Any, optimizer: Any, batches: Any, learning_rate: Any) -> Any:
    return training_loop(model, optimizer, batches[:10], learning_rate=learning_rate)


@pytest.mark.parametrize("seed", range(4))
def test_a_loop_that_trains_reaches_the_small_task_whatever_the_seed(seed: int) -> None:
    assert verdict(training_loop, seed) is None


@pytest.mark.parametrize(
    "loop", [without_training, on_one_batch, at_the_optimisers_rate, at_the_first_rate, for_ten_steps]
)
def test_a_loop_that_does_not_train_as_it_should_does_not_reach_it_whatever_the_seed(loop: Any) -> None:
    assert all("on examples it was not trained on" in (verdict(loop, seed) or "") for seed in range(4))


def test_a_loop_that_reaches_it_in_a_way_of_its_own_keeps_those_points_and_no_others_about_numbers() -> None:
    def training_loop(
        model: Any, optimizer: Any, batches: Any, *, learning_rate: Any = None, label_smoothing: float = 0.0
    ) -> Any:
        """Every batch twice: it trains, and it is another training than the one that is asked for."""
        if not batches:
            raise ValueError("none")
        losses = []
        for step, (inputs, targets) in enumerate(batches, start=1):
            for _ in range(2):
                rate = learning_rate and learning_rate(step)
                losses.append(training_step(model, optimizer, inputs, targets, learning_rate=rate))
        return torch.stack(losses[::2])

    found = {finding.aspect: finding.passed for finding in check(training_loop).findings}
    assert found["reaches"]
    assert not any(found[name] for name in ("values", "handed on", "optimiser"))


def test_the_whole_check_takes_a_small_part_of_the_time_that_it_may_take() -> None:
    sheet = exercise("training_loop").sheet(hidden=True)
    before = process_time()
    for section in sheet.sections:
        for probe in section.probes:
            for request in probe.requests:
                LocalSubject(training_loop).observe(request)
    assert process_time() - before < GradingSettings().exercise_seconds / 6


def test_the_prompt_names_the_bounds_and_the_time() -> None:
    assert f"After {STEPS} steps" in PROMPT
    assert f"at least {100 * LEAST_RIGHT:.0f} % of 200 new points correctly" in PROMPT
    assert f"with a mean loss of at most {LARGEST_LOSS}" in PROMPT
    assert f"The whole check may take {GradingSettings().exercise_seconds} seconds" in PROMPT
