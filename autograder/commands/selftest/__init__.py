"""Test the course itself: solve, doctor, quality of the checks, and the sample class."""
