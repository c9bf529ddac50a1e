"""The sandbox: namespaces, Landlock, the system call filter, limits, and levels of isolation."""
