"""Run graded cells next to the reference, and request answers from the student's process."""
