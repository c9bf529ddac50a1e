"""What a cell defines and checks is read from its text."""

from __future__ import annotations

import pytest

from autograder.static_analysis.cell_names import (
    cell_magic,
    checked_names,
    defined_names,
    ends_in_check,
    imports_check,
    only_calls_check,
    outline,
    strip_invisible_characters,
)


def body_of(source: str) -> str:
    return outline(source, frozenset({"f"})).bodies.get("f", "")


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
        ("try:\n    import a\nexcept ImportError:\n    def f(): ...", {"a", "f"}),
        ("match x:\n    case 1:\n        def f(): ...", {"f"}),
        ("def f():\n    !ls\n    return 1\nfiles = !ls\nf?", {"f", "files"}),
        ("x = (9\n  % 4)\ndef f(): ...", {"x", "f"}),
        ("%%time\ndef f(): ...", {"f"}),
        ("%%writefile a.py\ndef f(): ...", set()),
        ("%%bash\nf=3", set()),
        ("if a:\n    f = 1\n" + "elif b:\n    g = 1\n" * 900, {"f", "g"}),
        ("def f(): ...\nx = y" + ".a" * 30_000, {"f", "x"}),
        ("def f(): ...\n" + "#" * 300_000, {"f"}),
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


def test_what_a_definition_does_is_the_same_in_any_layout() -> None:
    plain = "def f(x):\n    return x + 1"
    other = 'def f(x):\n    """Says more."""\n    # and more\n    return (x\n            + 1)\n\ny = 3'
    assert body_of(plain) == body_of(other) != ""
    assert body_of(plain) != body_of("def f(x):\n    return x + 2")
    assert body_of("def g(x):\n    return x") == body_of("def f(") == ""


def test_what_is_defined_inside_others_is_found_with_them() -> None:
    source = "class A:\n    def f(self): ...\ndef g():\n    def h(): ..."
    assert outline(source).buried == {"f": "class A", "h": "function g"}
    assert outline("def f(").buried == {}


def test_magics_that_take_a_cell_away_from_python_are_named() -> None:
    assert cell_magic("\n%%bash -x\nls") == "%%bash"
    assert cell_magic("%%time\nx = 1") == cell_magic("%time x") == cell_magic("x = 1") == ""


def test_characters_that_nobody_sees_go_only_where_python_needs_it() -> None:
    assert strip_invisible_characters("x\u200b =\u00a01") == "x = 1"
    for kept in ("x = '\u200b'", "x = 1", "x\u200b = = 1"):
        assert strip_invisible_characters(kept) == kept


def test_a_warning_about_a_cell_is_not_the_graders(recwarn: pytest.WarningsRecorder) -> None:
    assert defined_names("f = '\\d'  # an escape that Python does not know") == {"f"}
    assert not recwarn.list


@pytest.mark.parametrize(
    "source",
    [
        "",
        "# nothing",
        "import torch\nfrom tfcourse import check\nX = torch.ones(2)\ncheck(f, hidden=True)",
        "'Says what comes.'",
    ],
)
def test_a_cell_that_only_asks(source: str) -> None:
    assert only_calls_check(source)


@pytest.mark.parametrize(
    "source",
    [
        "assert f(1) == 2",
        "check(f)\nprint(1)",
        "torch.manual_seed(0)",
        "sys.x = 1",
        "x: int = 1",
        "with a: check(f)",
        "%time check(f)",
        "def (",
        "a.check(f)",
    ],
)
def test_a_cell_that_does_more(source: str) -> None:
    assert not only_calls_check(source)
