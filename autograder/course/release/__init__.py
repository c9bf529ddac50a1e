"""Release chapters: build the assignment, the students' wheel and downloads, and search them for leaks."""
