"""Call a submission by the names of arguments that its stub had, when a later version of the course has renamed them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

# Each renamed argument with its former name, which a list of tokens still has.
FORMER_NAMES = {
    "vocab_size": "vocabulary",
    "source_vocab_size": "source_vocabulary",
    "target_vocab_size": "target_vocabulary",
}


def as_declared(candidate: Callable[..., Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments under the names that the candidate declares.

    An argument keeps its name if the candidate declares it, or declares the former one neither; so the message about a missing argument
    has today's name.

    Args:
        candidate: the function or class of a submission.
        arguments: the arguments by their names of today.
    """
    if FORMER_NAMES.keys().isdisjoint(arguments):
        return arguments
    try:
        declared = inspect.signature(candidate).parameters
    except (TypeError, ValueError):  # built-in code without a signature
        return arguments
    return {_name(name, declared): value for name, value in arguments.items()}


def _name(name: str, declared: Mapping[str, Any]) -> str:
    former = FORMER_NAMES.get(name, name)
    return former if former in declared and name not in declared else name
