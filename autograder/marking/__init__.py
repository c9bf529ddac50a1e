"""Mark written answers by hand: read them from the gradebook, order them, write points and comments, and take them back."""
