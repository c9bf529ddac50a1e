"""Define the mutation operators of statements: conditions, errors, dropped statements, autograd modes, and wrapped values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from autograder.quizzes.mutation.places import Change, NodePosition, called_name

_EFFECTS = "tools.quality.effects"


def mutate_condition(position: NodePosition) -> Iterator[Change]:
    """Yield changes that replace an `if` by either branch, or a `while` by its `else` branch."""
    node = position.node
    assert isinstance(node, (ast.If, ast.While))
    if isinstance(node, ast.While):
        yield "condition dropped", node.orelse, ""
        return
    yield "condition dropped", node.body, ""
    if not (
        len(node.body) == 1 and isinstance(node.body[0], ast.Raise)
    ):  # the operator "error not raised" covers this case
        yield "condition dropped", node.orelse, ""


def drop_statement(position: NodePosition) -> Iterator[Change]:
    """Yield `pass` in place of the statement, if dropping it may go unnoticed; for `raise`, the error is not raised."""
    node = position.node
    if isinstance(node, ast.Raise):
        yield "error not raised", [ast.Pass()], ""
    elif isinstance(node, ast.Expr):
        if not (isinstance(node.value, ast.Constant) or ast.unparse(node.value) == "super().__init__()"):
            yield "statement dropped", [ast.Pass()], ""
    elif isinstance(node, ast.Assign):
        # Without its first assignment, a name raises a NameError at once, which is no useful mutant.
        if not all(
            isinstance(target, ast.Name) and _is_first_assignment(position, target.id) for target in node.targets
        ):
            yield "statement dropped", [ast.Pass()], ""
    else:
        yield "statement dropped", [ast.Pass()], ""


def _is_first_assignment(position: NodePosition, name: str) -> bool:
    """Return whether no earlier statement of the function binds a name and this statement does not read it."""
    reads = {
        read.id for read in ast.walk(position.node) if isinstance(read, ast.Name) and isinstance(read.ctx, ast.Load)
    }
    if name in reads or position.index is None or not isinstance(position.owner, ast.FunctionDef):
        return False
    earlier = getattr(position.owner, position.field)[: position.index]
    bound = {n.id for s in earlier for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {argument.arg for argument in ast.walk(position.owner.args) if isinstance(argument, ast.arg)}
    return name not in bound | arguments


_GRADIENT_MODES = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled"}


def drop_gradient_mode(position: NodePosition) -> Iterator[Change]:
    """Yield the body of a `with torch.no_grad()` or similar block without the block."""
    node = position.node
    assert isinstance(node, ast.With)
    names = [called_name(item.context_expr.func) for item in node.items if isinstance(item.context_expr, ast.Call)]
    if len(node.items) == 1 and set(names) & _GRADIENT_MODES:
        yield f"{names[0]} dropped", node.body, ""


def drop_decorators(position: NodePosition) -> Iterator[Change]:
    """Yield the definition without each of its decorators for gradient modes."""
    node = position.node
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    for i, decorator in enumerate(node.decorator_list):
        name = called_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name in _GRADIENT_MODES:
            remaining = [*node.decorator_list[:i], *node.decorator_list[i + 1 :]]
            fields = {**dict(ast.iter_fields(node)), "decorator_list": remaining}
            yield f"{name} dropped", type(node)(**fields), f"def {node.name} without @{name}"


def wrap_value(position: NodePosition) -> Iterator[Change]:
    """Yield statements that detach an assigned or returned value, or round it to float32; ``effects`` records whether that mattered."""
    node = position.node
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
