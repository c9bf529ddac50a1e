"""Notebooks that students already have import figures under their former names."""

from __future__ import annotations

import importlib

import pytest

from tfcourse.lessons import figures


def test_figures_are_the_same_under_their_former_name() -> None:
    former = importlib.import_module("tfcourse.figures")
    assert {name: getattr(former, name) for name in figures.__all__} == {
        name: getattr(figures, name) for name in figures.__all__
    }


@pytest.mark.parametrize("name", ["figures.boxes", "figures.scenes.ch05_transformer", "explorers.heads"])
def test_modules_have_their_former_names_too(name: str) -> None:
    former, module = (importlib.import_module(f"{package}.{name}") for package in ("tfcourse", "tfcourse.lessons"))
    assert former.__file__ == module.__file__


def test_a_drawing_under_former_names_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    scenes = importlib.import_module("tfcourse.figures.scenes.ch05_transformer")
    importlib.import_module("tfcourse.figures").show(scenes.two_stacks(), alt="An encoder and a decoder.")
    assert "<svg" in capsys.readouterr().out
