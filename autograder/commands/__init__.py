"""Provide the command line: the ``tfcourse`` program and its commands."""
