"""Every drawing of the lessons, for tests that all of them have to pass, with and without a browser."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from tfcourse.lessons.figures import Drawing, scenes

# What lessons give to the scenes that draw their numbers.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "attention_in_matrices": (
        [[1.0, 1.0, 1.0, 0.0], [0.0, 2.0, -2.0, -4.0]],
        [[2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]],
        [[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]],
    ),
    "jobs_of_heads": (
        ("the", "boys", "see"),
        [[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]] * 4,
        ("boys", "see"),
    ),
    "who_notices": (
        [(name, [[j <= i for j in range(9)] for i in range(9)]) for name in ("right", "reshape once", "reshape twice")],
    ),
    "smoothed_target": (113, 0.1),
    "segmentation_lattice": (
        "nowhere",
        {"n": 6, "o": 5, "w": 6, "h": 6, "e": 4, "r": 5, "no": 4, "now": 5, "where": 6, "here": 6},
        ("no", "where"),
    ),
    "real_cuts": (
        [
            (("st", "raw", "berry"), (301, 1831, 8396)),
            (("677", "Ġ+", "Ġ8", "04", "Ġ=", "Ġ14", "81"), (40179, 1343, 807, 3023, 796, 1478, 6659)),
            (("ĠSolidGoldMagikarp",), (43453,)),
        ],
    ),
}


def scene_functions() -> Iterator[tuple[str, Callable[..., Drawing]]]:
    """Every public function of the scenes, with the chapter to which its module belongs."""
    for info in pkgutil.iter_modules(scenes.__path__):
        module = importlib.import_module(f"{scenes.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield info.name.removeprefix("ch"), function


SCENES = {function.__name__: (chapter, function) for chapter, function in scene_functions()}


def draw(name: str) -> Drawing:
    return SCENES[name][1](*ARGUMENTS.get(name, ()))
