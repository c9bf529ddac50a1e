"""Create known mistakes: edits of the reference in a TOML file beside each check.

``edited`` makes the mistaken code out of the reference, ``table`` reads the file. Nothing here knows an exercise.
"""
