"""Keep the roster: the students of a course, and the spellings of their names on platforms."""
