"""The operators: every way in which a definition is changed in one place.

Left out on purpose, because no check can or should see them: the text of an error and what is computed for it, annotations, ``assert``
(it says what the code itself guarantees), ``strict=`` of ``zip``, the order of arguments that may be exchanged (``maximum(a, b)``), and
``.clone()`` or ``.contiguous()`` where there was none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

# The name of an operator, what comes in a node's place (statements for a statement), and how it is shown if not as it runs.
Change: TypeAlias = tuple[str, Any, str]

_EFFECTS = "autograder.mutation.effects"


@dataclass(frozen=True)
class Mutation:
    """A definition changed in one place.

    Attributes:
        operator: the kind of change.
        line: the line of the definition's code on which it stands, from 1.
        before: what stood there.
        after: what stands there now.
        code: the whole definition with the change.
    """

    operator: str
    line: int
    before: str
    after: str
    code: str


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in the tree."""

    node: ast.AST
    owner: ast.AST
    field: str
    index: int | None

    def put(self, new: Any) -> None:
        """Put a node in this one's place, or any number of statements."""
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            block = getattr(self.owner, self.field)
            changed = [*block[: self.index], *(new if isinstance(new, list) else [new]), *block[self.index + 1 :]]
            if not changed and self.field == "body":
                changed = [ast.Pass()]
            setattr(self.owner, self.field, changed)

    def changed(self, tree: ast.Module, new: Any) -> str:
        """Return the tree's code with a node in this one's place; the tree stays as it is."""
        before = getattr(self.owner, self.field)
        self.put(new)
        try:
            return ast.unparse(ast.fix_missing_locations(tree))
        finally:
            setattr(self.owner, self.field, before)


def mutations(code: str) -> list[Mutation]:
    """Return every change of a definition, in the order of its lines; two operators that give the same code count once.

    Args:
        code: the source of one function or class, at the left margin.
    """
    tree = ast.parse(code)
    seen = {ast.unparse(tree)}
    found = []
    for place in _places(tree):
        for operator, new, shown in _changes(place):
            text = place.changed(tree, new)
            if text not in seen:
                seen.add(text)
                line = int(getattr(place.node, "lineno", getattr(place.owner, "lineno", 1)))
                found.append(Mutation(operator, line, _shown(place.node), shown or _shown(new), text))
    return sorted(found, key=lambda mutation: mutation.line)


def _shown(node: Any) -> str:
    """Return a node as one line: of a statement with a block, its head."""
    if isinstance(node, list):
        return _shown(node[0]) if node else "pass"
    return ast.unparse(node).strip().split("\n")[0]


# What is no part of what a definition does, by kind of node.
_NOT_LOOKED_AT = {
    ast.Raise: {"exc", "cause"},
    ast.arg: {"annotation"},
    ast.AnnAssign: {"annotation"},
    ast.FunctionDef: {"returns"},
    ast.ClassDef: {"bases"},
    ast.JoinedStr: {"values"},
}


def _places(owner: ast.AST) -> Iterator[_Place]:
    if isinstance(owner, ast.Assert):
        return
    for field, value in ast.iter_fields(owner):
        if field in _NOT_LOOKED_AT.get(type(owner), ()):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield _Place(node, owner, field, index)
                yield from _places(node)


def _changes(place: _Place) -> Iterator[Change]:
    node = place.node
    for kind, operators in _BY_KIND:
        if isinstance(node, kind):
            for operator in operators:
                yield from operator(place)


# -------------------------------------------------------------------------------------------------- expressions

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def _comparison(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.Compare)
    for i, operator in enumerate(node.ops):
        left, right = [node.left, *node.comparators][i : i + 2]
        for other in _COMPARISONS[type(operator)]:
            if isinstance(operator, (ast.Eq, ast.NotEq)) and other not in (ast.Eq, ast.NotEq):
                if not (_is_ordered(left) and _is_ordered(right)):
                    continue
                # What is never negative is 0 where it is at most 0.
                if _is_constant(right, 0) and _is_count(left) and other in (ast.LtE, ast.Gt):
                    continue
            ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            yield "comparison", ast.Compare(node.left, ops, node.comparators), ""


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value and not isinstance(node.value, bool)


def _is_ordered(node: ast.expr) -> bool:
    """Whether larger and smaller may mean something: not for texts, shapes, lists and sets."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.Attribute):
        return node.attr not in ("shape", "dtype", "device")
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list", "set", "sorted", "type"))
    return not isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.JoinedStr))


def _is_count(node: ast.expr) -> bool:
    text = ast.unparse(node)
    is_remainder = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
    return is_remainder or any(word in text for word in ("len(", ".numel()", ".shape[", ".ndim", ".size("))


_ARITHMETIC: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}


def _arithmetic(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, (ast.BinOp, ast.AugAssign))
    for other in _ARITHMETIC.get(type(node.op), ()):
        if isinstance(node, ast.BinOp):
            yield "arithmetic", ast.BinOp(node.left, other(), node.right), ""
        else:
            yield "arithmetic", ast.AugAssign(node.target, other(), node.value), ""


def _sign(place: _Place) -> Iterator[Change]:
    assert isinstance(place.node, ast.UnaryOp)
    operand = place.node.operand
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int):
        return  # -2 counts axes from the other end, where 2 may be the same one; the neighbours of -2 are asked for
    kind = "boolean" if isinstance(place.node.op, (ast.Not, ast.Invert)) else "arithmetic"
    yield kind, operand, ""


def _boolean(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.BoolOp)
    other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "boolean", ast.BoolOp(other, node.values), ""
    for i in range(len(node.values)):
        left = [*node.values[:i], *node.values[i + 1 :]]
        yield "condition dropped", ast.BoolOp(node.op, left) if len(left) > 1 else left[0], ""


def _constant(place: _Place) -> Iterator[Change]:
    node, value, negative = place.node, None, False
    if isinstance(node, ast.Constant) and not _is_negated(place):
        value = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value, negative = node.operand.value, True
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value), ""
    elif isinstance(value, (int, float)):
        value = -value if negative else value
        for other in dict.fromkeys((value + 1, value - 1, type(value)(value * 1.5))):
            if other != value:
                yield "constant", _number(other), ""


def _is_negated(place: _Place) -> bool:
    return isinstance(place.owner, ast.UnaryOp) and isinstance(place.owner.op, ast.USub)


def _number(value: float) -> ast.expr:
    # -0.0 < 0 is false, and so is unparsed as it is.
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _choice(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.IfExp)
    yield "condition dropped", node.body, ""
    yield "condition dropped", node.orelse, ""


def _filter(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.comprehension)
    for i in range(len(node.ifs)):
        kept = [*node.ifs[:i], *node.ifs[i + 1 :]]
        changed = ast.comprehension(node.target, node.iter, kept, node.is_async)
        yield "condition dropped", changed, ""


# -------------------------------------------------------------------------------------------------------- calls

_DROPPED_METHODS = {"to", "clone", "contiguous", "detach", "float", "double", "long", "type_as"}
_COMMUTATIVE = {"maximum", "minimum", "max", "min", "add", "mul", "transpose", "swapaxes", "equal", "gcd", "logaddexp"}
_COMMUTATIVE |= {
    "promote_types",
    "broadcast_shapes",
    "broadcast_tensors",
    "isclose",
    "allclose",
    "logical_and",
    "logical_or",
    "hypot",
}
_PAIRS = [("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("any", "all")]
_PAIRS += [("floor", "ceil"), ("zeros", "ones"), ("zeros_like", "ones_like"), ("cummin", "cummax")]
_EXCHANGED = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}}


# Their dimension is the last one unless they are told otherwise.
_LAST_BY_DEFAULT = {"topk", "sort", "argsort", "kthvalue", "diff", "mode"}


def _says_nothing(name: str, keyword: ast.keyword) -> bool:
    """Whether a call means the same without a keyword."""
    if name == "zip" and keyword.arg == "strict":
        return True
    return name in _LAST_BY_DEFAULT and keyword.arg == "dim" and ast.unparse(keyword.value) == "-1"


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _with(call: ast.Call, *, args: list[ast.expr] | None = None, keywords: list[ast.keyword] | None = None) -> ast.Call:
    return ast.Call(call.func, call.args if args is None else args, call.keywords if keywords is None else keywords)


def _call(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.Call)
    name = _name_of(node.func)
    for i, keyword in enumerate(node.keywords):
        if keyword.arg is not None and not _says_nothing(name, keyword):
            yield "keyword dropped", _with(node, keywords=[*node.keywords[:i], *node.keywords[i + 1 :]]), ""
            if keyword.arg in ("min", "max"):
                other = ast.keyword(_EXCHANGED[keyword.arg], keyword.value)
                yield "min/max", _with(node, keywords=[*node.keywords[:i], other, *node.keywords[i + 1 :]]), ""
    if name not in _COMMUTATIVE:
        for i in range(len(node.args) - 1):
            if not any(isinstance(arg, ast.Starred) for arg in node.args[i : i + 2]):
                swapped = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
                yield "arguments exchanged", _with(node, args=swapped), ""
    if isinstance(node.func, ast.Attribute) and name in _DROPPED_METHODS:
        yield f".{name}() dropped", node.func.value, ""
    if name in _EXCHANGED:
        other_name = _EXCHANGED[name]
        function: ast.expr = ast.Name(other_name)
        if isinstance(node.func, ast.Attribute):
            function = ast.Attribute(node.func.value, other_name)
        yield "min/max", ast.Call(function, node.args, node.keywords), ""


# --------------------------------------------------------------------------------------------------- statements


def _condition(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, (ast.If, ast.While))
    if isinstance(node, ast.While):
        yield "condition dropped", node.orelse, ""
        return
    yield "condition dropped", node.body, ""
    if not (len(node.body) == 1 and isinstance(node.body[0], ast.Raise)):  # else it is the error that is not raised
        yield "condition dropped", node.orelse, ""


def _dropped(place: _Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Raise):
        yield "error not raised", [ast.Pass()], ""
    elif isinstance(node, ast.Expr):
        if not (isinstance(node.value, ast.Constant) or ast.unparse(node.value) == "super().__init__()"):
            yield "statement dropped", [ast.Pass()], ""
    elif isinstance(node, ast.Assign):
        # Without its first assignment a name is an error at once, which tells nothing.
        if not all(isinstance(target, ast.Name) and _is_first(place, target.id) for target in node.targets):
            yield "statement dropped", [ast.Pass()], ""
    else:
        yield "statement dropped", [ast.Pass()], ""


def _is_first(place: _Place, name: str) -> bool:
    """Whether a name is bound by this statement alone, as far as its block tells and the names that the statement reads."""
    reads = {read.id for read in ast.walk(place.node) if isinstance(read, ast.Name) and isinstance(read.ctx, ast.Load)}
    if name in reads or place.index is None or not isinstance(place.owner, ast.FunctionDef):
        return False
    earlier = getattr(place.owner, place.field)[: place.index]
    bound = {n.id for s in earlier for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {argument.arg for argument in ast.walk(place.owner.args) if isinstance(argument, ast.arg)}
    return name not in bound | arguments


_GRADIENT_MODES = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled"}


def _gradient_mode(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, ast.With)
    names = [_name_of(item.context_expr.func) for item in node.items if isinstance(item.context_expr, ast.Call)]
    if len(node.items) == 1 and set(names) & _GRADIENT_MODES:
        yield f"{names[0]} dropped", node.body, ""


def _decorators(place: _Place) -> Iterator[Change]:
    node = place.node
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    for i, decorator in enumerate(node.decorator_list):
        name = _name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name in _GRADIENT_MODES:
            kept = [*node.decorator_list[:i], *node.decorator_list[i + 1 :]]
            fields = {**dict(ast.iter_fields(node)), "decorator_list": kept}
            yield f"{name} dropped", type(node)(**fields), f"def {node.name} without @{name}"


def _added(place: _Place) -> Iterator[Change]:
    """Cut the gradient, or round to float32, where a value is assigned or returned; ``effects`` says whether that did anything."""
    node = place.node
    assert isinstance(node, (ast.Assign, ast.Return))
    if node.value is None or isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.Lambda)):
        return
    added: list[tuple[str, str, Callable[[str], str]]] = [
        (".detach() added", "detached", lambda text: f"{text}.detach()"),
        (".to() added", "rounded", lambda text: f"{text}.to(torch.float32)"),
    ]
    for operator, name, shown in added:
        effect = ast.parse(f"__import__({_EFFECTS!r}, fromlist=['']).{name}").body[0]
        assert isinstance(effect, ast.Expr)
        value = ast.Call(effect.value, [node.value], [])
        new: ast.stmt = ast.Return(value) if isinstance(node, ast.Return) else ast.Assign(node.targets, value)
        text = ast.unparse(node.value)
        text = f"({text})" if isinstance(node.value, (ast.BinOp, ast.UnaryOp, ast.IfExp)) else text
        head = "return " if isinstance(node, ast.Return) else f"{', '.join(map(ast.unparse, node.targets))} = "
        yield operator, new, head + shown(text)


_BY_KIND: list[tuple[Any, tuple[Callable[[_Place], Iterator[Change]], ...]]] = [
    (ast.Compare, (_comparison,)),
    ((ast.BinOp, ast.AugAssign), (_arithmetic,)),
    (ast.UnaryOp, (_sign, _constant)),
    (ast.BoolOp, (_boolean,)),
    (ast.Constant, (_constant,)),
    (ast.IfExp, (_choice,)),
    (ast.comprehension, (_filter,)),
    (ast.Call, (_call,)),
    ((ast.If, ast.While), (_condition,)),
    ((ast.Raise, ast.Expr, ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Delete), (_dropped,)),
    (ast.With, (_gradient_mode,)),
    ((ast.FunctionDef, ast.ClassDef), (_decorators,)),
    ((ast.Assign, ast.Return), (_added,)),
]
