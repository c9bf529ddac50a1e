"""Group wrong code answers that behave alike, so that one comment can go to all of them."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.grading.record.signatures import Signature

# How far two values may differ, by the dtype of their tensors: more than reordered arithmetic does, and less than any mistake measured.
TOLERANCES = {"d": 1e-6, "f": 1e-3, "h": 1e-2, "b": 4e-2}
_REPRESENTATIVES = 3


@dataclass(frozen=True)
class CodeAnswer:
    """One student's code for an exercise, if it lost points."""

    student: str
    exercise: str
    score: float  # the check's points
    max_score: float  # points that the exercise is worth
    failed_rows: tuple[str, ...]  # titles of the failed rows, in order; empty without a verdict
    message: str  # the different messages of these rows, one per line; or the reason for a missing verdict
    # the explanation of the known mistake that the student got; several are joined. None without a known mistake.
    diagnosis: str | None
    source: str  # the source of the answer's cell; empty if the graded notebook cannot be read
    signature: Signature | None  # the signature of the code's outputs on the visible tests; None if it was not recorded
    # the exercise from which this failure follows, as on the feedback page; empty if the failure is independent
    cause: str = ""

    @property
    def lost_points(self) -> float:
        """The points that the check deducted."""
        return max(0.0, self.max_score - self.score)


@dataclass(frozen=True)
class BehaviourGroup:
    """Answers to one exercise with the same failed rows, the same outputs and the same diagnosis."""

    key: str  # its id, which depends only on the grouped answers, not on their order
    members: tuple[CodeAnswer, ...]  # the answers, keyed by student
    lost_points: float  # the sum of the members' lost points
    follows_from: str  # the exercise from which every member's failure follows; empty if the members have no common one
    representatives: tuple[CodeAnswer, ...]  # up to three members with different code, the most frequent code first

    @property
    def diagnosis(self) -> str | None:
        """The diagnosis that the members' feedback gives; None without a known mistake."""
        return self.members[0].diagnosis


def group_answers(answers: Sequence[CodeAnswer]) -> list[BehaviourGroup]:
    """Group the answers, the most lost points first; groups with the same diagnosis follow the largest of them.

    Answers without a signature form separate groups by failed rows and messages.
    """
    buckets: defaultdict[tuple[str, ...], list[CodeAnswer]] = defaultdict(list)
    for answer in answers:
        buckets[_exact_key(answer)].append(answer)
    groups = [_build_group(key, members) for key, bucket in buckets.items() for members in _cluster_by_values(bucket)]
    return _sort_by_diagnosis(groups)


def _exact_key(answer: CodeAnswer) -> tuple[str, ...]:
    """Return the key that all members of a group share.

    A diagnosis depends on all tests, a signature only on the visible ones. A lookup table of a frequent mistake's visible outputs has the
    same signature as the mistake, but must not get the same mark.
    """
    signature, diagnosis = answer.signature, answer.diagnosis or ""
    if signature is None:
        return (answer.exercise, "messages", diagnosis, answer.message, *answer.failed_rows)
    return (answer.exercise, signature.sheet, signature.structure, signature.kinds, diagnosis, *answer.failed_rows)


def _cluster_by_values(bucket: Iterable[CodeAnswer]) -> list[list[CodeAnswer]]:
    """Cluster a bucket's answers: each joins the first cluster whose leader has the same values within the tolerances.

    Answers are sorted by their values, not by student, so that the groups depend only on what the code returned.

    The order is that of the values, not that of the students, so that the groups depend on nothing but what was returned.
    """
    clusters: list[list[CodeAnswer]] = []
    for answer in sorted(bucket, key=lambda answer: (_signature_values(answer), answer.student)):
        near = (cluster for cluster in clusters if _values_agree(cluster[0].signature, answer.signature))
        cluster = next(near, None)
        if cluster is None:
            clusters.append([answer])
        else:
            cluster.append(answer)
    return clusters


def _signature_values(answer: CodeAnswer) -> tuple[float, ...]:
    return answer.signature.values if answer.signature is not None else ()


def _values_agree(leader: Signature | None, other: Signature | None) -> bool:
    """Return whether the values of two signatures of equal sheet and structure agree within their tolerances."""
    if leader is None or other is None:
        return leader is other
    triples = zip(leader.kinds, leader.values, other.values, strict=True)
    return all(abs(one - two) <= TOLERANCES.get(kind, 0.0) for kind, one, two in triples)


def _build_group(key: tuple[str, ...], cluster: Sequence[CodeAnswer]) -> BehaviourGroup:
    leader = [repr(value) for value in _signature_values(cluster[0])]
    members = tuple(sorted(cluster, key=lambda answer: answer.student))
    causes = {answer.cause for answer in members}
    return BehaviourGroup(
        key=hashlib.sha256(json.dumps([key, leader]).encode("utf-8", "backslashreplace")).hexdigest()[:16],
        members=members,
        lost_points=round(sum(answer.lost_points for answer in members), 6),
        follows_from=causes.pop() if len(causes) == 1 else "",
        representatives=pick_representatives(members),
    )


def pick_representatives(members: Sequence[CodeAnswer]) -> tuple[CodeAnswer, ...]:
    """Return up to three members with different code, the most frequent code first."""
    by_text: dict[str, list[CodeAnswer]] = {}
    for answer in members:
        by_text.setdefault("".join(answer.source.split()), []).append(answer)
    most_frequent = sorted(by_text.values(), key=lambda same: (-len(same), same[0].student))
    return tuple(same[0] for same in most_frequent[:_REPRESENTATIVES])


def _sort_by_diagnosis(groups: Iterable[BehaviourGroup]) -> list[BehaviourGroup]:
    by_points = sorted(groups, key=lambda group: (-group.lost_points, group.key))
    first: dict[str, int] = {}
    for position, group in enumerate(by_points):
        first.setdefault(group.diagnosis or group.key, position)
    return sorted(by_points, key=lambda group: first[group.diagnosis or group.key])  # stable: most points first within
