"""Isolate student code: namespaces, Landlock, a system call filter, and limits."""
