"""Find the names that code uses from outside it and the names that it binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def global_names(*nodes: ast.AST) -> list[ast.Name]:
    """Return every use of a name that the nodes do not bind themselves.

    Args:
        nodes: statements or expressions of a module.

    Returns:
        The ``ast.Name`` nodes, in the order of the source.
    """
    names = [name for node in nodes for name in _find_reads(node, frozenset())]
    return sorted(names, key=lambda name: (name.lineno, name.col_offset))


def bound_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements bind in their own scope."""
    return {name for statement in statements for name in _find_bindings(statement)}


def import_targets(statements: Iterable[ast.stmt]) -> dict[str, tuple[str, str | None]]:
    """Return what imports bind: ``{name: (module, attribute)}``.

    The attribute is None for a whole module.

    Imports under ``if TYPE_CHECKING:`` count too: annotations use them.
    """
    targets: dict[str, tuple[str, str | None]] = {}
    for statement in statements:
        if isinstance(statement, ast.If):
            targets |= import_targets(statement.body)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                # `import a.b` binds a; `import a.b as c` binds a.b.
                top = alias.name.partition(".")[0]
                targets[alias.asname or top] = (alias.name if alias.asname else top, None)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            targets |= {alias.asname or alias.name: (statement.module, alias.name) for alias in statement.names}
    return targets


def _find_reads(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in bound:
            yield node
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _find_function_reads(node, bound, bound)
    elif isinstance(node, ast.Lambda):
        yield from _find_argument_reads(node.args, bound)
        yield from _find_reads(node.body, bound | _argument_names(node.args))
    elif isinstance(node, ast.ClassDef):
        yield from _find_class_reads(node, bound)
    elif isinstance(node, _COMPREHENSIONS):
        yield from _find_comprehension_reads(node, bound)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _find_reads(child, bound)


def _find_function_reads(node: _Function, outside: frozenset[str], enclosing: frozenset[str]) -> Iterator[ast.Name]:
    """Yield a function's names from outside.

    Its head is evaluated outside, and its body does not see a class's names.
    """
    for decorator in node.decorator_list:
        yield from _find_reads(decorator, outside)
    yield from _find_argument_reads(node.args, outside)
    if node.returns is not None:
        yield from _find_reads(node.returns, outside)
    inside = enclosing | _argument_names(node.args) | _local_names(node.body)
    for statement in node.body:
        yield from _find_reads(statement, inside)


def _find_argument_reads(args: ast.arguments, bound: frozenset[str]) -> Iterator[ast.Name]:
    for child in ast.iter_child_nodes(args):
        yield from _find_reads(child, bound)


def _find_class_reads(node: ast.ClassDef, bound: frozenset[str]) -> Iterator[ast.Name]:
    for child in (*node.decorator_list, *node.bases, *node.keywords):
        yield from _find_reads(child, bound)
    in_class = bound | bound_names(node.body)
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _find_function_reads(statement, in_class, bound)
        else:
            yield from _find_reads(statement, in_class)


def _find_comprehension_reads(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, bound: frozenset[str]
) -> Iterator[ast.Name]:
    targets = {name for generator in node.generators for name in _stored_names(generator.target)}
    yield from _find_reads(node.generators[0].iter, bound)
    inside = bound | targets
    for generator in node.generators[1:]:
        yield from _find_reads(generator.iter, inside)
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for part in (*results, *(test for generator in node.generators for test in generator.ifs)):
        yield from _find_reads(part, inside)


def _argument_names(args: ast.arguments) -> frozenset[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]
    return frozenset(arg.arg for arg in every)


def _local_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    declared_global = {
        name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    return frozenset(bound_names(body) - declared_global)


def _find_bindings(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    for child in ast.iter_child_nodes(node):
        if isinstance(node, _COMPREHENSIONS):
            # Only an assignment expression leaves a comprehension.
            yield from (inner.target.id for inner in ast.walk(child) if isinstance(inner, ast.NamedExpr))
        else:
            yield from _find_bindings(child)


def _stored_names(target: ast.AST) -> Iterator[str]:
    yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
