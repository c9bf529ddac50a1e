"""Grade submissions: autograde, regrade, replay and choose; the same steps as nbgrader's plugin.

The way of a submission: ``collect`` brings it in, ``intake`` makes it gradable, ``execute`` runs it, ``autograde`` records it, ``feedback``
tells its author. ``plugin`` puts the same intake and the same execution into nbgrader itself, so that plain ``nbgrader autograde`` and the
formgrader give the same scores.
"""
