"""Checks of chapter 04: multi-head attention."""
