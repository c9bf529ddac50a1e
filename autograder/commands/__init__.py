"""Provide the command line: the ``tfcourse`` program, its commands, and what they print."""
