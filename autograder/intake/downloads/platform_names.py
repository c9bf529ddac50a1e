"""Parse the file names in platforms' downloads, whose prefixes name the files' owners.

- Moodle: ``Full name_NUMBER_assignsubmission_file_FILE``. Every underscore in a full name becomes a space (``mod/assign``). Where teams
  hand in, name and number are the team's; that of all students without a team has no number.
- Canvas: ``sortablename_NUMBER_UPLOAD_FILE``. A late submission has ``LATE`` before the number; an anonymous course has ``anon_ID`` instead
  of name and number. Underscores in a name are kept, except around a number (``lib/content_zipper.rb``).
- Blackboard: ``Assignment_LOGIN_attempt_2026-10-24-18-00-00_FILE``, and the same name with ``.txt`` for the receipt of each attempt.
- ILIAS: a folder ``Surname_First name_LOGIN_NUMBER``. Sakai: a folder ``Surname, First name(LOGIN)``. Both are read only with a class list
  that has the login.
- Brightspace: ``NUMBER-FOLDER - Full name - Oct 24, 2026 600 PM``, as a folder or, followed by ``- FILE``, as the prefix of a file name.

Protects against:

- a file name that contains another student's prefix: only the outermost prefix counts;
- a display name on Canvas that ends like a prefix (``bob_42``): the name is ambiguous and is refused;
- digits of other scripts, which look like another student's number;
- a login on Blackboard that ends like another login (``bob_ada``): the assignment title is the common prefix of all names in a download.

Does not protect against:

- a download with manually renamed files: the new names decide who owns a file;
- a student who takes another student's full name on Moodle: the participant number distinguishes them only within one assignment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

# Students without a team hand in as one, which has no number.
_MOODLE = re.compile(r"(?:_([0-9]+))?_assignsubmission_(?:file|onlinetext)(?:_|$)")
_CANVAS = re.compile(r"_(LATE_)?([0-9]+)_([0-9]+)_(?=.)", re.DOTALL)
_BLACKBOARD = re.compile(
    r"(?P<head>.+?)_attempt_(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[0-9]{2}){3})(?:_(?P<file>.+)|\.txt)", re.DOTALL
)
_BRIGHTSPACE = re.compile(
    r"(?P<number>[0-9]+)-[0-9]+ - (?P<owner>.+?) ?- "
    r"(?P<time>[A-Z][a-z]{2,8} [0-9]{1,2}, [0-9]{4} [0-9]{1,2}:?[0-9]{2} [AP]M)(?: ?- (?P<file>.+))?",
    re.DOTALL,
)
_ILIAS = re.compile(r"(?P<head>.+)_[0-9]+", re.DOTALL)
_SAKAI = re.compile(r".+, .*\((?P<login>[^()]+)\)", re.DOTALL)
_ANONYMOUS = re.compile(r"(?:(LATE_)?anon|anon_(LATE))_([0-9A-Za-z]+)_([0-9]+)_(.+)", re.DOTALL)


@dataclass(frozen=True)
class PlatformName:
    """A name in a download, parsed as one platform's."""

    platform: str  # ``"canvas"``, ``"moodle"``, ``"blackboard"`` or ``"brightspace"``
    owner: str  # the student's name, Blackboard's login, or what stands for it in an anonymous course
    user: str  # the student's number on Canvas, the same in every assignment; empty in an anonymous course
    # the number of this upload (Canvas), of this participant in this assignment (Moodle), or of the user (Brightspace)
    upload: str
    file: str  # the name that the student gave the file; empty for a folder, and for a receipt of Blackboard's
    late: bool = False  # whether Canvas calls it late
    # when it was handed in, without a time zone: Blackboard and Brightspace write the institution's time
    submitted: str = ""

    def __str__(self) -> str:
        return f"{self.owner} (number {self.user or self.upload})"


def possible_readings(name: str, chapters: Iterable[str] = ()) -> dict[str, list[PlatformName]]:
    """Return all possible readings of a name, by kind of download; several mean that the name is ambiguous.

    Where a file is called like one of the chapters, its number is no number of Canvas's.
    """
    matches = {
        "moodle": _parse_moodle(name),
        "canvas": _parse_canvas(name, chapters),
        "anonymous": _parse_anonymous(name),
    }
    matches |= {"blackboard": _parse_blackboard(name), "brightspace": _parse_brightspace(name)}
    return {kind: several for kind, several in matches.items() if several}


def rank_kinds(names: Iterable[str], chapters: Iterable[str]) -> list[frozenset[str]]:
    """Return the kinds of download that may have produced some names, in groups, the likeliest first.

    A platform can read every name that it has written. What it has not written may look like any platform's, but not all of it.
    """
    counted = Counter(kind for name in set(names) for kind in possible_readings(name, chapters))
    shares = sorted(set(counted.values()), reverse=True)
    return [frozenset(kind for kind, count in counted.items() if count == share) for share in shares]


def assignment_title(names: Iterable[str]) -> str:
    """Return a Blackboard assignment's title: the words with which all names begin; empty for one login."""
    heads = {match["head"] for name in names if (match := _BLACKBOARD.fullmatch(name))}
    if len(heads) < 2:
        return ""
    columns = zip(*(head.split("_")[:-1] for head in heads), strict=False)
    return "_".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def resolve_name(
    name: str, kinds: Iterable[frozenset[str]], chapters: Iterable[str], title: str = ""
) -> list[PlatformName]:
    """Return the readings of a name by the likeliest kinds: one, several if it is ambiguous, or none.

    The kinds are the result of :func:`rank_kinds` for the download, and the title is that of :func:`assignment_title`.
    """
    by_kind = possible_readings(name, chapters)
    if title and "blackboard" in by_kind:
        by_kind["blackboard"] = [
            way for way in by_kind["blackboard"] if name.startswith(f"{title}_{way.owner}_attempt_")
        ]
    return next(
        (ways for some in kinds if (ways := [way for kind in sorted(some) for way in by_kind.get(kind, ())])), []
    )


def strip_platform_prefix(name: str) -> str:
    """Return a file's name as the student gave it, without the platform's outermost prefix."""
    return max((way.file for ways in possible_readings(name).values() for way in ways), key=len, default=name)


def find_login(name: str, logins: Mapping[str, str]) -> str:
    """Return the class-list login in a folder name of ILIAS or Sakai; empty unless exactly one fits.

    The logins are listed by their form in lower case.
    """
    if match := _SAKAI.fullmatch(name):
        return logins.get(match["login"].casefold(), "")
    words = match["head"].casefold().split("_") if (match := _ILIAS.fullmatch(name)) else []
    fitting = [login for start in range(2, len(words)) if (login := logins.get("_".join(words[start:])))]
    return fitting[0] if len(fitting) == 1 else ""


def _parse_moodle(name: str) -> list[PlatformName]:
    matches = [
        PlatformName("moodle", name[: match.start()], "", match[1] or "", name[match.end() :])
        for match in _find_overlapping(_MOODLE, name)
    ]
    # Digits of another script after an underscore are no number, and no part of a team's name.
    matches = [match for match in matches if match.upload] or [match for match in matches if "_" not in match.owner]
    # Moodle itself leaves no underscore in a name; where a person has put one, there must be no second way to read it.
    return matches[:1] if matches and "_" not in matches[0].owner else matches


def _parse_canvas(name: str, chapters: Iterable[str]) -> list[PlatformName]:
    matches = []
    for match in _find_overlapping(_CANVAS, name):
        late, user, upload, file = match[1], match[2], match[3], name[match.end() :]
        # Canvas counts from one, without zeros in front; and a file that is called like its chapter has the chapter's number.
        its_own = any(f"{upload}_{file}".casefold().startswith(chapter.casefold()) for chapter in chapters)
        # The word before the number of a late submission is no part of a name, which Canvas writes in small letters.
        within = name[: match.start()].endswith("_LATE")
        if not (user.startswith("0") or upload.startswith("0") or its_own or within):
            matches.append(PlatformName("canvas", name[: match.start()], user, upload, file, bool(late)))
    return matches


def _parse_anonymous(name: str) -> list[PlatformName]:
    match = _ANONYMOUS.fullmatch(name)
    if match is None:
        return []
    late, late_too, student, upload, file = match.groups()
    return [PlatformName("canvas", f"anon-{student}", "", upload, file, bool(late or late_too))]


def _parse_blackboard(name: str) -> list[PlatformName]:
    """Return every way to split assignment and login, the shortest login first: both may contain underscores."""
    match = _BLACKBOARD.fullmatch(name)
    if match is None:
        return []
    head, submitted = match["head"].split("_"), f"{match['time'][:10]} {match['time'][11:].replace('-', ':')}"
    return [
        PlatformName("blackboard", "_".join(head[number:]), "", "", match["file"] or "", submitted=submitted)
        for number in range(len(head) - 1, 0, -1)
    ]


def _parse_brightspace(name: str) -> list[PlatformName]:
    match = _BRIGHTSPACE.fullmatch(name)
    if match is None:
        return []
    month, rest = match["time"].replace(":", "").split(" ", 1)
    day, year, hour, half = rest.replace(",", "").split()
    try:
        # Midnight is 1200 AM, and ten past five is 510 PM.
        time = datetime.strptime(f"{month[:3]} {day} {year} {hour:0>4} {half}", "%b %d %Y %I%M %p")
    except ValueError:
        return []
    owner = match["owner"].strip()
    return [PlatformName("brightspace", owner, "", match["number"], match["file"] or "", submitted=str(time))]


def _find_overlapping(pattern: re.Pattern[str], text: str) -> Iterable[re.Match[str]]:
    """Yield all matches after the first character, including overlapping ones."""
    begin = 1
    while match := pattern.search(text, begin):
        yield match
        begin = match.start() + 1
