"""The checks of chapter 13: grouped queries, Llama, and the cost of inference."""
