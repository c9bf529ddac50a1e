"""Validate a msgpack message of a student's process before memory is allocated for it.

The limits of ``msgpack.Unpacker`` bound one array, not their sum: ``msgpack.packb([[[]] * 99_999] * 1_000)`` keeps every limit, and
its 100 MB would become 100 million lists of 6.4 GB. This module reads headers only, by a table of what follows each first byte.
"""

from __future__ import annotations

MAX_DEPTH = 64
# Reading an item takes far more memory and time than its bytes: limit the items of a message, and of all answers of a cell.
MAX_ITEMS = 100_000
MAX_ITEMS_IN_ALL = 500_000
# The two kinds of extensions that a message may have.
TENSOR, ARRAY = 1, 2


class ProtocolError(Exception):
    """A message violates the protocol; the error message describes how."""


class ItemBudget:
    """The number of items that a cell's answers may still have.

    Args:
        budget: the number at the beginning.
    """

    def __init__(self, budget: int = MAX_ITEMS_IN_ALL) -> None:
        self._all = self._left = budget

    def take(self, items: int) -> None:
        """Subtract items from the budget.

        Raises:
            ProtocolError: if fewer remain. Then later calls fail, too.
        """
        self._left -= items
        if self._left < 0:
            raise ProtocolError(f"the answers have more than {self._all} items in all")


# What follows each first byte of msgpack: a number of bytes, a length field, a number of values, or nothing that is allowed.
_FIXED, _MEASURED, _VALUES, _COUNTED, _FORBIDDEN = range(5)
_FORMS: list[tuple[int, int]] = [(_FIXED, 1)] * 256
_FORMS[0x80:0x90] = [(_FORBIDDEN, 0)] * 16
_FORMS[0x90:0xA0] = [(_VALUES, count) for count in range(16)]
_FORMS[0xA0:0xC0] = [(_FIXED, 1 + length) for length in range(32)]
_FORMS[0xC1] = _FORMS[0xDE] = _FORMS[0xDF] = (_FORBIDDEN, 0)
_FORMS[0xC4:0xCA] = [(_MEASURED, width) for width in (1, 2, 4)] * 2
_FORMS[0xCA:0xD4] = [(_FIXED, 1 + width) for width in (4, 8, 1, 2, 4, 8, 1, 2, 4, 8)]
_FORMS[0xD4:0xD9] = [(_FIXED, 2 + length) for length in (1, 2, 4, 8, 16)]
_FORMS[0xD9:0xDE] = [(_MEASURED, 1), (_MEASURED, 2), (_MEASURED, 4), (_COUNTED, 2), (_COUNTED, 4)]
_EXTENSION_TYPE = {0xC7: 2, 0xC8: 3, 0xC9: 5, 0xD4: 1, 0xD5: 1, 0xD6: 1, 0xD7: 1, 0xD8: 1}


def check_limits(data: bytes, budget: ItemBudget) -> None:
    """Check a message's depth, lengths and items before memory is allocated for it.

    A header of five bytes can claim an array of millions of items, and contain a thousand such headers.
    """
    position, items, waiting = 0, 0, [1]
    while waiting:
        if not waiting[-1]:
            waiting.pop()
            continue
        waiting[-1] -= 1
        first = data[position]
        form, number = _FORMS[first]
        if first in _EXTENSION_TYPE and data[position + _EXTENSION_TYPE[first]] not in (TENSOR, ARRAY):
            raise ProtocolError("an unknown kind of data")
        if form == _FIXED:
            position += number
        elif form == _MEASURED:
            length = int.from_bytes(data[position + 1 : position + 1 + number], "big")
            position += 1 + number + (1 if first in _EXTENSION_TYPE else 0) + length
        elif form == _FORBIDDEN:
            raise ProtocolError("a kind of value that is not allowed")
        else:
            width = number if form == _COUNTED else 0
            count = int.from_bytes(data[position + 1 : position + 1 + width], "big") if width else number
            position += 1 + width
            items += count
            budget.take(count)
            waiting.append(count)
            if items > MAX_ITEMS:
                raise ProtocolError(f"an answer of more than {MAX_ITEMS} items")
            if len(waiting) > MAX_DEPTH + 2 or not 0 < count <= len(data) - position:
                raise ProtocolError("an array that is too deep, too long, empty or cut off")
    if position != len(data):
        raise ProtocolError("a message that is cut off or goes on")
