"""Two measures of every check: the reference, changed in one place, must lose points; and the questions must run every branch of it.

``operators`` changes code, ``mutants`` says which code of an exercise is changed, ``limits`` runs a change in a process of its own,
``branches`` asks coverage.py, ``measure`` puts both together, ``keys`` and ``cache`` spare what has not changed, ``record`` keeps what is
committed, and ``report`` prints. Nothing here knows an exercise.
"""
