"""Start worker processes, each with its checkers and zygote, and the pool that feeds them."""
