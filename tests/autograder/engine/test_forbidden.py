"""What a process refuses it refuses for good: student code finds nothing that takes it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from autograder.checking.draw import Case
from autograder.checking.request import Observation
from autograder.checks.ch05_transformer.ready_made import ATTENTION, NORMS

from .student import Student

CASE = Case({"x": torch.rand(2, 3, 4)})
# A function of Python, refused by its code, and one of C++, refused at the dispatcher.
CALLS = ("return F.layer_norm(x, (4,))", "return torch.layer_norm(x, (4,))")
FORBIDDEN = [*ATTENTION, *NORMS]


@pytest.fixture
def student() -> Iterator[Student]:
    made = Student(forbidden=FORBIDDEN)
    yield made
    made.close()


def asked(student: Student, source: str) -> Observation:
    """Define a function where norms and attention are refused, and ask it once."""
    found = student.define("import gc, sys\nimport torch.nn.functional as F\n" + source)
    return found.observe_groups([[CASE.request()]], forbidden=FORBIDDEN)[0][0]


# Code that runs in a cell, and in the function before it makes the call.
UNDOING: dict[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "an audit hook": ("sys.addaudithook(lambda event, args: None)", ""),
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
    "a release": ("import autograder.checking.refusal as r", "r.Refusal().release()"),
    "every registration released": (
        "",
        "[item.reset() for item in gc.get_objects() if type(item).__name__ == '_DispatchModule']",
    ),
    "every refusal released": (
        "",
        "[item.release() for item in gc.get_objects() if type(item).__name__ == 'Refusal']",
    ),
    "the grader's functions replaced": (
        "import autograder.checking.refusal as r\nr.refuse = r.list_kernels = r.list_python_functions = lambda *a: {}\n"
        "del torch._C._DispatchModule.impl, torch._C._dispatch_library",
        "",
    ),
    "the agent's list of calls replaced": (
        "for item in gc.get_objects():\n    if type(item).__name__ == 'RpcServer': item._called = set()",
        "",
    ),
}


@pytest.mark.parametrize("call", CALLS, ids=["Python", "C++"])
@pytest.mark.parametrize(("before", "first"), UNDOING.values(), ids=UNDOING.keys())
def test_student_code_cannot_undo_the_refusal(student: Student, before: str, first: str, call: str) -> None:
    observation = asked(student, f"{before}\ndef f(x):\n    {first or 'pass'}\n    {call}")
    assert observation.error is not None
    assert "norm" in observation.error
    assert not observation.outputs


def test_the_kernel_cannot_be_taken_out_beforehand(student: Student) -> None:
    taken = "try:\n    k = torch.library.get_kernel('aten::native_layer_norm', 'CPU')\nexcept AttributeError:\n    k = None\n"
    observation = asked(student, f"{taken}def f(x): return x if k is None else k.call_boxed(x)")
    assert observation.error is None
    assert torch.equal(observation.outputs["output"], CASE.arguments["x"])


ORIGINAL = """
import types
def f(x):
    codes = [item.__code__ for item in gc.get_objects() if type(item) is types.FunctionType]
    return any(code.co_name == 'multi_head_attention_forward' and 'in_proj_weight' in code.co_varnames for code in codes)
"""


def test_the_code_of_a_refused_function_is_gone(student: Student) -> None:
    assert asked(student, ORIGINAL).outputs["output"] is False


def test_what_is_refused_is_refused_in_cells_too(student: Student) -> None:
    assert not student.run("import torch\ntorch.nn.functional.layer_norm(torch.rand(2, 4), (4,))")
    assert "layer_norm is refused here" in str(student.outputs)


def test_a_call_in_a_cell_does_not_count_against_an_exercise(student: Student) -> None:
    cell = "import torch.nn.functional as F\nF.layer_norm(torch.rand(2, 4), (4,))\ndef f(x): return x"
    student.run("import torch")
    student.conversation.ask({"do": "define", "source": cell, "complete": True})
    seen = student.subject().observe_groups([[CASE.request()]], forbidden=FORBIDDEN)[0][0]
    assert seen.functions == ()


def test_a_process_that_allows_the_functions_is_not_asked() -> None:
    student = Student()
    try:
        with pytest.raises(RuntimeError, match="the process allows what f forbids"):
            asked(student, "def f(x): return x")
    finally:
        student.close()
