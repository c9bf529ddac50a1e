"""Assign each submission to a named worker, so that submissions that may have crashed a worker are known.

Nothing here depends on Dask: it is bookkeeping, and can be tested as such.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autograder.engine.interface import Submission

# A worker has one submission that runs and one that waits, so that it never waits for the network or for the gradebook.
DEPTH = 2
# A submission that so many workers were lost with is given up. The second time it had the worker to itself.
LOSSES = 2
# A worker that leaves is first missed, for its last words may still be on their way.
_LOOKS = 2


@dataclass
class Work:
    """A submission and the attempts to grade it so far."""

    submission: Submission
    digest: str  # its hash, which identifies it
    tries: int = 0  # how often it was sent to a worker
    losses: int = 0  # how many workers died with it, or could not run it
    been: set[str] = field(default_factory=set)  # the workers to which it was sent

    @property
    def key(self) -> str:
        """The Dask key of the current try."""
        return f"tfcourse-{self.digest}-{self.tries}"


@dataclass
class _Worker:
    works: dict[str, Work] = field(default_factory=dict)
    missed: int = 0

    @property
    def is_reserved(self) -> bool:
        """Whether the worker runs a suspect, which must be alone."""
        return any(work.losses for work in self.works.values())


class Placement:
    """Tracks which worker has which submission.

    A worker that is lost leaves suspects: what it ran and what waited there. Each suspect runs again, alone on a worker. So one that
    kills its worker again is known to be the cause, and its neighbours come through.
    """

    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}
        self._where: dict[str, str] = {}
        self._suspects: deque[Work] = deque()
        self._again: deque[Work] = deque()

    @property
    def running(self) -> int:
        """The number of submissions assigned to workers."""
        return len(self._where)

    @property
    def waiting_count(self) -> int:
        """The number of submissions that wait to be sent again."""
        return len(self._suspects) + len(self._again)

    def find_worker(self, key: str) -> str | None:
        """Return the address of the worker that has a try; None if the try is no longer expected."""
        return self._where.get(key)

    def update_workers(self, addresses: Iterable[str]) -> list[str]:
        """Update the list of present workers.

        Args:
            addresses: all workers that can be given something.

        Returns:
            The keys of tries that will never come back, because their worker has left in peace. They will be placed again.
        """
        current = set(addresses)
        for address in sorted(current):
            self._workers.setdefault(address, _Worker()).missed = 0
        for address in self._workers.keys() - current:
            self._workers[address].missed += 1
        dropped = []
        for address in [name for name, worker in self._workers.items() if worker.missed >= _LOOKS]:
            for key, work in self._workers.pop(address).works.items():
                del self._where[key]
                self._requeue_work(work)
                dropped.append(key)
        return dropped

    def assign_next(self, fresh: Callable[[], Work | None]) -> tuple[str, Work] | None:
        """Return the next submission and the address of its worker; None without a free worker or a submission.

        Args:
            fresh: returns a submission that has not been run yet, or None if all have run; called only if a worker has a free slot.
        """
        if self._suspects:
            # Until a worker is free for a suspect, nobody gets more.
            return self._assign_suspect()
        address = self._free_worker()
        if address is None:
            return None
        work = self._again.popleft() if self._again else fresh()
        return None if work is None else self._assign_work(address, work)

    def finish(self, key: str) -> Work | None:
        """Remove a finished try from its worker and return its submission; None for a try that is not expected."""
        address = self._where.pop(key, None)
        return None if address is None else self._workers[address].works.pop(key)

    def record_lost_worker(self, key: str) -> Work | None:
        """Record that a worker was lost with a submission.

        Returns:
            The submission, if it is to be given up; else None, and it will be placed again.
        """
        if (address := self._where.get(key)) is not None:
            # Nothing more for this one: whether it is there again, the next look tells.
            self._workers[address].missed = max(1, self._workers[address].missed)
        return self.record_failure(key)

    def record_failure(self, key: str) -> Work | None:
        """Record that a worker did not finish a submission, whatever the reason.

        Returns:
            The submission, if it is to be given up; else None, and it will be placed again.
        """
        work = self.finish(key)
        if work is None:
            return None
        work.losses += 1
        if work.losses >= LOSSES:
            return work
        self._suspects.append(work)
        return None

    def requeue(self, key: str) -> None:
        """Requeue a submission whose result was lost through no fault of the submission."""
        if (work := self.finish(key)) is not None:
            self._requeue_work(work)

    def _requeue_work(self, work: Work) -> None:
        (self._suspects if work.losses else self._again).append(work)

    def _free_worker(self) -> str | None:
        """Return the least busy worker that is present and has a free slot."""
        load = {
            address: len(worker.works)
            for address, worker in self._workers.items()
            if not worker.missed and not worker.is_reserved and len(worker.works) < DEPTH
        }
        return min(load, key=lambda address: load[address], default=None)

    def _assign_suspect(self) -> tuple[str, Work] | None:
        """Assign a suspect to an idle worker, if possible to one that has not run it before."""
        idle = [address for address, worker in self._workers.items() if not worker.missed and not worker.works]
        if not idle:
            return None
        work = self._suspects.popleft()
        return self._assign_work(min(idle, key=lambda address: address in work.been), work)

    def _assign_work(self, address: str, work: Work) -> tuple[str, Work]:
        work.tries += 1
        work.been.add(address)
        self._workers[address].works[work.key] = work
        self._where[work.key] = address
        return address, work
