"""Checks of chapter 03: scaled dot-product attention."""
