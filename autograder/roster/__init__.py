"""Keep the roster: who the students of a course are, and how platforms spell their names."""
