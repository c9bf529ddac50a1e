"""Serve inside the student's process, forked from a warm zygote: run cells, answer requests."""
