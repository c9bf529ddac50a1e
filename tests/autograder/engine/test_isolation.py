"""Less isolation than a course asks for is refused with a sentence that helps, or taken where that is allowed."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from autograder.engine.sandbox import isolation
from autograder.engine.sandbox.isolation import available_layers, missing_layers, with_available_isolation
from autograder.engine.sandbox.lockdown import LAYERS, RESTRICTIONS
from autograder.engine.settings import ISOLATION, GradingSettings, Isolation
from autograder.errors import CourseError

OFFERED: dict[str, tuple[str, ...]] = {"sandbox": LAYERS, "restricted": RESTRICTIONS, "none": ("no new privileges",)}


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the machine offer some layers."""

    def put(layers: tuple[str, ...], *, linux: bool = True) -> None:
        monkeypatch.setattr(isolation, "available_layers", lambda: layers)
        monkeypatch.setattr(isolation, "is_supported_linux", lambda: linux)

    return put


@pytest.mark.parametrize("asked", ISOLATION)
@pytest.mark.parametrize("there", ISOLATION)
@pytest.mark.parametrize("allowed", [False, True])
def test_what_is_asked_for_is_kept_refused_or_lowered_to_what_there_is(
    offer: Any, there: Isolation, asked: Isolation, allowed: bool
) -> None:
    offer(OFFERED[there])
    settings = GradingSettings(isolation=asked, allow_weaker=allowed)
    if ISOLATION.index(there) <= ISOLATION.index(asked):
        assert with_available_isolation(settings) == settings
    elif allowed:
        assert with_available_isolation(settings).isolation == there
        assert with_available_isolation(settings).warm
    else:
        with pytest.raises(CourseError, match=f"isolation '{asked}' is required") as caught:
            with_available_isolation(settings)
        missing = set(LAYERS) - set(OFFERED[there])
        assert all(layer in caught.value.what for layer in missing)
        assert not any(layer in caught.value.what for layer in OFFERED[there])
        assert "allow_weaker" in caught.value.do


def test_another_system_than_linux_takes_cold_kernels_once_that_is_allowed(offer: Any) -> None:
    offer((), linux=False)
    made = with_available_isolation(GradingSettings(seed=3, memory_mb=7, jobs=2, allow_weaker=True))
    assert made == GradingSettings(seed=3, memory_mb=7, jobs=2, allow_weaker=True, warm=False, isolation="none")
    assert with_available_isolation(GradingSettings(isolation="none")).warm is False
    with pytest.raises(CourseError) as caught:
        with_available_isolation(GradingSettings())
    assert "--allow-weaker-isolation" in caught.value.do


def test_one_layer_that_is_missing_makes_the_sandbox_a_restriction_and_is_named(offer: Any) -> None:
    for layer in LAYERS:
        offer(tuple(other for other in LAYERS if other != layer))
        with pytest.raises(CourseError) as caught:
            with_available_isolation(GradingSettings())
        assert caught.value.what.endswith(f" {layer}")
        lowered = with_available_isolation(GradingSettings(allow_weaker=True)).isolation
        assert lowered == ("none" if layer in RESTRICTIONS else "restricted")


@pytest.fixture
def _unasked() -> Any:
    """Forget what was found before, and afterwards what was found here."""
    available_layers.cache_clear()
    yield
    available_layers.cache_clear()


@pytest.mark.usefixtures("_unasked")
@pytest.mark.parametrize(
    ("said", "heard"), [(json.dumps(list(LAYERS)), LAYERS), ("", ()), ("Traceback", ()), ("[]", ())]
)
def test_layers_are_those_that_a_trial_in_another_process_reports(
    monkeypatch: pytest.MonkeyPatch, said: str, heard: tuple[str, ...]
) -> None:
    monkeypatch.setattr(isolation, "is_supported_linux", lambda: False)
    assert available_layers() == (), "nothing is tried on another system"
    available_layers.cache_clear()
    monkeypatch.setattr(isolation, "is_supported_linux", lambda: True)
    answer = subprocess.CompletedProcess([], 0, stdout=said)
    monkeypatch.setattr(isolation.subprocess, "run", lambda *args, **kwargs: answer)
    assert available_layers() == heard
    assert missing_layers() == tuple(layer for layer in LAYERS if layer not in heard)
