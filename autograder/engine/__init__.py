"""Run one submission: warm processes, a sandbox around student code, and a checker outside of it.

A *worker* holds the reference and the checks. It starts a *student zygote*, a process that has imported what students use and none of
the course's secrets, and that forks one sandboxed child per submission. For some submissions at a time the worker forks a *checker*,
which drives their children: the student's cells run in the child, graded cells run in the checker, and only plain data and raw tensors
cross between them.
"""
