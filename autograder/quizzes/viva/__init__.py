"""Prepare conversations with students about their own code: printable pages with questions, and a page with the keys.

- ``interviews`` finds a student's code in the graded notebook, has the engine collect facts, chooses questions, and stores them in one
  file per student.
- ``pages`` writes the two pages.
"""
