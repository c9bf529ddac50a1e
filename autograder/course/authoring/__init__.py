"""Keep chapters consistent with the reference: stubs, solution notebooks, rubrics, executed lessons.

A solution is written once, in ``tfcourse``. Everything here derives from it, and reports what no longer does.
"""
