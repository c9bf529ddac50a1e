"""What is said of a wrong answer to a question that students do not have: in the course's own words, and without a number.

A solution sees the hidden questions when it is asked them. Whatever of its answer came back to the student, a name, a text, a count, could
carry a question out; and whatever came back of the right answer would fill a table in place of a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from autograder.checking.request import Observation, Value, WeightsError
from autograder.checking.subject import UsesReferenceError

# What the grader itself calls what came in the place of an answer.
OWN_KINDS = (
    "TimeLimit",
    "MemoryLimit",
    "OutputLimit",
    "ProcessEnded",
    "MalformedAnswer",
    UsesReferenceError.__name__,
    WeightsError.__name__,
)

_WHERE = "on a question that is not among the visible ones"

# What a judge finds where numbers are not what it looks at.
_SAID: Mapping[str, Callable[[Mapping[str, Value]], str]] = {
    "unmutated": lambda options: "it changes an argument in place",
    "detached": lambda options: (
        "a result still hangs on the graph of the steps that it comes from, and keeps it in memory"
    ),
    "reaches": lambda options: "the model that it leaves is not as good as is asked for",
    "spread": lambda options: "its weights are not drawn as widely as the docstring says",
    "related": lambda options: str(options["claim"]),
    "same_operations": lambda options: (
        f"it dispatches more operations on a larger input: there is a Python loop over {options['axis']}"
    ),
    "small_tensors": lambda options: "it makes a larger tensor than is needed",
}


def told_kind(name: str) -> str:
    """Return what is told of an exception: the grader's own name for a limit, and of any other only that there was one.

    There are a hundred kinds of exceptions in Python alone. A solution that raises another one for each question that it sees would carry
    the questions out.
    """
    return name if name in OWN_KINDS else "an exception"


def hidden_message(
    judge: str, given: Sequence[Observation], wanted: Sequence[Observation], options: Mapping[str, Value]
) -> str:
    """Say what is wrong with the answers to a hidden question.

    Args:
        judge: name of the judge that found them wrong.
        given: the answers.
        wanted: the right ones.
        options: the judge's options.
    """
    for mine, theirs in zip(given, wanted, strict=True):
        raised, asked_for = ((one.error or "").partition(":")[0] for one in (mine, theirs))
        if raised and raised != asked_for:
            return f"{_WHERE} it raised {told_kind(raised)}"
        if asked_for and not raised:
            return f"{_WHERE} it accepts wrong input, where a {asked_for} is asked for"
    try:
        form = next(filter(None, map(_other_form, given, wanted)), None)
        said = form or (_SAID[judge](options) if judge in _SAID else _about_numbers(given, wanted))
    except Exception:  # what a student returns may be made to break a comparison
        said = "what it returns cannot be compared"
    return f"{_WHERE} {said}"


def _other_form(mine: Observation, theirs: Observation) -> str | None:
    """Say in which way an answer has another form than the right one, or nothing."""
    if set(mine.outputs) != set(theirs.outputs):
        return "it returns something of another form"
    for name, value in theirs.outputs.items():
        other = mine.outputs[name]
        if isinstance(value, Tensor) != isinstance(other, Tensor):
            # Where only shapes are asked for, a tuple stands for a tensor.
            return None if isinstance(value, tuple) else "it returns something of another type"
        if isinstance(value, Tensor) and other.shape != value.shape:
            return "a result has another shape"
        if isinstance(value, Tensor) and other.dtype != value.dtype:
            return "a result has another dtype"
    return None


def _about_numbers(given: Sequence[Observation], wanted: Sequence[Observation]) -> str:
    pairs = [
        (mine.outputs[name], value)
        for mine, right in zip(given, wanted, strict=True)
        for name, value in right.outputs.items()
    ]
    tensors = [(mine, right) for mine, right in pairs if isinstance(mine, Tensor) and isinstance(right, Tensor)]
    if any(bool(mine.isnan().any()) and not bool(right.isnan().any()) for mine, right in tensors):
        return "a result has NaN among its numbers"
    return "a result is not right"
