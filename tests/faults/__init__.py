"""Faults that a grading run must survive: killed processes, full disks, a gradebook that cannot be written, signals, a clock set back."""
