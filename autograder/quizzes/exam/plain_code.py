"""Rewrite code for a printed page: without comments, long error messages, long lines, and redundant brackets that reveal an edit."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable

#: The maximum length of a line on a printed page.
LONGEST_LINE = 92
#: Replaces error messages, which no check compares.
MESSAGE = '"…"'


def simplify_code(code: str) -> str:
    """Rewrite code for a printed page without changing what it computes."""
    for rewrite in (_shorten_messages, remove_comments, _use_double_quotes, _remove_extra_brackets, _wrap_lines):
        code = rewrite(code)
    return code


def remove_comments(code: str) -> str:
    """Remove comments, which describe the right code and would contradict the mistake, and blank lines from code."""
    lines = code.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(f"{code}\n").readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(_separate_methods([line.rstrip() for line in lines if line.strip()]))


def _separate_methods(lines: list[str]) -> list[str]:
    """Insert an empty line before each method of a class except the first."""
    methods = [index for index, line in enumerate(lines) if line.startswith("    def ")]
    starts = [index - lines[index - 1].startswith("    @") for index in methods]
    if lines and not lines[0].startswith("class "):
        starts = []
    return [line for index, one in enumerate(lines) for line in [""] * (index in starts[1:]) + [one]]


def _shorten_messages(code: str) -> str:
    """Replace the messages of raised errors by an ellipsis."""
    raised = [node.exc for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Raise)]
    calls = [node for node in raised if isinstance(node, ast.Call) and node.args]
    for call in sorted(calls, key=lambda node: -node.lineno):
        code = _replace_node(code, call, f"{ast.unparse(call.func)}({MESSAGE})")
    return _remove_message_parts(code)


def _remove_message_parts(code: str) -> str:
    """Remove assignments that only the message of the next raised error used."""
    tree = ast.parse(code)
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    lines = code.split("\n")
    for block in [node.body for node in ast.walk(tree) if isinstance(node, ast.If)]:
        words = [item for item in block[:-1] if isinstance(item, ast.Assign) and not _assigned_names(item) & read]
        if isinstance(block[-1], ast.Raise) and len(words) == len(block) - 1:
            for item in words:
                lines[item.lineno - 1 : item.end_lineno] = [""] * len(lines[item.lineno - 1 : item.end_lineno])
    return "\n".join(lines)


def _assigned_names(assignment: ast.Assign) -> set[str]:
    return {node.id for target in assignment.targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _use_double_quotes(code: str) -> str:
    """Convert string quotes to double quotes, because single quotes would reveal the line that an edit changed."""
    lines = code.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(f"{code}\n").readline):
        (row, begin), (_, end) = token.start, token.end
        if token.type == tokenize.STRING and token.string[:1] == "'" and not {'"', "\\"} & set(token.string):
            lines[row - 1] = f'{lines[row - 1][:begin]}"{token.string[1:-1]}"{lines[row - 1][end:]}'
    return "\n".join(lines)


def _replace_node(code: str, node: ast.expr, text: str) -> str:
    lines = code.split("\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    lines[first : last + 1] = [before + text + after]
    return "\n".join(lines)


def _remove_extra_brackets(code: str) -> str:
    """Remove redundant brackets around operands and results from lines that an edit may have changed."""
    lines = code.split("\n")
    return "\n".join(_simplify_brackets(line) if "return (" in line or "((" in line else line for line in lines)


def _simplify_brackets(line: str) -> str:
    text = line.strip()
    meaning = _dump_syntax(text)
    while meaning is not None:
        shorter = (
            text[:begin] + text[begin + 1 : end] + text[end + 1 :]
            for begin, end in _find_bracket_pairs(text)
            if _opens_group(text, begin)
        )
        better = next((one for one in shorter if _dump_syntax(one) == meaning), None)
        if better is None:
            break
        text = better
    return line[: len(line) - len(line.lstrip())] + text


def _opens_group(text: str, begin: int) -> bool:
    """Return whether a bracket opens a group rather than a call."""
    return begin == 0 or text[begin - 1] in " (,[-"


def _find_bracket_pairs(text: str, brackets: str = "(") -> list[tuple[int, int]]:
    """Return the (opening, closing) positions of bracket pairs outside strings, sorted."""
    found, waiting, quote = [], [], ""
    for index, character in enumerate(text):
        if quote or character in "\"'":
            quote = "" if character == quote else quote or character
        elif character in "([{":
            waiting.append(index)
        elif character in ")]}" and waiting:
            begin = waiting.pop()
            found += [(begin, index)] if text[begin] in brackets else []
    return sorted(found)


def _dump_syntax(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None


def _wrap_lines(code: str) -> str:
    """Wrap long lines at commas or inside their widest brackets, if that keeps the meaning."""
    lines, index = code.split("\n"), 0
    while index < len(lines):
        parts = _split_line(lines, index) if len(lines[index]) > LONGEST_LINE else None
        if parts is None:
            index += 1
        else:
            lines[index : index + 1] = parts
    return "\n".join(lines)


def _split_line(lines: list[str], index: int) -> list[str] | None:
    """Split a line into shorter equivalent lines; None if that is impossible."""
    ways = sorted(
        (divide(lines[index]) for divide in (_split_at_brackets, _split_at_commas, _fill_lines)), key=_longest_width
    )
    fitting = [parts for parts in ways if _longest_width(parts) <= LONGEST_LINE]
    for parts in [*sorted(fitting, key=len), *ways]:
        new = "\n".join([*lines[:index], *parts, *lines[index + 1 :]])
        if _longest_width(parts) < len(lines[index]) and _dump_syntax(new) == _dump_syntax("\n".join(lines)):
            return parts
    return None


def _longest_width(lines: list[str]) -> int:
    return max(map(len, lines))


def _fill_lines(line: str) -> list[str]:
    """Split a line of comma-separated items into lines with as many items as fit."""
    if " for " in line:
        return [line]
    margin = line[: len(line) - len(line.lstrip())]
    lines = [margin.rstrip("\n")]
    for item in _split_items(line.strip()):
        longer = f"{lines[-1]}{'' if lines[-1].isspace() else ' '}{item}"
        lines = [*lines[:-1], longer] if len(longer) <= LONGEST_LINE else [*lines, margin + item]
    return lines


def _split_at_brackets(line: str, divide: Callable[[str], list[str]] = lambda text: [text]) -> list[str]:
    outer: list[tuple[int, int]] = []
    for pair in _find_bracket_pairs(line, "([{"):
        if not outer or pair[0] > outer[-1][1]:
            outer.append(pair)
    if not outer:
        return [line]
    begin, end = max(outer, key=lambda pair: pair[1] - pair[0])
    margin = " " * (len(line) - len(line.lstrip()))
    inside = [f"{margin}    {part}" for part in divide(line[begin + 1 : end].strip())]
    return [line[: begin + 1], *inside, f"{margin}{line[end:]}"]


def _split_at_commas(line: str) -> list[str]:
    return _split_at_brackets(line, _split_items)


def _split_items(text: str) -> list[str]:
    pairs = _find_bracket_pairs(text, "([{")
    commas = [i for i, c in enumerate(text) if c == "," and not any(begin < i < end for begin, end in pairs)]
    starts = [0, *(index + 1 for index in commas)]
    return [
        part for a, b in zip(starts, [*(i + 1 for i in commas), len(text)], strict=True) if (part := text[a:b].strip())
    ]
