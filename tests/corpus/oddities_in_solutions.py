"""Ways in which honest students write the solutions themselves: decorated, printed from, cached, in classes, by other hands.

Each oddity is a right notebook with one of them in it, and says what it loses, as those in ``oddities`` do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .material import Work
from .oddities import EVERYTHING, EXERCISES, FUNCTIONS, Loss, Oddity, indented, plain, table

SOLUTIONS: list[Oddity] = []


# -------------------------------------------------------------------------------------- every solution, written otherwise


def rewritten(
    name: str,
    rewrite: Callable[[str], str],
    *exercises: str,
    lost: Loss | None = None,
    told: Iterable[str] = (),
    why: str = "",
) -> None:
    """Enter a way of writing that is seen in the cells of some exercises, by default of all."""

    def make(work: Work) -> None:
        for exercise in exercises or EXERCISES:
            work.cell(exercise)["source"] = rewrite(work.cell(exercise)["source"])

    exercise = exercises[0] if len(exercises) == 1 else ""
    SOLUTIONS.append(Oddity(name, make, lost or {}, frozenset(told), why, exercise))


def defined_in(source: str) -> str:
    """Return the name of the exercise that a cell defines."""
    return str(re.findall(r"(?m)^(?:def|class) (?!_)(\w+)", source)[-1])


def without_annotations(source: str) -> str:
    """Return code without the annotations of public functions."""

    def bare(match: re.Match[str]) -> str:
        return f"{match[1]}({re.sub(r': [^,=()]+', '', match[2])}):"

    return re.sub(r"(?ms)^( *def (?!_)\w+)\((.*?)\)(?: -> [^:\n]+)?:$", bare, source)


rewritten("cells timed", lambda s: f"%%time\n{s}")
rewritten("cells captured", lambda s: f"%%capture\n{s}")
rewritten(
    "cells measured",
    lambda s: f"%%timeit -n 1 -r 1\n{s}",
    lost=dict.fromkeys(EXERCISES, EVERYTHING),
    told=["exercise not defined"],
    why="what %%timeit runs is the body of a function of its own, and nothing that is defined in there is left",
)
rewritten("checked in its own cell", lambda s: f"{s}\n\n\ncheck({defined_in(s)})", *FUNCTIONS)
rewritten("under a condition", lambda s: f"if True:\n{indented(s)}")
rewritten("under no_grad", lambda s: f"with torch.no_grad():\n{indented(s)}")
rewritten("in a try", lambda s: f"try:\n{indented(s)}\nexcept Exception as error:\n    print(error)")
rewritten("run as a program below", lambda s: f"{s}\n\n\nif __name__ == '__main__':\n    print('works')")
rewritten("an error below", lambda s: f"{s}\n\n\nraise ValueError('stop')", told=["cell error"])
rewritten("wrong first, right below", lambda s: f"def {defined_in(s)}(*args):\n    return 42\n\n\n{s}")
rewritten("the same twice", lambda s: f"{s}\n\n\n{s}")
rewritten("old version in comments", lambda s: re.sub("(?m)^", "# ", s) + f"\n\n\n{s}")
rewritten("old version in a text", lambda s: f"'''\n{s}\n'''\n\n{s}")
rewritten("without annotations", without_annotations)
rewritten("annotations of the future in solutions", lambda s: f"from __future__ import annotations\n\n{s}")
rewritten("annotations as texts", lambda s: re.sub(r": (Tensor(?: \| None)?)(?=[,)]| =)", r": '\1'", s))
rewritten("torch.Tensor in annotations", lambda s: re.sub(r"(?<![.\w])Tensor\b", "torch.Tensor", s))
rewritten("Optional", lambda s: f"from typing import Optional\n\n\n{s.replace('Tensor | None', 'Optional[Tensor]')}")
rewritten(
    "annotations of jaxtyping",
    lambda s: (
        "class Float:\n    def __class_getitem__(cls, shape):\n        return object\n\n\n"
        + re.sub(r": Tensor(?=[,)])", ': Float[Tensor, "... t d"]', s)
    ),
)
rewritten("tabs in solutions", lambda s: re.sub(r"(?m)^(?: {4})+", lambda m: "\t" * (len(m[0]) // 4), s))
rewritten("line ends of Windows in solutions", lambda s: s.replace("\n", "\r\n"))
rewritten("trailing spaces", lambda s: re.sub("(?m)$", "   ", s))
rewritten("output cleared in solutions", lambda s: f"from IPython.display import clear_output\nclear_output()\n{s}")
rewritten("await in solutions", lambda s: f"async def g():\n    return 1\nawait g()\n{s}")
rewritten(
    "imports in solutions", lambda s: f"import math\nimport torch\nimport torch.nn as nn\nfrom torch import Tensor\n{s}"
)
rewritten("defined by exec", lambda s: f"exec({s!r})", told=["worth a look"])
rewritten("the marker left in", lambda s: f"# YOUR CODE HERE\n{s}")


def within(before: str, behind: str = "") -> Callable[[str], str]:
    """Return what puts lines at the beginning of every public function's body, and before each of its returns."""

    def rewrite(source: str) -> str:
        inside, found = False, []
        for line in source.split("\n"):
            spaces = len(line) - len(line.lstrip())
            if re.match(r" *(def|class|@)\b", line):
                inside = re.match(r" *def (?!_)", line) is not None
            if inside and behind and re.match(r" +return\b", line):
                found.append(indented(behind, spaces))
            found.append(line)
            # Where the signature ends.
            if inside and re.match(r" *(def .*|\).*):$", line):
                found.append(indented(before, spaces + 4))
        return "\n".join(found)

    return rewrite


rewritten("functions with docstrings", within('r"""Look up: $\\sqrt{d}$.\n\n>>> 1 + 1\n3\n"""'))
rewritten("functions with Polish comments", within("# wagi: każdy wiersz sumuje się do 1 — też w połowie precyzji"))
rewritten("functions with French comments", within("# où l'on pondère les valeurs, « à la main »"))
rewritten("functions that print", within("print('here')", "print(f'returning from {__name__}')"))
rewritten("functions that print what they have", within("print(locals())"))
rewritten("functions that log", within("import logging\nlogging.getLogger(__name__).warning('called')"))
rewritten("functions that warn", within("import warnings\nwarnings.warn('not tested')"))
rewritten("functions that ignore warnings", within("import warnings\nwarnings.filterwarnings('ignore')"))
rewritten(
    "functions with a seed", within("import random\nimport numpy as np\ntorch.manual_seed(42)\nnp.random.seed(0)")
)
rewritten("functions that set print options", within("torch.set_printoptions(precision=2)"))
rewritten("functions that set the default dtype", within("torch.set_default_dtype(torch.float32)"))
rewritten("functions that switch gradients on", within("torch.set_grad_enabled(True)"))
rewritten("functions that measure time", within("import time\nbegin = time.time()", "print(time.time() - begin)"))
rewritten("functions that count their calls", lambda s: "calls = 0\n\n\n" + within("global calls\ncalls += 1")(s))
rewritten(
    "functions that plot",
    within("import matplotlib.pyplot as plt\nplt.figure(figsize=(1, 1))\nplt.close()"),
    "attention_cost",
)
rewritten("functions that show a progress bar", within("from tqdm import tqdm\nfor _ in tqdm(range(2)): pass"))
rewritten("functions that assert", within("assert True, 'shapes do not fit'"))
rewritten(
    "functions that import", within("import math, torch\nfrom torch import nn, Tensor\nimport torch.nn.functional as F")
)
rewritten("functions that display", within("from IPython.display import display\ndisplay('here')"))
rewritten("functions that write a file", within("with open('log.txt', 'a') as f: f.write('called\\n')"))
rewritten("functions that delete", within("temporary = [1]\ndel temporary"))


def decorated(name: str, decorator: str, *, lost: Loss | None = None, told: Iterable[str] = (), why: str = "") -> None:
    """Enter a decorator named ``mine``, which stands above every public function and above a layer's ``forward``."""

    def rewrite(source: str) -> str:
        return plain(decorator) + "\n\n\n" + re.sub(r"(?m)^( *)def (?!_)", r"\1@mine\n\1def ", source)

    rewritten(f"decorated: {name}", rewrite, lost=lost, told=told, why=why)


def wrapper(before: str = "", after: str = "", *, wraps: str = "@functools.wraps(f)") -> str:
    """Return a decorator that does something before and after each call."""
    return (
        f"import functools\nimport time\n\n\ndef mine(f):\n    {wraps}\n    def wrapped(*args, **kwargs):\n{indented(before, 8)}\n"
        f"        result = f(*args, **kwargs)\n{indented(after, 8)}\n        return result\n\n    return wrapped"
    )


decorated("wrapped", wrapper())
decorated("wrapped without functools.wraps", wrapper(wraps=""))
decorated("timed", wrapper("begin = time.time()", "print(f'{f.__name__} took {time.time() - begin:.3f} s')"))
decorated("arguments printed", wrapper("print('called with', args, kwargs)"))
decorated("shapes printed", wrapper("print([tuple(a.shape) for a in kwargs.values() if isinstance(a, Tensor)])"))
decorated("calls counted", wrapper("wrapped.calls = getattr(wrapped, 'calls', 0) + 1"))
decorated("result checked", wrapper(after="assert result is not None, 'forgot to return'"))
decorated("results kept", "history = []\n" + wrapper(after="history.append(result)"))
decorated(
    "types checked",
    wrapper(
        "for a in (*args, *kwargs.values()):\n    assert isinstance(a, (Tensor, int, str, torch.device, nn.Module, type(None)))"
    ),
)
decorated("seeded", wrapper("torch.manual_seed(0)"))
decorated(
    "errors told and raised",
    wrapper("try:\n    f(*args, **kwargs)\nexcept Exception as error:\n    print(error)\n    raise"),
)
for _mode in ("no_grad", "inference_mode"):
    decorated(
        _mode,
        f"mine = torch.{_mode}()",
        lost={"scaled_dot_product_attention": ("axes", "empty row"), "FeedForward": ("gradients",)},
        why="no gradient flows back through such a function",
    )
decorated(
    "torch.jit.script",
    "mine = torch.jit.script",
    lost={name: EVERYTHING for name in EXERCISES if name != "attention_cost"},
    told=["cell error"],
    why="TorchScript refuses these functions, so they are not defined",
)
decorated(
    "dispatched by the type of the first argument",
    "import functools\nmine = functools.singledispatch",
    lost={name: EVERYTHING for name in EXERCISES if name != "FeedForward"},
    why="singledispatch takes no arguments by name, and by name they are given",
)


# ------------------------------------------------------------------------------- the mask: ways of having a function


def written(
    name: str, exercise: str, source: str, *, lost: tuple[str, ...] = (), told: Iterable[str] = (), why: str = ""
) -> None:
    """Enter another way of writing an exercise."""
    rewritten(
        f"{exercise}: {name}",
        lambda _: plain(source),
        exercise,
        lost={exercise: lost} if lost else {},
        told=told,
        why=why,
    )


MASK = "def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()\n"
BY_NAME = "the check gives arguments by name, as the exercises say above the first of them"

written("by hand", "causal_mask", MASK)
written("another name for it", "causal_mask", MASK.replace("causal", "my_causal") + "\n\ncausal_mask = my_causal_mask")
written("with attributes", "causal_mask", MASK + "\n\ncausal_mask.__doc__ = 'Mine.'\ncausal_mask.calls = 0")
written("called below", "causal_mask", MASK + "\n\nassert causal_mask(3).sum() == 6\ncausal_mask(3)")
written("called wrongly below", "causal_mask", MASK + "\n\ncausal_mask('three')", told=["cell error"])
written(
    "more arguments",
    "causal_mask",
    MASK.replace("device=None", "device=None, dtype=torch.bool, verbose=False, *, out=None"),
)
written("any arguments more", "causal_mask", MASK.replace("device=None", "device=None, *args, **kwargs"))
written("device by keyword only", "causal_mask", MASK.replace("device=None", "*, device=None"))
written("a cache among the arguments", "causal_mask", MASK.replace("device=None", "device=None, cache={}"))
written("one line", "causal_mask", MASK.replace("\n    ", " "))
written(
    "lines continued", "causal_mask", MASK.replace("return ", "return \\\n        ").replace(", dtype", ",\n\n  dtype")
)
written(
    "length by position only", "causal_mask", MASK.replace("T, device", "T, /, device"), lost=EVERYTHING, why=BY_NAME
)
written(
    "made by a function",
    "causal_mask",
    f"def make():\n{indented(MASK)}\n    return causal_mask\n\n\ncausal_mask = make()",
)
written(
    "a static method",
    "causal_mask",
    f"class Masks:\n    @staticmethod\n{indented(MASK)}\n\ncausal_mask = Masks.causal_mask",
)
written(
    "a class method",
    "causal_mask",
    f"class Masks:\n    @classmethod\n{indented(MASK.replace('(T, d', '(cls, T, d'))}\n\ncausal_mask = Masks.causal_mask",
)
written(
    "a bound method",
    "causal_mask",
    f"class Masks:\n{indented(MASK.replace('(T, d', '(self, T, d'))}\n\ncausal_mask = Masks().causal_mask",
)
written(
    "an object that can be called",
    "causal_mask",
    f"class CausalMask:\n{indented(MASK.replace('causal_mask(T, d', '__call__(self, T, d'))}\n\ncausal_mask = CausalMask()",
)
written(
    "overloads",
    "causal_mask",
    "from typing import overload\n\n\n@overload\ndef causal_mask(T: int) -> Tensor: ...\n@overload\n"
    f"def causal_mask(T: int, device: str) -> Tensor: ...\n{MASK}",
)
written(
    "device of the machine by default",
    "causal_mask",
    f"device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n\n\n{MASK.replace('device=None', 'device=device')}",
)
written(
    "device constant",
    "causal_mask",
    f"DEVICE = 'cpu'\n\n\n{MASK.replace('device=device', 'device=DEVICE')}",
    lost=("device",),
    why="the caller's device is not asked for",
)
written(
    "a module of one's own",
    "causal_mask",
    f"from pathlib import Path\n\nPath('masks.py').write_text({'import torch' + chr(10) + MASK!r})\n\nfrom masks import causal_mask",
    told=["worth a look"],
)


# ------------------------------------------------------------------------ attention: what is done with a tensor aside

ATTENTION = """
def scaled_dot_product_attention(q, k, v, mask=None):
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(wide).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights.to(v.dtype) @ v
"""
RETURN = "    return weights.to(v.dtype) @ v"


def attention(name: str, source: str, *, lost: tuple[str, ...] = (), told: Iterable[str] = (), why: str = "") -> None:
    """Enter another way of writing attention."""
    written(name, "scaled_dot_product_attention", source, lost=lost, told=told, why=why)


def looking(name: str, text: str, *, lost: tuple[str, ...] = (), told: Iterable[str] = (), why: str = "") -> None:
    """Enter lines that stand before the return of attention, where scores and weights are at hand."""
    attention(name, ATTENTION.replace(RETURN, f"{indented(plain(text))}\n{RETURN}"), lost=lost, told=told, why=why)


attention("more arguments", ATTENTION.replace("mask=None", "mask=None, scale=None, dropout_p=0.0, is_causal=False"))
attention("mask by keyword only", ATTENTION.replace("mask=None", "*, mask=None"))
attention("any arguments more", ATTENTION.replace("mask=None", "mask=None, *args, **kwargs"))
attention(
    "errors told in the body",
    "def scaled_dot_product_attention(q, k, v, mask=None):\n    try:\n"
    + indented(ATTENTION.partition("None):\n")[2])
    + "    except RuntimeError as error:\n        print('shapes?', q.shape, k.shape, error)\n        raise",
)
attention(
    "a function of autograd's",
    """
    class _Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.transpose(-2, -1), a.transpose(-2, -1) @ grad

    """
    + indented(ATTENTION.replace("weights.to(v.dtype) @ v", "_Product.apply(weights.to(v.dtype), v)")),
)
attention(
    "checkpointed",
    ATTENTION.replace("def scaled_dot_product", "def _scaled_dot_product")
    + """

from torch.utils.checkpoint import checkpoint


def scaled_dot_product_attention(q, k, v, mask=None):
    return checkpoint(_scaled_dot_product_attention, q, k, v, mask, use_reentrant=False)
""",
)
LAYER_OF_ATTENTION = "class Attention(nn.Module):\n" + indented(
    ATTENTION.replace("scaled_dot_product_attention(q", "forward(self, q").strip("\n")
)
attention("a layer in its place", f"{LAYER_OF_ATTENTION}\n\n\nscaled_dot_product_attention = Attention()")
attention(
    "a layer with weights in its place",
    f"{LAYER_OF_ATTENTION}\n\n\nscaled_dot_product_attention = Attention()\nscaled_dot_product_attention.more = nn.Linear(2, 3)",
)
attention("a layer's forward", f"{LAYER_OF_ATTENTION}\n\n\nscaled_dot_product_attention = Attention().forward")
attention(
    "a layer called by a function",
    f"{LAYER_OF_ATTENTION}\n\n\ndef scaled_dot_product_attention(q, k, v, mask=None):\n    return Attention()(q, k, v, mask)",
)


# ------------------------------------------------------------------------------------------ the cost: whole numbers

COST = """
from tfcourse.attention import AttentionCost


def attention_cost(T, S, Dh, Dv, itemsize=4):
    flops = 2 * T * S * (Dh + Dv)
    return AttentionCost(flops, itemsize * (T * Dh + S * Dh + S * Dv + T * S + T * Dv))
"""
written("the course's own type", "attention_cost", COST)
written(
    "a type of one's own",
    "attention_cost",
    COST.replace(
        "from tfcourse.attention import AttentionCost",
        "from collections import namedtuple\n\nAttentionCost = namedtuple('AttentionCost', 'flops bytes')",
    ),
)
written("a tuple", "attention_cost", COST.replace("return AttentionCost", "return "))
written(
    "numbers of NumPy",
    "attention_cost",
    COST.replace("2 * T * S * (Dh + Dv)", "2 * np.prod([T, S, Dh + Dv])").replace(
        "from tf", "import numpy as np\nfrom tf"
    ),
)
written("math.prod", "attention_cost", COST.replace("2 * T * S * (Dh + Dv)", "math.prod((2, T, S, Dh + Dv))"))
written("arguments by keyword only", "attention_cost", COST.replace("(T, S", "(*, T, S"))
written(
    "a data class",
    "attention_cost",
    COST.replace(
        "from tfcourse.attention import AttentionCost",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass AttentionCost:\n    flops: int\n    bytes: int",
    ),
    lost=EVERYTHING,
    why="two numbers are asked for, and an object of one's own is not two numbers",
)


# --------------------------------------------------------------------------------------------------- the layer: classes

LAYER = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, *, activation="relu"):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(activation)
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(self, x):
        act = nn.functional.gelu if self.activation == "gelu" else nn.functional.relu
        return self.down_proj(act(self.up_proj(x)))
"""


def layer(name: str, old: str = "", new: str = "", *, below: str = "", told: Iterable[str] = ()) -> None:
    """Enter another way of writing the layer: one text replaced by another, and something below the class."""
    assert old in LAYER
    written(name, "FeedForward", LAYER.replace(old, new, 1) + below, told=told)


layer("on a base of one's own", LAYER, "class Base(nn.Module):\n    pass\n" + LAYER.replace("nn.Module", "Base"))
layer(
    "made by a function",
    LAYER,
    LAYER.replace("FeedForward", "_Layer")
    + "\n\ndef FeedForward(d_model, d_ff, *, activation='relu'):\n    return _Layer(d_model, d_ff, activation=activation)\n",
)

for _name, _rows in table(__file__).items():
    for _row in _rows:
        globals()[_name](**_row)
