"""Which names a piece of code takes from outside."""

from __future__ import annotations

import ast

import pytest

from autograder.static_analysis.scopes import bound_names, global_names, import_targets


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(a, *b, c=D, **e) -> R:\n    x = a + b\n    return x + e + G", "D R G"),
        ("def f():\n    def g():\n        return x + h\n    x = 1\n    return g", "h"),
        ("def f():\n    for i in I:\n        pass\n    return i", "I"),
        ("def f(xs):\n    return [y + Z for y in xs if y not in W]", "Z W"),
        ("def f(xs):\n    [last := y for y in xs]\n    return last", ""),
        ("def f():\n    try:\n        go()\n    except E as error:\n        print(error)", "go E print"),
        ("def f():\n    global N\n    N = 1\n    return N", "N"),
        ("def f(x):\n    match x:\n        case [a, *rest] | {'k': a, **rest}:\n            return a, rest", ""),
        ("def f():\n    import torch.nn as nn\n    return nn.Linear", ""),
        ("g = lambda a, b=B: a + b + C", "B C"),
        ("class K(Base):\n    width = 2\n    def m(self, n=width):\n        return width", "Base width"),
        ("@decorated(V)\ndef f():\n    return f", "decorated V f"),
    ],
)
def test_only_names_that_no_inner_scope_binds_are_global(code: str, expected: str) -> None:
    assert [name.id for name in global_names(*ast.parse(code).body)] == expected.split()


def test_the_names_a_cell_gives_to_later_cells_are_its_assignments_definitions_and_imports() -> None:
    code = "import os.path\nfrom a import b as c\nx, (y, z) = 1, (2, 3)\ndef f():\n    inner = 1\nclass K: pass"
    assert bound_names(ast.parse(code).body) == {"os", "c", "x", "y", "z", "f", "K"}


def test_imports_tell_where_a_name_comes_from_even_those_for_annotations_only() -> None:
    code = "import torch.nn as nn\nimport os.path\nfrom tfcourse import attention as a\nif TYPE_CHECKING:\n    from x import Y"
    assert import_targets(ast.parse(code).body) == {
        "nn": ("torch.nn", None),
        "os": ("os", None),
        "a": ("tfcourse", "attention"),
        "Y": ("x", "Y"),
    }
