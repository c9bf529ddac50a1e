"""Change one place of a function: the operators that make mistakes, and a fork with limits to run the result."""
