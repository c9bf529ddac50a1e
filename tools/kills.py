"""Record which test notices which change of a package: ``python -m tools.kills autograder/intake/downloads tests/corpus --sample 60``.

The tests run once, and it is noted which of the package's functions each of them calls. Then functions are changed in one place each, by
the operators that change references (``autograder.quizzes.mutation``), and the tests that call them run again, each change in a fork of the
process. A test that is never the only one to notice a change can go; a change that no test notices wants a test.

What another program runs, such as the engine's workers, is not changed there, and what a fixture of the whole run has made stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import select
import signal
import sys
import textwrap
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from autograder.quizzes.mutation.operators import list_mutations

SECONDS = 120
Place = tuple[str, int]
"""A function: its file and first line."""


@dataclass(frozen=True)
class Change:
    """One function of the package, changed in one place."""

    file: Path
    name: str
    line: int
    before: str
    after: str
    code: CodeType
    """The changed function's code, which takes the place of the live one."""

    @property
    def place(self) -> Place:
        """The function."""
        return str(self.file), self.line

    def __str__(self) -> str:
        return f"{self.file.name}:{self.name}: {self.before}  →  {self.after}"


def changes_of(files: Sequence[Path]) -> Iterator[Change]:
    """Yield every change of every function and method in Python files."""
    for file in files:
        text = file.read_text("utf-8")
        tree = ast.parse(text)
        owners = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
        for function in (node for owner in owners for node in owner.body if isinstance(node, ast.FunctionDef)):
            source = textwrap.dedent(ast.get_source_segment(text, function, padded=True) or "")
            first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            for mutation in (
                item for item in list_mutations(source) if not item.operator.endswith(" added")
            ):  # those are for tensors
                changed = ast.parse(mutation.code).body[0]
                assert isinstance(changed, ast.FunctionDef)
                code = _compiled(tree, function, changed, file)
                if code is not None:
                    yield Change(file, function.name, first, mutation.before, mutation.after, code)


def _compiled(tree: ast.Module, function: ast.FunctionDef, changed: ast.FunctionDef, file: Path) -> CodeType | None:
    """Return the code of a function that is compiled with another body in its module, so that names mean what they mean there."""
    ast.copy_location(changed, function)
    changed.decorator_list = function.decorator_list
    body, function.body = function.body, changed.body
    arguments, function.args = function.args, changed.args
    try:
        module = compile(ast.fix_missing_locations(tree), str(file), "exec")
    except (SyntaxError, ValueError):
        return None
    finally:
        function.body, function.args = body, arguments
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return next(
        (code for code in _inner(module) if (code.co_name, code.co_firstlineno) == (function.name, first)), None
    )


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


class Kills:
    """The part of a test run that notes calls, makes changes and runs the tests that call what is changed."""

    def __init__(self, files: Sequence[Path], sample: int, seed: int) -> None:
        """Choose the changes.

        Args:
            files: the package's modules.
            sample: the number of changes, drawn at random.
            seed: of the draw.
        """
        self.places = {str(file) for file in files}
        changes = list(changes_of(files))
        self.total = len(changes)
        self.changes = changes if len(changes) <= sample else random.Random(seed).sample(changes, sample)
        self.calls: dict[str, set[Place]] = defaultdict(set)
        self.live: dict[Place, CodeType] = {}
        self.noticed: dict[Change, list[str]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.config.option.collectonly:
            return False
        items = session.items
        for item, following in zip(items, [*items[1:], None], strict=True):
            self._note_calls(item, following)
        print(f"\n{len(items)} tests; {len(self.changes)} of {self.total} changes", file=sys.stderr)
        for number, change in enumerate(self.changes):
            callers = [item for item in items if change.place in self.calls[item.nodeid]]
            self.noticed[change] = self._failures(change, callers) if change.place in self.live else []
            print(f"{number} {len(self.noticed[change])}/{len(callers)} {change}", file=sys.stderr, flush=True)
        return True

    def _note_calls(self, item: pytest.Item, following: pytest.Item | None) -> None:
        called: set[Place] = set()

        def note(frame: FrameType, event: str, argument: object) -> None:
            if event == "call" and frame.f_code.co_filename in self.places:
                place = (frame.f_code.co_filename, frame.f_code.co_firstlineno)
                called.add(place)
                self.live.setdefault(place, frame.f_code)

        sys.setprofile(note)
        threading.setprofile(note)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        # What a module's fixtures call is called for all its tests.
        self.calls[item.nodeid] |= called
        self.calls[item.path.as_posix()] |= called

    def _failures(self, change: Change, callers: Sequence[pytest.Item]) -> list[str]:
        """Return the tests that fail with a change, from a fork of this process."""
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(receiving)
            with os.fdopen(sending, "w") as pipe:
                _run_changed(self.live[change.place], change, callers, pipe)
            os._exit(0)
        os.close(sending)
        return _read_names(receiving, child)

    def table(self) -> str:
        """Return what was found, as a table of tests, and the changes that no test notices."""
        only: Counter[str] = Counter()
        some: Counter[str] = Counter()
        for names in self.noticed.values():
            some.update(set(names))
            if len(names) == 1:
                only.update(names)
        rows = [
            f"{only[name]:5} {some[name]:5}  {name}" for name in sorted(some, key=lambda n: (-only[n], -some[n], n))
        ]
        silent = sorted(name for name in self.calls if "::" in name and name not in some)
        survivors = [str(change) for change, names in self.noticed.items() if not names]
        head = f"{len(self.changes) - len(survivors)} of {len(self.changes)} changes are noticed."
        parts = [
            head,
            " alone  all  test",
            *rows,
            "",
            f"{len(silent)} tests notice none:",
            *silent,
            "",
            "Survivors:",
            *survivors,
        ]
        return "\n".join(parts)


def _run_changed(live: CodeType, change: Change, items: Sequence[pytest.Item], pipe: Any) -> None:
    """Give every function that has a code the changed one, run tests, and write the names of those that fail."""
    from _pytest.runner import runtestprotocol

    for function in [f for f in gc.get_referrers(live) if isinstance(f, FunctionType) and f.__code__ is live]:
        try:
            function.__code__ = change.code
        except ValueError:  # another number of variables of an outer function
            return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for item, following in zip(items, [*items[1:], None], strict=True):
        if isinstance(item, pytest.Function):
            item._initrequest()  # with fixtures of its own
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            pipe.write(item.nodeid + "\n")
            pipe.flush()


def _read_names(pipe: int, child: int) -> list[str]:
    """Read names until the writer ends, or ends it after a while: a change that hangs is noticed, too."""
    data, deadline, late = b"", time.monotonic() + SECONDS, False
    while not late:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        late = not ready
        if late or not (piece := os.read(pipe, 1 << 16)):
            break
        data += piece
    os.close(pipe)
    if late:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return data.decode().split("\n")[:-1] + (["(too long)"] if late else [])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print which tests notice which changes of a package; 0 if none goes unnoticed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", type=Path, help="a folder or a module of the product")
    parser.add_argument("tests", nargs="+", help="the tests to run: folders, files, names")
    parser.add_argument("--sample", type=int, default=60, help="the number of changes, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--json", type=Path, help="write here which tests notice each change")
    options = parser.parse_args(arguments)
    package = options.package.resolve()
    files = [package] if package.is_file() else sorted(package.rglob("*.py"))
    kills = Kills(files, options.sample, options.seed)
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *options.tests], plugins=[kills])
    print(kills.table())
    if options.json:
        options.json.write_text(json.dumps({str(change): names for change, names in kills.noticed.items()}, indent=1))
    return 1 if any(not names for names in kills.noticed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
