"""Import submissions: downloads, the students who handed them in, and untrusted notebooks."""
