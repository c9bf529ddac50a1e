"""Prepare conversations with students about their own code: pages with questions to print, and a sheet of keys.

- ``definitions`` finds a student's code in the graded notebook, and adds a cell that runs it for questions in the sandbox.
- ``interviews`` asks the engine for facts, chooses questions, and keeps them, one file per student.
- ``pages`` writes the two pages.
"""
