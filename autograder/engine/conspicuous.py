"""What in the text of a submission a person should look at: it reaches for what no exercise needs.

What a check counts, it counts in the student's process. Code that takes the counting apart can hide what it does from it, but not that it
was written. So it is told, and costs nothing by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from autograder.engine.cells import last_name, parsed

_MODULES = frozenset(
    {
        "_thread",
        "asyncio",
        "autograder",
        "builtins",
        "concurrent",
        "ctypes",
        "dis",
        "faulthandler",
        "gc",
        "importlib",
        "inspect",
        "marshal",
        "multiprocessing",
        "ptrace",
        "signal",
        "subprocess",
        "sys",
        "threading",
        "transformers",
    }
)
_NAMES = frozenset({"__import__", "compile", "eval", "exec", "globals", "vars"})
_ATTRIBUTES = frozenset(
    {
        "_C",
        "__builtins__",
        "__closure__",
        "__code__",
        "__dict__",
        "__getattr__",
        "__getattribute__",
        "__globals__",
        "__subclasses__",
        "__torch_dispatch__",
        "__torch_function__",
        "_getframe",
        "_inductor",
        "call_boxed",
        "cr_frame",
        "f_back",
        "f_builtins",
        "f_globals",
        "f_locals",
        "fork",
        "get_kernel",
        "get_objects",
        "gi_frame",
        "is_grad_enabled",
        "modules",
        "onnx",
        "ops",
        "redispatch",
        "setprofile",
        "setrecursionlimit",
        "settrace",
        "tb_frame",
    }
)
# `sys.path` and the like are nothing to speak of; what is done with `sys` shows in the attributes.
_HARMLESS = frozenset({"sys", "inspect", "importlib"})
# `torch.nn.modules` is where PyTorch keeps its layers.
_PARTS = (_MODULES | _ATTRIBUTES) - {"modules"}
# A layer that these have recorded is run as the plain operations that it consists of. `torch.trace` is something else, and so is a script.
_TRACERS = frozenset({"load", "trace", "trace_module"})
# The usual names of PyTorch's modules; what begins with one underscore is none of their users' business.
_PYTORCH = frozenset({"torch", "nn", "F"})
# What looks something up by its name; getattr has the name behind the object.
_LOOKUPS = frozenset({"__import__", "attrgetter", "getattr", "import_module", "methodcaller"})
# A cell longer than that is not read; nobody writes one.
_LONGEST = 200_000


def conspicuous(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the names of what a submission reaches for that no exercise needs, in order, each once.

    Args:
        sources: the student's code cells; one that Python cannot parse says nothing.
    """
    found = {name for source in sources if len(source) <= _LONGEST for name in _in_cell(source)}
    return tuple(sorted(found))


def _in_cell(source: str) -> Iterator[str]:
    cell = parsed(source)
    nodes = cell.nodes if cell is not None else ()
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _imported(alias.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from _imported(f"{node.module or ''}.{alias.name}")
        elif isinstance(node, ast.Name) and node.id in _NAMES:
            yield node.id
        elif isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called and last_name(node) in _LOOKUPS:
            yield f"{last_name(node)} handed on"
        elif isinstance(node, ast.Attribute) and _is_telling(node):
            yield f"….{node.attr}"
        elif _is_computed_lookup(node):
            yield f"{_called(node)} with a computed name"


def _imported(path: str) -> Iterator[str]:
    """Return what is told of an import: a module by its name, and a part of another one."""
    top, *parts = path.split(".")
    if top in _MODULES - _HARMLESS:
        yield top
    else:
        telling = _ATTRIBUTES if top in _HARMLESS else _PARTS
        yield from (f"….{part}" for part in parts if part in telling or (top == "torch" and _is_private(part)))
        if parts[:1] == ["jit"] and parts[-1] in _TRACERS:
            yield f"….{parts[-1]}"


def _is_telling(node: ast.Attribute) -> bool:
    if node.attr in _ATTRIBUTES:
        return not _is_self(node.value)
    path = _path(node.value)
    if path[-1:] == ["jit"] and node.attr in _TRACERS:
        return True
    return _is_private(node.attr) and not _PYTORCH.isdisjoint(path[:1]) and not any(map(_is_private, path))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_assert"  # which is in the documentation


def _path(node: ast.AST) -> list[str]:
    """Return the parts of a dotted name, or nothing."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (path := _path(node.value)):
        return [*path, node.attr]
    return []


def _is_self(node: ast.AST) -> bool:
    """Whether something is a module of the student's own, whose ``modules()`` is PyTorch's method."""
    return isinstance(node, ast.Name) and node.id in ("self", "model", "layer", "module")


def _is_computed_lookup(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or _called(node) not in _LOOKUPS:
        return False
    names = {"getattr": node.args[1:2], "attrgetter": node.args}.get(_called(node), node.args[:1])
    return any(not isinstance(name, ast.Constant) for name in names)


def _called(node: ast.AST) -> str:
    """Return the last part of the name of what is called, or an empty text."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""
