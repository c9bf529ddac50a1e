"""Figures to play with: each is plain HTML with its numbers as JSON, which a script of the course's site makes interactive."""
