"""Stubs and solutions: cut from the reference, to the letter."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import ClearSolutions

from autograder.course.authoring.exercise_source import solution_source, stub_source
from autograder.errors import CourseError
from tfcourse import attention, multihead

Load = Callable[[str], ModuleType]


def run(code: str, scope: dict[str, Any]) -> None:
    """Run a cell's code, without this file's own __future__."""
    exec(compile(code, "<cell>", "exec", dont_inherit=True), scope)


def of(reference: object) -> Any:
    """Whatever has a reference is an exercise here."""
    return SimpleNamespace(reference=reference)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a module from its text."""

    def make(text: str) -> ModuleType:
        path = tmp_path / "made_for_this_test.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        return module

    return make


def cleared(solution: str) -> str:
    """Return what nbgrader makes of a solution cell."""
    cell = new_code_cell(solution, metadata={"nbgrader": {"solution": True}})
    ClearSolutions().preprocess(new_notebook(cells=[cell]), {})
    return str(cell.source)


REFERENCES = [
    getattr(module, name)
    for module in (attention, multihead)
    for name in module.__all__
    if name not in ("AttentionCost", "AttentionParameters")
]


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda item: item.__name__)
def test_a_stub_has_the_references_signature_and_docstring_and_no_body(reference: Any) -> None:
    scope = {**vars(sys.modules[reference.__module__])}
    run(stub_source(of(reference)), scope)
    stub = scope[reference.__name__]
    pairs = [(stub, reference)]
    if inspect.isclass(reference):
        public = [name for name, item in vars(reference).items() if inspect.isfunction(item)]
        pairs += [(getattr(stub, name), getattr(reference, name)) for name in public]
    for ours, theirs in pairs:
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert ours.__doc__ == theirs.__doc__
        if inspect.isfunction(ours):
            assert ours.__code__.co_names == ("NotImplementedError",)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda item: item.__name__)
def test_a_solution_is_the_reference_itself(reference: Any) -> None:
    (ours,) = ast.parse(solution_source(of(reference))).body
    (theirs,) = ast.parse(inspect.getsource(reference)).body
    assert isinstance(ours, (ast.FunctionDef, ast.ClassDef))
    for function in (node for node in ast.walk(ours) if isinstance(node, ast.FunctionDef)):
        # The helpers that the module would have at hand are imported first.
        function.body = [item for item in function.body if not isinstance(item, ast.ImportFrom)]
    assert ast.dump(ours) == ast.dump(theirs)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda item: item.__name__)
def test_nbgrader_makes_the_stub_of_the_solution(reference: Any) -> None:
    assert cleared(solution_source(of(reference))) == stub_source(of(reference))


def test_private_helpers_are_imported_inside_the_body_and_public_names_are_not() -> None:
    source = solution_source(of(attention.scaled_dot_product_attention))
    assert "    from tfcourse.attention import _check_inputs\n" in source
    assert "import masked_attention_weights" not in source


def test_a_private_helper_that_gives_something_back_is_written_out_in_the_solution(load: Load) -> None:
    module = load('''
def f(x: int) -> int:
    """Its double and one."""
    return _plus_one(_doubled(x))


def _plus_one(x: int) -> int:
    return _doubled(x) - x + 1


def _doubled(x: int) -> int:
    """Twice as much."""

    return 2 * x
''')
    stub, solution = stub_source(of(module.f)), solution_source(of(module.f))
    assert "import" not in solution
    scope: dict[str, Any] = {}
    run(solution, scope)
    assert scope["f"](3) == 7
    assert cleared(solution) == stub


def test_private_methods_go_with_the_solution_and_fields_stay(load: Load) -> None:
    module = load('''
class Layer:
    """What it does."""

    width: int = 3
    """How wide."""

    def __init__(self) -> None:
        self.depth = 2

    def _double(self) -> int:
        return 2 * self.depth  # noqa: X1

    def area(self) -> int:
        """Its area."""
        # Twice the depth.
        return self.width * self._double()
''')
    stub, solution = stub_source(of(module.Layer)), solution_source(of(module.Layer))
    assert "width: int = 3" in stub
    assert '"""How wide."""' in stub
    assert "_double" not in stub
    scope: dict[str, Any] = {}
    run(solution, scope)
    assert scope["Layer"]().area() == 12
    assert "noqa" not in solution
    assert "        # Twice the depth.\n" in solution
    assert cleared(solution) == stub


def test_comments_for_tools_go_and_texts_that_look_like_them_stay(load: Load) -> None:
    module = load('''
def f(
    T: int,  # noqa: N803
    device: str = "# noqa",
) -> str:  # type: ignore[no-any-return]
    """Text."""
    return device + "# type: ignore"  # pragma: no cover
''')
    assert stub_source(of(module.f)).startswith('def f(\n    T: int,\n    device: str = "# noqa",\n) -> str:\n')
    assert '    return device + "# type: ignore"\n' in solution_source(of(module.f))


def test_an_exercise_without_a_docstring_keeps_its_whole_body(load: Load) -> None:
    module = load("def f(x):\n    # First this.\n    y = x\n\n    return y\n")
    assert stub_source(of(module.f)) == "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert "    # First this.\n    y = x\n\n    return y\n" in solution_source(of(module.f))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def f(x): return x\n", "signature"),
        ("class f:\n    for i in range(2):\n        pass\n", "show"),
        ("from functools import partial\nf = partial(print, 1)\n", "no source"),
        ("f = lambda x: x\n", "not found"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_name(load: Load, text: str, complaint: str) -> None:
    module = load(text)
    with pytest.raises(CourseError, match=complaint):
        stub_source(of(module.f))
