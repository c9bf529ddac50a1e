"""Mutate one node of a function: mutation operators, and a forked process with limits that runs the mutant."""
