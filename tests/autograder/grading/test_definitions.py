"""What a cell defines and checks is read from its text."""

from __future__ import annotations

import pytest

from autograder.grading.definitions import checked_names, defined_names, ends_in_check, imports_check


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x):\n    g = 1\n", {"f"}),
        ("class Layer(nn.Module):\n    def forward(self): ...", {"Layer"}),
        ("f = lambda x: x\na, b = 1, 2", {"f", "a", "b"}),
        ("if True:\n    def f(): ...\nelse:\n    g = 1", {"f", "g"}),
        ("try:\n    import a.b as c\nfinally:\n    pass", {"c"}),
        ("%matplotlib inline\n!pip install x\ndef f(): ...", {"f"}),
        ("def f(x):\n  return (x\n\nh = 3", {"f", "h"}),
        ("print(f)", set()),
    ],
)
def test_names_are_found_in_whatever_way_they_are_bound(source: str, names: set[str]) -> None:
    assert defined_names(source) == names


def test_imports_count_only_where_they_should() -> None:
    assert defined_names("from tfcourse.attention import causal_mask", imports=False) == set()


def test_checks_are_recognised() -> None:
    source = "check(f)\n### BEGIN HIDDEN TESTS\ncheck(f, hidden=True)\n### END HIDDEN TESTS"
    assert checked_names(source) == {"f"}
    assert ends_in_check(source)
    assert not ends_in_check("check(f)\nassert f")
    assert not ends_in_check("")
    assert checked_names("check(f) +") == {"f"}


def test_the_setup_cell_is_recognised_by_its_import() -> None:
    assert imports_check("import torch\nfrom tfcourse import check\nimport os")
    assert not imports_check("check = None")
