"""Ways in which honest students write the solutions themselves: decorated, printed from, cached, in classes, by other hands.

Each oddity is a right notebook with one of them in it, and says what it loses, as those in ``oddities`` do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .material import Work
from .oddities import EXERCISES, Loss, Oddity, indented, plain, table

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


rewritten("old version in comments", lambda s: re.sub("(?m)^", "# ", s) + f"\n\n\n{s}")
rewritten("without annotations", without_annotations)
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
rewritten("defined by exec", lambda s: f"exec({s!r})", told=["worth a look"])


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


def begun(name: str, before: str, behind: str = "", **more: Any) -> None:
    """Enter lines at the beginning of every public function's body, and before each of its returns."""
    rewritten(name, within(before, behind), *more.pop("exercises", ()), **more)


def around(name: str, template: str, **more: Any) -> None:
    """Enter text around a SOLUTION, or around it INDENTED; NAME is what it defines."""

    def rewrite(source: str) -> str:
        text = template.replace("NAME", defined_in(source)).replace("INDENTED", indented(source))
        return text.replace("SOLUTION", source)

    rewritten(name, rewrite, *more.pop("exercises", ()), **more)


rewritten("functions that count their calls", lambda s: "calls = 0\n\n\n" + within("global calls\ncalls += 1")(s))


def decorated(name: str, decorator: str, *, lost: Loss | None = None, told: Iterable[str] = (), why: str = "") -> None:
    """Enter a decorator named ``mine``, which stands above every public function and above a layer's ``forward``."""

    def rewrite(source: str) -> str:
        return plain(decorator) + "\n\n\n" + re.sub(r"(?m)^( *)def (?!_)", r"\1@mine\n\1def ", source)

    rewritten(f"decorated: {name}", rewrite, lost=lost, told=told, why=why)


for _mode in ("no_grad", "inference_mode"):
    decorated(
        _mode,
        f"mine = torch.{_mode}()",
        lost={"scaled_dot_product_attention": ("axes", "empty row"), "FeedForward": ("gradients",)},
        why="no gradient flows back through such a function",
    )


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


for _name, _rows in table(__file__).items():
    for _row in _rows:
        globals()[_name](**_row)
