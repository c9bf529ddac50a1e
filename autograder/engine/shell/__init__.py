"""Run cells in IPython's shell: the code that the checker's process and the student's process both run."""
