"""Docstrings as the course writes them, prepared for Sphinx."""

from __future__ import annotations

_SECTIONS = ("Returns:", "Yields:")


def returns_as_prose(lines: list[str]) -> list[str]:
    """Return a docstring's lines in such a form that what a function returns is read as prose.

    Types stand in the annotations, and a ``Returns`` section is a sentence. In Google's style a colon in its first line ends a type, so
    that "A verdict: its text form is its score" would return something of type "A verdict". Only the first line is looked at, therefore
    a line break after the first word keeps the sentence and hides the colon.

    Args:
        lines: the docstring, without indentation in front of its sections.
    """
    prepared: list[str] = []
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if prepared and prepared[-1].strip() in _SECTIONS and ":" in rest:
            indent = line[: len(line) - len(line.lstrip())]
            prepared += [indent + word, indent + rest]
        else:
            prepared.append(line)
    return prepared
