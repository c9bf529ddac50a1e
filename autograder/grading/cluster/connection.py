"""Connect to a Dask scheduler, or start one with workers on this machine."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dask.config
from distributed import Client, LocalCluster
from distributed.security import Security
from distributed.utils import LoopRunner

from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading.cluster.compatibility import list_software_differences, refuse_incompatible, software_versions

LOCAL = "local"
LOOPBACK = "127.0.0.1"
_CONNECT_SECONDS = 20
_CLOSE_SECONDS = 10
_LOOP_ATTEMPTS = 6


@contextmanager
def connect_client(settings: GradingSettings) -> Iterator[Client]:
    """Yield a client connected to the configured scheduler, and close it on exit.

    Args:
        settings: ``scheduler`` is an address, or ``"local"`` for as many workers on this machine as there are jobs.

    Raises:
        CourseError: if there is no such scheduler, or it has other versions than this machine.
    """
    assert settings.scheduler is not None
    with _event_loop() as loop:
        if settings.scheduler == LOCAL:
            with _local_cluster(settings.jobs, loop) as cluster, _open_client(cluster, LOCAL, loop) as client:
                yield client
        else:
            with _open_client(settings.scheduler, settings.scheduler, loop) as client:
                yield client


@contextmanager
def _event_loop() -> Iterator[Any]:
    # Dask starts one where it is given none, and fails without a word if its thread has not begun after ten seconds. A machine that its
    # host holds up takes longer at times; the next attempt finds it awake.
    for _ in range(_LOOP_ATTEMPTS):
        runner = LoopRunner()
        with suppress(AssertionError):
            runner.start()
            break
    else:
        raise CourseError(
            "Dask's event loop does not begin",
            where=f"{_LOOP_ATTEMPTS} attempts of 10 s",
            do="This machine has too much to do: wait, or take fewer --jobs.",
        )
    try:
        yield runner.loop
    finally:
        runner.stop(timeout=_CLOSE_SECONDS)


@contextmanager
def _local_cluster(jobs: int, loop: Any) -> Iterator[LocalCluster]:
    # Whoever reaches a scheduler can have it run code as its owner, also other users of this machine: so it takes a certificate to speak to
    # this one, which is made here, is never written to a file, and goes with it.
    security = Security.temporary()
    with tempfile.TemporaryDirectory(prefix="tfcourse-dask-", ignore_cleanup_errors=True) as folder:
        quiet: dict[str, object] = {f"distributed.{kind}.http.routes": [] for kind in ("scheduler", "worker")}
        # Dask listens for browsers even without a dashboard: here there is nothing to be seen.
        with dask.config.set({**quiet, "temporary-directory": folder}):
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                protocol="tls://",
                security=security,
                loop=loop,
                dashboard_address=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
                local_directory=folder,
                memory_limit=0,  # what a submission may have is the sandbox's business
                silence_logs=logging.CRITICAL,
            )
            try:
                yield cluster
            finally:
                cluster.close(timeout=_CLOSE_SECONDS)


@contextmanager
def _open_client(where: Any, name: str, loop: Any) -> Iterator[Client]:
    # Dask reports what goes wrong in its own words, and we in ours.
    logs = [logging.getLogger(log) for log in ("distributed.client", "distributed.core", "distributed.comm")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    client = None
    try:
        try:
            client = Client(where, loop=loop, timeout=_CONNECT_SECONDS, set_as_default=False, name="tfcourse")
            _prepare_scheduler(client, name)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise CourseError(
                f"no Dask scheduler answers there ({type(error).__name__}: {error})",
                where=name,
                do="Start one with `dask scheduler`, or use --scheduler local. Its address looks like tls://HOST:8786; "
                "for tls:// see docs/scale.md.",
            ) from error
        yield client
    finally:
        if client is not None:
            with suppress(Exception):
                client.close(timeout=_CLOSE_SECONDS)
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _prepare_scheduler(client: Client, name: str) -> None:
    try:
        described = client.run_on_scheduler(software_versions)
    except (ImportError, AttributeError) as error:
        refuse_incompatible({f"the scheduler {name}": [f"it has no tfcourse, or another one ({error})"]})
    else:
        refuse_incompatible({f"the scheduler {name}": list_software_differences(described)})
    client.run_on_scheduler(_report_every_loss)


def _report_every_loss(dask_scheduler: Any) -> None:
    """Make a scheduler report lost tasks immediately instead of retrying them: the grader decides on retries."""
    dask_scheduler.allowed_failures = 0
