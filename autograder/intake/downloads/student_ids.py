"""Assign a unique id to every student in a download, the same in every chapter if the platform allows it. It names the student's folders.

Protects against:

- two students with the same id, even if their names differ only in case, accents or Unicode normalisation;
- a name that yields another student's id (``Bob Builder 42`` and the id ``bob-builder-42``, which contains a number);
- one number under two names: neither student gets the other's work, unless the course knows the owner of the number;
- a name that several students on the class list share: none of them gets the work, and all are reported;
- several names that match one student on the class list: the student's work is not silently stored under another id.

Numbers have priority over ids, logins and email addresses on the class list, and these over names. With a class list, a student may hand in
one chapter on Canvas and another on Moodle.

Does not protect against:

- two students who share a name on Moodle, across chapters: the participant numbers of two assignments are unrelated.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from autograder.intake.downloads.uploads import Upload
from autograder.intake.name_spellings import listed_spelling
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import (
    Student,
    folded_name,
    groups_of,
    is_called,
    is_safe,
    names_of,
    safe_id,
    team_members,
)

# What makes two uploads one student's: a platform and its number, or a spelling of a name and the id that it would be by itself.
Identity = tuple[str, str]


def by_student(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[str, list[Upload]], list[Problem]]:
    """Give every upload a student id.

    Args:
        uploads: what a download holds.
        roster: the students that the course knows.

    Returns:
        The uploads of each student, and what was refused or should be known.
    """
    uploads, problems = _without_contradictions(uploads, roster, chapter)
    matched, ambiguous = _matched(uploads, roster, chapter)
    problems += [
        _ambiguous(upload, ambiguous[_identity(upload)], chapter)
        for upload in uploads
        if _identity(upload) in ambiguous
    ]
    uploads = [upload for upload in uploads if _identity(upload) not in ambiguous]
    ids, why = _ids(uploads, matched, roster, chapter)
    owned: dict[str, list[Upload]] = defaultdict(list)
    for upload in uploads:
        identity = _identity(upload)
        student = ids[identity]
        if not is_safe(student):
            message = f"No student id can be made of {upload.owner!r}."
            problems.append(
                Problem("unknown owner", message, str(upload.entry.path), "Name the file after the student.")
            )
            continue
        owned[student].append(upload)
        if identity in why:
            message, do = why[identity]
            problems.append(Problem("same name", message, str(upload.entry.path), do))
    return owned, problems


def _identity(upload: Upload) -> Identity:
    if upload.platform == "moodle":
        return "moodle", upload.upload
    if upload.platform == "brightspace":
        return "brightspace", upload.upload
    if upload.user:
        return "canvas", upload.user
    # nbgrader's folder and Blackboard's login are ids, not names.
    usable = upload.platform in ("nbgrader", "blackboard") and is_safe(upload.owner)
    return upload.owner if usable else safe_id(upload.owner), upload.owner


def _without_contradictions(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[list[Upload], list[Problem]]:
    """Drop the files of a number with two names, except those under the name that the course has for it."""
    names: dict[Identity, set[str]] = defaultdict(set)
    for upload in uploads:
        names[_identity(upload)].add(upload.owner)
    ids = _ids_by_number(roster, chapter)
    accepted, problems = [], []
    for upload in uploads:
        identity = _identity(upload)
        student = roster.get(ids.get(identity, ""))
        if len(names[identity]) == 1 or (student is not None and is_called(student, upload.owner)):
            accepted.append(upload)
            continue
        message = f"Number {identity[1]} has {len(names[identity])} names here: {', '.join(sorted(names[identity]))}."
        do = "See on the platform whose it is, rename the others, and collect again."
        problems.append(Problem("same number", message, str(upload.entry.path), do))
    return accepted, problems


def _ids_by_number(roster: Mapping[str, Student], chapter: str) -> dict[Identity, str]:
    """Return the ids of those whose number the course knows."""
    ids: dict[Identity, str] = {}
    for student in roster.values():
        if student.user:
            ids["canvas", student.user] = student.id
        if number := student.number_on_moodle(chapter):
            ids["moodle", number] = student.id
    # The worksheet knows better than a download, whose number may be a team's.
    worksheet = {("moodle", s.participants[chapter]): s.id for s in roster.values() if chapter in s.participants}
    return ids | worksheet


def _ids(
    uploads: Sequence[Upload], matched: Mapping[Identity, str], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[Identity, str], dict[Identity, tuple[str, str]]]:
    """Return an id for each identity, and messages about identities that did not get their first choice."""
    owners = {_identity(upload): upload.owner for upload in uploads}
    ids, why = dict(matched), dict[Identity, tuple[str, str]]()
    taken = {student.casefold() for student in matched.values()}
    for identity, owner in sorted(owners.items(), key=lambda item: _precedence(*item)):
        if identity in matched:
            continue
        several = sum(safe_id(other) == safe_id(owner) for other in _moodle_names(owners)) > 1
        wishes = list(_wishes(identity, owner, several, roster, chapter))
        ids[identity] = next(wish for wish in wishes if wish.casefold() not in taken or not wish)
        taken.add(ids[identity].casefold())
        if ids[identity] not in (_plain(identity, owner), owner):
            why[identity] = _same_name_message(identity, owner, ids[identity])
    return ids, why


def _matched(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[Identity, str], dict[Identity, list[str]]]:
    """Return the ids of those whom the roster has, and the students of those for whom it has several."""
    owners = {_identity(upload): upload.owner for upload in uploads}
    matched: dict[Identity, str] = {}
    ambiguous: dict[Identity, list[str]] = {}
    for identity, numbered in _ids_by_number(roster, chapter).items():
        # The number of a team may be that of a participant, too, who need not be one of its members.
        if identity in owners and _is_numbered_so(roster[numbered], identity, owners[identity]):
            matched[identity] = numbered
    for identity, owner in owners.items():
        if identity[0] == "moodle" and identity not in matched and (members := team_members(roster, owner, chapter)):
            matched[identity] = members[0]
    listed = [student for student in roster.values() if student.enrolled]
    respelled = {owner: listed_spelling(owner, listed) for owner in set(owners.values()) if not owner.isascii()}
    for keys in (_words, _spelling, _listed_names):
        index: dict[str, list[Student]] = defaultdict(list)
        for student in roster.values():
            for key in keys(student):
                index[key].append(student)
        taken = frozenset(matched.values())
        candidates: dict[Identity, list[str]] = {}
        for identity, owner in owners.items():
            # What a platform writes before a file is a name; a student may be called like another's login.
            if identity not in matched and not (keys is _words and _on_platform(identity)):
                spellings = {owner} if keys is _spelling else {owner.casefold(), folded_name(owner)}
                if keys is _listed_names and (text := respelled.get(owner)):
                    spellings.add(folded_name(text))
                several = _candidates(index, identity, spellings, chapter)
                candidates[identity] = [name for name in several if name not in taken]
        claims = Counter(name for several in candidates.values() for name in several)
        for identity, several in candidates.items():
            if len(several) == 1 and claims[several[0]] == 1:
                matched[identity] = several[0]
            elif len(several) > 1 or (several and _on_platform(identity)):
                # Also somebody on the class list whom several display names claim: one of them is borrowed.
                ambiguous[identity] = several
    return matched, {identity: several for identity, several in ambiguous.items() if identity not in matched}


def _is_numbered_so(student: Student, identity: Identity, owner: str) -> bool:
    """Return whether an upload with a student's number is called like the student, if the name of the student is known."""
    return identity[0] != "moodle" or not student.name or owner == "Participant" or is_called(student, owner)


def _candidates(
    index: Mapping[str, Sequence[Student]], identity: Identity, spellings: set[str], chapter: str
) -> list[str]:
    """Return the ids of the students that an owner may be, in order.

    A platform's download is compared with the class list only: an earlier download's name may be another student's.
    """
    students = {student.id: student for key in spellings for student in index.get(key, ())}
    if identity[0] == "moodle":
        students |= {student.id: student for owner in spellings for student in _group_members(index, owner)}
    return sorted(
        name
        for name, student in students.items()
        if (student.enrolled or not (student.platform or _on_platform(identity)))
        and _may_be(student, identity, chapter)
    )


def _group_members(index: Mapping[str, Sequence[Student]], owner: str) -> Iterator[Student]:
    """Yield the students whose group and name an owner has: where groups hand in, Moodle writes ``Group-Full name``."""
    parts = owner.split("-")
    for number in range(1, len(parts)):
        group, name = "-".join(parts[:number]), "-".join(parts[number:])
        for student in index.get(folded_name(name), ()):
            if folded_name(group) in groups_of(student):
                yield student


def _on_platform(identity: Identity) -> bool:
    return identity[0] in ("moodle", "canvas", "brightspace")


def _words(student: Student) -> set[str]:
    """Return what a file or folder of somebody on the class list may be called, beside their name."""
    texts = (student.id, student.login, student.number, student.email) if student.enrolled else ()
    return {text.casefold() for text in texts if text}


def _spelling(student: Student) -> set[str]:
    """Return a student's name as it is spelled: without a class list, names that differ in case or accents are different students'."""
    return {student.name} if student.name else set()


def _listed_names(student: Student) -> set[str]:
    """Return the names of somebody on the class list, however they are spelled."""
    return names_of(student) if student.enrolled else set()


def _may_be(student: Student, identity: Identity, chapter: str) -> bool:
    """Return whether no number assigns an upload to another student."""
    if not _on_platform(identity):
        return True
    # A chapter is handed in on one platform. Another chapter may be on another one.
    if chapter in student.uploads and student.platform_of(chapter) not in ("", identity[0]):
        return False
    if identity[0] == "brightspace":
        return True
    number = student.number_on_moodle(chapter) if identity[0] == "moodle" else student.user
    return number in ("", identity[1])


def _ambiguous(upload: Upload, students: Sequence[str], chapter: str) -> Problem:
    others = "" if len(students) > 1 else ", and so may another name here"
    message = f"{upload.owner} may be {' or '.join(students)}{others}, so nobody gets this."
    do = "Rename it to the id of the right one, and collect again."
    if upload.platform == "moodle":
        do = f'See on Moodle who it is, write "uploads": {{"{chapter}": "{upload.upload}"}} for them into students.json, and collect again.'
    elif upload.user:
        do = f'See on Canvas who it is, write "user": "{upload.user}" for them into students.json, and collect again.'
    return Problem("ambiguous name", message, str(upload.entry.path), do)


def _moodle_names(owners: Mapping[Identity, str]) -> list[str]:
    return [owner for identity, owner in owners.items() if identity[0] in ("moodle", "brightspace")]


def _precedence(identity: Identity, owner: str) -> tuple[bool, str, bool, str, str]:
    """Sort those first who are spelled like the id that they would have."""
    plain = _plain(identity, owner)
    return (not plain, plain, owner != plain, owner, identity[1])


def _plain(identity: Identity, owner: str) -> str:
    """Return the id that somebody has who is alone with it."""
    if identity[0] == "canvas":
        return f"{safe_id(owner) or 'student'}-{identity[1]}"
    return safe_id(owner) if _on_platform(identity) else identity[0]


def _wishes(
    identity: Identity, owner: str, several: bool, roster: Mapping[str, Student], chapter: str
) -> Iterator[str]:
    """Yield the candidate ids of a student, the simplest first.

    Args:
        identity: the key that distinguishes the student from others.
        owner: the student's name.
        several: whether several students in the download have that name on Moodle.
        roster: the students that the course knows.
    """
    plain = _plain(identity, owner)
    if not plain:
        yield ""
    numbered = f"{plain}-{identity[1]}" if identity[0] in ("moodle", "brightspace") else plain
    for wish in (plain, numbered) if not several else (numbered,):
        if _may_have(roster.get(wish), identity, owner, chapter):
            yield wish
    digest = hashlib.sha256("\0".join((*identity, owner)).encode("utf-8", "replace")).hexdigest()
    spelled = hashlib.sha256(owner.encode("utf-8", "replace")).hexdigest()
    yield from (f"{plain}-{spelled[:6]}", f"{plain}-{digest[:6]}", f"{plain}-{digest[:16]}")


def _may_have(student: Student | None, identity: Identity, owner: str, chapter: str) -> bool:
    """Return whether an id is free or, to our knowledge, belongs to the same student."""
    if student is None or not _on_platform(identity):
        return True
    if identity[0] == "canvas":
        return student.platform in ("", "canvas") and student.user in ("", identity[1])
    same_name = not student.name or safe_id(student.name) == safe_id(owner)
    return student.platform != "canvas" and same_name and student.number_on_moodle(chapter) in ("", identity[1])


def _same_name_message(identity: Identity, owner: str, student: str) -> tuple[str, str]:
    if identity[0] in ("moodle", "brightspace"):
        message = f"More than one student is called {owner}; {identity[0].capitalize()}'s number tells them apart in this chapter only."
        return message, "Map the ids by hand in students.json."
    message = f"{owner!r} would be {_plain(identity, owner)}, as another name here would; so it became {student}."
    return message, "If both are one student's, remove the file that does not count and collect again."
