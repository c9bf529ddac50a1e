"""Prepare conversations with students about their own code: pages with questions to print, and a sheet of keys.

- ``interviews`` finds a student's code in the graded notebook, asks the engine for facts, chooses questions, and keeps them, one file per
  student.
- ``pages`` writes the two pages.
"""
