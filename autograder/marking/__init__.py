"""Mark code and written answers by hand: group answers, write points and comments, undo marks, show progress live."""
