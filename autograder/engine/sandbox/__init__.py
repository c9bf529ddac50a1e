"""Isolate student code with namespaces, Landlock, a system call filter and resource limits."""
