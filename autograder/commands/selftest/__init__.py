"""Test the course itself: its solutions, this machine, its checks, and a sample class."""
