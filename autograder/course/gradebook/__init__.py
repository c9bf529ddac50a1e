"""Open nbgrader's gradebook for reading, or for one transaction per submission."""
