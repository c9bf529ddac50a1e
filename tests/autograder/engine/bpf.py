"""A small machine that runs filters of system calls as the kernel does, for either architecture."""

from __future__ import annotations

import struct

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def run(program: bytes, machine: str, number: int, *arguments: int) -> int:
    """Return what a filter says to a system call: the value of the RETURN that is reached.

    Raises:
        ValueError: if the program has an instruction that is not known, or runs past its end.
    """
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number % 2**32, ARCHITECTURES.get(machine, 0x40000003), 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while at < len(instructions):
        code, if_true, if_false, value = instructions[at]
        at += 1
        if code == _RETURN:
            return value
        if code == _LOAD:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code in (_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT):
            holds = {
                _JUMP_EQUAL: accumulator == value,
                _JUMP_AT_LEAST: accumulator >= value,
                _JUMP_ANY_BIT: bool(accumulator & value),
            }[code]
            at += if_true if holds else if_false
        else:
            raise ValueError(f"instruction {code:#x}")
    raise ValueError("the program has no end")
