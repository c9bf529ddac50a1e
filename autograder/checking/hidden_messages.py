"""Define the messages about hidden test cases, which state only that an answer is wrong.

Student code sees the inputs of the hidden tests while it runs on them. Any part of a message that it could influence (the kind of a
mistake, a text, a count) could reveal a test. Parts of the right answer would let students fill a table instead of writing a formula.

Protects against: a message that depends on what was returned, raised, counted or called in a hidden test.

Does not protect against: the one bit of each row, passed or missed; the limit that a cell broke, of which the grader names the first.

The judge could say by how much an answer is wrong, and where. The message does not, for the reasons above. The diagnosis depends on the
answers to visible tests alone (`autograder.checking.diagnosis`).
"""

from __future__ import annotations

from autograder.checking.request import WeightsError
from autograder.checking.subject import UsesReferenceError

# The grader's own names for limits and failures.
OWN_KINDS = (
    "TimeLimit",
    "MemoryLimit",
    "OutputLimit",
    "ProcessEnded",
    "MalformedAnswer",
    UsesReferenceError.__name__,
    WeightsError.__name__,
)

WRONG = "a hidden question is answered wrongly"
FORBIDDEN = "at a hidden question it calls a function that this exercise asks you to do yourself"


def public_error_name(name: str) -> str:
    """Return the public name of an exception in a cell below a test: a limit's name, or "an exception".

    Python alone has a hundred types of exceptions. A solution could encode the questions that it sees in the types that it raises.
    """
    return name if name in OWN_KINDS else "an exception"
