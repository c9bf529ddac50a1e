"""The student's process: forked from a warm zygote, it runs the student's cells and answers requests."""
