"""Text that reaches for what no exercise needs is named; ordinary work is not."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.engine.conspicuous import conspicuous

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import ctypes", "ctypes"),
        ("import os, gc as g", "gc"),
        ("from autograder.checking import sheet", "autograder"),
        ("def f(x):\n    import builtins\n    return x", "builtins"),
        ("eval('1')", "eval"),
        ("handle = exec", "exec"),
        ("f.__globals__['check']", "….__globals__"),
        ("().__class__.__base__.__subclasses__()", "….__subclasses__"),
        ("sys.modules['torch']", "….modules"),
        ("sys._getframe(1)", "…._getframe"),
        ("getattr(F, 'scaled' + '_dot')", "getattr with a computed name"),
        ("operator.attrgetter('a' + 'b')(F)", "attrgetter with a computed name"),
        ("importlib.import_module('auto' + 'grader')", "import_module with a computed name"),
        ("from threading import Thread", "threading"),
        ("import asyncio", "asyncio"),
        ("from sys import modules as loaded", "….modules"),
        ("from os import fork", "….fork"),
        ("sys.setrecursionlimit(10**6)", "….setrecursionlimit"),
        ("functools.reduce(getattr, names, torch)", "getattr handed on"),
        ("look = operator.attrgetter", "attrgetter handed on"),
        ("import torch._inductor.fx_passes", "…._inductor"),
        ("from torch.onnx import export", "….onnx"),
        ("from torch import multiprocessing", "….multiprocessing"),
        ("os.fork()", "….fork"),
        ("torch._C._autograd._disable_profiler()", "…._C"),
        ("torch._inductor.fx_passes", "…._inductor"),
        ("if torch.is_grad_enabled(): pass", "….is_grad_enabled"),
        ("from torch.autograd import _profiler_enabled", "…._profiler_enabled"),
        ("torch.overrides._len_torch_function_stack()", "….overrides"),
        ("F.__dict__[''.join(names)]", "….__dict__"),
        ("aten.__getattr__('a' + 'b')", "….__getattr__"),
        ("operator.redispatch(keys, q)", "….redispatch"),
        ("getattr(torch.ops.aten, 'mm')(x, y)", "….ops"),
        ("torch.jit.trace(layer, x)", "….trace"),
        ("from torch.jit import trace_module", "….trace_module"),
        ("error.__traceback__.tb_frame", "….tb_frame"),
        ("frame.f_back", "….f_back"),
        ("%%time\nx", ""),
        ("%matplotlib inline\nimport gc", "gc"),
        ("x = %time 1\nimport gc", "gc"),
        ("%time import gc", "gc"),
        ("%%timeit -n 1\nimport gc", "gc"),
        (">>> import gc", "gc"),
        ("%run other.py", "%run"),
        ("%%bash\npython other", "%bash"),
        ("!python other", "!python"),
        ("!pip install torch; python other", "!pip"),
        ("found = !python other", "!python"),
        ("run other", "%run"),
        ("getattr(sys, 'modules')", "….modules"),
        ("m = getattr\nm(sys, 'modu' + 'les')", "getattr handed on"),
        ("match x:\n    case object(__globals__=names): pass", "….__globals__"),
        ("keep(torch.autograd)", "torch.autograd handed on"),
        ("for engine in [nn]: pass", "torch.nn handed on"),
        ("import torch as t\nu = t.autograd\nu._profiler_enabled()", "…._profiler_enabled"),
        ("import os\nos.posix_spawn('ls', [], {})", "….posix_spawn"),
        ("os.popen('ls')", "….popen"),
        ("torch.ao.nn.quantizable.MultiheadAttention(4, 1)", "….ao"),
        ("from torch.overrides import *", "….overrides"),
        ("np.lib.sys.exit", "….sys"),
        ("import helper", "helper"),
        ("from . import helper", "a relative import"),
        ("open(name, 'w')", "open for writing"),
        ("path.write_text(text)", "write_text for writing"),
        ("names['__globals__']", "….__globals__"),
        ("name('posix_spawn')", "….posix_spawn"),
        ("if q.is_meta: pass", "….is_meta"),
        ("y = 0 if x.device == mine else 1", "a device in a condition"),
        ("where = str(x.device)\nif where in seen: pass", "a device in a condition"),
        ("{'meta': f}[str(x.device)]", "a device in a condition"),
        ("get_ipython().user_ns", "get_ipython"),
    ],
)
def test_what_no_exercise_needs_is_named(source: str, name: str) -> None:
    told = conspicuous([source])
    assert name in told if name else not told


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.path.append('.')",
        "import inspect\nprint(inspect.signature(f))",
        "for child in self.modules(): print(child)",
        "getattr(F, 'softmax')(x, -1)",
        "from torch.nn.modules import Linear",
        "import importlib, sys\nimportlib.reload(course)",
        "operator.methodcaller('split', size)(x)",
        "scores = torch.trace(x) + x.trace()",
        "@torch.jit.script\ndef f(x: Tensor): return x",
        "def eval_model(model): model.eval()",
        "self._scores = q @ k.T",
        "torch._assert(q.dim() == 3, 'q is a batch')",
        "with torch.autograd.profiler.profile() as seen: f(x)",
        "print(self.__dict__)",
        "_, weights = nn.MultiheadAttention(8, 2)(q, k, v)",
        "compiled = 'exec'",
        "this is no Python",
        "x = " + "(" * 5000,
        "%time y = f(x)",
        "%%capture\nf(x)",
        "!pip install -q einops",
        "f?",
        "x = torch.arange(n, device=q.device)[None]",
        "if device is None: device = x.device",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
        "from math import *",
        "for time in range(3): print(time)",
        "from torch import nn\nimport torch.nn.functional as F\nF.relu(x)",
        "np.random.seed(1)",
        "with open('notes.txt', 'w') as file: file.write('x')",
        "weight = getattr(self, f'weight_{gate}')",
    ],
    ids=lambda source: source[:20],
)
def test_ordinary_work_and_what_cannot_run_are_not(source: str) -> None:
    assert conspicuous([source]) == ()


@pytest.mark.parametrize("source", ["import ctypes\n" + "#" * 200_001, "#" * 200_001])
def test_a_cell_that_is_too_long_to_be_read_is_told(source: str) -> None:
    (told,) = conspicuous([source])
    assert "too long" in told


def test_names_that_the_courses_own_cells_give_are_followed() -> None:
    assert conspicuous(["engine._C"], ["import torch as engine\nimport gc"]) == ("…._C",)


def test_every_name_is_told_once_and_in_order() -> None:
    assert conspicuous(["import gc\nimport ctypes", "import gc"]) == ("ctypes", "gc")


@pytest.mark.parametrize("path", sorted(PROJECT.glob("solutions/*/exercises.ipynb")), ids=lambda path: path.parent.name)
def test_no_solution_of_the_courses_own_is_worth_a_look(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert conspicuous([cell.source for cell in cells if cell.cell_type == "code"]) == ()
