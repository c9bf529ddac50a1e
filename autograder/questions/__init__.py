"""Ask questions about a student's own code, with keys that come from running it; students receive this package.

- ``code`` reads one function or class and compiles it, also changed; ``lines`` says which of its lines and expressions can be asked about.
- ``trace`` and ``recorder`` run it on an input of the check and record shapes, values and how often each line runs.
- ``changes`` changes one line with an operator of ``autograder.mutation`` and runs the check on the result.
- ``facts`` collects all this as plain data, so that it can be done in the sandbox.
- ``kinds`` and ``options`` make questions from the facts, ``choose`` selects some of them, and ``question`` writes them as text.
- ``quiz`` asks them in a notebook or a terminal.

Only the facts come from the process that runs student code. Which questions are asked, and in which order their options stand, is decided
from plain data and a seed.
"""
