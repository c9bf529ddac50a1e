"""Run the test cases of a check on an implementation and judge the answers; students receive this package.

No module of this package contains a solution. The student build includes it and judges with recorded answers; beside the reference
(package ``autograder.checks``) the same engine judges with live ones. It needs only torch, numpy and safetensors.

It is apart from the declarations (``autograder.checks``) because students receive the engine and never the declarations.
"""

from autograder.checking.verdict import Diagnosis, Finding, Verdict

__all__ = ["Diagnosis", "Finding", "Verdict"]
