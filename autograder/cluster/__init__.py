"""Grading on more machines than one: the same submissions and the same executors, spread by a Dask scheduler.

What crosses the network are two kinds of plain JSON, a submission on its way out and an execution on its way back, and once per run what a
worker needs beforehand: the settings and the students' wheel. See ``docs/scale.md``.
"""
