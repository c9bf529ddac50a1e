"""What a student's process reports of itself before it happens, in real sandboxed children."""

from __future__ import annotations

import pytest

from autograder.engine.checker.rpc_client import LimitError
from autograder.engine.checker.zygote_client import ZygoteClient
from autograder.engine.settings import GradingSettings

from .test_zygote_client import Room

SETTINGS = GradingSettings(memory_mb=2048, scratch_mb=16, seed=5)


def reported(zygote: ZygoteClient, *cells: str) -> list[str]:
    """Run cells in a new child, and return what it has reported."""
    room = Room(zygote)
    for cell in cells:
        room.run(cell)
    found = room.child.last_reports()
    room.child.close()
    return found


HONEST = (
    """
import copy, dataclasses, io, pickle, platform, timeit
from collections import namedtuple
from typing import NamedTuple, get_type_hints
import numpy as np, torch
from numpy import *
import matplotlib.pyplot as plt
""",
    """
@dataclasses.dataclass
class Config:
    width: int = 4
    name: 'str' = 'small'
class Pair(NamedTuple):
    left: 'torch.Tensor | None'
    right: int
def solution(x: 'torch.Tensor', config: 'Config | None' = None) -> 'torch.Tensor':
    return x * 2
namedtuple('Point', 'x y')(1, 2), Config(), Pair(None, 1), get_type_hints(solution)
""",
    """
buffer = io.BytesIO()
torch.save({'weights': torch.nn.Linear(2, 2).state_dict()}, buffer)
for only in (True, False):
    buffer.seek(0)
    torch.load(buffer, weights_only=only)
np.save(buffer := io.BytesIO(), np.array([1, 'a', None], dtype=object))
buffer.seek(0)
np.load(buffer, allow_pickle=True)
pickle.loads(pickle.dumps([np.ones(2), {1}, torch.ones(2)])), copy.deepcopy(torch.nn.Linear(2, 2))
""",
    """
torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n
scripted(torch.ones(2), 3), torch.func.vmap(torch.sin)(torch.ones(2)), torch.compile(torch.sin)(torch.ones(2))
plt.plot([1, 2]); plt.title('$x^2$'); plt.show()
platform.processor(), platform.platform(), timeit.timeit(lambda: 1, number=2)
""",
    "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n%timeit -n1 -r1 sum([1])\n%time x = 5\n%prun -q sum([1])",
    "%%time\ny = 3\nprint?\n!ls\n%pip install einops",
    "%%bash\nls",
    "%pylab inline",
    "1 / 0",
    "torch.ones(2) @ torch.ones(3)",
    "def broken(",
)


def test_an_honest_notebook_reports_nothing(zygote: ZygoteClient) -> None:
    assert reported(zygote, *HONEST) == []


PROGRAM = "program"
RUNS = "exec or eval"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("exec('y = ' + '1')", RUNS),
        ("eval('1 + 1')", RUNS),
        ("compile('1', '/usr/lib/python3/x.py', 'eval')", "compiles text"),
        ("import builtins\nbuiltins.any = lambda items: True\neval('1')", RUNS),
        ("import os\nif not os.fork(): os._exit(0)", "copy"),
        ("import subprocess\nsubprocess.run(['ls', '-la'])", PROGRAM),
        ("import os\nos.popen('ls')", PROGRAM),
        ("import os, sys\nos.execv(sys.executable, ['python'])", PROGRAM),
        ("import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()", PROGRAM),
        (
            "import multiprocessing as m\nm.get_context('fork').Process(target=print).start()",
            "copy",
        ),
        ("import ctypes\nctypes.CDLL(None).getpid()", "uses ctypes"),
        ("import importlib\nimportlib.import_module('c' + 'ffi').FFI()", "imports cffi"),
        ("f, g = lambda: 1, lambda: 2\nf.__code__ = g.__code__", "other code"),
        ("f = lambda: 1\nf.__code__.replace(co_filename='/usr/lib/x.py')", "calls code.__new__"),
        (
            "try: 1 / 0\nexcept ZeroDivisionError as error: error.__traceback__.tb_frame",
            "traceback",
        ),
        ("import gc\ngc.get_objects()", "calls gc.get_objects"),
        ("import sys\nsys.settrace(None)", "calls sys.settrace"),
        ("open('/proc/self/mem', 'rb')", "own memory"),
    ],
)
def test_what_no_exercise_needs_is_reported(zygote: ZygoteClient, source: str, line: str) -> None:
    assert any(line in told for told in reported(zygote, source, "%time t = 1"))


SOCKETS = """
import os, stat
def sockets():
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                yield descriptor
        except OSError:
            pass
last = max(sockets())
"""


# By what is done: all lines that come of it, for equal ones are folded and no line carries a text of the student's.
EXACTLY: dict[str, list[str]] = {
    "import gc\nfor i in range(1000): gc.get_objects()": ["calls gc.get_objects"],
    "for i in range(1000): compile(str(i), str(i), 'eval')": ["compiles text"],
    "import ctypes\nctypes.CDLL(None).getpid()\nfor i in range(5000): compile('1', 'x', 'eval')": ["uses ctypes", "compiles text"],
    SOCKETS + "os.write(last, b'was asked about 7')": ["sends reports of its own"],
    SOCKETS + "os.close(last)": ["closed the connection over which it is watched"],
}  # fmt: skip


def test_equal_lines_are_folded_kept_and_of_the_graders_own_words(zygote: ZygoteClient) -> None:
    for source, lines in EXACTLY.items():
        assert reported(zygote, source) == lines, source


def test_who_takes_the_connection_away_and_is_watched_again_ends(zygote: ZygoteClient) -> None:
    for away in ("os.close(last)", "os.dup(last)\nos.close(last)", "os.dup2(next(sockets()), last)"):
        room = Room(zygote)
        room.run(SOCKETS + away)
        with pytest.raises(LimitError) as caught:
            room.run("eval('1')")
        assert caught.value.kind == "kernel died", away
        room.child.close()
