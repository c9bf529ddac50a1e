"""Define the mutation operators of expressions: comparisons, arithmetic, conditions, constants, calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.quizzes.mutation.places import Change, NodePosition, called_name

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


def mutate_comparison(position: NodePosition) -> Iterator[Change]:
    """Yield comparisons with the neighbouring and the opposite operator."""
    node = position.node
    assert isinstance(node, ast.Compare)
    for i, operator in enumerate(node.ops):
        first, right = [node.left, *node.comparators][i : i + 2]
        for other in _COMPARISONS[type(operator)]:
            if isinstance(operator, (ast.Eq, ast.NotEq)) and other not in (ast.Eq, ast.NotEq):
                if not (_is_ordered(first) and _is_ordered(right)):
                    continue
                # For a count, which is never negative, ``== 0`` and ``<= 0`` are equivalent.
                if _is_constant(right, 0) and _is_count(first) and other in (ast.LtE, ast.Gt):
                    continue
            ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            yield "comparison", ast.Compare(node.left, ops, node.comparators), ""


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value and not isinstance(node.value, bool)


def _is_ordered(node: ast.expr) -> bool:
    """Return whether ``<`` and ``>`` may be meaningful for a node, unlike for strings, shapes, lists and sets."""
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
    return is_remainder or any(part in text for part in ("len(", ".numel()", ".shape[", ".ndim", ".size("))


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


def mutate_arithmetic(position: NodePosition) -> Iterator[Change]:
    """Yield the expression with another arithmetic operator."""
    node = position.node
    assert isinstance(node, (ast.BinOp, ast.AugAssign))
    for other in _ARITHMETIC.get(type(node.op), ()):
        if isinstance(node, ast.BinOp):
            yield "arithmetic", ast.BinOp(node.left, other(), node.right), ""
        else:
            yield "arithmetic", ast.AugAssign(node.target, other(), node.value), ""


def remove_sign(position: NodePosition) -> Iterator[Change]:
    """Yield the operand without its sign or negation."""
    assert isinstance(position.node, ast.UnaryOp)
    operand = position.node.operand
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int):
        return  # axes -2 and 2 may be the same; the constant operator changes -2 to its neighbours
    kind = "boolean" if isinstance(position.node.op, (ast.Not, ast.Invert)) else "arithmetic"
    yield kind, operand, ""


def mutate_boolean(position: NodePosition) -> Iterator[Change]:
    """Yield `or` for `and`, `and` for `or`, and the expression without each of its clauses."""
    node = position.node
    assert isinstance(node, ast.BoolOp)
    other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "boolean", ast.BoolOp(other, node.values), ""
    for i in range(len(node.values)):
        remaining = [*node.values[:i], *node.values[i + 1 :]]
        yield "condition dropped", ast.BoolOp(node.op, remaining) if len(remaining) > 1 else remaining[0], ""


def mutate_constant(position: NodePosition) -> Iterator[Change]:
    """Yield a number plus 1, minus 1 and times 1.5; yield the negation of a boolean."""
    node, value, negative = position.node, None, False
    if isinstance(node, ast.Constant) and not _is_negated(position):
        value = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value, negative = node.operand.value, True
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value), ""
    elif isinstance(value, (int, float)):
        value = -value if negative else value
        for other in dict.fromkeys((value + 1, value - 1, type(value)(value * 1.5))):
            if other != value:
                yield "constant", _number_node(other), ""


def _is_negated(position: NodePosition) -> bool:
    return isinstance(position.owner, ast.UnaryOp) and isinstance(position.owner.op, ast.USub)


def _number_node(value: float) -> ast.expr:
    # -0.0 < 0 is False, so -0.0 stays a plain constant.
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def choose_branch(position: NodePosition) -> Iterator[Change]:
    """Yield either branch of a conditional expression."""
    node = position.node
    assert isinstance(node, ast.IfExp)
    yield "condition dropped", node.body, ""
    yield "condition dropped", node.orelse, ""


def drop_filters(position: NodePosition) -> Iterator[Change]:
    """Yield the comprehension without each of its conditions."""
    node = position.node
    assert isinstance(node, ast.comprehension)
    for i in range(len(node.ifs)):
        conditions = [*node.ifs[:i], *node.ifs[i + 1 :]]
        changed = ast.comprehension(node.target, node.iter, conditions, node.is_async)
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


# Functions whose default dimension is the last one.
_LAST_BY_DEFAULT = {"topk", "sort", "argsort", "kthvalue", "diff", "mode"}


def _is_redundant(name: str, keyword: ast.keyword) -> bool:
    """Return whether a call without this keyword is equivalent."""
    if name == "zip" and keyword.arg == "strict":
        return True
    return name in _LAST_BY_DEFAULT and keyword.arg == "dim" and ast.unparse(keyword.value) == "-1"


def _copy_call(
    call: ast.Call, *, args: list[ast.expr] | None = None, keywords: list[ast.keyword] | None = None
) -> ast.Call:
    return ast.Call(call.func, call.args if args is None else args, call.keywords if keywords is None else keywords)


def mutate_call(position: NodePosition) -> Iterator[Change]:
    """Yield the call without each keyword, with two arguments exchanged, or with a method such as `clone` or `detach` dropped or added."""
    node = position.node
    assert isinstance(node, ast.Call)
    name = called_name(node.func)
    for i, keyword in enumerate(node.keywords):
        if keyword.arg is not None and not _is_redundant(name, keyword):
            yield "keyword dropped", _copy_call(node, keywords=[*node.keywords[:i], *node.keywords[i + 1 :]]), ""
            if keyword.arg in ("min", "max"):
                other = ast.keyword(_EXCHANGED[keyword.arg], keyword.value)
                yield "min/max", _copy_call(node, keywords=[*node.keywords[:i], other, *node.keywords[i + 1 :]]), ""
    if name not in _COMMUTATIVE:
        for i in range(len(node.args) - 1):
            if not any(isinstance(arg, ast.Starred) for arg in node.args[i : i + 2]):
                swapped = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
                yield "arguments exchanged", _copy_call(node, args=swapped), ""
    if isinstance(node.func, ast.Attribute) and name in _DROPPED_METHODS:
        yield f".{name}() dropped", node.func.value, ""
    if name in _EXCHANGED:
        other_name = _EXCHANGED[name]
        function: ast.expr = ast.Name(other_name)
        if isinstance(node.func, ast.Attribute):
            function = ast.Attribute(node.func.value, other_name)
        yield "min/max", ast.Call(function, node.args, node.keywords), ""
