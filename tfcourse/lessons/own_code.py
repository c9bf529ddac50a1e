"""Take the exercises that a student has solved into ``tfcourse``, so that a lesson runs on them."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import pkgutil
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tfcourse
from tfcourse.lessons.waiting_cells import let_cells_wait

# The name of the module that a student's cells become; their functions and classes say it as where they are from.
_MODULE = "your_exercises"


@dataclass(frozen=True)
class OwnCode:
    """What :func:`use` found in a notebook.

    Attributes:
        solved: the exercises that were taken over, in the order of the notebook.
        open: the exercises that are still empty, or whose cell fails.
        errors: for an exercise whose cell fails, the error in one line.
    """

    solved: tuple[str, ...]
    open: tuple[str, ...]
    errors: Mapping[str, str]

    def __repr__(self) -> str:
        lines = [f"{len(self.solved)} of {len(self.solved) + len(self.open)} exercises of yours run in this lesson."]
        lines += [f"{name} is not used, for its cell fails: {error}" for name, error in self.errors.items()]
        waiting = [name for name in self.open if name not in self.errors]
        if waiting:
            lines.append(
                f"Not solved yet: {', '.join(waiting)}. Cells that need one of them say so and show what the course has."
            )
        return "\n".join(lines)


def use(notebook: str | Path) -> OwnCode:
    """Let this lesson run on your own code: put the exercises that you have solved in the place of the course's empty ones.

    The code cells of the notebook are run once, without its checks. A function or class that is an exercise and no longer holds the
    empty body is put into ``tfcourse``, wherever the empty one was. From then on a cell of the lesson that needs an unsolved exercise names
    it and shows the output that the course has stored, and the lesson continues with the next cell. Call it again after you have saved the
    notebook with more of it solved.

    Args:
        notebook: the chapter's exercise notebook, for example ``"03_scaled_dot_product.ipynb"``.

    Returns:
        What was taken over.

    Raises:
        FileNotFoundError: if there is no such notebook.
        ValueError: if the file is no notebook.
    """
    path = Path(notebook)
    cells = _code_cells(path)
    module, errors = _run(cells)
    empty = {name: thing for name, thing in _exercises() if not _is_student_code(thing)}
    asked = [name for name in _defined(cells) if name in empty or name in _TAKEN]
    solved = [name for name in asked if name not in errors and _is_solved(name, cells) and name in vars(module)]
    for name in solved:
        _put(name, vars(module)[name])
    let_cells_wait(_lesson_beside(path))
    return OwnCode(tuple(solved), tuple(name for name in asked if name not in solved), errors)


# The exercises that are a student's by now, with the course's own.
_TAKEN: dict[str, Any] = {}


def _code_cells(path: Path) -> list[str]:
    """Return the code of a notebook's cells, without the cells that check an exercise."""
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no notebook {path} in {Path.cwd()}: give the path of the chapter's exercise notebook, and save it first"
        )
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        checks = [cell.get("metadata", {}).get("nbgrader", {}) for cell in code]
        sources = ["".join(cell["source"]) for cell in code]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a Jupyter notebook ({type(error).__name__}: {error})") from error
    return [
        source
        for source, mark in zip(sources, checks, strict=True)
        if not (mark.get("grade") and not mark.get("solution")) and not source.lstrip().startswith("check(")
    ]


def _run(cells: Sequence[str]) -> tuple[types.ModuleType, dict[str, str]]:
    """Run cells in a separate module; return it, and the error that a cell ends with by the names that the cell defines."""
    module = types.ModuleType(_MODULE, "The code cells of your exercise notebook.")
    sys.modules[_MODULE] = module
    errors: dict[str, str] = {}
    for number, source in enumerate(cells, start=1):
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(_plain_python(source), f"<your code cell {number}>", "exec"), vars(module))
        except Exception as error:
            told = f"{type(error).__name__}: {error}".splitlines()[0]
            errors |= dict.fromkeys(_defined([source]), told)
    return module, errors


def _plain_python(source: str) -> str:
    """Return a cell as Python: IPython turns magics into calls, where it runs."""
    shell = _shell()
    return str(shell.transform_cell(source)) if shell is not None else source


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _definitions(cells: Sequence[str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for source in cells:
        try:
            tree = ast.parse(_plain_python(source))
        except SyntaxError:
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node


def _defined(cells: Sequence[str]) -> list[str]:
    """Return the names of functions and classes that cells define; of a cell that is no Python, those it means to define."""
    found = []
    for source in cells:
        names = [node.name for node in _definitions([source])]
        if not names:
            words = (
                line.split("(")[0].split(":")[0].split()
                for line in source.splitlines()
                if line.startswith(("def ", "class "))
            )
            names = [word[1] for word in words if len(word) > 1]
        found += names
    return list(dict.fromkeys(found))


def _is_solved(name: str, cells: Sequence[str]) -> bool:
    """Whether the last definition of a name has no function left that does nothing but raise NotImplementedError."""
    node = [node for node in _definitions(cells) if node.name == name][-1]
    functions = [inner for inner in ast.walk(node) if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return not any(map(_is_empty, functions))


def _is_empty(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [statement for statement in function.body if not isinstance(statement, ast.Expr)]
    return len(body) == 1 and isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.unparse(body[0])


def _modules() -> list[types.ModuleType]:
    """Return the modules of ``tfcourse`` that hold exercises, or use them."""
    names = [info.name for info in pkgutil.iter_modules(tfcourse.__path__) if not info.ispkg]
    return [importlib.import_module(f"tfcourse.{name}") for name in names]


def _exercises() -> Iterator[tuple[str, Any]]:
    for module in _modules():
        for name in getattr(module, "__all__", ()):
            yield name, getattr(module, name)


def _is_student_code(thing: Any) -> bool:
    return getattr(thing, "__module__", "") == _MODULE


def _put(name: str, own: Any) -> None:
    """Put a student's function or class wherever the course has its own, and wherever an earlier one of the student's was put."""
    before = next(thing for found, thing in _exercises() if found == name)
    _TAKEN.setdefault(name, before)
    for module in [*_modules(), sys.modules["__main__"]]:
        for key, value in list(vars(module).items()):
            if value is before:
                setattr(module, key, own)


def _lesson_beside(notebook: Path) -> Path:
    """Return where the lesson's own notebook lies: beside the exercises, ``03_lesson.ipynb`` for ``03_scaled_dot_product.ipynb``."""
    return notebook.with_name(f"{notebook.name.split('_')[0]}_lesson.ipynb")
