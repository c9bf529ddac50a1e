"""Write the overview at the top of an exercise notebook, and find the exercises that an exercise builds on."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import nbformat

from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.numbering import list_notebook_efforts
from autograder.course.authoring.selection import list_notebook_parts, summarise_notebook
from autograder.errors import CourseError

_SHORT_PATH = 120  # minutes


def overview_cell(notebook: Any, chapter: Chapter) -> Any:
    """Return a cell with a table of a notebook's exercises: difficulty, minutes, points and required exercises.

    If all together take more than two hours, the cell names a path of two hours through what most other exercises build on. There is no
    table if a prompt lacks its number, its difficulty or its minutes.
    """
    points = dict(list_notebook_parts(notebook))
    lines = [f"**This assignment has {summarise_notebook(notebook)}**"]
    try:
        assigned = list_notebook_efforts(notebook, chapter.path)
    except CourseError:
        return nbformat.v4.new_markdown_cell(lines[0])
    numbers = {effort.name: effort.number for effort in assigned}
    needs = {name: _assigned_requirements(name, chapter) & numbers.keys() for name in numbers}
    rows = [
        f"| {effort.number} · {effort.title} | {'★' * effort.difficulty} | {effort.minutes} | {points[effort.name]:g} "
        f"| {', '.join(str(number) for number in sorted(numbers[name] for name in needs[effort.name]))} |"
        for effort in assigned
    ]
    minutes = {effort.name: effort.minutes for effort in assigned}
    lines += [
        "",
        "| exercise | difficulty | minutes | points | needs |",
        "|:--|:--|--:|--:|:--|",
        *rows,
        f"| together | | {sum(minutes.values())} | {sum(points.values()):g} | |",
    ]
    if sum(minutes.values()) > _SHORT_PATH:
        path = _short_path(minutes, needs)
        listed = ", ".join(str(number) for number in sorted(numbers[name] for name in path))
        lines += ["", f"*Only two hours? Exercises {listed} take about {sum(minutes[name] for name in path)} minutes.*"]
    return nbformat.v4.new_markdown_cell("\n".join(lines))


def _assigned_requirements(name: str, chapter: Chapter) -> set[str]:
    return required_exercises(name, chapter.registry) if name in chapter.registry else set()


def _short_path(minutes: Mapping[str, int], needs: Mapping[str, set[str]]) -> set[str]:
    """Return at most two hours of exercises with all exercises that they require, the most required ones first."""
    closed: dict[str, set[str]] = {}
    for name in minutes:  # in the order of the notebook, in which an exercise follows those that it needs
        closed[name] = {name}.union(*(closed.get(needed, {needed}) for needed in needs[name]))
    path: set[str] = set()
    for name in sorted(minutes, key=lambda name: -sum(name in others for others in closed.values())):
        if sum(minutes[one] for one in path | closed[name]) <= _SHORT_PATH:
            path |= closed[name]
    return path


def required_exercises(name: str, registry: Mapping[str, Exercise]) -> set[str]:
    """Return the exercises that an exercise's reference uses, itself or through helpers of its module."""
    by_object = {id(exercise.reference): other for other, exercise in registry.items()}
    names: set[str] = set()
    visited: set[int] = set()
    queue: list[Any] = [registry[name].reference]
    while queue:
        current = queue.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        module = inspect.getmodule(current)
        for value in _used_values(current, vars(module)):
            if id(value) in by_object:
                names.add(by_object[id(value)])
            elif inspect.isfunction(value) and value.__module__ == current.__module__:
                queue.append(value)
    return names - {name}


def _used_values(definition: Any, names: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of a module's names that a piece of its code uses."""
    for node in ast.walk(_parse_source(definition)):
        if isinstance(node, ast.Name) and node.id in names:
            yield names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            value = names[node.value.id]
            if inspect.ismodule(value):
                yield getattr(value, node.attr, None)


@cache
def _parse_source(definition: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(definition)))
