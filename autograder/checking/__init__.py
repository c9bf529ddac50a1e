"""Ask an implementation the questions of a check and judge the answers; students receive this package.

Nothing in this package knows a solution. It is part of the student build, where it judges with recorded answers; with the reference at
hand (package ``autograder.checks``) the same engine judges with live ones. It needs torch, numpy and safetensors, nothing else.

It is apart from the declarations (``autograder.checks``) because students receive the engine and never the declarations.
"""

from autograder.checking.verdict import Diagnosis, Finding, Verdict

__all__ = ["Diagnosis", "Finding", "Verdict"]
