"""Find the project files that a module runs, based on its imports."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from autograder.static_analysis.definitions import ModuleSource, module_source

_PROJECT = ("tfcourse", "autograder", "tools")


@cache
def source_files(module: str) -> frozenset[Path]:
    """Return the files of a project module and of all project modules that it imports directly or indirectly."""
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in files or not name.startswith(_PROJECT):
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        files[name] = Path(spec.origin)
        waiting += imported_modules(module_source(files[name]))
    return frozenset(files.values())


def imported_modules(source: ModuleSource) -> Iterable[str]:
    """Yield the names of the modules that a module imports at its top level."""
    for origin, attribute in source.imports.values():
        yield origin
        # `from autograder.checking import rows` imports a module of that name, if there is one.
        if attribute and origin.startswith(_PROJECT) and _is_package(origin):
            inner = f"{origin}.{attribute}"
            if importlib.util.find_spec(inner) is not None:
                yield inner


@cache
def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None
