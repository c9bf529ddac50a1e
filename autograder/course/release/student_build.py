"""Build the students' wheel of ``tfcourse``, with exercises as stubs and recorded checks."""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import autograder
import tfcourse
from autograder.atomic_files import write_all_or_none
from autograder.checking.exercise import Exercise
from autograder.checks_version import checks_stamp
from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.selection import provided_exercises
from autograder.course.authoring.sync import require_project_package
from autograder.course.release.answer_keys import record_answer_keys
from autograder.course.release.student_module import stubs_by_file, student_module
from autograder.errors import CourseError
from autograder.site_address import site_address
from autograder.static_analysis.definitions import ModuleSource, module_source

# The date of this version, because a wheel's bytes must not depend on the clock. tests/test_repository.py compares it with CITATION.cff.
RELEASED = (2026, 11, 28)
_LICENCES = ("LICENSE", "LICENSE-CONTENT")
# The extras that the package itself recommends for generating text and loading weights. The others are for lecturers.
_EXTRAS = ("notebooks", "data", "corpora")

# Students' checks use recorded answers, and their `tfcourse` command is the pre-check only.
_ENTRY_POINTS = b"""\
[console_scripts]
tfcourse = autograder.checking.validate:main

[tfcourse.checks]
checks = autograder.checking.recorded:check

[tfcourse.quizzes]
quiz = autograder.quizzes.questions.with_recordings:quiz
"""
# Besides ``autograder.checking``: the questions about students' own code, and the operators that change a line of it.
_NOT_FOR_STUDENTS = "with_reference.py"
_OPERATORS = ("__init__", "expressions", "guards", "operators", "places", "statements")


def build_student_wheel(root: Path, chapter: Chapter, out_dir: Path) -> Path:
    """Build a chapter's student wheel, deterministically for given sources and library versions.

    The exercises of this and later chapters are stubs; the exercises of earlier chapters are complete. The checks of this and
    earlier chapters are recorded as numbers and sentences, without code. The wheel depends on torch, numpy and safetensors; the build
    needs no network.

    Args:
        root: the project; its ``pyproject.toml`` holds version and dependencies.
        out_dir: the folder for the wheel.

    Returns:
        The wheel, for example ``tfcourse-0.4.0+ch03-py3-none-any.whl``.

    Raises:
        CourseError: if the installed package is not this project's, a module cannot be reduced to stubs, the address of the site is
            invalid, or the file cannot be written.
    """
    require_project_package(root)
    project = _read_project(root)
    version = _wheel_version(project, chapter)
    files = {**_package_files(chapter, version), **_engine_files(site_address(root)), **_read_recordings(root, chapter)}
    info = f"tfcourse-{version}.dist-info"
    licences = {name: (root / name).read_bytes() for name in _LICENCES if (root / name).is_file()}
    files[f"{info}/METADATA"] = _wheel_metadata(project, version, licences).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tfcourse\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = _ENTRY_POINTS
    files |= {f"{info}/licenses/{name}": content for name, content in licences.items()}
    files[f"{info}/RECORD"] = _list_wheel_files(files, info)
    path = out_dir / wheel_name(root, chapter)
    write_all_or_none({path: zip_files(files)})
    return path


def wheel_name(root: Path, chapter: Chapter) -> str:
    """Return the file name of a chapter's student wheel."""
    return f"tfcourse-{_wheel_version(_read_project(root), chapter)}-py3-none-any.whl"


def _wheel_version(project: Mapping[str, Any], chapter: Chapter) -> str:
    return f"{project['version']}+{chapter.tag}"


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a reproducible zip archive of some files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (*RELEASED, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix on every system, so that the permissions below apply
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def secret_exercises(chapter: Chapter) -> dict[str, Exercise]:
    """Return the exercises that are secret during a chapter: its own, except provided ones, and later chapters'."""
    provided = {exercise.name for exercise in provided_exercises(chapter)}
    return {
        name: item for name, item in chapter.registry.items() if item.chapter >= chapter.name and name not in provided
    }


def _read_project(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    try:
        project: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise CourseError(f"the project's version cannot be read ({error})", where=path) from error
    return project


def _package_files(chapter: Chapter, version: str) -> dict[str, bytes]:
    folder = Path(str(tfcourse.__file__)).parent
    modules = {path: module_source(path) for path in sorted(folder.rglob("*.py"))}
    stubs_of = stubs_by_file(secret_exercises(chapter))
    files: dict[str, bytes] = {}
    for path, module in modules.items():
        stubs = stubs_of.get(path.resolve(), {})
        text = (
            student_module(module, stubs, _names_imported_elsewhere(path, modules, stubs_of)) if stubs else module.text
        )
        if path == folder / "__init__.py":
            text = _set_version(text, version)
        files[f"tfcourse/{path.relative_to(folder).as_posix()}"] = text.encode()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".pyc") and not path.name.startswith("."):
            files[f"tfcourse/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return files


def _names_imported_elsewhere(
    path: Path, modules: Mapping[Path, ModuleSource], stubs_of: Mapping[Path, Mapping[str, str]]
) -> set[str]:
    """Return the names that modules without stubs import from this module."""
    name = f"tfcourse.{path.stem}"
    complete = (module for other, module in modules.items() if not stubs_of.get(other.resolve()))
    return {
        attribute
        for module in complete
        for origin, attribute in module.imports.values()
        if origin == name and attribute
    }


def _set_version(text: str, version: str) -> str:
    old = f'__version__ = "{tfcourse.__version__}"'
    if old not in text:
        raise CourseError(f"tfcourse/__init__.py does not say {old}", do="Keep the version a plain text there.")
    return text.replace(old, f'__version__ = "{version}"')


def _engine_files(site: str) -> dict[str, bytes]:
    """Return the autograder's files for students: the checking engine, and the questions about their own code."""
    folder = Path(str(autograder.__file__)).parent
    paths = [folder / "__init__.py", *sorted((folder / "checking").rglob("*.py"))]
    quizzes = folder / "quizzes"
    paths += [quizzes / "__init__.py"]
    paths += [path for path in sorted((quizzes / "questions").glob("*.py")) if path.name != _NOT_FOR_STUDENTS]
    paths += [quizzes / "mutation" / f"{name}.py" for name in _OPERATORS]
    files = {f"autograder/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}
    files["autograder/checking/stamp.py"] = (
        '"""Which release of the checks this package has, and where the course\'s site is published."""\n\n'
        f'STAMP = "{checks_stamp()}"\nSITE = "{site}"\n'
    ).encode()
    return files


def _read_recordings(root: Path, chapter: Chapter) -> dict[str, bytes]:
    """Return the recorded question sheets of this and earlier chapters."""
    out = (exercise for exercise in chapter.registry.values() if exercise.chapter <= chapter.name)
    return {
        f"autograder/checking/recordings/{name}.safetensors": content
        for name, content in record_answer_keys(out, root).items()
    }


def _wheel_metadata(project: Mapping[str, Any], version: str, licences: Mapping[str, bytes]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: tfcourse",
        f"Version: {version}",
        f"Summary: {project['description']} (student build)",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in sorted(licences)),
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    extras = project.get("optional-dependencies", {})
    for extra in (name for name in _EXTRAS if name in extras):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in extras[extra]]
    return "\n".join(lines) + "\n"


def _list_wheel_files(files: Mapping[str, bytes], info: str) -> bytes:
    rows = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(files[name])}")
    return ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
