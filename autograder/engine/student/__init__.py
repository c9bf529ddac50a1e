"""Run inside the student's process, forked from a warm zygote: execute cells and answer requests.

No Jupyter messages are on the way to a grade. A kernel is sockets, threads and an event loop; none of them forks well, and an orderly
shutdown takes longer than most notebooks run. Cells run in IPython's shell all the same, so magics and displayed figures work.
"""
