"""What honest students put beside the exercises: settings of PyTorch, habits of Colab, names, scratch work, cells that break off.

Each oddity is a right notebook with one of them in it, and says what it loses: nothing, but for those under which the work is really
broken. Those say why; whoever runs the notebook from top to bottom sees it too. How solutions themselves are written is in
``oddities_in_solutions``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .material import Work, code

# One with a mask, gradients and a name that PyTorch has as well, one without tensors among its inputs, one of whole numbers, a class.
EXERCISES = ("scaled_dot_product_attention", "causal_mask", "attention_cost", "FeedForward")
FUNCTIONS = EXERCISES[:-1]
EVERYTHING = ("everything",)
Loss = Mapping[str, tuple[str, ...]]
Place = Callable[[Work, str], None]


@dataclass(frozen=True)
class Oddity:
    """A right notebook with an oddity in it.

    Attributes:
        name: the oddity in a few words.
        make: puts it into a right notebook.
        lost: the aspects that fail, by exercise; all others pass.
        told: the kinds of the problems that are named; they cost nothing by themselves.
        why: why the loss is just.
        exercise: the one exercise whose cell is another, if it is no more than that.
    """

    name: str
    make: Callable[[Work], None]
    lost: Loss = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    why: str = ""
    exercise: str = ""


CELLS: list[Oddity] = []


# ------------------------------------------------------------------------------------------------- cells of one's own


def top(work: Work, source: str) -> None:
    """Put a cell above all others."""
    work.cells.insert(0, code(source))


def first(work: Work, source: str) -> None:
    """Put a cell below the first code cell."""
    work.cells.insert(work.at("setup") + 1, code(source))


def tests(work: Work, source: str) -> None:
    """Put a cell before every test cell."""
    for name in EXERCISES:
        work.cells.insert(work.at(f"test_{name}"), code(source))


def last(work: Work, source: str) -> None:
    """Put a cell below all others."""
    work.cells.append(code(source))


PLACES: dict[Place, str] = {top: "at the top", first: "first", tests: "before every test", last: "at the end"}


def cell(
    name: str,
    source: str,
    *places: Place,
    lost: Loss | None = None,
    told: Iterable[str] = (),
    why: str = "",
) -> None:
    """Enter a cell that students add, once for each place: by default below the first code cell, and before every test."""
    text = plain(source)
    for place in places or (first, tests):

        def make(work: Work, place: Place = place) -> None:
            place(work, text)

        CELLS.append(Oddity(f"{name}, {PLACES[place]}", make, lost or {}, frozenset(told), why))


def indented(source: str, spaces: int = 4) -> str:
    """Return code further to the right."""
    return textwrap.indent(source, " " * spaces)


def plain(source: str) -> str:
    """Return code as it stands in a cell."""
    return textwrap.dedent(source).strip("\n")


# What is set for all of PyTorch, NumPy or Python.

cell("default dtype is double", "torch.set_default_dtype(torch.float64)")
cell("default tensors are double", "torch.set_default_tensor_type(torch.DoubleTensor)")
cell("a seed", "torch.manual_seed(42)")
cell(
    "seeds of everything", "import random\nimport numpy as np\nrandom.seed(0)\nnp.random.seed(0)\ntorch.manual_seed(0)"
)
cell("gradients switched off", "torch.set_grad_enabled(False)")
cell("no_grad entered", "torch.no_grad().__enter__()")
cell(
    "inference mode entered",
    "ctx = torch.inference_mode()\nctx.__enter__()",
    lost={"scaled_dot_product_attention": ("axes", "empty row"), "FeedForward": ("gradients",)},
    why="nothing that is computed in inference mode has a gradient, and it is never left",
)
cell("anomaly detection", "torch.autograd.set_detect_anomaly(True)")
cell("deterministic algorithms", "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.benchmark = False")
cell("precision of products", "torch.set_float32_matmul_precision('medium')")
cell("denormal numbers flushed", "torch.set_flush_denormal(True)")
cell("two threads", "torch.set_num_threads(2)")
cell("default device", "torch.set_default_device('cpu')")
cell(
    "device of the machine",
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_default_device(device)
    """,
)
cell("default device is meta", "torch.set_default_device('meta')")
cell("print options", "torch.set_printoptions(precision=3, sci_mode=False, linewidth=200, profile='short')")
cell("print options of NumPy", "import numpy as np\nnp.set_printoptions(precision=2, suppress=True)", tests)
cell(
    "tensors that print their shape",
    "torch.Tensor.__repr__ = lambda self, **named: f'{tuple(self.shape)} {self.dtype}'",
)
cell("warnings are errors", "import warnings\nwarnings.simplefilter('error')")
cell("warnings ignored", "import warnings\nwarnings.filterwarnings('ignore')")
cell("NumPy raises", "import numpy as np\nnp.seterr(all='raise')")
cell("logging", "import logging\nlogging.basicConfig(level=logging.DEBUG)\nlogging.debug('here')")
cell("logging captures warnings", "import logging\nlogging.captureWarnings(True)\nlogging.disable(logging.CRITICAL)")
cell("recursion limit", "import sys\nsys.setrecursionlimit(5000)")
cell("garbage collected", "import gc\ngc.collect()\ntorch.cuda.empty_cache()", tests, told=["worth a look"])
cell("environment", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\nos.environ['OMP_NUM_THREADS'] = '1'")
cell("an alarm taken back", "import signal\nsignal.alarm(0)", tests, told=["worth a look"])
cell("another folder", "import os\nos.makedirs('tmp', exist_ok=True)\nos.chdir('tmp')")
cell(
    "style of plots", "import matplotlib.pyplot as plt\nplt.style.use('ggplot')\nplt.rcParams['figure.dpi'] = 50", tests
)

# What notebooks are begun with, at home and at Colab.

cell(
    "magics",
    """
    %matplotlib inline
    %load_ext autoreload
    %autoreload 2
    %config InlineBackend.figure_format = 'retina'
    """,
)
cell("more magics", "%precision 3\n%xmode Minimal\n%colors NoColor\n%who\n%pwd\n%env HOME", tests)
cell("a magic by its function", "get_ipython().run_line_magic('matplotlib', 'inline')", tests)
cell("a magic that is not there", "%load_ext tensorboard\n%tensorboard --logdir runs", first, told=["cell error"])
cell("automatic calls", "%autocall 1", told=["worth a look"])
cell("debugger on errors", "%pdb on")
cell(
    "every expression shown",
    """
    from IPython.core.interactiveshell import InteractiveShell
    InteractiveShell.ast_node_interactivity = "all"
    1
    2
    """,
)
cell("shell", "!ls\nfiles = !ls\nprint(files)", tests)
cell("installed", "!pip install -q einops\n%pip install -q einops\n!apt-get install -y graphviz", first)
cell("a GPU looked for", "!nvidia-smi", tests)
cell(
    "drive of Colab",
    "from google.colab import drive\ndrive.mount('/content/drive')\n%cd /content/drive/MyDrive",
    tests,
    told=["cell error"],
)
cell("folder of Colab", "%cd /content", tests)
cell("runtime restarted", "import os\nos.kill(os.getpid(), 9)")
cell("a package that is not there", "import jaxtyping\nfrom jaxtyping import Float", tests, told=["cell error"])
cell(
    "a package that may be there", "try:\n    import seaborn as sns\nexcept ModuleNotFoundError:\n    sns = None", tests
)
cell("a cell for the shell", "%%bash\necho hello\nls -la", tests, told=["worth a look"])
cell("a cell timed", "%%time\nx = torch.randn(10, 10) @ torch.randn(10, 10)", tests)
cell("a cell measured", "%%timeit -n 1 -r 1\ntorch.randn(10, 10) @ torch.randn(10, 10)", tests)
cell("a line measured", "%timeit -n 1 -r 1 sum(range(10))", tests)
cell("a cell captured", "%%capture out\nprint('nobody sees this')", tests)
cell("a line profiled", "%prun -q sum(range(10))", tests)
cell("a file written", "%%writefile notes.txt\nSmall steps.", tests)
cell("HTML", "%%html\n<style>.output { color: red; }</style>", tests)
cell("LaTeX", "%%latex\n$\\sqrt{D_h}$", tests)
cell("JavaScript", "%%javascript\nconsole.log('hello')", tests)
cell("help", "torch.softmax?", tests)
cell("help and source", "help(len)\nimport inspect\nprint(inspect.signature(nn.Linear))\nnn.Linear??", tests)
cell("all names cleared", "%reset -f", top)
cell(
    "all names cleared",
    "%reset -f",
    first,
    lost={name: EVERYTHING for name in EXERCISES if name != "attention_cost"},
    told=["cell error"],
    why="torch is imported above and forgotten again: what needs it cannot even be defined",
)

# Names of one's own.

cell("variables named like arguments", "q = k = v = mask = x = T = S = device = activation = None")
cell("variables named like results", "scores = weights = out = output = result = score = scale = wide = 0")
cell("names deleted", "q = 1\ndel q", tests)
cell("a variable named check", "check = True")
cell("a function named check", "def check(a, b):\n    return torch.allclose(a, b)")
cell("variables named like modules", "tfcourse = autograder = F = 1")
cell(
    "names that Python gives a module",
    "__all__ = ['causal_mask']\n__author__ = 'Zoë'\n__version__ = '1'\n__name__ = 'mine'",
)
cell("print replaced", "def print(*args, **kwargs): pass")
cell("print that flushes", "import functools\nprint = functools.partial(print, flush=True)")
cell("builtins renamed", "list = [1, 2]\nsum = 3\nid = 4\ninput = 'x'\nfile = dir = max = min = 0")
cell("underscores", "_ = 3\n__ = 4\n[_ for _ in range(3)]", tests)
cell("inputs and outputs", "In = Out = 3", tests)
cell("constants", "DEVICE = 'cpu'\nSEED, EPS = 42, 1e-9", tests)
cell("names beyond ASCII", "# współczynnik skali\nrésumé = 'é'\nα = 0.5\nżółć = α * 2\nprint(résumé, żółć, '≈')")
cell("a type of one's own named Tensor", "Tensor = torch.FloatTensor")
cell(
    "modules under other names",
    "import torch as T\nimport torch.nn as N\nimport torch.nn.functional as Fn\nimport tfcourse as tf",
)
cell("annotations of the future", "from __future__ import annotations")
cell("star of math", "from math import *")
cell("star of typing", "from typing import *")
cell("star of torch.nn", "from torch.nn import *")
cell("star of the course", "from tfcourse import *")
cell("star of the course's attention", "from tfcourse.attention import *", first)
cell(
    "star of the course's attention",
    "from tfcourse.attention import *",
    tests,
    lost={name: EVERYTHING for name in EXERCISES if name != "FeedForward"},
    why="students have stubs of this chapter's functions, and these have taken the place of their own",
)
for _star in ("from torch import *", "from numpy import *", "%pylab inline"):
    cell(
        f"star: {_star}",
        _star,
        lost={"scaled_dot_product_attention": EVERYTHING},
        why="any() of this solution is no longer Python's, and the other one does not take a generator",
    )
cell("star of torch.nn.functional", "from torch.nn.functional import *", first)
cell(
    "star of torch.nn.functional",
    "from torch.nn.functional import *",
    tests,
    lost={"scaled_dot_product_attention": EVERYTHING},
    why="PyTorch's function of that name has taken the place of the student's, and the ready-made one earns nothing",
)
cell(
    "a text named str",
    "str = 'a'",
    lost={"causal_mask": EVERYTHING},
    told=["cell error"],
    why="the exercise's own signature has str in an annotation",
)

# Scratch work.

cell(
    "PyTorch's attention for comparison",
    """
    import torch.nn.functional as F
    q = k = v = torch.ones(2, 3)
    out = F.scaled_dot_product_attention(q, k, v)
    weights = F.softmax(q @ k.T, -1)
    """,
    tests,
)
cell(
    "own functions tried",
    """
    try:
        q, k, v = (torch.randn(2, 3, 4, requires_grad=True) for _ in range(3))
        out = scaled_dot_product_attention(q, k, v)
        torch.testing.assert_close(out, nn.functional.scaled_dot_product_attention(q, k, v))
        out.sum().backward()
        print(q.grad.shape, causal_mask(3), FeedForward(4, 8)(out).shape)
    except NameError:
        pass
    """,
    tests,
)
cell("own function not yet written", "print(causal_mask(3))", first, told=["cell error"])
cell("an assertion", "assert torch.ones(2).sum() == 2, 'fine'", tests)
cell("an assertion that fails", "assert torch.ones(2).sum() == 3, 'not fine'", tests, told=["cell error"])
cell(
    "a model trained",
    """
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(3):
        optimiser.zero_grad()
        loss = model(torch.randn(4, 3)).square().mean()
        loss.backward()
        optimiser.step()
        print(f"{step}: {loss.item():.3f}")
    model.eval()
    """,
    tests,
)
cell(
    "data loaded",
    """
    from torch.utils.data import DataLoader, TensorDataset
    for (batch,) in DataLoader(TensorDataset(torch.arange(6)), batch_size=2, shuffle=True):
        print(batch)
    """,
    tests,
)
cell(
    "PyTorch's layer",
    "layer = nn.MultiheadAttention(4, 2)\nx = torch.randn(3, 1, 4)\nout, weights = layer(x, x, x)",
    tests,
)
cell("a Jacobian", "torch.autograd.functional.jacobian(torch.sin, torch.ones(3))", tests)
cell("gradients compared", "torch.autograd.gradcheck(torch.sin, torch.ones(3).double().requires_grad_())", tests)
cell("maps of functions", "from torch.func import grad, vmap\nprint(vmap(grad(torch.sin))(torch.ones(3)))", tests)
cell(
    "a hook",
    "layer = nn.Linear(2, 2)\nlayer.register_forward_hook(lambda *seen: print(len(seen)))\nlayer(torch.ones(2))",
    tests,
)
cell("a script", "@torch.jit.script\ndef twice(x: torch.Tensor):\n    return x + x\nprint(twice(torch.ones(2)))", tests)
cell("a plot", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('π')\nplt.show()", tests)
cell("a heat map", "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.imshow(torch.rand(3, 3))\nfig", first)
cell("figures left open", "import matplotlib.pyplot as plt\nfor _ in range(2): plt.figure()\nplt.ion()", first)
cell("tables", "import pandas as pd\npd.DataFrame({'a': [1, 2]}).describe()", first)
cell("a progress bar", "from tqdm import tqdm\nfor i in tqdm(range(3)): pass", tests)
cell("a progress bar for notebooks", "from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", tests)
cell(
    "things displayed",
    "from IPython.display import HTML, Markdown, display\ndisplay(Markdown('# hi'), HTML('<b>x</b>'))",
    tests,
)
cell("output cleared", "from IPython.display import clear_output\nprint('gone')\nclear_output(wait=True)", tests)
cell("long output", "for i in range(3000): print(i)", tests)
cell("colours and signs", "print('\\x1b[31mred\\x1b[0m', '\\r50 %', '\\b', '\\x00', '😀')", tests)
cell(
    "standard error",
    "import sys, warnings\nprint('careful', file=sys.stderr)\nwarnings.warn('very')\nsys.stdout.write('x')",
    tests,
)
cell("output caught", "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('x')", tests)
cell("a file of weights", "torch.save({'a': torch.ones(2)}, 'w.pt')\ntorch.load('w.pt')", tests)
cell("a pickle", "import pickle\npickle.loads(pickle.dumps([torch.ones(2)]))", tests, told=["worth a look"])
cell("a file", "with open('notes.txt', 'w') as f: f.write('é')\nprint(open('notes.txt').read())", tests)
cell(
    "a temporary folder",
    "import tempfile\nwith tempfile.TemporaryDirectory() as folder: print(folder)",
    tests,
)
cell(
    "a class",
    "class Config:\n    eps = 1e-9\n\n    def __repr__(self):\n        return 'Config'\n\n\ncfg = Config()\ncfg",
    tests,
)
cell(
    "a data class",
    "from dataclasses import dataclass\n@dataclass\nclass Config:\n    d_model: int = 8\nConfig()",
    tests,
)
cell(
    "types",
    "from enum import Enum\nfrom typing import NamedTuple\nclass A(Enum):\n    B = 1\nclass C(NamedTuple):\n    d: int",
    tests,
)
cell("await", "import asyncio\nawait asyncio.sleep(0)", told=["worth a look"])
cell("await without a module", "async def g():\n    return 1\nawait g()")
cell(
    "an event loop run", "import asyncio\nasync def g():\n    return 1\nasyncio.run(g())", tests, told=["worth a look"]
)
cell(
    "a thread",
    "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
    tests,
    told=["worth a look"],
)
cell(
    "a pool of threads",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p: print(list(p.map(abs, [-1, 2])))",
    tests,
    told=["worth a look"],
)
cell(
    "a pool of processes",
    "from multiprocessing import Pool\nwith Pool(1) as p: print(p.map(abs, [-1, 2]))",
    tests,
    told=["cell error", "worth a look"],
)
cell(
    "a program",
    "import subprocess\nsubprocess.run(['ls'], capture_output=True)",
    tests,
    told=["cell error", "worth a look"],
)
cell(
    "time measured",
    "import time\nstart = time.perf_counter()\ntime.sleep(0.01)\nprint(time.perf_counter() - start)",
    tests,
)
cell("memory measured", "import tracemalloc\ntracemalloc.start()\nx = [0] * 10\ntracemalloc.stop()", tests)
cell("profiled", "import cProfile\ncProfile.run('1+1')", tests, told=["worth a look"])
cell(
    "operations profiled",
    "with torch.profiler.profile() as p: torch.ones(3).sum()\nprint(len(p.key_averages()) > 0)",
    first,
)
cell("doctests", "import doctest\ndoctest.testmod()", tests, told=["worth a look"])
cell(
    "unit tests",
    """
    import unittest

    class TestMask(unittest.TestCase):
        def test_one(self):
            self.assertEqual(1, 1)

    unittest.main(argv=["", "-v"], exit=False)
    """,
    first,
)
cell("an empty cell", "", tests)
cell("a comment", "# TODO: ask on Friday", tests)
cell("tabs", "if True:\n\tz = 1", tests)
cell("line ends of Windows", "a = 1\r\nb = 2\r\n", tests)
cell("semicolons", "a = 1; b = 2; a + b;", tests)
cell("a text in place of a comment", "'''\nMy notes: \\sqrt and \\alpha\n'''", tests)

# Cells that break off.

cell("division by zero", "1/0", tests, told=["cell error"])
cell("a syntax error", "def oops(:\n  pass", tests, told=["cell error"])
cell("bad indentation", "x = 1\n  y = 2", tests, told=["cell error"])
cell("a name that is not there", "print(undefined_name)", tests, told=["cell error"])
cell("an error of one's own", "class MyError(Exception): ...\nraise MyError('é' * 100)", tests, told=["cell error"])
cell("a recursion without end", "def down(n): return down(n + 1)\ndown(0)", tests, told=["cell error"])
cell("too deep", "def f(n): return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    print('too deep')", tests)
cell("too much memory", "torch.empty(10**14)", tests, told=["cell error"])
cell("interrupted", "raise KeyboardInterrupt", tests, told=["cell error"])
cell("input asked for", "name = input('your name')", told=["cell error"])
cell("stopped by sys.exit", "import sys\nsys.exit()", told=["cell error"])
cell("stopped by SystemExit", "raise SystemExit('Stop here')", tests, told=["cell error"])
cell("stopped by exit", "exit()")
cell("a breakpoint", "def f():\n    breakpoint()\n    return 1\nf()", tests, told=["worth a look"])
cell("the debugger", "import pdb\npdb.set_trace()", tests, told=["worth a look"])
cell("the debugger afterwards", "%debug", tests)

# Below everything.

cell(
    "imported",
    "from torch.nn.functional import scaled_dot_product_attention, softmax\nprint(scaled_dot_product_attention)",
    last,
)
cell(
    "defined anew",
    """
    import torch.nn.functional as F

    def scaled_dot_product_attention(q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    """,
    last,
)
cell("run as a program", "if __name__ == '__main__':\n    print(causal_mask(3))", last)
cell("everything deleted", f"del {', '.join(EXERCISES)}, torch", last)
