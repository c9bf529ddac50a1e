"""Checks of chapter 05: the Transformer."""
