"""What a student's package is told when it is built: which release of the checks it has, and where the course's site is published.

Beside the reference both are empty.
"""

STAMP = ""
SITE = ""
