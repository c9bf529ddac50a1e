"""What an exercise's text reaches of PyTorch is named; what only stands beside it is not."""

from __future__ import annotations

import textwrap

import pytest

from autograder.engine.mentions import Reading

SDPA = "scaled_dot_product_attention"
NAME = "attend"
IMPORT = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def named(*cells: str) -> frozenset[str]:
    """What ``attend`` uses."""
    reading = Reading()
    for cell in cells:
        reading.add(textwrap.dedent(cell))
    return reading.mentions(NAME)


REACHED = {
    "by its full name": f"import torch\ndef attend(q): return torch.nn.functional.{SDPA}(q, q, q)",
    "by a module's alias": f"import torch.nn.functional as G\ndef attend(q): return G.{SDPA}(q, q, q)",
    "by an alias of torch": f"import torch as t\ndef attend(q): return t.nn.functional.{SDPA}(q, q, q)",
    "by a module from torch": f"from torch.nn import functional\ndef attend(q): return functional.{SDPA}(q, q, q)",
    "by an imported name": f"from torch.nn.functional import {SDPA}\ndef attend(q): return {SDPA}(q, q, q)",
    "by an imported alias": f"from torch.nn.functional import {SDPA} as s\ndef attend(q): return s(q, q, q)",
    "imported inside": f"def attend(q):\n    from torch.nn.functional import {SDPA} as s\n    return s(q, q, q)",
    "a module imported inside": f"def attend(q):\n    import torch.nn.functional as G\n    return G.{SDPA}(q, q, q)",
    "getattr with a constant": IMPORT + f"def attend(q): return getattr(F, '{SDPA}')(q, q, q)",
    "a name in a dictionary": IMPORT + f"def attend(q): return vars(F)['{SDPA}'](q, q, q)",
    "an assigned function": IMPORT + f"s = F.{SDPA}\ndef attend(q): return s(q, q, q)",
    "an assigned module": IMPORT + f"G = torch.nn.functional\ndef attend(q): return G.{SDPA}(q, q, q)",
    "a chain of assignments": IMPORT + f"a = F\nb = a\ns = b.{SDPA}\ndef attend(q): return s(q, q, q)",
    "assigned inside": IMPORT + f"def attend(q):\n    s = F.{SDPA}\n    return s(q, q, q)",
    "a helper": IMPORT + f"def helper(q): return F.{SDPA}(q, q, q)\ndef attend(q): return helper(q)",
    "a helper's helper": IMPORT + f"def a(q): return F.{SDPA}(q, q, q)\ndef b(q): return a(q)\ndef attend(q): return b(q)",
    "a helper that comes later": IMPORT + f"def attend(q): return helper(q)\ndef helper(q): return F.{SDPA}(q, q, q)",
    "a lambda": IMPORT + f"attend = lambda q: F.{SDPA}(q, q, q)",
    "a lambda helper": IMPORT + f"helper = lambda q: F.{SDPA}(q, q, q)\ndef attend(q): return helper(q)",
    "the name itself": IMPORT + f"attend = F.{SDPA}",
    "imported as the exercise": f"from torch.nn.functional import {SDPA} as attend",
    "a class's method": IMPORT + f"class attend(nn.Module):\n    def forward(self, q): return F.{SDPA}(q, q, q)",
    "a base class": IMPORT + f"class Base:\n    def f(self, q): return F.{SDPA}(q, q, q)\nclass attend(Base): pass",
    "a decorator": IMPORT + f"def by(f): return lambda q: F.{SDPA}(q, q, q)\n@by\ndef attend(q): return q",
    "a default value": IMPORT + f"def attend(q, s=F.{SDPA}): return s(q, q, q)",
    "a nested function": IMPORT + f"def attend(q):\n    def inner(): return F.{SDPA}(q, q, q)\n    return inner()",
    "an async function": IMPORT + f"async def attend(q): return F.{SDPA}(q, q, q)",
    "hung on the function": IMPORT + f"def attend(q): return attend.how(q, q, q)\nattend.how = F.{SDPA}",
    "a container": IMPORT + f"ways = [F.{SDPA}]\ndef attend(q): return ways[0](q, q, q)",
    "added to a container": IMPORT + f"ways = []\nways += [F.{SDPA}]\ndef attend(q): return ways[0](q, q, q)",
    "put into a container": IMPORT + f"ways = {{}}\nways['x'] = F.{SDPA}\ndef attend(q): return ways['x'](q, q, q)",
    "an annotated assignment": IMPORT + f"ways: list = [F.{SDPA}]\ndef attend(q): return ways[0](q, q, q)",
    "unpacked": IMPORT + f"a, b = 1, F.{SDPA}\ndef attend(q): return b(q, q, q)",
    "an earlier definition": IMPORT + f"def attend(q): return F.{SDPA}(q, q, q)\nkept = attend\ndef attend(q): return kept(q)",
    "a cycle of helpers": IMPORT + f"def a(q): return b(q)\ndef b(q): return a(q) or F.{SDPA}(q, q, q)\ndef attend(q): return a(q)",
    "under a condition": IMPORT + f"if True:\n    def attend(q): return F.{SDPA}(q, q, q)",
    "a helper under several": f"try:\n    with open('x'):\n        helper = F.{SDPA}\nexcept OSError: pass\n{IMPORT}"
    "def attend(q): return helper(q)",
    "in a loop": IMPORT + f"for s in [F.{SDPA}]:\n    def attend(q): return s(q, q, q)",
    "given a name on the way": IMPORT + f"print(s := F.{SDPA})\ndef attend(q): return s(q, q, q)",
    "a loop's variable": IMPORT + f"for s in [F.{SDPA}]: pass\ndef attend(q): return s(q, q, q)",
    "a context's name": IMPORT + f"with nullcontext(F.{SDPA}) as s: pass\ndef attend(q): return s(q, q, q)",
    "a pattern's name": IMPORT + f"match F.{SDPA}:\n    case s: pass\ndef attend(q): return s(q, q, q)",
    "declared global": IMPORT + f"def prepare():\n    global s\n    s = F.{SDPA}\nprepare()\ndef attend(q): return s(q, q, q)",
    "appended": IMPORT + f"ways = []\nways.append(F.{SDPA})\ndef attend(q): return ways[0](q, q, q)",
    "appended deep down": IMPORT + f"ways = {{'a': []}}\nways['a'].append(F.{SDPA})\ndef attend(q): return ways['a'][0](q, q, q)",
    "set by name": IMPORT + f"class Box: pass\nsetattr(Box, 'f', F.{SDPA})\ndef attend(q): return Box.f(q, q, q)",
    "hung on what it hangs on": IMPORT + f"class Box: pass\nBox.a = Box()\nBox.a.f = F.{SDPA}\ndef attend(q): return Box.a.f(q, q, q)",
    "a loop's variable in a function": IMPORT + f"def attend(q):\n    for s in [F.{SDPA}]: pass\n    return s(q, q, q)",
    "by an alias that comes after an own function": "def G(): pass\n" + IMPORT + f"G = F\ndef attend(q): return G.{SDPA}(q, q, q)",
    "a module that is a loop's variable, too": IMPORT + f"for F in [F]: pass\ndef attend(q): return F.{SDPA}(q, q, q)",
    "a magic around it": f"%matplotlib inline\n!pip list\n{IMPORT}def attend(q): return F.{SDPA}(q, q, q)",
}  # fmt: skip

NOT_REACHED = {
    "a scratch cell": IMPORT + f"def attend(q): return q\nprint(F.{SDPA}(1, 2, 3))",
    "a helper that is not used": IMPORT + f"def compare(q): return F.{SDPA}(q, q, q)\ndef attend(q): return q",
    "a comment": IMPORT + f"def attend(q): return q  # not F.{SDPA}",
    "a sentence": IMPORT + f"def attend(q):\n    'unlike {SDPA} of PyTorch'\n    return q",
    "an own function of that name": IMPORT + f"def {SDPA}(q): return q\ndef attend(q): return {SDPA}(q)",
    "an own function after an import": f"from torch.nn.functional import {SDPA}\ndef {SDPA}(q): return q\n"
    f"def attend(q): return {SDPA}(q)",
    "another module's attribute": f"import math as F\ndef attend(q): return F.{SDPA}(q)",
    "a scratch variable with an argument's name": IMPORT + f"q = F.{SDPA}(1, 2, 3)\ndef attend(q): return q",
    "a scratch variable with a variable's name": IMPORT + f"def attend(q):\n    out = q + 1\n    return out\nout = F.{SDPA}(1, 2, 3)",
    "a scratch variable with a comprehension's name": IMPORT + f"def attend(q): return [x for x in q]\nx = F.{SDPA}(1, 2, 3)",
    "a scratch loop with an argument's name": IMPORT + f"for q in range(3): print(F.{SDPA}(q, q, q))\ndef attend(q): return q",
    "a comparison with the exercise": IMPORT + f"def attend(q): return q\ntorch.testing.assert_close(attend(1), F.{SDPA}(1, 1, 1))",
    "a comparison with a class of the exercise's": IMPORT + f"class attend:\n    def f(q): return q\nprint(attend.f(1), F.{SDPA}(1, 1, 1))",
    "a module that is used beside it": IMPORT + f"import numpy as np\ndef attend(q): return np.exp(q)\n"
    f"np.testing.assert_allclose(1, F.{SDPA}(1))",
    "an argument with a module's name": IMPORT + f"def attend(F): return F.{SDPA}",
    "a variable with the name of another function's alias": f"import torch\ndef scratch():\n    t = torch.nn.functional\n"
    f"def attend(t): return t.{SDPA}",
    "an attribute of the argument": IMPORT + f"def attend(q): return q.{SDPA}",
}  # fmt: skip


@pytest.mark.parametrize("source", REACHED.values(), ids=REACHED.keys())
def test_what_is_reached_is_found(source: str) -> None:
    assert SDPA in named(source)


@pytest.mark.parametrize("source", NOT_REACHED.values(), ids=NOT_REACHED.keys())
def test_what_is_not_reached_is_nobodys_business(source: str) -> None:
    assert SDPA not in named(source)


def test_what_comes_after_a_check_was_no_part_of_it() -> None:
    reading = Reading()
    reading.add(IMPORT + "ways = [1]\ndef attend(q): return ways[0]")
    assert SDPA not in reading.mentions(NAME)
    reading.add(f"ways.append(F.{SDPA})")
    assert SDPA in reading.mentions(NAME)


def test_the_last_of_an_own_function_and_an_import_counts() -> None:
    own, theirs = f"def {SDPA}(q): return q", f"from torch.nn.functional import {SDPA}"
    for first, last, found in ((own, theirs, True), (theirs, own, False)):
        assert (SDPA in named(IMPORT + first, last, f"def attend(q): return {SDPA}(q)")) is found
    inside = f"def scratch():\n    {theirs}"
    assert SDPA not in named(IMPORT + own, inside, f"def attend(q): return {SDPA}(q)")


def test_what_one_cell_imports_another_one_uses() -> None:
    assert SDPA in named("import torch.nn.functional as F", f"def attend(q): return F.{SDPA}(q, q, q)")


def test_a_cell_that_does_not_parse_defines_nothing_and_hides_no_other() -> None:
    good = IMPORT + f"def attend(q): return F.{SDPA}(q, q, q)"
    assert SDPA in named("def attend(q:", good)
    assert SDPA in named("\x00", good)
    assert SDPA in named("x = " + "(" * 5_000, good)
    assert named(f"def attend(q: return F.{SDPA}(q, q, q)") == frozenset()


def test_every_name_that_is_used_is_told_and_nothing_else() -> None:
    found = named(IMPORT + "def attend(q):\n    x = torch.softmax(q, -1)\n    return nn.Linear(2, 2)(x) + F.relu(q)")
    assert {"softmax", "Linear", "relu"} <= found
    assert "tanh" not in found


def test_a_class_that_is_built_from_pytorchs_is_told_by_its_base() -> None:
    assert "MultiheadAttention" in named(IMPORT + "class attend(nn.MultiheadAttention): pass")


def test_an_exercise_that_is_nowhere_defined_mentions_nothing() -> None:
    assert named(IMPORT + f"def other(q): return F.{SDPA}(q, q, q)") == frozenset()
    assert Reading().mentions(NAME) == frozenset()


def test_a_star_import_lets_the_functions_names_stand_for_pytorchs() -> None:
    assert SDPA in named(f"from torch.nn.functional import *\ndef attend(q): return {SDPA}(q, q, q)")


def test_a_function_of_the_students_own_counts_before_what_a_star_import_brings() -> None:
    assert SDPA not in named(
        f"from torch.nn.functional import *\ndef {SDPA}(q): return q\ndef attend(q): return {SDPA}(q)"
    )
    assert "relu" in named("from torch.nn.functional import *\ndef attend(q): return relu(q)")


# ------------------------------------------------------------------------------------------------- texts that are names

LOOKED_UP = {
    "getattr": "getattr(torch, 'lstm')",
    "getattr with a choice": "getattr(torch, 'gru' if short else 'lstm')",
    "getattr_static": "inspect.getattr_static(torch, 'lstm')",
    "__getattribute__": "torch.__getattribute__('lstm')",
    "object's __getattribute__": "object.__getattribute__(torch, 'lstm')",
    "vars": "vars(torch)['lstm']",
    "vars by get": "vars(torch).get('lstm')",
    "__dict__": "torch.__dict__['lstm']",
    "__dict__ by pop": "torch.__dict__.pop('lstm')",
    "globals": "globals()['lstm']",
    "attrgetter": "operator.attrgetter('lstm')(torch)",
    "attrgetter with dots": "attrgetter('_VF.lstm')(torch)",
    "methodcaller": "operator.methodcaller('lstm', q, q)(torch)",
    "import_module": "importlib.import_module('torch.lstm')",
}

ONLY_SAID = {
    "a docstring": "def attend(q):\n    'lstm'\n    return q",
    "a dictionary's key": "def attend(q):\n    kept = {'lstm': q}\n    return kept['lstm']",
    "a comparison": "def attend(q, kind):\n    return q if kind == 'lstm' else -q",
    "one of several": "def attend(q, kind):\n    if kind not in ('gru', 'lstm'):\n        raise ValueError(kind)\n    return q",
    "an argument": "def attend(q):\n    return dict(kind='lstm', value=q)['value']",
    "a default value": "def attend(q, kind='lstm'):\n    return q",
    "a dictionary's get": "def attend(q, kept):\n    return kept.get('lstm')",
}


@pytest.mark.parametrize("call", LOOKED_UP.values(), ids=LOOKED_UP.keys())
def test_a_text_that_is_looked_up_is_a_name_however_short(call: str) -> None:
    assert "lstm" in named(IMPORT + f"def attend(q, short=False): return {call}")


@pytest.mark.parametrize("source", ONLY_SAID.values(), ids=ONLY_SAID.keys())
def test_an_ordinary_word_in_a_text_is_no_call(source: str) -> None:
    assert "lstm" not in named(IMPORT + source)
    assert "LSTM" not in named(IMPORT + source.replace("lstm", "LSTM"))


def test_a_name_that_can_be_nothing_else_counts_wherever_it_may_be_looked_up_from() -> None:
    assert SDPA in named(IMPORT + f"def attend(q):\n    how = '{SDPA}'\n    return getattr(F, how)(q, q, q)")
    assert SDPA in named(IMPORT + f"def attend(q):\n    space = vars(F)\n    return space['{SDPA}'](q, q, q)")
    assert SDPA not in named(IMPORT + f"def attend(q):\n    '{SDPA}'\n    return {{'{SDPA}': q}}")
