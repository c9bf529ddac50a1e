"""A worker that is not what this machine is may not grade."""

from __future__ import annotations

import asyncio

import pytest

from autograder.cluster import compatibility
from autograder.engine.sandbox.lockdown import LAYERS
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError

SETTINGS = GradingSettings()


@pytest.fixture
def good() -> dict[str, object]:
    """A machine as this one is, with every layer of isolation."""
    return {**compatibility.described_code(), compatibility.LAYERS: list(LAYERS), compatibility.CUDA: True}


def test_a_machine_describes_its_versions_its_checks_and_its_isolation() -> None:
    described = asyncio.run(compatibility.describe("cpu"))
    assert {
        "Python",
        "torch",
        "tfcourse",
        compatibility.CHECKS,
        compatibility.LAYERS,
        compatibility.CUDA,
    } <= described.keys()
    assert compatibility.incompatibilities(GradingSettings(allow_weaker=True), described) == []


def test_the_same_machine_fits(good: dict[str, object]) -> None:
    assert compatibility.incompatibilities(SETTINGS, good) == []


@pytest.mark.parametrize("name", ["Python", "torch", "tfcourse"])
def test_another_version_is_named(good: dict[str, object], name: str) -> None:
    [reason] = compatibility.incompatibilities(SETTINGS, {**good, name: "0.1.2"})
    assert reason.startswith(f"{name} is 0.1.2 there and ")


def test_other_checks_are_refused_though_the_version_is_the_same(good: dict[str, object]) -> None:
    assert compatibility.incompatibilities(SETTINGS, {**good, compatibility.CHECKS: "other"}) == [
        f"{compatibility.CHECKS} differs"
    ]


def test_several_threads_are_refused(good: dict[str, object]) -> None:
    [reason] = compatibility.incompatibilities(SETTINGS, good, threads=8)
    assert "8 threads" in reason
    assert "--nthreads 1" in reason


def test_a_machine_without_the_course_is_refused() -> None:
    [reason] = compatibility.incompatibilities(SETTINGS, ModuleNotFoundError("No module named 'autograder'"))
    assert "no tfcourse" in reason


def test_less_isolation_than_asked_for_is_refused_unless_it_is_allowed(good: dict[str, object]) -> None:
    weak = {**good, compatibility.LAYERS: [layer for layer in LAYERS if layer != "user namespace"]}
    [reason] = compatibility.incompatibilities(SETTINGS, weak)
    assert "does not offer user namespace" in reason
    assert compatibility.incompatibilities(GradingSettings(allow_weaker=True), weak) == []
    assert compatibility.incompatibilities(GradingSettings(isolation="restricted"), weak) == []


def test_a_machine_without_the_device_is_refused(good: dict[str, object]) -> None:
    assert compatibility.incompatibilities(SETTINGS, {**good, compatibility.CUDA: False}) == ["it has no CUDA device"]


def test_a_refusal_names_the_machines_that_differ_and_no_others() -> None:
    compatibility.refuse({"tcp://a": [], "tcp://b": []})
    with pytest.raises(CourseError) as refused:
        compatibility.refuse({"tcp://good": [], "tcp://bad": ["torch is older", "it has 2 threads"]})
    assert "tcp://bad: torch is older; it has 2 threads" in str(refused.value)
    assert "tcp://good" not in str(refused.value)


def test_a_refusal_stays_short_however_many_machines_there_are() -> None:
    with pytest.raises(CourseError, match="and 95 more"):
        compatibility.refuse({f"tcp://{number}": ["why"] for number in range(100)})
