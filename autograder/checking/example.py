"""Describe one failing test case: inputs, actual and expected results.

For a tensor or a list, it shows the first wrong row along the last axis beside the corresponding rows of the inputs. Long rows are
truncated around the first difference; carets mark differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.checking.difference import describe_difference, dtype_text, explain_unreadable, find_wrong_entries
from autograder.checking.request import Observation, Request, Value
from autograder.checking.value_text import (
    MOST_NUMBERS,
    describe_other_items,
    format_distinctly,
    format_value,
    number_text,
    result_name,
    split_indices,
)

# The most columns of a row in an example.
WINDOW = 6
# The most input rows in an example.
_MOST_INPUTS = 3
# A list with at most this many items is shown like a tuple, whose items are unrelated.
_FEW = 4
# The longest argument in a message.
_SHORT = 40
_ABSENT = object()
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def describe_wrong_answer(
    judge: str,
    requests: Sequence[Request],
    answers: Sequence[Observation],
    expected: Sequence[Observation],
    options: Mapping[str, Value],
) -> str:
    """Describe the first wrong answer with its request and the expected answer; empty if nothing can be shown.

    Args:
        judge: the judge that found it wrong.
        requests: the requests of visible tests.
        answers: the subject's answers.
        expected: the expected answers.
        options: the judge's options.
    """
    for request, answer, reference in zip(requests, answers, expected, strict=True):
        if request.action not in ("call", "gradients") or answer.unfinished:
            continue
        lines = (
            _error_lines(answer, reference)
            if answer.error or reference.error
            else _result_lines(judge, request, answer, reference, options)
        )
        if lines:
            first, *others = lines
            return "\n".join([f"{_describe_request(request)}: {first}", *others])
    return ""


def format_case_prefix(requests: Sequence[Request], request: Request) -> str:
    """Return a prefix for messages that identifies a case among the row's cases; empty if the row has one case.

    Args:
        requests: the row's requests of visible tests.
        request: one of them.
    """
    cases = list({tuple(_input_texts(request).items()): None for request in requests})
    this = tuple(_input_texts(request).items())
    if len(cases) < 2 or this not in cases:
        return ""
    others = [dict(case) for case in cases if case != this]
    shared = {name: sum(other.get(name) == text for other in others) for name, text in this}
    fewest = min(shared.values(), default=0)
    distinct = [(name, text) for name, text in this if shared[name] == fewest < len(others)]
    short = [f"{name} = {text}" for name, text in distinct if len(text) <= _SHORT and not text.startswith("a tensor")]
    shapes = [
        f"{name} of shape {text.removeprefix('a tensor ')}" for name, text in distinct if text.startswith("a tensor")
    ]
    parts = short[:2] or shapes[:1]
    return f"for {', '.join(parts)}: " if parts else f"in case {cases.index(this) + 1} of {len(cases)}: "


def _input_texts(request: Request) -> dict[str, str]:
    return {name: _argument_text(value) for name, value in {**(request.init or {}), **request.arguments}.items()}


def _describe_request(request: Request) -> str:
    texts = [f"{name} = {text}" for name, text in _input_texts(request).items()]
    texts += [f"{name} = a {prop['kind']}" for name, prop in (request.props or {}).items() if "kind" in prop]
    return f"for {', '.join(texts)}" if texts else "without arguments"


def _argument_text(value: Value) -> str:
    text = format_value(value)
    is_usual = not isinstance(value, Tensor) or value.dtype == torch.float32
    return text if is_usual or value.numel() <= MOST_NUMBERS else f"{text} of {dtype_text(value)}"


def _error_lines(answer: Observation, reference: Observation) -> list[str]:
    raised, asked_for = ((one.error or "").partition(":")[0] for one in (answer, reference))
    if raised == asked_for:
        return []
    if not raised:
        return [f"no error was raised, expected a {asked_for}"]
    return [f"it raised {raised}, expected {f'a {asked_for}' if asked_for else 'a result'}"]


def _result_lines(
    judge: str, request: Request, answer: Observation, reference: Observation, options: Mapping[str, Value]
) -> list[str]:
    if judge == "answers":
        return []
    fields = options.get("fields", {})
    if set(answer.outputs) != set(reference.outputs):
        return _find_differing_list(answer, reference, fields) or [describe_other_items(answer, reference, fields)]
    names = options["outputs"] if judge == "matches_part" else list(reference.outputs)
    for name in names:
        actual, expected, label = answer.outputs[name], reference.outputs[name], result_name(name, fields)
        if judge == "shapes":
            if isinstance(expected, Tensor) and actual.dtype != expected.dtype and actual.shape == expected.shape:
                return [f"{label} has dtype {dtype_text(actual)}, expected {dtype_text(expected)}"]
            if not isinstance(expected, Tensor) or actual.shape == expected.shape:
                continue
        message = describe_difference(label, actual, expected)
        if message is None:
            continue
        if _are_comparable_tensors(actual, expected):
            return _tensor_rows(label, request, actual, expected)
        if _are_integer_vectors(actual, expected):
            return _side_by_side(label, actual.tolist(), expected.tolist())
        parent = name[: len(name) - len(split_indices(name)[-1])] if split_indices(name) else ""
        return (_list_rows(parent, answer, reference) if parent and not fields else []) or [message]
    return []


def _are_comparable_tensors(actual: Value, expected: Value) -> bool:
    """Return whether two values are tensors whose numbers can be shown side by side."""
    return (
        isinstance(actual, Tensor)
        and isinstance(expected, Tensor)
        and actual.shape == expected.shape
        and expected.numel() > 1
        and not explain_unreadable("", actual)
        and not actual.is_complex()
        and (actual.dtype == torch.bool) == (expected.dtype == torch.bool)
    )


@dataclass(frozen=True)
class _Line:
    """A line of an example."""

    head: str  # what it shows
    entries: Sequence[str]  # its entries in the window
    before: bool = False  # whether others stand before them
    after: bool = False  # whether others come after them


def _select_columns(first: int, length: int) -> slice:
    """Return the columns of a row to show: all, or some around the first difference."""
    start = max(0, min(first - WINDOW // 2, length - WINDOW))
    return slice(start, min(length, start + WINDOW))


def _tensor_rows(label: str, request: Request, actual: Tensor, expected: Tensor) -> list[str]:
    """Return lines with the first wrong row of a tensor, and the input rows of the same index."""
    a, b = actual.detach().cpu(), expected.detach().cpu()
    wrong = find_wrong_entries(a, b)
    *row, column = wrong.nonzero()[0].tolist()
    index, length = tuple(row), b.shape[-1]
    shown = _select_columns(column, length)
    actual_row, expected_row, differs = a[index][shown].tolist(), b[index][shown].tolist(), wrong[index][shown].tolist()
    texts = [
        format_distinctly(x, y) if bad else (number_text(x), number_text(y))
        for x, y, bad in zip(actual_row, expected_row, differs, strict=True)
    ]
    cut = shown.start > 0, shown.stop < length
    lines = _input_rows(request, index, b.shape, shown)
    lines += [_Line("yours", [text[0] for text in texts], *cut), _Line("expected", [text[1] for text in texts], *cut)]
    position = ", ".join([*map(str, row), *([f"{shown.start}:{shown.stop}"] if any(cut) else [])])
    return [f"{label} at [{position}]" if position else label, *_align(lines, differs)]


def _input_rows(request: Request, index: tuple[int, ...], shape: Sequence[int], shown: slice) -> list[_Line]:
    """Return input rows at an index, for inputs with a result's leading axes that are too large to show whole."""
    lines = []
    for name, value in {**(request.init or {}), **request.arguments}.items():
        if not isinstance(value, Tensor) or value.numel() <= MOST_NUMBERS or not index:
            continue
        head = f"{name}[{', '.join(map(str, index))}]"
        if tuple(value.shape) == tuple(shape[:-1]):
            lines.append(_Line(head, [number_text(value[index].item())]))
        elif value.ndim == len(shape) and value.shape[:-1] == tuple(shape[:-1]):
            length = value.shape[-1]
            part = shown if length == shape[-1] else _select_columns(0, length)
            entries = [number_text(number) for number in value[index][part].tolist()]
            lines.append(_Line(head, entries, part.start > 0, part.stop < length))
    return lines[:_MOST_INPUTS]


def _are_integer_vectors(actual: Value, expected: Value) -> bool:
    """Return whether two values are one-dimensional integer tensors."""
    return all(
        isinstance(value, Tensor) and value.ndim == 1 and not explain_unreadable("", value) and value.dtype in _WHOLE
        for value in (actual, expected)
    )


def _find_differing_list(answer: Observation, reference: Observation, fields: Mapping[str, str]) -> list[str]:
    """Return lines with the first differing list within a result, around its first difference; else empty."""
    parents: dict[str, None] = {"output": None} if not fields else {}
    for name in (*reference.outputs, *answer.outputs):
        indices = split_indices(name)
        parents.update((f"output{''.join(indices[:depth])}", None) for depth in range(1, len(indices)))
    for parent in parents:
        if rows := _list_rows(parent, answer, reference, fewest=_FEW if parent == "output" else 0):
            return rows
    return []


def _list_rows(parent: str, answer: Observation, reference: Observation, fewest: int = _FEW) -> list[str]:
    """Return two lists of texts or Python numbers around their first difference; empty for short or other lists."""
    actual, expected = _list_items(parent, answer), _list_items(parent, reference)
    if not actual or not expected or max(len(actual), len(expected)) <= fewest:
        return []
    return _side_by_side(result_name(parent), actual, expected)


def _side_by_side(label: str, actual: Sequence[Value], expected: Sequence[Value]) -> list[str]:
    """Return lines with two lists around their first difference; empty if they are equal."""
    length = max(len(actual), len(expected))
    pairs = [[items[i] if i < len(items) else _ABSENT for items in (actual, expected)] for i in range(length)]
    differs = [describe_difference("", a, b) is not None for a, b in pairs]
    if True not in differs:
        return []
    shown = _select_columns(differs.index(True), length)
    cut = shown.start > 0, shown.stop < length
    texts = [_entry_texts(a, b, differ=differ) for (a, b), differ in zip(pairs[shown], differs[shown], strict=True)]
    lines = [_Line("yours", [text[0] for text in texts], *cut), _Line("expected", [text[1] for text in texts], *cut)]
    position = f" at [{shown.start}:{shown.stop}]" if any(cut) else ""
    return [f"{label}{position}", *_align(lines, differs[shown])]


def _entry_texts(actual: Value, expected: Value, *, differ: bool) -> tuple[str, str]:
    if actual is _ABSENT or expected is _ABSENT or not differ:
        return tuple("(end)" if item is _ABSENT else format_value(item) for item in (actual, expected))  # type: ignore[return-value]
    return format_distinctly(actual, expected)


def _list_items(parent: str, observation: Observation) -> list[Value] | None:
    """Return the items of a list under a name; None if an item is a tensor or a list."""
    depth = len(split_indices(parent))
    under = {name: value for name, value in observation.outputs.items() if name.startswith(f"{parent}[")}
    flat = all(len(split_indices(name)) == depth + 1 and not isinstance(value, Tensor) for name, value in under.items())
    return list(under.values()) if flat else None


def _align(lines: Sequence[_Line], differs: Sequence[bool]) -> list[str]:
    """Align lines in columns, with carets under the differences of the last two lines."""
    head = max(len(line.head) for line in lines)
    columns = max(len(line.entries) for line in lines)
    widths = [max((len(line.entries[i]) for line in lines if i < len(line.entries)), default=0) for i in range(columns)]

    def format_line(head_text: str, entries: Sequence[str], before: str, after: str) -> str:
        cells = [entry.rjust(width) for entry, width in zip(entries, widths, strict=False)]
        return f"  {head_text.ljust(head)}  {before}{'  '.join(cells)}{after}".rstrip()

    margin = "… " if any(line.before for line in lines) else ""
    shown = [
        format_line(line.head, line.entries, "… " if line.before else " " * len(margin), " …" if line.after else "")
        for line in lines
    ]
    marks = ["^" * width if differ else "" for width, differ in zip(widths, differs, strict=False)]
    return [*shown, format_line("", marks, " " * len(margin), "")]
