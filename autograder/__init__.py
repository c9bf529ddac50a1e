"""The machinery of the course: checks, authoring, grading, reports, the site and the command line."""

import sys

# nbformat imports jsonschema, and that, where this package happens to be installed, has it make the grammars of 38 kinds of web addresses:
# a second of every command and of every worker, for a check that no notebook asks for. Without it jsonschema does without.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
