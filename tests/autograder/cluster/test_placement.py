"""Who runs what, and whom a lost worker is laid to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from autograder.engine.interface import Submission
from autograder.grading.cluster.placement import Placement, Work


def works(names: Iterable[str]) -> Callable[[], Work | None]:
    waiting = iter([Work(Submission(name, "03", ""), name) for name in names])
    return lambda: next(waiting, None)


def given_out(placement: Placement, fresh: Callable[[], Work | None]) -> list[tuple[str, str, str]]:
    out = []
    while (placed := placement.assign_next(fresh)) is not None:
        out.append((placed[0], placed[1].digest, placed[1].key))
    return out


def test_each_worker_gets_one_to_run_before_any_gets_one_to_wait() -> None:
    placement = Placement()
    assert given_out(placement, works("abc")) == [], "nobody is there"
    placement.update_workers(["w1", "w2"])
    placement.update_workers(["w1"])
    assert {address for address, *_ in given_out(placement, works("ab"))} == {"w1"}, "w2 was missed once"
    placement = Placement()
    placement.update_workers(["w1", "w2"])
    out = given_out(placement, works("abcdefg"))
    assert [address for address, *_ in out] == ["w1", "w2", "w1", "w2"]
    assert placement.running == 4


def test_a_worker_that_leaves_in_peace_is_laid_to_nobody() -> None:
    placement = Placement()
    placement.update_workers(["w1"])
    [(_, _, key)] = given_out(placement, works("a"))
    assert placement.update_workers(["w2"]) == []  # its last words may be on their way
    assert placement.update_workers(["w2"]) == [key]
    assert placement.record_lost_worker(key) is None  # what comes too late counts for nothing
    [(address, _, again)] = given_out(placement, works(""))
    assert address == "w2"
    work = placement.finish(again)
    assert work is not None
    assert work.losses == 0


@given(
    st.lists(st.sampled_from(["done", "record_lost_worker", "record_failure", "again", "leave", "come"]), max_size=80),
    st.integers(1, 4),
)
def test_whatever_happens_every_submission_comes_to_one_end(events: list[str], number: int) -> None:
    placement = Placement()
    fresh = works(names := [f"s{index}" for index in range(12)])
    there = {f"w{index}" for index in range(number)}
    born, ended, keys = number, [], []
    placement.update_workers(there)
    for event in [*events, *["come"], *["done"] * 200]:
        keys += [key for _, _, key in given_out(placement, fresh)]
        if event == "come":
            born += 1
            there.add(f"w{born}")
        elif event == "leave" and there:
            there.remove(min(there))
        elif keys:
            key = keys.pop(0)
            if event == "done" and (work := placement.finish(key)) is not None:
                ended.append(work.digest)
            if (
                event in ("record_lost_worker", "record_failure")
                and (work := getattr(placement, event)(key)) is not None
            ):
                ended.append(work.digest)
            if event == "again":
                placement.requeue(key)
        placement.update_workers(there)
    assert sorted(ended) == sorted(names)
