"""Run one submission: warm processes, a sandbox around student code, and a checker outside of it.

A *worker* contains the reference and the checks. It starts a *student zygote*: a process that has imported the packages for students,
contains no secrets of the course, and forks one sandboxed child per submission. For a batch of submissions the worker forks a *checker*,
which controls their children. The student's cells run in the child, graded cells run in the checker, and only plain data and raw tensors
cross between them.
"""
