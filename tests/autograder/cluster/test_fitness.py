"""A worker that is not what this machine is may not grade."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from autograder.engine.sandbox.lockdown import LAYERS
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.cluster import compatibility

SETTINGS = GradingSettings()


@pytest.fixture
def good() -> dict[str, Any]:
    """A machine as this one is, with every layer of isolation."""
    return {**compatibility.software_versions(), compatibility.LAYERS: list(LAYERS), compatibility.CUDA: True}


def test_a_machine_describes_its_versions_its_checks_and_its_isolation() -> None:
    described = asyncio.run(compatibility.describe_machine("cpu"))
    assert {
        "Python",
        "torch",
        "tfcourse",
        compatibility.CHECKS,
        compatibility.LAYERS,
        compatibility.CUDA,
    } <= described.keys()
    assert compatibility.list_incompatibilities(GradingSettings(allow_weaker=True), described) == []


# What a machine has otherwise, and the words that have to be told of it; none if it may grade.
WEAK = [layer for layer in LAYERS if layer != "user namespace"]
OTHERS: list[tuple[dict[str, Any], GradingSettings, tuple[str, ...]]] = [
    ({}, SETTINGS, ()),
    *(({name: "0.1.2"}, SETTINGS, (name, "0.1.2")) for name in ("Python", "torch", "tfcourse")),
    ({compatibility.CHECKS: "other"}, SETTINGS, (compatibility.CHECKS,)),
    ({compatibility.LAYERS: WEAK}, SETTINGS, ("user namespace",)),
    ({compatibility.LAYERS: WEAK}, GradingSettings(allow_weaker=True), ()),
    ({compatibility.LAYERS: WEAK}, GradingSettings(isolation="restricted"), ()),
    ({compatibility.CUDA: False}, SETTINGS, ("CUDA",)),
]


@pytest.mark.parametrize(("other", "settings", "words"), OTHERS)
def test_what_differs_is_named_once_and_what_suffices_is_not(
    good: dict[str, Any], other: dict[str, Any], settings: GradingSettings, words: tuple[str, ...]
) -> None:
    reasons = compatibility.list_incompatibilities(settings, {**good, **other})
    assert len(reasons) == bool(words)
    assert all(word in reasons[0] for word in words)


def test_several_threads_and_a_machine_without_the_course_are_refused(good: dict[str, Any]) -> None:
    [reason] = compatibility.list_incompatibilities(SETTINGS, good, threads=8)
    assert "8 threads" in reason
    [reason] = compatibility.list_incompatibilities(SETTINGS, ModuleNotFoundError("No module named 'autograder'"))
    assert "tfcourse" in reason


def test_a_refusal_names_the_machines_that_differ_and_stays_short() -> None:
    compatibility.refuse_incompatible({"tcp://a": [], "tcp://b": []})
    with pytest.raises(CourseError) as refused:
        compatibility.refuse_incompatible({"tcp://good": [], "tcp://bad": ["torch is older", "it has 2 threads"]})
    assert "tcp://bad: torch is older; it has 2 threads" in str(refused.value)
    assert "tcp://good" not in str(refused.value)
    with pytest.raises(CourseError, match="95 more"):
        compatibility.refuse_incompatible({f"tcp://{number}": ["why"] for number in range(100)})
