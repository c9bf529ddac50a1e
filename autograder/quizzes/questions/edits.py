"""Edit one place of a definition's source, and keep the rest of the line as it was written.

Unnatural changes, such as ``.detach()`` at the end of a line, are left out.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from autograder.quizzes.mutation.operators import list_changes
from autograder.quizzes.questions.question import group_by_key

_LONGEST = 88
_COMMENT = re.compile(r"\s+#[^'\"]*$")
# Unnatural code: another default, an axis exchanged with itself, a choice between equals, brackets around a name.
_ODD = re.compile(r"^def |^\w+: .* = .*,$|transpose\((-?\d), \1\)|(\w+) if \w+ else \2\b|(?<![\w\])])\(\w+\)")
_NOBODY_MAKES = {".detach() added", ".to() added", ".detach() dropped", ".contiguous() dropped"}
# Methods whose result has the shape of their object, so that their call can be dropped.
_KEEP_SHAPE = (
    "masked_fill",
    "softmax",
    "log_softmax",
    "tanh",
    "sigmoid",
    "relu",
    "exp",
    "log",
    "abs",
    "sqrt",
    "clamp",
    "cumsum",
    "flip",
)


# Pairs of functions that are easily confused.
_PAIRS: tuple[set[str], ...] = (
    {"sigmoid", "tanh"},
    {"softmax", "log_softmax"},
    {"softmax", "sigmoid"},
    {"sum", "mean"},
    {"relu", "gelu"},
    {"gelu", "silu"},
)
_PAIRS += (
    {"silu", "sigmoid"},
    {"exp", "softmax"},
    {"std", "var"},
    {"sqrt", "square"},
    {"ceil", "floor"},
    {"log", "log2"},
)
_RELATIVES = sorted(set().union(*_PAIRS))


@dataclass(frozen=True)
class Edit:
    """A change of one place in a definition."""

    first: int  # the number of the first changed line
    last: int  # the number of the last changed line
    after: str  # the line that replaces them, without indentation

    @property
    def lines(self) -> str:
        """The numbers of the changed lines, as the topic of a question."""
        return " ".join(map(str, range(self.first, self.last + 1)))


def possible_edits(source: str) -> Iterator[tuple[Edit, str, bool]]:
    """Yield the edits of a definition, each with the edited source and whether it exchanges names.

    The order depends only on the code: the edits alternate between the lines, and exchanged names come last.
    """
    tree = ast.parse(source)
    rng, seen = random.Random(source), set[Edit]()
    for swaps, replacements in ((False, _list_replacements(source, tree)), (True, _list_swaps(source, tree))):
        by_line = group_by_key(replacements, lambda pair: pair[0].lineno)
        for group in by_line.values():
            rng.shuffle(group)
        for node, new in (pair for turn in zip_longest(*by_line.values()) for pair in turn if pair is not None):
            edited = _apply_edit(source, node, new)
            if edited is not None and edited[0] not in seen:
                seen.add(edited[0])
                yield (*edited, swaps)


def _list_replacements(source: str, tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Yield nodes of a definition, each with the text of a replacement."""
    for place, (operator, new, _) in list_changes(tree, guards=False):
        node = place.node
        neutral = operator == "constant" and isinstance(place.owner, ast.BinOp) and ast.unparse(new) in ("0", "1")
        if operator in _NOBODY_MAKES or neutral or not isinstance(node, (ast.stmt, ast.expr)):
            continue
        if isinstance(node, ast.expr):
            yield node, source_segment(source, new) or ast.unparse(ast.fix_missing_locations(new))
        elif not isinstance(new, list):
            yield node, ast.unparse(ast.fix_missing_locations(new))
        elif all(isinstance(item, ast.Pass) for item in new):
            yield node, "pass"
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "dim" and isinstance(node.value, (ast.UnaryOp, ast.Constant)):
            yield from ((node.value, axis) for axis in ("-2", "0", "1") if axis != source_segment(source, node.value))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult, ast.Add, ast.Sub)):
            yield node, source_segment(source, node.left)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_SHAPE:
            inner = node.args[0] if node.args and ast.unparse(node.func.value) in ("torch", "F") else node.func.value
            yield node, source_segment(source, inner)


def _list_swaps(source: str, tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield replacements of variables by others, of tuples by reordered ones, and of functions by easily confused ones."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)} - {"self"}
    for node in nodes:
        if isinstance(node, ast.Tuple):
            parts = [source_segment(source, part) for part in node.elts]
            orders = [[*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]] for i in range(len(parts) - 1)]
            yield from ((node, ", ".join(order)) for order in orders)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield from ((node, name) for name in sorted(names - {node.id}))
        elif isinstance(node, ast.Attribute) and node.attr in _RELATIVES:
            start = source_segment(source, node).removesuffix(node.attr)
            yield from ((node, start + other) for other in _RELATIVES if {node.attr, other} in _PAIRS)


def source_segment(source: str, node: ast.AST) -> str:
    """Return the source text of a node; empty for a new node."""
    return ast.get_source_segment(source, node) or "" if hasattr(node, "end_lineno") else ""


def replace_node(source: str, node: ast.stmt | ast.expr, new: str) -> str:
    """Replace a node by a text, in parentheses if necessary, and return the source; empty if the result is invalid code."""
    lines = source.split("\n")
    last = node.end_lineno or node.lineno
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    behind = lines[last - 1].encode()[node.end_col_offset :].decode()
    if isinstance(node, ast.stmt) and (before.strip() or _COMMENT.sub("", behind).strip()):
        return ""
    for text in (new, f"({new})"):
        changed = "\n".join([*lines[: node.lineno - 1], f"{before}{text}{behind}", *lines[last:]])
        if _is_only_change(source, changed, node, text):
            return changed
    return ""


def _apply_edit(source: str, node: ast.stmt | ast.expr, new: str) -> tuple[Edit, str] | None:
    """Replace a node; return the edit and the edited source, or None if the result is invalid, unnatural or several lines long."""
    lines, changed = source.split("\n"), replace_node(source, node, new)
    others = changed.split("\n")
    last = node.end_lineno or node.lineno
    head = next((i for i, pair in enumerate(zip(lines, others, strict=False)) if pair[0] != pair[1]), last)
    if not changed or head >= last or len(others) - len(lines) + last - head != 1:
        return None
    after = _COMMENT.sub("", others[head].strip())
    fits = len(after) <= _LONGEST and not _ODD.search(after) and lines[head].strip() != after
    return (Edit(head + 1, last, after), changed) if fits else None


def _is_only_change(source: str, changed: str, node: ast.AST, text: str) -> bool:
    """Return whether the changed source is valid, and its syntax tree differs only in the replaced node."""
    try:
        old, new, part = ast.parse(source), ast.parse(changed), ast.parse(text.strip())
    except (SyntaxError, ValueError):
        return False
    value = part.body[0].value if isinstance(node, ast.expr) and isinstance(part.body[0], ast.Expr) else part.body[0]
    for parent in ast.walk(old):
        for name, field in ast.iter_fields(parent):
            items = field if isinstance(field, list) else [field]
            for index, item in enumerate(items):
                if _node_position(item) == _node_position(node) and type(item) is type(node):
                    if isinstance(field, list):
                        field[index] = value
                    else:
                        setattr(parent, name, value)
                    return ast.dump(old) == ast.dump(new)
    return False


def _node_position(node: object) -> tuple[object, ...]:
    return tuple(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
