"""Measure every check by mutation testing and by branch coverage of the reference.

- ``operators`` changes code, and ``mutants`` selects the code of an exercise to change.
- ``limits`` runs a mutant in a separate process.
- ``branches`` measures coverage with coverage.py, and ``measure`` combines both measures.
- ``keys`` tells which exercises are unchanged, and ``record`` stores and caches their measures.
- ``report`` prints them.

The package contains no code for a particular exercise.
"""
