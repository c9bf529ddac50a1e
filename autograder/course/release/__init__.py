"""Release chapters: the assignment, the student's wheel, downloads, and the search for leaks."""
