"""The packages in their order, what each may import, and the imports that the code really makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

BASE = (
    "errors",
    "parallel",
    "atomic_files",
    "append_only",
    "checks_version",
    "content_hash",
    "static_analysis",
    "course",
    "gradebook",
)
_ENGINE = (
    "engine",
    "engine.sandbox",
    "engine.transport",
    "engine.shell",
    "engine.checker",
    "engine.jupyter",
    "engine.workers",
)
_DECIDING = ("checking", "mistakes", "checks")

# Package, and the packages that it may import. All of them stand in earlier rows, so there is no cycle.
ALLOWED: dict[str, tuple[str, ...]] = {
    "tfcourse": (),
    "tfcourse.lessons": ("tfcourse",),
    "errors": (),
    "parallel": (),
    "limited_process": (),
    "atomic_files": ("errors",),
    "append_only": ("errors",),
    "checks_version": ("tfcourse",),
    "content_hash": (),
    "static_analysis": ("errors",),
    "course": ("atomic_files", "errors"),
    "gradebook": ("course", "errors"),
    "checking": ("tfcourse",),
    "mistakes": ("checking", "errors", "static_analysis"),
    "checks": ("checking", "course", "errors", "mistakes", "tfcourse"),
    "authoring": (*BASE, *_DECIDING, "tfcourse"),
    "submission": (*BASE, "checking"),
    "roster": ("atomic_files", "course", "errors"),
    "collecting": (*BASE, "submission", "roster"),
    "enrolment": (*BASE, "submission", "roster", "collecting"),
    "engine": ("errors",),
    "engine.sandbox": ("engine", "errors"),
    "engine.transport": (*_ENGINE[:2], "errors", "checking"),
    "engine.shell": ("engine",),
    # Nothing imports what runs in the student's process: the zygote is a program.
    "engine.student": (*_ENGINE[:4], "checking"),
    "engine.checker": (*_ENGINE[:4], "checking", "checks", "static_analysis", "submission"),
    "engine.jupyter": (*_ENGINE[:5], "submission"),
    "engine.workers": (*_ENGINE[:6], "static_analysis", "submission", "tfcourse"),
    "cluster": (*_ENGINE, "checks_version", "errors"),
    "record": (*BASE, "checking", "submission"),
    "feedback": (*BASE, "checking", "limited_process", "submission", "record"),
    "grading": (
        *BASE,
        *_ENGINE,
        "authoring",
        "checking",
        "cluster",
        "collecting",
        "enrolment",
        "roster",
        "feedback",
        "record",
        "submission",
    ),
    "site": (*BASE, *_DECIDING, "authoring", "tfcourse", "tfcourse.lessons"),
    "release": (*BASE, *_DECIDING, "authoring", "tfcourse", "tfcourse.lessons"),
    "reports": (
        *BASE,
        "authoring",
        "checking",
        "collecting",
        "enrolment",
        "roster",
        "feedback",
        "record",
        "submission",
    ),
    "marking": (
        *("errors", "atomic_files", "course", "gradebook", "limited_process", "static_analysis"),
        *("checking", "authoring", "submission", "record", "feedback", "grading"),
    ),
    "mutation": (*BASE, *_DECIDING),
    "questions": ("checking", "checks", "mutation"),
    "exam": ("errors", "static_analysis", *_DECIDING, "feedback", "mutation", "questions"),
    "viva": (
        *BASE,
        *_ENGINE,
        "checking",
        "collecting",
        "feedback",
        "grading",
        "marking",
        "questions",
        "record",
        "roster",
        "submission",
    ),
    "selftest": (*BASE, *_DECIDING, *_ENGINE, "authoring", "collecting", "roster", "grading", "mutation", "submission"),
    "commands": (
        *(
            *BASE,
            *_DECIDING,
            *_ENGINE,
            "authoring",
            "collecting",
            "enrolment",
            "exam",
            "feedback",
            "grading",
            "marking",
            "record",
        ),
        *("release", "reports", "selftest", "site", "submission", "tfcourse", "viva"),
    ),
}
# A module, and a package that it may import all the same: `tfcourse.use` brings a lesson's code when it is called.
EXCEPTIONS = {("tfcourse", "tfcourse.lessons")}
_LESSONS = ("explorers", "figures", "lessons")


class Import(NamedTuple):
    """One import, by module and by package.

    Attributes:
        package: the package that imports.
        target: the package that is imported.
        module: the module that imports.
        line: where.
    """

    package: str
    target: str
    module: str
    line: int


def package_of(module: str) -> str | None:
    """Return the row of the table to which a module belongs; None for a module of others, and for `autograder` itself."""
    top, *rest = module.split(".")
    if top == "tfcourse":
        return "tfcourse.lessons" if rest[:1] and rest[0] in _LESSONS else "tfcourse"
    if top != "autograder" or not rest:
        return None
    below = ".".join(rest[:2])
    return below if below in ALLOWED else rest[0]


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
    package = package_of(module)
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
        for target in map(package_of, names):
            if package and target and target != package:
                yield Import(package, target, module, node.lineno)


def all_imports(root: Path = ROOT) -> list[Import]:
    """Return every import from one package of the project to another."""
    known = modules(root)
    return [one for name, path in sorted(known.items()) for one in imports_in(name, path.read_text("utf-8"), known)]


def offenders(imports: list[Import]) -> list[str]:
    """Return the imports that the table does not allow, as sentences."""
    return [
        f"{one.module}, line {one.line}: {one.package} may not import {one.target}"
        for one in imports
        if one.target not in ALLOWED.get(one.package, ()) and (one.module, one.target) not in EXCEPTIONS
    ]
