"""Mark code and written answers by hand: group or order them, write points and comments, undo, and show the class live."""
