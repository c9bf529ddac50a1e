"""Every student of a download gets an id of their own: the name of their folders, the same in every chapter as far as a platform allows it.

Protects against:

- two students with one id, whatever their names look like in small letters, without accents or in another form of Unicode;
- a name that spells another student's id (``Bob Builder 42`` beside the ``bob-builder-42`` that a number has made);
- one number under two names: neither gets the other's work, unless the course knows already whose number it is.

Does not protect against:

- two students who share a name on Moodle, from one chapter to the next: the participant numbers of two assignments have nothing in common.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from autograder.collecting.roster import Student, is_safe, safe_id
from autograder.collecting.uploads import Upload
from autograder.submission.problem import Problem

# What makes two uploads one student's: a platform and its number, or a spelling of a name and the id that it would be by itself.
Identity = tuple[str, str]


def by_student(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[str, list[Upload]], list[Problem]]:
    """Give every upload a student id.

    Args:
        uploads: what a download holds.
        roster: the students that the course knows.
        chapter: the chapter.

    Returns:
        The uploads of each student, and what was refused or should be known.
    """
    uploads, problems = _without_contradictions(uploads, roster, chapter)
    ids, why = _ids(uploads, roster, chapter)
    owned: dict[str, list[Upload]] = defaultdict(list)
    for upload in uploads:
        identity = _identity(upload)
        student = ids[identity]
        if not is_safe(student):
            what = f"No student id can be made of {upload.owner!r}."
            problems.append(Problem("unknown owner", what, str(upload.entry.path), "Name the file after the student."))
            continue
        owned[student].append(upload)
        if identity in why:
            what, do = why[identity]
            problems.append(Problem("same name", what, str(upload.entry.path), do))
    return owned, problems


def _identity(upload: Upload) -> Identity:
    if upload.platform == "moodle":
        return "moodle", upload.upload
    if upload.user:
        return "canvas", upload.user
    kept = upload.platform == "nbgrader" and is_safe(upload.owner)
    return upload.owner if kept else safe_id(upload.owner), upload.owner


def _without_contradictions(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[list[Upload], list[Problem]]:
    """Leave out the files of a number that has two names, but for the name that the course knows it by."""
    names: dict[Identity, set[str]] = defaultdict(set)
    for upload in uploads:
        names[_identity(upload)].add(upload.owner)
    known = _known(roster, chapter)
    kept, problems = [], []
    for upload in uploads:
        identity = _identity(upload)
        student = roster.get(known.get(identity, ""))
        if len(names[identity]) == 1 or (student is not None and student.name == upload.owner):
            kept.append(upload)
            continue
        what = f"Number {identity[1]} has {len(names[identity])} names here: {', '.join(sorted(names[identity]))}."
        do = "See on the platform whose it is, rename the others, and collect again."
        problems.append(Problem("same number", what, str(upload.entry.path), do))
    return kept, problems


def _known(roster: Mapping[str, Student], chapter: str) -> dict[Identity, str]:
    """Return the ids of those whose number the course knows."""
    known: dict[Identity, str] = {}
    for student in roster.values():
        if student.platform == "canvas" and student.user:
            known["canvas", student.user] = student.id
        elif student.platform == "moodle" and chapter in student.uploads:
            known["moodle", student.uploads[chapter]] = student.id
    return known


def _ids(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[Identity, str], dict[Identity, tuple[str, str]]]:
    """Return an id for each identity, and what is to be told of those that did not get the plain one."""
    owners = {_identity(upload): upload.owner for upload in uploads}
    known = {identity: student for identity, student in _known(roster, chapter).items() if identity in owners}
    known |= _known_by_name(owners, roster)
    ids, why = dict(known), dict[Identity, tuple[str, str]]()
    taken = {student.casefold() for student in known.values()}
    for identity, owner in sorted(owners.items(), key=lambda item: _precedence(*item)):
        if identity in known:
            continue
        several = sum(safe_id(other) == safe_id(owner) for other in _moodle_names(owners)) > 1
        wishes = list(_wishes(identity, owner, several, roster, chapter))
        ids[identity] = next(wish for wish in wishes if wish.casefold() not in taken or not wish)
        taken.add(ids[identity].casefold())
        if ids[identity] not in (_plain(identity, owner), owner):
            why[identity] = _told(identity, owner, ids[identity])
    return ids, why


def _known_by_name(owners: Mapping[Identity, str], roster: Mapping[str, Student]) -> dict[Identity, str]:
    names = {student.name: student.id for student in roster.values() if student.name and not student.platform}
    named = {identity: owner for identity, owner in owners.items() if identity[0] not in ("moodle", "canvas")}
    return {identity: names[owner] for identity, owner in named.items() if owner in names}


def _moodle_names(owners: Mapping[Identity, str]) -> list[str]:
    return [owner for identity, owner in owners.items() if identity[0] == "moodle"]


def _precedence(identity: Identity, owner: str) -> tuple[bool, str, bool, str, str]:
    """Sort those first who are spelled like the id that they would have."""
    plain = _plain(identity, owner)
    return (not plain, plain, owner != plain, owner, identity[1])


def _plain(identity: Identity, owner: str) -> str:
    """Return the id that somebody has who is alone with it."""
    if identity[0] == "canvas":
        return f"{safe_id(owner) or 'student'}-{identity[1]}"
    return safe_id(owner) if identity[0] == "moodle" else identity[0]


def _wishes(
    identity: Identity, owner: str, several: bool, roster: Mapping[str, Student], chapter: str
) -> Iterator[str]:
    """Yield the ids that somebody may have, the plainest first.

    Args:
        identity: what tells the student from others.
        owner: the student's name.
        several: whether more than one student of the download has that name on Moodle.
        roster: the students that the course knows.
        chapter: the chapter.
    """
    plain = _plain(identity, owner)
    if not plain:
        yield ""
    numbered = f"{plain}-{identity[1]}" if identity[0] == "moodle" else plain
    for wish in (plain, numbered) if not several else (numbered,):
        if _may_have(roster.get(wish), identity, owner, chapter):
            yield wish
    digest = hashlib.sha256("\0".join((*identity, owner)).encode("utf-8", "replace")).hexdigest()
    spelled = hashlib.sha256(owner.encode("utf-8", "replace")).hexdigest()
    yield from (f"{plain}-{spelled[:6]}", f"{plain}-{digest[:6]}", f"{plain}-{digest[:16]}")


def _may_have(student: Student | None, identity: Identity, owner: str, chapter: str) -> bool:
    """Whether an id is free, or is that of the same student as far as can be known."""
    if student is None or identity[0] not in ("moodle", "canvas"):
        return True
    if identity[0] == "canvas":
        return student.platform in ("", "canvas") and student.user in ("", identity[1])
    same_name = not student.name or safe_id(student.name) == safe_id(owner)
    return student.platform != "canvas" and same_name and student.uploads.get(chapter) in (None, identity[1])


def _told(identity: Identity, owner: str, student: str) -> tuple[str, str]:
    if identity[0] == "moodle":
        what = f"More than one student is called {owner}; Moodle's number tells them apart in this chapter only."
        return what, "Map the ids by hand in students.json."
    what = f"{owner!r} would be {_plain(identity, owner)}, as another name here would; so it became {student}."
    return what, "If both are one student's, remove the file that does not count and collect again."
