"""Create known mistakes from edits of the reference.

``edited`` makes the mistaken code out of the reference, ``table`` reads the file. Nothing here knows an exercise.
"""
