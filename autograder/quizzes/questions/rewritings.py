"""Replace an expression by others that look alike, and see which of them leave every answer as it is."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.quizzes.mutation.guards import lines_of_guards
from autograder.quizzes.questions.edits import replaced, segment

# The rewritings of an expression, by a pattern of Python in which small letters stand for any expression. Which of them are equal depends
# on the shapes and types in the code: a run decides.
_REWRITINGS: Mapping[str, tuple[str, ...]] = {
    "a @ b": ("(b.mT @ a.mT).mT", "b @ a", "(a * b).sum(-1)", "a @ b.mT", "(a @ b).mT", "a * b"),
    "a <= b": ("b >= a", "a < b", "b <= a", "a == b"),
    "a < b": ("b > a", "a <= b", "b < a", "a != b"),
    "a >= b": ("b <= a", "a > b", "b >= a", "a == b"),
    "a > b": ("b < a", "a >= b", "b > a", "a != b"),
    "a / b": ("a * (1 / b)", "b / a", "a * b", "a - b"),
    "a // b": ("(a - a % b) / b", "a / b", "-(-a // b)", "(a - 1) // b", "a % b"),
    "a % b": ("a - a // b * b", "a // b", "b % a", "a / b"),
    "a and b": ("not (not a or not b)", "a or b", "not (a and b)", "not a and b"),
    "a or b": ("not (not a and not b)", "a and b", "not (a or b)", "not a or b"),
    "~a": ("a == 0", "a.logical_not()", "a", "a.any()", "1 - a"),
    "a ** 2": ("a * a", "2 * a", "2 ** a", "a + a"),
    "a.square()": ("a * a", "2 * a", "a.abs()", "a + a"),
    "a.mT": ("a.transpose(-1, -2)", "a.transpose(0, 1)", "a.flip(-1)", "a.reshape(a.mT.shape)"),
    "a.transpose(-2, -1)": ("a.mT", "a.transpose(0, 1)", "a.flip(-1)", "a.reshape(a.mT.shape)"),
    "a.transpose(1, 2)": ("a.transpose(-3, -2)", "a.mT", "a.transpose(0, 1)", "a.reshape(a.transpose(1, 2).shape)"),
    "a[:, None]": ("a.unsqueeze(1)", "a.unsqueeze(0)", "a.unsqueeze(-1)", "a[None]"),
    "a[..., None]": ("a.unsqueeze(-1)", "a.unsqueeze(0)", "a.unsqueeze(1)", "a[None]"),
    "a.unsqueeze(-1)": ("a[..., None]", "a[None]", "a[:, None]", "a.unsqueeze(-2)"),
    "a.unsqueeze(0)": ("a[None]", "a[..., None]", "a[:, None]", "a.unsqueeze(-2)"),
    "torch.sigmoid(a)": ("1 - torch.sigmoid(-a)", "torch.tanh(a)", "torch.sigmoid(-a)", "1 / torch.sigmoid(a)"),
    "a[:-1]": ("a[: len(a) - 1]", "a[1:]", "a[-1:]", "a[::-1]"),
    "a[1:]": ("a[-(len(a) - 1) :]", "a[:-1]", "a[1]", "a[-1:]"),
    "a[-1]": ("a[len(a) - 1]", "a[0]", "a[1]", "a[-2]"),
    "max(a, b)": ("a if a > b else b", "a if a < b else b", "min(a, b)", "a + b"),
    "min(a, b)": ("a if a < b else b", "a if a > b else b", "max(a, b)", "a + b"),
}
_DIMENSIONS = ("dim=-1", "dim=-2", "dim=0", "dim=1", "dim=2")
_LONGEST = 48
MOST_OPTIONS = 6


@dataclass(frozen=True)
class Rewriting:
    """An expression, and what other expressions do in its place."""

    line: int
    text: str  # the expression
    same: tuple[str, ...]  # the expressions that leave every answer of the check as it is
    different: tuple[str, ...]  # those that change one


def possible_rewritings(source: str) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield expressions with their lines, and the edited source for each rewriting; only the code decides the order."""
    guards = set(lines_of_guards(source))
    nodes = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.expr) and one.lineno not in guards]
    for node in random.Random(source).sample(nodes, len(nodes)):
        text = segment(source, node)
        if "\n" in text or not 3 < len(text) <= _LONGEST:
            continue
        edited = {new: replaced(source, node, new) for new in _rewritten(source, node)}
        usable = {new: changed for new, changed in edited.items() if changed and len(new) <= 2 * _LONGEST}
        if len(usable) >= 4:
            yield node.lineno, text, usable


def _rewritten(source: str, node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "dim" and segment(source, keyword.value) in ("-1", "-2", "0", "1"):
                whole, part = segment(source, node), f"dim={segment(source, keyword.value)}"
                yield from (
                    whole.replace(part, other) for other in _DIMENSIONS if whole.count(part) == 1 and other != part
                )
                return
    for pattern, others in _REWRITINGS.items():
        parts: dict[str, ast.expr] = {}
        if _matches(ast.parse(pattern, mode="eval").body, node, parts):
            texts = {name: _bracketed(source, part) for name, part in parts.items()}
            yield from (_filled(other, texts) for other in others)
            return


def _matches(pattern: ast.AST, node: ast.AST, parts: dict[str, ast.expr]) -> bool:
    """Return whether an expression has the form of a pattern, and collect what its letters stand for."""
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1 and isinstance(node, ast.expr):
        parts[pattern.id] = node
        return True
    if type(pattern) is not type(node):
        return False
    for (_, first), (_, second) in zip(ast.iter_fields(pattern), ast.iter_fields(node), strict=True):
        firsts, seconds = (field if isinstance(field, list) else [field] for field in (first, second))
        if len(firsts) != len(seconds):
            return False
        for a, b in zip(firsts, seconds, strict=True):
            if not (_matches(a, b, parts) if isinstance(a, ast.AST) else a == b):
                return False
    return True


def _bracketed(source: str, node: ast.expr) -> str:
    text = segment(source, node)
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)) else f"({text})"


def _filled(pattern: str, texts: Mapping[str, str]) -> str:
    tree = ast.parse(pattern, mode="eval")
    spots = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in texts]
    for node in sorted(spots, key=lambda node: -node.col_offset):
        pattern = pattern[: node.col_offset] + texts[node.id] + pattern[node.end_col_offset :]
    return pattern


def could_be(source: str, told: Sequence[Rewriting]) -> bool:
    """Return whether code admits these rewritings."""
    possible = {(line, text): set(edited) for line, text, edited in possible_rewritings(source)}
    return all({*one.same, *one.different} <= possible.get((one.line, one.text), set()) for one in told)
