"""Match identities: class lists, worksheets and downloads identify people by numbers, ids, addresses and names.

The keys of two identities are compared in this order: the number on Canvas; ids, logins, institution's numbers and email addresses; a
participant's number on Moodle; names; the number of an anonymous participant. Each step takes only what is unique on both sides; the rest
is reported, and never guessed.

Does not protect against:

- a student who takes another student's full name on Moodle, in a course whose worksheets are not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from autograder.intake.roster import Student, group_names, name_forms, safe_id

Key = TypeVar("Key")

CANVAS, _INSTITUTION = "canvas", "institution"


def moodle_scope(chapter: str) -> str:
    """Return the scope of participant numbers in a chapter's Moodle assignment."""
    return f"moodle {chapter}"


def platform_scope(chapter: str) -> str:
    """Return the scope (namespace) of the ids on the platform where a chapter is handed in."""
    return f"platform {chapter}"


@dataclass(frozen=True)
class Identity:
    """The keys that identify a person; without a name the person is anonymous."""

    numbers: Mapping[str, str] = field(default_factory=dict)  # by scope, in each of which a person has one number
    texts: frozenset[str] = frozenset()  # ids, logins, numbers of the institution and addresses, as they are compared
    spelling: str = ""  # the name as it is written
    names: frozenset[str] = frozenset()  # forms of the name, as they are compared

    def contradicts(self, other: Identity, *, by_name: bool = False) -> bool:
        """Return whether two identities cannot belong to the same person.

        Args:
            by_name: whether nothing but the names agree. Then any other number is another person's.
        """
        scopes = self.numbers.keys() & other.numbers.keys()
        firm = scopes if by_name else scopes & {CANVAS, _INSTITUTION}
        return any(self.numbers[scope].casefold() != other.numbers[scope].casefold() for scope in firm)

    def may_have_same_name(self, other: Identity) -> bool:
        """Return whether the names of two identities may belong to the same person."""
        return not (self.names and other.names) or bool(self.names & other.names)


def build_identity(student: Student) -> Identity:
    """Return the identity of a roster entry or a class-list line."""
    numbers = {CANVAS: student.user, _INSTITUTION: student.number, "id": student.id if student.enrolled else ""}
    numbers |= {
        moodle_scope(chapter): student.number_on_moodle(chapter)
        for chapter in {*student.participants, *student.uploads}
    }
    numbers |= {platform_scope(chapter): student.find_platform(chapter) for chapter in student.uploads}
    # Anybody may call themselves like another's login: an id that is made of a display name identifies nobody.
    only_name = student.platform and not (student.enrolled or student.login or student.number or student.email)
    id_ = "" if only_name and student.id == safe_id(student.name) else student.id
    return Identity(
        {scope: number for scope, number in numbers.items() if number},
        frozenset(text.casefold() for text in (id_, student.login, student.number, student.email) if text),
        "" if student.blind else student.name,
        frozenset() if student.blind else frozenset(_possible_names(student)),
    )


def _possible_names(student: Student) -> Iterator[str]:
    for name in name_forms(student):
        yield name
        # Where groups hand in one by one, Moodle writes ``Group-Full name``.
        yield from (f"{group}-{name}" for group in group_names(student))


def match_identities(
    asking: Mapping[Key, Identity], people: Mapping[str, Identity], certain: Mapping[Key, str] | None = None
) -> tuple[dict[Key, str], dict[Key, list[str]]]:
    """Match each identity to a person; also return the candidates of undecided identities.

    Args:
        certain: the matches that are certain already.
    """
    matches, doubts = dict(certain or {}), dict[Key, list[str]]()
    for keys in (_canvas_keys, _text_keys, _participant_keys, _spelling_keys, _name_keys, _number_keys):
        taken = frozenset(matches.values())
        free = {name: person for name, person in people.items() if name not in taken}
        candidates = _find_candidates({one: who for one, who in asking.items() if one not in matches}, free, keys)
        claims: dict[str, list[Key]] = defaultdict(list)
        for one, names in candidates.items():
            for name in names:
                claims[name].append(one)
        unique = {one: names[0] for one, names in candidates.items() if len(names) == 1 == len(claims[names[0]])}
        matches |= unique
        doubts |= {one: names for one, names in candidates.items() if one not in unique}
    return matches, {one: names for one, names in doubts.items() if one not in matches}


_Keys = Callable[[Identity], Iterable[str]]


def _find_candidates(
    asking: Mapping[Key, Identity], people: Mapping[str, Identity], keys: _Keys
) -> dict[Key, list[str]]:
    """Return the people who share a key with each identity and do not contradict it."""
    by_key: dict[str, set[str]] = defaultdict(set)
    for name, person in people.items():
        for key in keys(person):
            by_key[key].add(name)
    by_name = keys in (_spelling_keys, _name_keys)
    matches = {}
    for one, who in asking.items():
        names = {name for key in keys(who) for name in by_key.get(key, ())}
        # A number in a download may be that of a team, whose members are others than the participant of this number.
        names = {
            name
            for name in names
            if keys not in (_participant_keys, _number_keys) or who.may_have_same_name(people[name])
        }
        if fitting := sorted(name for name in names if not who.contradicts(people[name], by_name=by_name)):
            matches[one] = fitting
    return matches


def _canvas_keys(identity: Identity) -> Iterable[str]:
    return [identity.numbers[CANVAS]] if CANVAS in identity.numbers else []


def _text_keys(identity: Identity) -> Iterable[str]:
    return identity.texts


def _participant_keys(identity: Identity) -> Iterable[str]:
    return _number_keys(identity) if identity.names else []


def _number_keys(identity: Identity) -> Iterable[str]:
    return (f"{scope}: {number}" for scope, number in identity.numbers.items() if scope.startswith("moodle "))


def _spelling_keys(identity: Identity) -> Iterable[str]:
    return [identity.spelling] if identity.spelling else []


def _name_keys(identity: Identity) -> Iterable[str]:
    return identity.names
