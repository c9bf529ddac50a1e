"""Decode names that an archive program stored without naming the encoding.

A zip archive marks names in UTF-8 with a flag. A Mac's Finder writes UTF-8 without the flag and with accents as separate characters
(NFD), and Windows writes the code page of the system. Python reads both as code page 437.

Names whose bytes are UTF-8 are read as UTF-8. A code page cannot be told from the bytes alone: ``93 63 92 86`` is 田中 in Shift-JIS and
ôcÆå in code page 437. The class list decides: a name is read in the code page in which exactly one student of the list has it.

Does not protect against:

- code pages in a course without a class list: the name stays as Python reads it, and its owner is one student all the same.
"""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Iterable, Iterator

from autograder.intake.roster import Student, fold_name, name_forms

_UTF_8_FLAG = 0x800
# How Python reads a name without the flag, and how other programs unpack one.
_READ_AS = ("cp437", "cp1252", "latin-1")
# Of Windows and its command line, by language; and of old Macs.
_CODE_PAGES = (
    *("utf-8", "cp932", "gb18030", "big5", "cp949", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255"),
    *("cp850", "cp852", "cp866", "cp857", "cp737", "cp437", "mac-roman"),
)


def decode_member_name(member: zipfile.ZipInfo) -> str:
    """Return an archive member's name, decoded as UTF-8 if possible and composed (NFC), else as Python reads it."""
    name = member.filename
    if not member.flag_bits & _UTF_8_FLAG and not name.isascii():
        raw = _encode(name, "cp437")
        if (as_utf_8 := _decode(raw, "utf-8")) is not None:
            name = as_utf_8
        elif b"\\" in raw and (japanese := _decode(raw, "cp932")) is not None and "\\" not in japanese:
            # The second byte of some Japanese characters is that of a backslash, which would split the path.
            name = japanese
    return unicodedata.normalize("NFC", name)


def list_respellings(name: str) -> Iterator[str]:
    """Yield a name's bytes decoded in other encodings, the likeliest first."""
    if name.isascii():
        return
    for read_as in _READ_AS:
        raw = _encode(unicodedata.normalize("NFC", name), read_as)
        for encoding in _CODE_PAGES if raw else ():
            text = _decode(raw, encoding)
            if text is not None and text != name:
                yield unicodedata.normalize("NFC", text)


def find_listed_spelling(name: str, students: Iterable[Student]) -> str:
    """Return the only respelling of a name that is on the class list; empty if none or several are."""
    listed = {text for student in students for text in name_forms(student)}
    spellings = {fold_name(text): text for text in list_respellings(name) if fold_name(text) in listed}
    return next(iter(spellings.values())) if len(spellings) == 1 else ""


def _encode(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return b""


def _decode(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return None
