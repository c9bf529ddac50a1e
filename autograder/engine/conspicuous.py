"""What in the text of a submission a person should look at: whatever is not on the short list of what an answer may use without a word.

What a check counts, it counts in the student's process. Code that takes the counting apart can hide what it does from it, but not that it
was written. So it is told, and costs nothing by itself. The list is :mod:`autograder.engine.ordinary`. It holds because a module is never
handed on without a word, to a name that nobody follows: what a text reaches, it reaches through names that stand in it.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy  # noqa: F401 - what is in it is looked up
import torch

from autograder.engine.cells import code_of_magic, last_name, parsed, syntax_fault
from autograder.engine.ordinary import (
    BUILTINS,
    BUT_NOT,
    CODE_FILES,
    DATA_FILES,
    DUNDERS,
    MAGICS,
    MODULES,
    PACKAGE,
    PRIVATE,
    RUNNING_MAGICS,
    SHELL,
    TELLING,
    TELLING_MODULES,
)

# What a notebook calls PyTorch's modules, if it does not say.
_USUAL = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy", "plt": "matplotlib.pyplot"}
_COURSE = "tfcourse"
_HIDDEN = TELLING | sys.stdlib_module_names
# What looks something up by its name; getattr has the name behind the object.
_LOOKUPS = frozenset({"__import__", "attrgetter", "getattr", "getattr_static", "import_module", "methodcaller"})
# What may be given a module.
_TAKES_MODULES = frozenset(
    {"dir", "getattr", "getsource", "hasattr", "help", "id", "print", "reload", "repr", "str", "type"}
)
_WRITES = frozenset({"open", "savetxt", "tofile", "write_bytes", "write_text"})
_BUILTINS = frozenset(dir(builtins)) | {"get_ipython"}
_SIGNS = frozenset({"run_line_magic", "run_cell_magic", "system", "getoutput"})
_NEVER_OWN = frozenset({"__import__", "eval", "exec", "get_ipython", "globals"})
_SELVES = frozenset({"self", "cls", "super"})
_KEEPING = frozenset({"hash", "repr", "str", "tuple"})
_DEVICES = frozenset({"device", "get_device"})
# A line of a cell of one line that begins so is a magic without its sign.
_AUTOMAGIC = re.compile(r"\s*(?P<name>[a-z_]\w*)[ \t]+(?P<line>\S.*)\s*")
# Signs by which a shell runs more than the first word says.
_MORE = re.compile(r"[;|&$`{\n]|[<>](?!=)")
# A cell longer than that is not read; nobody writes one.
_LONGEST = 200_000


def conspicuous(sources: Sequence[str], given: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of what a submission reaches for that is not on the list, in order, each once.

    Args:
        sources: the student's code cells. One that Python cannot parse cannot run either, and says nothing.
        given: the course's own code cells, for the names that they give.
    """
    reader = _Reader()
    found: set[str] = set()
    cells: list[Sequence[ast.AST]] = []
    for source in (*given, *sources):
        if len(source) > _LONGEST:
            found.add(f"a cell of {len(source)} characters, which is too long to be read")
            continue
        cell = parsed(source)
        nodes = cell.nodes if cell is not None else ()
        if source in sources:
            cells.append(nodes)
            if cell is None:
                found |= set(_unread(source))
        reader.learn(nodes)
    reader.follow()
    for nodes in cells:
        found |= set(reader.told(nodes))
    return tuple(sorted(found))


def _unread(source: str) -> Iterator[str]:
    if not syntax_fault(source):
        yield "a cell that cannot be read"
    elif (match := _AUTOMAGIC.fullmatch(source)) and match["name"] in RUNNING_MAGICS:
        yield from _magic(match["name"], match["line"])


class _Reader:
    """Follows the names of modules through a submission.

    Attributes:
        paths: names that stand for a module or something in one, with what they may stand for.
        bound: names that the text gives to anything else.
    """

    def __init__(self) -> None:
        self.paths: dict[str, set[str]] = {}
        self.bound: set[str] = set()
        self._made: set[str] = set()  # attributes that the text itself gives
        self._given: list[tuple[str, ast.AST]] = []
        self._devices: set[str] = set()
        # What stands for a magic's sign: the text behind it is looked at instead.
        self._signs: set[int] = set()
        self._called: set[int] = set()

    def learn(self, nodes: Sequence[ast.AST]) -> None:
        """Take note of the names that nodes give."""
        plain: set[int] = set()
        for node in nodes:
            for name, value in _namings(node):
                self._given.append((name.id, value))
                plain.add(id(name))
                if any(isinstance(part, ast.Attribute) and part.attr in _DEVICES for part in _kept(value)):
                    self._devices.add(name.id)
        for node in nodes:
            self._learn(node, plain)

    def _learn(self, node: ast.AST, plain: set[int]) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.paths.setdefault(alias.asname or top, set()).add(alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                for name in _star(node.module or "") if alias.name == "*" else [alias.name]:
                    self.paths.setdefault(alias.asname or name, set()).add(f"{node.module or ''}.{name}")
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            self._made.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.bound.add(node.name)
            self._made.add(node.name)
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            self.bound.add(node.name)

    def follow(self) -> None:
        """Find what the names stand for that were given to names."""
        changed = True
        while changed:
            changed = False
            for name, value in self._given:
                there = self.paths.get(name, set())
                if new := self._resolved(value) - there:
                    # A name that is given itself, `x = x.y`, would grow for ever.
                    new = {path for path in new if path.count(".") < 8}
                    changed = changed or bool(new)
                    self.paths[name] = there | new

    def told(self, nodes: Sequence[ast.AST]) -> Iterator[str]:
        """Return what is told of nodes."""
        harmless = {id(node) for parent in nodes for node in self._beside_the_point(parent)}
        self._called |= {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Call) and _is_magic(node):
                self._signs |= {
                    id(node.func),
                    *(id(part) for part in ast.walk(node.func) if isinstance(part, ast.Name)),
                }
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _path(alias.name)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                yield from self._name(node, harmless)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.MatchClass):
                yield from (told for name in node.kwd_attrs for told in self._attribute(name))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in harmless:
                yield from _constant(node.value)
            yield from self._condition(node)

    def _from(self, node: ast.ImportFrom) -> Iterator[str]:
        if node.level:
            yield "a relative import"
            return
        for alias in node.names:
            if alias.name != "*":
                yield from _path(f"{node.module}.{alias.name}")
            elif told := list(_path(node.module or "")):
                yield from told
            elif not _star(node.module or "") and (node.module or "").partition(".")[0] != _COURSE:
                yield f"from {node.module} import *"

    def _name(self, node: ast.Name | ast.Attribute, harmless: set[int]) -> Iterator[str]:
        if not isinstance(node.ctx, ast.Load):
            return
        paths = self._resolved(node)
        last = last_name(node)
        for path in paths:
            yield from _path(path)
            if id(node) not in harmless and self._is_module(node, path):
                yield f"{path} handed on"
        if id(node) not in self._called and last in _LOOKUPS and last not in self.bound:
            yield f"{last} handed on"
        if isinstance(node, ast.Attribute) and not paths:
            own = isinstance(node.value, ast.Name) and node.value.id in _SELVES
            own = own or (isinstance(node.value, ast.Call) and last_name(node.value.func) in _SELVES)
            if id(node) not in self._signs:
                yield from self._attribute(node.attr, own=own)
        elif isinstance(node, ast.Name) and not paths and id(node) not in self._signs and last in _BUILTINS - BUILTINS:
            # A name that the text has given to something else somewhere may be Python's own elsewhere.
            yield from [last] if last not in self.bound or last in _NEVER_OWN else []

    def _is_module(self, node: ast.AST, path: str) -> bool:
        if not (path in MODULES or path in sys.modules):
            return False
        # An argument that is called `time` is none of Python's.
        return not (isinstance(node, ast.Name) and node.id in self.bound and node.id not in ("torch", "sys", "os"))

    def _attribute(self, name: str, *, own: bool = False) -> Iterator[str]:
        dunder = name.startswith("__") and name.endswith("__")
        if (
            (name in TELLING and name not in self._made)
            or (dunder and name not in DUNDERS and not (own and name == "__dict__"))
            or (name.startswith("_") and not dunder and not own and name not in PRIVATE and name not in self._made)
        ):
            yield f"….{name}"

    def _call(self, node: ast.Call) -> Iterator[str]:
        name = last_name(node.func)
        if name in _LOOKUPS and name not in self.bound:
            yield from self._lookup(node, name)
        if name in _WRITES and not _is_data(node):
            yield f"{name} for writing"
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if (keyword.arg, value) not in _SAFE and keyword.arg in ("weights_only", "allow_pickle"):
                yield f"{keyword.arg}={ast.unparse(keyword.value)}"
        if _is_magic(node):
            first, *others = (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
            if name in ("system", "getoutput"):
                yield from _shell(first)
            elif code_of_magic(node) is None:
                yield from _magic(first, others[0] if others else "")

    def _lookup(self, node: ast.Call, name: str) -> Iterator[str]:
        first = name in ("getattr", "getattr_static")
        names = node.args[1:2] if first else node.args if name == "attrgetter" else node.args[:1]
        texts = [arg.value for arg in names if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if len(texts) < max(len(names), 1) and not (self._is_self(node) and all(map(_is_ordinary_name, names))):
            yield f"{name} with a computed name"
        for text in texts:
            if name in ("import_module", "__import__"):
                yield from _path(text)
            elif first and node.args and (paths := self._resolved(node.args[0])):
                yield from (told for path in paths for told in _path(f"{path}.{text}"))
            else:
                yield from (told for part in text.split(".") for told in self._attribute(part))

    def _is_self(self, call: ast.Call) -> bool:
        """Whether something of an object's own is looked up: of that no module is any."""
        of = call.args[0] if call.args else None
        return isinstance(of, ast.Name) and of.id == "self" and not self._resolved(of)

    def _condition(self, node: ast.AST) -> Iterator[str]:
        """Tell of code that does something else on one device than on another: on one of them nobody sees numbers."""
        if isinstance(node, ast.Compare):
            if any(isinstance(other, ast.Constant) and other.value is None for other in node.comparators):
                return
            asked: list[ast.AST] = [node.left, *node.comparators]
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            asked = [node.test]
        elif isinstance(node, ast.Subscript):
            asked = [node.slice]
        elif isinstance(node, ast.Match):
            asked = [node.subject]
        else:
            return
        # What stands in a comparison inside of a condition is looked at there.
        if isinstance(asked[0], ast.Compare):
            return
        if any(self._asks(part) for item in asked for part in _kept(item, compared=False)):
            yield "a device in a condition"

    def _asks(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            return node.attr in _DEVICES and not self._resolved(node)
        return isinstance(node, ast.Name) and node.id in self._devices

    def _resolved(self, node: ast.AST) -> set[str]:
        """Return what a dotted name may stand for, as far as it begins with a module."""
        if isinstance(node, ast.Attribute):
            return {f"{path}.{node.attr}" for path in self._resolved(node.value)}
        if not isinstance(node, ast.Name):
            return set()
        if found := self.paths.get(node.id):
            return found
        if node.id in self.bound:
            return set()
        if node.id in _USUAL:
            return {_USUAL[node.id]}
        return {node.id} if node.id in sys.stdlib_module_names else set()

    def _beside_the_point(self, node: ast.AST) -> list[ast.AST]:
        """Return the parts of a node that are no hand-over of what they name, and texts that are no names."""
        if isinstance(node, ast.Attribute):
            return [node.value]
        if isinstance(node, ast.Call):
            return [node.func, *(node.args if last_name(node.func) in _TAKES_MODULES else ())]
        if isinstance(node, ast.Expr):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return list(node.values)
        return [value for _, value in _namings(node)]


_SAFE = {("weights_only", True), ("allow_pickle", False)}


def _namings(node: ast.AST) -> list[tuple[ast.Name, ast.AST]]:
    """Return the plain names that a node gives to a value."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name) and node.value:
        return [(node.target, node.value)]
    return []


def _is_ordinary_name(name: ast.AST) -> bool:
    """Whether a name that is computed begins or ends as none does that would be told, as in ``f"weight_{gate}"``."""
    if isinstance(name, ast.IfExp):
        return _is_ordinary_name(name.body) and _is_ordinary_name(name.orelse)
    if isinstance(name, ast.Constant):
        return str(name.value) not in _HIDDEN and not str(name.value).startswith("_")
    if not isinstance(name, ast.JoinedStr):
        return False
    begin, end = (part.value if isinstance(part, ast.Constant) else "" for part in (name.values[0], name.values[-1]))
    begins = re.match("[a-z]{2}", str(begin)) and not any(hidden.startswith(str(begin)) for hidden in _HIDDEN)
    ends = re.search("[a-z]{2}$", str(end)) and not any(hidden.endswith(str(end)) for hidden in _HIDDEN)
    return bool(begins or ends)


def _path(path: str) -> Iterator[str]:
    """Return what is told of a module, or of something in one, by its dotted name."""
    parts = path.split(".")
    if parts[0] not in MODULES:
        yield parts[0]
        return
    known = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in MODULES)
    where, rest = ".".join(parts[:known]), parts[known:]
    for part in rest:
        if not _is_allowed(where, part):
            yield f"….{part}"
            return
        where = f"{where}.{part}"


def _is_allowed(where: str, name: str) -> bool:
    """Whether something of a listed module, or of something in one, may be used without a word."""
    if name in DUNDERS or name in PRIVATE:
        return True
    if name.startswith("_") or name in TELLING:
        return where.partition(".")[0] == _COURSE and not name.startswith("__")
    listed = MODULES.get(where)
    if listed is not None and not listed & {"*", "**"}:
        return name in listed
    if name in BUT_NOT.get(where, ()):
        return False
    return not _is_foreign(where, name)


def _is_foreign(where: str, name: str) -> bool:
    """Whether a name in a module is another module, which is not on the list."""
    top = where.partition(".")[0]
    if f"{where}.{name}" in MODULES:
        return False
    module = sys.modules.get(where)
    found = vars(module).get(name) if module is not None else None
    if isinstance(found, ModuleType):
        origin = found.__name__
    elif f"{where}.{name}" in sys.modules:
        origin = f"{where}.{name}"
    elif found is None and name in sys.stdlib_module_names:
        return True
    else:
        return where == "torch" and found is None
    return origin not in MODULES and not (origin.startswith(f"{top}.") and MODULES.get(top) == PACKAGE)


def _star(module: str) -> list[str]:
    """Return what a star import brings, as far as the module has been imported here."""
    found = sys.modules.get(module)
    return [] if found is None else list(getattr(found, "__all__", [name for name in vars(found) if name[0] != "_"]))


def _constant(text: str) -> Iterator[str]:
    """Return what is told of a text: a name in it counts as a name."""
    if text.endswith(CODE_FILES) and not re.search(r"\s", text) and text not in CODE_FILES[1:]:
        yield f"the file {text}" if len(text) < 50 else "a file of Python's"
    elif text.startswith("module://"):
        yield "module://"
    if not re.fullmatch(r"[A-Za-z_][\w.]*", text):
        return
    private = vars(torch)
    for part in text.split("."):
        dunder = part.startswith("__") and part.endswith("__") and part not in DUNDERS
        if (
            dunder
            or (part in TELLING and "_" in part)
            or part in TELLING_MODULES
            or (part[:1] == "_" and part in private and part not in DUNDERS)
        ):
            yield f"….{part}"


def _is_data(node: ast.Call) -> bool:
    """Whether a call opens a file to read it, or writes one that nobody can import."""
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if last_name(node.func) == "open":
        named = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
        modes = named or node.args[1 if isinstance(node.func, ast.Name) else 0 :][:1]
        if not modes or (isinstance(modes[0], ast.Constant) and str(modes[0].value) in ("r", "rt", "rb")):
            return True
        if isinstance(node.func, ast.Attribute):  # Path(…).open(…); what is opened otherwise, is opened to be read
            return isinstance(modes[0], ast.Constant) and not re.fullmatch("[rwaxbt+]{1,4}", str(modes[0].value))
    return any(text.endswith(DATA_FILES) for text in texts)


def _is_magic(node: ast.Call) -> bool:
    """Whether a call is what IPython makes of a line that begins with ``%`` or ``!``, or ends with ``?``."""
    asked = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in _SIGNS else None
    constant = bool(node.args) and not node.keywords and all(isinstance(arg, ast.Constant) for arg in node.args)
    return (
        constant and isinstance(asked, ast.Call) and isinstance(asked.func, ast.Name) and asked.func.id == "get_ipython"
    )


def _magic(name: str, line: str) -> Iterator[str]:
    if name in ("pip", "conda"):
        yield from _shell(f"pip {line}")
    elif (name == "load_ext" and line.strip() in ("autoreload", "tensorboard")) or (
        name == "writefile" and line.strip().endswith(DATA_FILES)
    ):
        return
    elif name not in MAGICS:
        yield f"%{name}"


def _shell(line: str) -> Iterator[str]:
    words = line.split()
    harmless = bool(words) and words[0] in SHELL and not _MORE.search(line)
    if not harmless or (words[0].startswith("pip") and re.search(r"[/\\]|\s\.", line)):
        yield f"!{words[0] if words else ''}"


def _kept(node: ast.AST, *, compared: bool = True) -> Iterator[ast.AST]:
    """Return the parts of a value that it still holds: what a call was given is gone, unless it makes a text of it."""
    yield node
    if isinstance(node, ast.Lambda) or (isinstance(node, ast.Call) and last_name(node.func) not in _KEEPING):
        return
    for child in ast.iter_child_nodes(node):
        if compared or not isinstance(child, ast.Compare):
            yield from _kept(child, compared=compared)
