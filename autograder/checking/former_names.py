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

    An argument gets its former name only if the candidate declares that name and not the present one. A candidate that declares neither
    fails with the present name in the message.

    Args:
        candidate: the function or class of a submission.
        arguments: the arguments by their present names.
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
