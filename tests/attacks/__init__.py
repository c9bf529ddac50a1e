"""Notebooks that try to gain points or to get out, and the proof that they gain nothing."""
