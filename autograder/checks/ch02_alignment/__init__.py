"""Checks of chapter 02: attention as alignment."""
