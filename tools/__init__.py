"""Commands for developers: the table of words, the drawing of the packages, the table of systems."""
