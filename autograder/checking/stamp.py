"""Hold the release of the checks and the address of the course's site; the build of a student package sets both.

In the project both are empty.
"""

STAMP = ""
SITE = ""
