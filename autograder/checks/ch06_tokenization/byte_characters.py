"""The check of ``byte_characters``: one character that can be seen for each byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe, Row
from tfcourse import tokenization


def the_only_question(draw: Draw) -> Case:
    """There is nothing to choose."""
    return Case({})


def _characters(points: float, name: str, title: str, numbers: Iterable[int]) -> Row:
    """A row about the characters of some bytes."""
    outputs = [f"output[{byte}]" for byte in numbers]

    def probes(draw: Draw) -> Sequence[Probe]:
        return [Probe((draw.case(the_only_question).request(),), "matches_part", {"outputs": outputs})]

    return Row(name, title, points, probes)


BYTE_CHARACTERS = Exercise(
    reference=tokenization.byte_characters,
    rows=(
        _characters(0.75, "ascii", "Bytes 33 to 126 are written as themselves.", range(33, 127)),
        _characters(0.75, "latin", "Bytes 161 to 172 and 174 to 255 are too.", [*range(161, 173), *range(174, 256)]),
        _characters(1.25, "control", "Bytes 0 to 32, the space among them, take characters from 256 on.", range(33)),
        _characters(1.25, "rest", "Bytes 127 to 160 and 173 take those that follow.", [*range(127, 161), 173]),
    ),
)
