"""Student code cannot keep the grader from refusing what an exercise forbids, nor take it back, nor find what is registered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from autograder.checking.draw import Case
from autograder.checking.request import Observation
from autograder.checks.ch05_transformer.ready_made import ATTENTION, NORMS
from autograder.engine.checker.remote_objects import RemoteObject
from autograder.engine.checker.remote_subject import UNPROVEN

from .student import Student

CASE = Case({"x": torch.rand(2, 3, 4)})
CALL = "return F.layer_norm(x, (4,))"


@pytest.fixture
def student() -> Iterator[Student]:
    made = Student()
    yield made
    made.close()


def asked(student: Student, source: str) -> Observation:
    """Define a function and ask it once while norms and attention are refused."""
    found = student.define("import gc, sys\nimport torch.nn.functional as F\n" + source)
    return found.__subject__().observe_groups([[CASE.request()]], forbidden=[*ATTENTION, *NORMS])[0][0]


# Code that runs in a cell, and in the function before it makes the call.
UNDOING: dict[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "an audit hook": ("sys.addaudithook(lambda event, args: None)", ""),
    "a release without the token": ("", "sys.audit('tfcourse.refusal', 'release', b'')"),
    "a token that is equal to everything": (
        "class Any:\n    __eq__ = lambda self, other: True\n    __hash__ = None",
        "sys.audit('tfcourse.refusal', 'release', Any())",
    ),
    "a token of a class of one's own": (
        "class Any(bytes):\n    __eq__ = lambda self, other: True\n    __hash__ = bytes.__hash__",
        "sys.audit('tfcourse.refusal', 'release', Any(b''))",
    ),
    "another key": ("sys.audit('tfcourse.refusal', 'key', b'mine')", "sys.audit('tfcourse.refusal', 'key', b'mine')"),
    "a library of one's own": (
        "mine = torch.library.Library('aten', 'IMPL')",
        "mine.impl('layer_norm', lambda x, *rest: torch.ops.aten.native_layer_norm(x, *rest[:1], None, None, 1e-5)[0],"
        " 'CompositeImplicitAutograd', allow_override=True)",
    ),
    "a library that is destroyed": (
        "mine = torch.library.Library('aten', 'IMPL')\nmine.impl('layer_norm', print, 'CPU', allow_override=True)",
        "mine._destroy()",
    ),
    "keys left out": (
        "",
        "guard = torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))",
    ),
    "below autograd": ("", "guard = torch._C._AutoDispatchBelowAutograd()"),
    "modes switched off": ("", "guard = torch._C._DisableTorchDispatch()"),
}


# Foreign objects where the hook looks: each would find the hook's frame, and the key in it, if a method of theirs ran inside.
ROBBING = """
loot = {}
def rob():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == 'hook' and 'keys' in frame.f_locals:
            loot.update(frame.f_locals)
        frame = frame.f_back
class Name(str):
    def partition(self, *a): rob(); return ('x', '', '')
    def startswith(self, *a): rob(); return False
    def __eq__(self, other): rob(); return str.__eq__(self, other)
    def __hash__(self): rob(); return str.__hash__(self)
    def __str__(self): rob(); return 'x'
class Bytes(bytes):
    def __repr__(self): rob(); return bytes.__repr__(self)
"""
LAID_OUT = {
    "a key of sys.modules": "import types\nsys.modules[Name('torch.mine')] = types.ModuleType('mine')",
    "a module's __module__": (
        "import types\nmine = sys.modules['torch.mine'] = types.ModuleType('torch.mine')\n"
        "class layer_norm: pass\nlayer_norm.__module__ = Name('torch.mine')\nmine.layer_norm = layer_norm"
    ),
    "a name in a module": (
        "import types\nmine = sys.modules['torch.mine'] = types.ModuleType('torch.mine')\n"
        "vars(mine)[Name('layer_norm')] = 1"
    ),
    "a false torch.fx": "sys.modules['torch.fx'] = Name('torch.fx')",
    "a metaclass": (
        "import torch.fx\nclass Kind(type):\n    def __subclasses__(cls): rob(); return []\n"
        "class Graph(torch.fx.GraphModule, metaclass=Kind): pass"
    ),
    "a nonce": (
        "import autograder.engine.student.refusal_switch as s\ndef refuse(exercise, names, nonce, called):\n    proof = []\n"
        "    sys.audit('tfcourse.refusal', 'refuse', exercise, tuple(names), Bytes(nonce), called, proof)\n"
        "    return proof[0] if proof else b''\ns.refuse = refuse"
    ),
    "a warning": (
        "import torch, warnings\ntorch.set_warn_always(True)\nwarnings._showwarnmsg = lambda *a: rob()\n"
        "warnings.simplefilter('always')"
    ),
    "a weak reference": (
        "import torch, weakref\nheld = []\ndef watch():\n"
        "    held.append(weakref.ref(torch._C.ScriptFunction.__call__, lambda _: rob()))"
    ),
}


@pytest.mark.parametrize("laid", LAID_OUT.values(), ids=LAID_OUT.keys())
def test_no_code_of_a_student_runs_inside_the_hook(student: Student, laid: str) -> None:
    asked(student, f"{ROBBING}{laid}\ndef f(x):\n    if 'watch' in globals(): watch()\n    return x")
    student.begin()
    assert student.run("print('loot:', sorted(loot))"), student.outputs
    assert "loot: []" in str(student.outputs)


@pytest.mark.parametrize(("before", "first"), UNDOING.values(), ids=UNDOING.keys())
def test_student_code_cannot_undo_the_refusal(student: Student, before: str, first: str) -> None:
    observation = asked(student, f"{before}\ndef f(x):\n    {first or 'pass'}\n    {CALL}")
    assert observation.error is not None
    assert "norm" in observation.error
    assert observation.functions


PATCHES = {
    "the switch": "import autograder.engine.student.refusal_switch as s\ns.refuse = lambda *a: b''",
    "an empty list": "import autograder.engine.student.refusal_switch as s\nold = s.refuse\ns.refuse = lambda e, names, *a: old(e, (), *a)",
    "the agent": "import autograder.engine.student.rpc_server as a\nclass No:\n    refuse = staticmethod(lambda *a: b'')\n"
    "a.refusal_switch = No",
    "a refusal of one's own": "sys.audit('tfcourse.refusal', 'refuse', 'f', (), b'', set(), [])",
    "sys.audit": "sys.audit = lambda *a: None",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_answers_without_a_proof_count_for_nothing(student: Student, patch: str) -> None:
    observation = asked(student, f"{patch}\ndef f(x): {CALL}")
    assert observation.error == UNPROVEN
    assert not observation.outputs


def test_patched_refusal_still_refuses(student: Student) -> None:
    patch = """
        import autograder.checking.refusal as r
        r.refuse = r._implement = r._operators = r._functions = lambda *a: None
        del torch._C._DispatchModule.impl, torch._C._dispatch_library
        """.replace("\n        ", "\n")
    assert "layer_norm" in str(asked(student, f"{patch}\ndef f(x): {CALL}").error)


def test_the_kernel_cannot_be_taken_out_beforehand(student: Student) -> None:
    taken = "try:\n    k = torch.library.get_kernel('aten::native_layer_norm', 'CPU')\nexcept AttributeError:\n    k = None\n"
    observation = asked(student, f"{taken}def f(x): return x if k is None else k.call_boxed(x)")
    assert observation.error is None
    assert torch.equal(observation.outputs["output"], CASE.arguments["x"])


SEARCH = """
def f(x):
    items = gc.get_objects()
    kinds = {type(item).__name__ for item in items}
    private = [item for item in items if type(item) is dict and '_implement' in item and '_kernels' in item]
    return '_DispatchModule' in kinds, len([item for item in private if item is not vars(public)])
"""


def test_nothing_that_is_registered_is_found(student: Student) -> None:
    observation = asked(student, f"import autograder.checking.refusal as public\n{SEARCH}")
    assert observation.outputs == {"output[0]": False, "output[1]": 0}


def test_between_questions_everything_works(student: Student) -> None:
    observation = asked(student, f"def f(x): {CALL}")
    assert observation.functions
    function = student.names["f"]
    assert isinstance(function, RemoteObject)
    assert function(torch.rand(2, 4)).shape == (2, 4)
    student.begin()
    assert student.run("assert F.scaled_dot_product_attention(*3 * (torch.rand(1, 2, 4),)).shape == (1, 2, 4)")
