"""List the lines with which a student's process reports suspicious events; the checker accepts no other line."""

from __future__ import annotations

STARTS = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen"})
COPIES = frozenset({"os.fork", "os.forkpty"})
BY_EVENT = {
    **dict.fromkeys(STARTS, "tries to start a program"),
    **dict.fromkeys(COPIES, "tries to copy its process"),
    **{
        f"ctypes.{name}": "uses ctypes"
        for name in ("addressof", "call_function", "cdata", "cdata/buffer", "dlopen", "dlsym", "string_at")
    },
    **{
        name: f"calls {name}"
        for name in (
            "code.__new__",
            "gc.get_objects",
            "gc.get_referents",
            "gc.get_referrers",
            "marshal.loads",
            "sys._current_frames",
            "sys.addaudithook",
            "sys.setprofile",
            "sys.settrace",
        )
    },
    "compile": "compiles text",
    "exec": "runs text or a code object with exec or eval",
}
# Events whose second argument says what is read or set.
BY_ATTRIBUTE = {
    ("object.__getattr__", "ag_frame"): "reads the frame of a generator",
    ("object.__getattr__", "cr_frame"): "reads the frame of a coroutine",
    ("object.__getattr__", "gi_frame"): "reads the frame of a generator",
    ("object.__getattr__", "tb_frame"): "reads the frame of a traceback",
    ("object.__setattr__", "__code__"): "gives a function other code",
}
BY_IMPORT = frozenset({"_cffi_backend", "cffi"})
IMPORTS, OPENS = "imports cffi", "opens its own memory"
_FORGES = "sends reports of its own"
_LINES = frozenset({*BY_EVENT.values(), *BY_ATTRIBUTE.values(), IMPORTS, OPENS})


def parse_line(line: bytes) -> str:
    """Decode a received line; return a notice instead if it is not a permitted line."""
    text = line.decode("utf-8", "replace")
    return text if text in _LINES else _FORGES
