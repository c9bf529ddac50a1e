"""Store the release of the checks and the address of the course's site, which the build of a student package sets.

In the project both are empty.
"""

STAMP = ""
SITE = ""
