"""Whether the course is sound on this machine: solve, doctor, quality, the sample class."""
