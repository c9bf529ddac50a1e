"""Assign a unique id to every student in a download, the same in every chapter if the platform allows it.

Protects against:

- two students with the same id, even if their names differ only in case, accents or Unicode normalisation;
- a name that yields another student's id (``Bob Builder 42`` and the id ``bob-builder-42``, which contains a number);
- one number under two names: neither student gets the other's work, unless the course knows the owner of the number;
- a name that several students on the class list share, and several names of one student on it: these files are refused and reported.

With a class list, a student may hand in one chapter on Canvas and another on Moodle.

Does not protect against:

- two students who share a name on Moodle, across chapters: the participant numbers of two assignments are unrelated.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autograder.intake.downloads.uploads import Upload
from autograder.intake.identity import CANVAS, Identity, build_identity, match_identities, moodle_scope, platform_scope
from autograder.intake.name_spellings import find_listed_spelling
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, fold_name, has_name, is_safe, safe_id, team_members

# Names are compared with the class list alone: an earlier download's name may be another student's.
_LIST = "class list"
_ON_PLATFORMS = ("moodle", "canvas", "brightspace")


@dataclass(frozen=True)
class _Owner:
    """The owner of some files in a download, identified by a platform's number or a name."""

    name: str = field(compare=False)
    platform: str = ""  # the platform that numbers its students, or empty
    number: str = ""
    words: str = ""  # the name, where there is no number
    plain: str = field(default="", compare=False)  # the id of somebody who is alone with it
    anonymous: bool = field(
        default=False, compare=False
    )  # whether the name stands for everybody's, as in blind marking

    @classmethod
    def from_upload(cls, upload: Upload, hidden: frozenset[str] = frozenset()) -> _Owner:
        """Return the owner of an upload.

        Args:
            hidden: words that stand for every name.
        """
        name, platform = upload.owner, upload.platform if upload.platform in _ON_PLATFORMS else ""
        number = upload.user if platform == "canvas" else upload.upload
        if platform and (number or platform == "moodle"):
            plain = f"{safe_id(name) or 'student'}-{number}" if platform == "canvas" else safe_id(name)
            return cls(name, platform, number, "", plain, platform == "moodle" and fold_name(name) in hidden)
        # nbgrader's folder and Blackboard's login are ids, not names.
        usable = upload.platform in ("nbgrader", "blackboard") and is_safe(name)
        return cls(name, words=name, plain=name if usable else safe_id(name))

    def identity(self, chapter: str, respelled: str) -> Identity:
        """Return the owner's identity keys; ``respelled`` is the name in another encoding, or empty."""
        if not self.platform:
            texts = frozenset({self.name.casefold(), fold_name(self.name)})
            return Identity({_LIST: "yes"}, texts, self.name, texts | {fold_name(respelled)} - {""})
        numbers = {platform_scope(chapter): self.platform, _LIST: "yes"}
        if self.platform != "brightspace" and self.number:
            numbers[CANVAS if self.platform == "canvas" else moodle_scope(chapter)] = self.number
        if self.anonymous:
            return Identity(numbers)
        names = {self.name.casefold(), fold_name(self.name), fold_name(respelled)} - {""}
        return Identity(numbers, spelling=self.name, names=frozenset(names))


def assign_students(
    uploads: Sequence[Upload], roster: Mapping[str, Student], chapter: str
) -> tuple[dict[str, list[Upload]], list[Problem]]:
    """Assign a student id to every upload.

    Args:
        uploads: what a download holds.
        roster: the students that the course knows.

    Returns:
        The uploads of each student, and a problem for each upload that was refused or whose owner is in doubt.
    """
    hidden = _blind_names(uploads, roster)
    listed = [student for student in roster.values() if student.enrolled]
    people = _known_identities(roster, chapter)
    accepted, problems = _drop_contradictions(
        [(_Owner.from_upload(one, hidden), one) for one in uploads], people, roster, chapter
    )
    asking = {
        owner: owner.identity(chapter, "" if owner.name.isascii() else find_listed_spelling(owner.name, listed))
        for owner, _ in accepted
    }
    teams = {
        owner: members[0]
        for owner in asking
        if owner.platform == "moodle" and (members := team_members(roster, owner.name, chapter))
    }
    matched, doubts = match_identities(asking, people, teams)
    ids = _assign_ids({owner: asking[owner] for owner in asking if owner not in doubts}, matched, roster)
    owned: dict[str, list[Upload]] = defaultdict(list)
    for owner, upload in accepted:
        where = str(upload.entry.path)
        if owner in doubts:
            problems.append(_ambiguous_name_problem(owner, doubts[owner], chapter, where))
        elif not is_safe(ids[owner]):
            message = f"No student id can be made of {owner.name!r}."
            problems.append(Problem("unknown owner", message, where, "Name the file after the student."))
        else:
            owned[ids[owner]].append(upload)
            if owner not in matched and ids[owner] not in (owner.plain, owner.name):
                problems.append(_same_name_problem(owner, ids[owner], chapter, where))
    return owned, problems


def _blind_names(uploads: Sequence[Upload], roster: Mapping[str, Student]) -> frozenset[str]:
    """Return the names that replace all names in blind marking: a worksheet's, or a download's only name."""
    words = {
        fold_name(student.name.removesuffix(number))
        for student in roster.values()
        for number in student.participants.values()
        if student.blind
    }
    on_it = {(fold_name(upload.owner), upload.upload) for upload in uploads if upload.platform == "moodle"}
    only = {word for word, _ in on_it}
    if len(only) == 1 < len(on_it) and not any(has_name(one, *only) for one in roster.values() if one.enrolled):
        words |= only
    return frozenset(words)


def _known_identities(roster: Mapping[str, Student], chapter: str) -> dict[str, Identity]:
    """Return the identities with which a download's owners are compared.

    A student who is only known by submissions is found by the number, or by the spelling of a name that no platform has written: names that
    differ in case or accents are different students'. A worksheet knows better than a download whose number a number is.
    """
    numbered = {student.participants[chapter] for student in roster.values() if chapter in student.participants}
    people = {}
    for name, student in roster.items():
        identity = build_identity(student)
        numbers = dict(identity.numbers)
        if chapter not in student.participants and numbers.get(moodle_scope(chapter)) in numbered:
            del numbers[moodle_scope(chapter)]
        people[name] = replace(identity, numbers=numbers)
        if not student.enrolled and student.platform:
            numbers[_LIST] = "no"
            people[name] = replace(people[name], texts=frozenset())
        elif not student.enrolled:
            people[name] = Identity({**numbers, platform_scope(chapter): "none"}, spelling=student.name)
    return people


def _drop_contradictions(
    uploads: Sequence[tuple[_Owner, Upload]],
    people: Mapping[str, Identity],
    roster: Mapping[str, Student],
    chapter: str,
) -> tuple[list[tuple[_Owner, Upload]], list[Problem]]:
    """Drop the files of a number with two names, except under the name that the course has for it."""
    names: dict[_Owner, set[str]] = defaultdict(set)
    for owner, upload in uploads:
        names[owner].add(upload.owner)
    accepted, problems = [], []
    for owner, upload in uploads:
        scope = CANVAS if owner.platform == "canvas" else moodle_scope(chapter)
        holders = [roster[name] for name, one in people.items() if one.numbers.get(scope) == owner.number]
        if len(names[owner]) == 1 or any(has_name(holder, upload.owner) for holder in holders):
            accepted.append((owner, upload))
            continue
        message = f"Number {owner.number} has {len(names[owner])} names here: {', '.join(sorted(names[owner]))}."
        do = "See on the platform whose it is, rename the others, and collect again."
        problems.append(Problem("same number", message, str(upload.entry.path), do))
    return accepted, problems


def _assign_ids(
    asking: Mapping[_Owner, Identity], matched: Mapping[_Owner, str], roster: Mapping[str, Student]
) -> dict[_Owner, str]:
    """Return an id for each owner; owners whose name equals their simplest id come first."""
    ids, taken = dict(matched), {student.casefold() for student in matched.values()}
    shared = Counter(owner.plain for owner in asking if owner.platform in ("moodle", "brightspace"))
    order = sorted(asking, key=lambda one: (not one.plain, one.plain, one.name != one.plain, one.name, one.number))
    for owner in order:
        if owner in matched:
            continue
        several = owner.anonymous or shared[owner.plain] > 1
        ids[owner] = next(
            wish
            for wish in _candidate_ids(owner, several)
            if not wish or (wish.casefold() not in taken and _is_free(roster.get(wish), owner, asking[owner]))
        )
        taken.add(ids[owner].casefold())
    return ids


def _candidate_ids(owner: _Owner, several: bool) -> Iterator[str]:
    """Yield the possible ids of an owner, the simplest first.

    Args:
        several: whether others in the download have that name on the platform.
    """
    if not owner.plain:
        yield ""
    if not several:
        yield owner.plain
    if owner.number and owner.platform != "canvas":
        yield f"{owner.plain}-{owner.number}"
    for text, length in ((owner.name, 6), (f"{owner.platform}\0{owner.number}\0{owner.name}", 16)):
        yield f"{owner.plain}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:length]}"


def _is_free(student: Student | None, owner: _Owner, identity: Identity) -> bool:
    """Return whether an id is free, or belongs to the same student according to the known identities."""
    if student is None or not owner.platform:
        return True
    # An id with a number of Canvas's is one student's, however the name is written there.
    same_name = owner.platform == "canvas" or not student.name or safe_id(student.name) == safe_id(owner.name)
    return (same_name or owner.anonymous) and not identity.contradicts(build_identity(student), by_name=True)


def _ambiguous_name_problem(owner: _Owner, students: Sequence[str], chapter: str, where: str) -> Problem:
    others = "" if len(students) > 1 else ", and so may another name here"
    message = f"{owner.name} may be {' or '.join(students)}{others}, so nobody gets this."
    do = "Rename it to the id of the right one, and collect again."
    if owner.platform == "moodle":
        do = f"Read the assignment's grading worksheet, and collect again: tfcourse students WORKSHEET.csv --chapter {chapter}"
    elif owner.platform == "canvas":
        do = "Read Canvas's gradebook, which has the numbers, and collect again: tfcourse students GRADEBOOK.csv"
    return Problem("ambiguous name", message, where, do)


def _same_name_problem(owner: _Owner, student: str, chapter: str, where: str) -> Problem:
    if owner.platform in ("moodle", "brightspace"):
        message = f"More than one student is called {owner.name}; their numbers tell them apart in this chapter only."
        do = "Map the ids by hand in students.json."
        if owner.platform == "moodle":
            do = f"Read the assignment's grading worksheet: tfcourse students WORKSHEET.csv --chapter {chapter}"
        return Problem("same name", message, where, do)
    message = f"{owner.name!r} would be {owner.plain}, as another name here would; so it became {student}."
    do = "If both are one student's, remove the file that does not count and collect again."
    return Problem("same name", message, where, do)
