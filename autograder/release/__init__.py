"""What students get: the assignment, the student's wheel, downloads, and the search for leaks in them."""
