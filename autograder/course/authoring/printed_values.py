"""Print computed numbers in a lesson's prose: ``{{weights[0, 1]:.3f}}`` becomes the formatted value.

The expressions are evaluated after the lesson's last cell, by a cell that is appended for this purpose and that no reader sees. They may
stand anywhere in Markdown, also within formulas, where MyST-NB's own ``glue`` and ``eval`` cannot.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.errors import CourseError

_VALUE = r"\{\{(?P<value>.+?)\}\}"
# Code is left alone; within formulas a minus stays a hyphen, which TeX draws as a minus.
_PARTS = re.compile(
    rf"^(?P<code>```(?:\{{code-cell\}}|python).*?^```)|(?P<math>\$\$.*?\$\$|\$[^$\n]+\$)|{_VALUE}", re.M | re.S
)
_CELL = """
```{{code-cell}} ipython3
:tags: [remove-cell]

for printed_value in [
{lines}
]:
    print(printed_value)
```
"""


def append_values_cell(text: str, path: Path) -> str:
    """Append the cell that evaluates its expressions to a lesson's MyST text, if it has any.

    Raises:
        CourseError: if a text in double braces is not an expression with a format; it names the file, which is ``path``.
    """
    try:
        fields = list(_parse_fields(text))
    except ValueError as error:
        raise CourseError(str(error), where=path, do="Write a format, as in {{error:.3f}}.") from error
    if not fields:
        return text
    lines = [f"    format({expression}, {form!r})," for expression, form in fields]
    return f"{text.rstrip()}\n{_CELL.format(lines=chr(10).join(lines))}"


def printed_values(executed: Any) -> list[str]:
    """Return the values that an executed lesson's appended cell printed."""
    return "".join(output.text for output in executed.cells[-1].outputs).splitlines()


def printed_by_expression(text: str, executed: Any) -> dict[tuple[str, str], str]:
    """Return the values that an executed lesson printed, by expression and format."""
    return dict(zip(_parse_fields(text), printed_values(executed), strict=True)) if count_values(text) else {}


def fill_in_values(text: str, values: Sequence[str]) -> str:
    """Replace the first expressions of a Markdown text by values, in order."""
    remaining = iter(values)
    return _replace_expressions(text, lambda written: next(remaining))


def fill_in_printed(text: str, printed: Mapping[tuple[str, str], str]) -> str:
    """Replace expressions in a Markdown text by the values that another text printed; others stay."""
    return _replace_expressions(text, lambda written: printed.get(_parse_field(written)))


def _replace_expressions(text: str, value_of: Callable[[str], str | None]) -> str:
    def fill_part(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        if match["math"]:
            return re.sub(_VALUE, lambda inner: value_of(inner["value"]) or inner[0], match[0])
        value = value_of(match["value"])
        return match[0] if value is None else value.replace("-", "\N{MINUS SIGN}")

    return _PARTS.sub(fill_part, text)


def count_values(text: str) -> int:
    """Return the number of expressions in a Markdown text."""
    return len(list(_parse_fields(text)))


def _parse_fields(text: str) -> Iterator[tuple[str, str]]:
    for match in _PARTS.finditer(text):
        if not match["code"]:
            for field in re.findall(_VALUE, match[0]):
                yield _parse_field(field)


def _parse_field(written: str) -> tuple[str, str]:
    expression, _, form = written.rpartition(":")
    try:
        ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        form = ""
    if not form:
        raise ValueError(f"{{{{{written}}}}} is not an expression with a format")
    return expression.strip(), form
