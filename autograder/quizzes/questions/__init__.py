"""Ask questions about a student's own code, with keys that come from running it; students receive this package.

- ``code`` reads one function or class and compiles it, also changed; ``trace`` runs it under limits on an input of the check, which
  ``inputs`` chooses.
- ``changes`` changes one line, as ``edits`` does, compares the answers to the calls of the check, and recognises known mistakes;
  ``properties`` finds a property of exactly the calls for which a change matters. ``effects`` changes the input instead.
- ``facts`` collects all this as plain data, so that it can be done in the sandbox.
- ``change_kinds`` and ``kinds`` make questions from the facts and select some of them, and ``question`` writes them as text.
- ``quiz`` presents them in a notebook or a terminal.

Only the facts come from the process that runs student code. The selection of the questions and the order of their
options follow from plain data and a seed.
"""
