"""Docstrings as the course writes them, prepared for Sphinx."""

from __future__ import annotations

_SECTIONS = ("Returns:", "Yields:")


def returns_as_prose(lines: list[str]) -> list[str]:
    """Change a docstring's lines so that Sphinx reads its ``Returns`` section as prose.

    Types are in the annotations, and a ``Returns`` section is a sentence. In Google's style a colon in its first line ends a type: "A
    verdict: its text form is the score" would mean the type "A verdict". Only the first line is parsed for a colon, so a line break after
    the first word keeps the sentence intact.

    Args:
        lines: the docstring, with sections that are not indented.
    """
    prepared: list[str] = []
    for line in lines:
        first, _, rest = line.strip().partition(" ")
        if prepared and prepared[-1].strip() in _SECTIONS and ":" in rest:
            indent = line[: len(line) - len(line.lstrip())]
            prepared += [indent + first, indent + rest]
        else:
            prepared.append(line)
    return prepared


def attribute_as_prose(lines: list[str]) -> list[str]:
    """Return the docstring of an attribute in such a form that it is read as prose.

    In Google's style a colon in its first line ends a type, so that "Floating-point operations: additions" would be an attribute of type
    "Floating-point operations". A line break after the first word hides the colon.

    Args:
        lines: the docstring.
    """
    if not lines or ":" not in lines[0]:
        return list(lines)
    first, _, rest = lines[0].strip().partition(" ")
    return [first, rest, *lines[1:]] if rest else list(lines)
