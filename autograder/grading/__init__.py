"""Grade submissions: autograde, regrade, replay and choose; the same steps as nbgrader's plugin.

A submission passes through ``collect``, ``intake``, execution, ``autograde`` and ``feedback``. ``plugin`` uses the same intake and
execution within nbgrader, so that plain ``nbgrader autograde`` and the formgrader give the same scores.
"""
