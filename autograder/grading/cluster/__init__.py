"""Grade on several machines: a Dask scheduler distributes the same submissions to the same executors.

The network carries plain JSON: submissions on the way out, executions on the way back. Once per run, each worker also receives the
settings and the students' wheel. See ``docs/scale.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograder.errors import CourseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from autograder.engine.interface import Execution, Submission
    from autograder.engine.settings import GradingSettings
    from autograder.grading.cluster.worker_plugin import MakeExecutor


def executions_on_cluster(
    settings: GradingSettings, submissions: Iterable[Submission], make_executor: MakeExecutor | None = None
) -> Iterator[Execution]:
    """Run submissions on the workers of ``settings.scheduler``; see :func:`autograder.grading.cluster.run.run_on_cluster`.

    Args:
        settings: limits, device, seed, and the scheduler's address or ``"local"``.
        submissions: what to run; taken as needed.
        make_executor: makes what runs them; by default the executor of a single machine.

    Raises:
        CourseError: if Dask is not installed, and for all that ``run_on_cluster`` names.
    """
    try:
        # Whoever grades on one machine needs no Dask.
        from autograder.grading.cluster.run import run_on_cluster
    except ModuleNotFoundError as error:
        raise CourseError(
            f"grading with --scheduler needs Dask, and there is {str(error)[0].lower()}{str(error)[1:]}",
            do="Install it: pip install 'tfcourse[grading,scale]'",
        ) from error
    if make_executor is None:
        return run_on_cluster(settings, submissions)
    return run_on_cluster(settings, submissions, make_executor=make_executor)
