"""What is told of a wrong answer to a hidden question: that it is wrong.

A solution sees the hidden questions when it is asked them. Whatever it could choose of what is told (the kind of a mistake, a text, a
count) could carry a question out; and whatever came back of the right answer would fill a table in place of a formula.

Protects against: a message that depends on what was returned, raised, counted or called at a hidden question.

Does not protect against: the one bit of each row, passed or missed; the diagnosis, which names a known mistake only where all answers to
the visible questions of a row agree with it too; the limit that a cell broke, of which the grader names the first.

The judge could say by how much an answer is wrong, and where. The message does not, for the reasons above; the diagnosis, which is the
course's own text, is shown all the same.
"""

from __future__ import annotations

from autograder.checking.request import WeightsError
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

WRONG = "a hidden question is answered wrongly"
FORBIDDEN = "at a hidden question it calls a function that this exercise asks you to do yourself"


def told_kind(name: str) -> str:
    """Return what is told of an exception in a cell below a test: the grader's own name for a limit, else only that there was one.

    There are a hundred kinds of exceptions in Python alone. A solution that raises another one for each question that it sees would carry
    the questions out.
    """
    return name if name in OWN_KINDS else "an exception"
