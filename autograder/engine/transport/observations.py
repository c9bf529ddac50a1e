"""Convert observations to plain data and back; data from a student's process is validated field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.checking.request import Observation

MAX_TEXT = 1_000


def observation_to_dict(observation: Observation) -> dict[str, Any]:
    """Return the fields of an observation as plain data, without empty ones: most observations have one."""
    fields = {
        name: item for name, item in vars(observation).items() if item is not None and item is not False and item != ()
    }
    return fields if observation.outputs else {name: item for name, item in fields.items() if name != "outputs"}


def observation_from_dict(data: Any) -> Observation:
    """Build an observation from untrusted plain data, and check the type of each field.

    Raises:
        TypeError: if a field has another type.
    """
    if not isinstance(data, dict):
        raise TypeError("an observation that is no mapping")
    outputs = data.get("outputs", {})
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
        raise TypeError("outputs without names")
    error = data.get("error")
    return Observation(
        outputs=dict(outputs),
        error=None if error is None else _text(error),
        unfinished=data.get("unfinished") is True,
        mutated=_texts(data.get("mutated", ())),
        attached=_texts(data.get("attached", ())),
        operations=_count(data.get("operations")),
        largest=_count(data.get("largest")),
        functions=_texts(data.get("functions", ())),
        lines=_count(data.get("lines")),
        containers=_texts(data.get("containers", ())),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("an invalid text")
    return value[:MAX_TEXT]


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple) or len(value) > 10_000:
        raise TypeError("an invalid list of texts")
    return tuple(map(_text, value))


def _count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise TypeError("an invalid number of operations")
    return value
