"""The checks of chapter 06: text into tokens, and tokens into vectors."""
