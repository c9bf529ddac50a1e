"""Checks of chapter 07: decoding."""
