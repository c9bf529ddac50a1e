"""nbgrader's gradebook: read-only access, and one transaction per submission."""
