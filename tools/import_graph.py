"""The rooms in their order, and the imports that the code really makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

# In this order: what stands in a row imports only from the rows before it.
ROOMS = (
    *("tfcourse", "tfcourse.lessons"),
    *(
        "errors",
        "parallel",
        "limited_process",
        "atomic_files",
        "append_only",
        "content_hash",
        "site_address",
        "checks_version",
    ),
    *("checking", "static_analysis", "mistakes", "checks", "course", "site", "intake", "engine"),
    *("grading", "marking", "quizzes", "commands"),
)
# What students receive, and what runs in their process, imports no more than this.
ONLY = {
    "autograder.checking": ("tfcourse",),
    "autograder.quizzes.questions": ("checking", "checks"),
    "autograder.engine.student": ("checking",),
}
# The zygote is a program: nothing imports what runs in the student's process.
PROGRAMS = ("autograder.engine.student",)
# `tfcourse.use` brings a lesson's code when it is called.
EXCEPTIONS = {("tfcourse", "tfcourse.lessons")}
_LESSONS = ("explorers", "figures", "lessons")


class Import(NamedTuple):
    """One import of a module of the project by another."""

    module: str
    target: str
    line: int


def room_of(module: str) -> str | None:
    """Return the room to which a module belongs; None for a module of others, and for `autograder` itself."""
    top, *rest = module.split(".")
    if top == "tfcourse":
        return "tfcourse.lessons" if rest[:1] and rest[0] in _LESSONS else "tfcourse"
    return rest[0] if top == "autograder" and rest else None


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the files of both packages by the names of their modules."""
    found = {}
    for path in [*(root / "autograder").rglob("*.py"), *(root / "tfcourse").rglob("*.py")]:
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports_in(module: str, text: str, known: dict[str, Path]) -> Iterator[Import]:
    """Yield what a module's text imports of both packages: at the top and inside functions, but not for type checkers alone."""
    tree = ast.parse(text)
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test):
            block.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = ".".join(
                [*parts[: len(parts) - node.level if node.level else 0], *([node.module] if node.module else [])]
            )
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
        else:
            continue
        yield from (Import(module, name, node.lineno) for name in names if room_of(name) and name != module)


def all_imports(root: Path = ROOT) -> list[Import]:
    """Return every import of one module of the project by another."""
    known = modules(root)
    return [one for name, path in sorted(known.items()) for one in imports_in(name, path.read_text("utf-8"), known)]


def offenders(imports: list[Import]) -> list[str]:
    """Return the imports against the order of the rooms, and those that what students receive may not make, as sentences."""
    found = []
    for one in imports:
        here, there = str(room_of(one.module)), str(room_of(one.target))
        only = next((allowed for name, allowed in ONLY.items() if _within(one.module, name)), None)
        allowed = ROOMS[: ROOMS.index(here)] if here in ROOMS and only is None else only or ()
        if here != there and there not in allowed and (here, there) not in EXCEPTIONS:
            found.append(f"{one.module}, line {one.line}: {here} may not import {there}")
        if any(_within(one.target, name) and not _within(one.module, name) for name in PROGRAMS):
            found.append(f"{one.module}, line {one.line}: nothing imports {one.target}, which is a program")
    return found


def _within(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def circles(imports: list[Import]) -> list[list[str]]:
    """Return the circles of imports between modules, and between the packages inside one room."""
    between_modules = {
        (one.module, one.target) for one in imports if (room_of(one.module), room_of(one.target)) not in EXCEPTIONS
    }
    between_packages = {(one, other) for one, other in map(_packages, imports) if one and other and one != other}
    return _circles(between_modules) + _circles(between_packages)


def _packages(one: Import) -> tuple[str, str]:
    """Return the packages inside one room that an import joins; empty for a room's own modules, and between chapters' checks."""
    names = [name.split(".") for name in (one.module, one.target)]
    inside = room_of(one.module) == room_of(one.target) != "checks"
    here, there = (".".join(parts[1:3]) if inside and len(parts) > 3 else "" for parts in names)
    return here, there


def _circles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of names of which each leads to each other."""
    targets: dict[str, set[str]] = {}
    for one, other in edges:
        targets.setdefault(one, set()).add(other)
    reached: dict[str, set[str]] = {}
    for start in targets:
        found, rest = set(), [start]
        while rest:
            new = targets.get(rest.pop(), set()) - found
            found |= new
            rest += new
        reached[start] = found
    groups = {
        tuple(sorted(other for other in found if start in reached.get(other, ()))) for start, found in reached.items()
    }
    return [list(group) for group in sorted(groups) if group]
