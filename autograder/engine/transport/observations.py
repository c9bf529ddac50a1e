"""Convert observations to plain data and back, validating each field of data from a student's process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.checking.request import Observation

MAX_TEXT = 1_000


def observation_to_dict(observation: Observation) -> dict[str, Any]:
    """Return an observation's non-empty fields as plain data."""
    fields = {
        name: item for name, item in vars(observation).items() if item is not None and item is not False and item != ()
    }
    return fields if observation.outputs else {name: item for name, item in fields.items() if name != "outputs"}


def observation_from_dict(data: Any) -> Observation:
    """Parse an observation from untrusted plain data, checking each field's type.

    Raises:
        TypeError: if a field has another type.
    """
    if not isinstance(data, dict):
        raise TypeError("an observation that is not a mapping")
    outputs = data.get("outputs", {})
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
        raise TypeError("outputs without names")
    error = data.get("error")
    return Observation(
        outputs=dict(outputs),
        error=None if error is None else _checked_text(error),
        unfinished=data.get("unfinished") is True,
        mutated=_checked_texts(data.get("mutated", ())),
        attached=_checked_texts(data.get("attached", ())),
        operations=_checked_count(data.get("operations")),
        largest=_checked_count(data.get("largest")),
        functions=_checked_texts(data.get("functions", ())),
        lines=_checked_count(data.get("lines")),
        containers=_checked_texts(data.get("containers", ())),
    )


def _checked_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("an invalid text")
    return value[:MAX_TEXT]


def _checked_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple) or len(value) > 10_000:
        raise TypeError("an invalid list of texts")
    return tuple(map(_checked_text, value))


def _checked_count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise TypeError("an invalid count")
    return value
