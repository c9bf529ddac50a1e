"""Call functions on students' text in another process with limited processor time.

Markdown, highlighting and the cleaning of HTML are regular expressions and parsers of other projects. Some take exponential time for a
hundred characters, and nothing in the same process can stop them. So they run in a process that the system kills at the limit; the next
call starts a new one.

Protects against:

- text that takes any time: a call ends after its processor seconds, or after a longer time by the clock if it waits
- text that takes any memory, on systems that limit it

Does not protect against:

- text that takes over the process: it has the rights of its user, and runs the course's code only
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import IO, Any, Self

# The most bytes of a process's own data, where the system can limit them.
MEMORY = 2**31
# A waiting process uses no processor time. On a busy machine, a working one may wait for its turn.
_WAITING, _WAITING_PER_SECOND = 30.0, 10.0
# A new process imports its modules first, which on a busy machine takes longer than a call may.
_STARTING = 300.0
_READY = b"ready\n"
# On systems without a limit of processor time.
_CLOCK_PER_SECOND = 3.0
_HAS_TIMER = hasattr(signal, "setitimer")


class FailedCallError(Exception):
    """A call failed; the message is worded to follow "because"."""


class LimitedProcess:
    """A process that calls functions, one at a time, from the first call until this object is deleted.

    Args:
        modules: the modules that it imports before the first call.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False  # whether it has imported its modules
        self._end: Callable[[], Any] = lambda: None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, which then imports its modules."""
        if self._process is None:
            command = [sys.executable, "-P", "-m", __spec__.name, *self._modules]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._end = weakref.finalize(self, _kill_process, self._process)

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float, **options: Any) -> Any:
        """Call a function in the limited process and return its result.

        Args:
            function: a function at the top level of a module; the process is told its name.
            arguments: its arguments, as JSON can hold them. So is the result.
            seconds: the processor time that it may take.
            options: its keyword arguments.

        Raises:
            FailedCallError: if it raised an exception, or exceeded a limit.
        """
        names = {"module": function.__module__, "function": function.__qualname__}
        request = {**names, "arguments": arguments, "options": options, "seconds": seconds}
        with self._lock:
            self.start()
            answer = self._request_answer(json.dumps(request).encode() + b"\n", seconds)
        if "failed" in answer:
            raise FailedCallError(answer["failed"])
        return answer["result"]

    def _request_answer(self, request: bytes, seconds: float) -> Mapping[str, Any]:
        process = self._process
        assert process is not None
        allowed = _WAITING + seconds * (_WAITING_PER_SECOND if _HAS_TIMER else _CLOCK_PER_SECOND)
        if not self._ready:
            self._ready = self._read_line(process, b"", _STARTING)[0] == _READY
        line, expired = self._read_line(process, request, allowed)
        if line.endswith(b"\n"):
            answer: Mapping[str, Any] = json.loads(line)
            return answer
        status = process.wait()
        self._end_process()
        if expired:
            return {"failed": f"it was not done after {allowed:g} s"}
        if _HAS_TIMER and status == -signal.SIGPROF:
            return {"failed": f"it took more than {seconds:g} s of processor time"}
        return {"failed": f"its process ended with status {status}"}

    def _read_line(self, process: subprocess.Popen[bytes], request: bytes, seconds: float) -> tuple[bytes, bool]:
        """Send a request, and return the next line of a process and whether it was ended because the line came too late."""
        assert process.stdin is not None
        assert process.stdout is not None
        watch = _RecordingTimer(seconds, process.kill)
        watch.daemon = True
        watch.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.flush()
            return process.stdout.readline(), watch.expired
        except BaseException:
            # An interrupted call would leave its answer to the next one.
            self._end_process()
            raise
        finally:
            watch.cancel()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end_process()

    def _end_process(self) -> None:
        self._ready = False
        self._end()
        self._process = None


class _RecordingTimer(threading.Timer):
    """A timer that records whether it expired."""

    expired = False

    def run(self) -> None:
        """Wait, and call the function unless the timer was cancelled."""
        self.expired = not self.finished.wait(self.interval)
        if self.expired:
            self.function()


def _kill_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def main() -> None:
    """Answer calls: read each as a line of JSON and write its result as another."""
    answers = _reserve_output()
    _limit_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which ends this process
    if _HAS_TIMER:
        # A process inherits which signals are ignored or held back.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        # A caller that was killed reads no answer: end without a traceback.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for module in sys.argv[1:]:
        importlib.import_module(module)
    answers.write(_READY)
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_run_call(json.loads(line))).encode() + b"\n")
        answers.flush()


def _reserve_output() -> IO[bytes]:
    """Return the stream for answers, and redirect all other output to standard error."""
    voice = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return voice


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _run_call(request: Mapping[str, Any]) -> dict[str, Any]:
    function = getattr(importlib.import_module(request["module"]), request["function"])
    try:
        if _HAS_TIMER:
            # Without a handler, its signal ends the process, whatever it is doing.
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        return {"result": function(*request["arguments"], **request["options"])}
    except Exception as error:
        return {"failed": f"it raised {type(error).__name__}: {str(error)[:200]}".rstrip(": ")}
    finally:
        if _HAS_TIMER:
            signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
