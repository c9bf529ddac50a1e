"""Make questions about a student's own code, with keys determined by running it; students receive this package.

- ``code`` reads one function or class and compiles it, optionally with changes; ``trace`` runs it under limits on an input of the check,
  which ``inputs`` chooses.
- ``changes`` runs the code with one change from ``edits``, compares the answers to the calls of the check, and recognises known mistakes;
  ``properties`` finds properties shared by exactly the calls that a change affects. ``effects`` changes the input instead.
- ``facts`` collects these results as plain data, so that the code can run in the sandbox.
- ``change_kinds`` and ``kinds`` make questions from the facts and select some of them; ``question`` formats them as text.
- ``quiz`` presents them in a notebook or a terminal.

Only the facts come from the process that runs student code. The facts and a seed determine the selection of the questions and the order
of their options.
"""
