"""Ask questions about a student's own code, with keys that come from running it; students receive this package.

- ``code`` reads one function or class and compiles it, also changed; ``lines`` selects the lines and expressions for questions.
- ``trace`` runs it on an input of the check, which ``inputs`` chooses, and records shapes, values and how often each line runs.
- ``changes`` changes one line with an operator of ``autograder.quizzes.mutation`` and runs the check on the result.
- ``facts`` collects all this as plain data, so that it can be done in the sandbox.
- ``kinds`` makes questions from the facts and selects some of them, and ``question`` writes them as text.
- ``quiz`` presents them in a notebook or a terminal.

Only the facts come from the process that runs student code. The selection of the questions and the order of their
options follow from plain data and a seed.
"""
