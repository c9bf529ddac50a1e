"""Run graded cells beside the reference, and ask the student's process for answers."""
