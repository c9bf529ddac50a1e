"""A candidate as text, examined in this process or in a student's: what is asked of a subject must not depend on where it runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from autograder.checking.subject import LocalSubject, Subject
from tests.autograder.engine.student import Student

PREAMBLE = "import functools, math, torch, numpy\nfrom torch import nn\n"
ACTIONS = ("call", "gradients", "meta", "operations", "functions")


def definition(source: str) -> str:
    """Return text that defines ``f``: an expression becomes one."""
    return f"f = {source}" if source.startswith("lambda") else source


def local(source: str) -> Subject:
    """Return a subject in this process."""
    names: dict[str, Any] = {"torch": torch, "nn": nn}
    exec(compile(PREAMBLE + definition(source), "cell.py", "exec"), names)  # lines of a string belong to who runs it
    return LocalSubject(names["f"])


def remote(student: Student, source: str) -> Subject:
    """Return a subject in a student's process."""
    student.begin()
    return student.define(definition(source))
