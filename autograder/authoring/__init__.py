"""From the reference to what people get: stubs, solution notebooks, the student's build, releases, and the search for leaks.

A solution is written once, in ``tfcourse``. Everything here derives from it, and says when something no longer does.
"""
