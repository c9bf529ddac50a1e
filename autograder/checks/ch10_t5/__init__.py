"""The checks of chapter 10: T5."""
