"""Known mistakes, kept as data: each is an edit of the reference, in a TOML file beside the exercise's declaration.

``edited`` makes the mistaken code out of the reference, ``table`` reads the file. Nothing here knows an exercise.
"""
