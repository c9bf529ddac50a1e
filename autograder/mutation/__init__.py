"""Measure every check by mutation testing and by branch coverage of the reference.

``operators`` changes code, ``mutants`` says which code of an exercise is changed, ``limits`` runs a change in a process of its own,
``branches`` asks coverage.py, ``measure`` puts both together, ``keys`` and ``cache`` spare what has not changed, ``record`` keeps what is
committed, and ``report`` prints. Nothing here knows an exercise.
"""
