"""Grade submissions (autograde, regrade, replay, choose), and plug the same steps into nbgrader.

A submission passes through ``collect``, ``intake``, execution, ``autograde`` and ``feedback``. ``plugin`` uses the same intake and
execution within nbgrader, so that plain ``nbgrader autograde`` and the formgrader give the same scores.
"""
