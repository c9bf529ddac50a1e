"""The checks of chapter 09: GPT."""
